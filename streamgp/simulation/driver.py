"""Driver of a loop, and queue of simulated answers, in the time of a log.

A replay, `interactive_val_score` and the benchmarks drive their loops with it: inputs in the order
of a log, with deadlines at their time between them. Time is that of the inputs: before an input of
time t, whatever was due before t ends, a millisecond after it was due.

"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import asdict
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, Protocol

from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Event,
    Input,
    LabelRequest,
    Message,
    answer_of,
)
from streamgp.interactive.recent_events import RecentEvents
from streamgp.interactive.validation import flaw_of_label, is_finite
from streamgp.simulation.annotators import Annotator, resumable

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import Request

TICK_S = 1e-3


class Loop(Protocol):
    """Protocol of a loop to drive: an `InteractiveLoop`, or `KeyedLoops`."""

    def on_event(
        self, event: Event, now: float, *, written_at: float | None = None
    ) -> list[Message]:
        """Take an event."""

    def on_answer(
        self, answer: Answer, now: float, *, written_at: float | None = None
    ) -> list[Message]:
        """Take an answer."""

    def on_cancel(
        self, request_id: str, now: float, *, key: str | None = None, why: str = ...
    ) -> list[Message]:
        """Take a question back."""

    def on_time(self, now: float) -> list[Message]:
        """End everything that was due before `now`."""

    def next_deadline(self) -> float | None:
        """Return the time after which `on_time` has something to do."""


class Driver:
    """Passes inputs to a loop, and its messages to a function.

    Parameters
    ----------
    loop
        The loop.
    send
        Called with every message of the loop and the time at which it was returned.

    Examples
    --------
    >>> from streamgp import InteractiveLoop, isgp
    >>> driver = Driver(
    ...     InteractiveLoop(isgp(seed=1), expires_after_s=60.0),
    ...     lambda message, now: print(type(message).__name__, now),
    ... )
    >>> driver.take(Event(event_id="e1", x={"a": 0.5}, occurred_at=0.0), 0.0)
    Prediction 0.0
    LabelRequest 0.0
    >>> driver.end_before(100.0)
    Expired 60.001

    """

    def __init__(self, loop: Loop, send: Callable[[Message, float], None]) -> None:
        self._loop = loop
        self._send = send

    def take(self, message: Input, at: float) -> None:
        """End everything due before an input, then pass it to the loop at its time."""
        self.end_before(at)
        self.hand_over(message, at)

    def hand_over(self, message: Input, at: float, *, written_at: float | None = None) -> None:
        """Pass an input to the loop at its time, with the time of writing if a clock told it."""
        loop = self._loop
        if isinstance(message, Event):
            said = self._call(loop.on_event, message, at, written_at=written_at)
        elif isinstance(message, Answer):
            said = self._call(loop.on_answer, message, at, written_at=written_at)
        else:
            said = self._call(
                loop.on_cancel, message.request_id, at, key=message.key, why=message.why
            )
        self._pass_on(said, at)

    def end_before(self, now: float) -> None:
        """End everything that was due before `now`, in turn, and pass the time on."""
        while (deadline := self._loop.next_deadline()) is not None and deadline < now:
            self._tell(min(now, just_after(deadline)))
        # Nothing more is due, but loops that are not held ready learn that time has passed.
        self._tell(now)

    def _tell(self, now: float) -> None:
        self._pass_on(self._call(self._loop.on_time, now), now)

    def _pass_on(self, messages: list[Message], now: float) -> None:
        for message in messages:
            self._send(message, now)

    def _call(
        self, function: Callable[..., list[Message]], *arguments: Any, **options: Any
    ) -> list[Message]:
        """Call the loop; a subclass may measure it."""
        return function(*arguments, **options)


def just_after(deadline: float) -> float:
    """Return a time past a deadline, even where a float has no digits left for a millisecond."""
    return max(deadline + TICK_S, nextafter(deadline, inf))


class AnswerQueue:
    """The answers of an annotator, in order of time.

    Parameters
    ----------
    annotator
        The annotator who answers.
    horizon_s
        `answer_horizon_s` of the loop that asks. Without it the truth of every event shown is kept
        for good: a later question may be about any of them.

    Examples
    --------
    >>> from streamgp.interactive import Event, LabelRequest
    >>> from streamgp.simulation import AnswerQueue, SimulatedAnnotator
    >>> queue = AnswerQueue(SimulatedAnnotator(delay=30.0))
    >>> queue.see(Event(event_id="e1", x={}, occurred_at=100.0, truth="hall"))
    >>> queue.ask(
    ...     LabelRequest(
    ...         request_id="e1/label", event_id="e1", x={}, reason="", score=1.0, threshold=0.0,
    ...         requested_at=100.0,
    ...     ),
    ...     now=100.0,
    ... )
    >>> queue.next_at(), list(queue.due(129.0)), [answer.y for answer in queue.due(130.0)]
    (130.0, [], ['hall'])

    """

    # _truths   truths of the events that may be asked about.
    # _waiting  heap of (answered_at, number, answer); numbers count the questions and put those
    #           of equal time into the order of asking.
    # _n_asked  questions so far.

    def __init__(self, annotator: Annotator, *, horizon_s: float | None = None) -> None:
        self.annotator = annotator
        self._truths: RecentEvents[Label] = RecentEvents(horizon_s)
        self._waiting: list[tuple[float, int, Answer]] = []
        self._n_asked = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def see(self, event: Event) -> None:
        """Show an event to the annotator, before anything is asked about it.

        If the truth is not a label, it cannot be answered, and the annotator declines.
        """
        if event.truth is not None and flaw_of_label(event.truth) is None:
            self._truths.put(event, event.truth)
            self.annotator.see(event.truth)

    def ask(self, request: Request, now: float) -> None:
        """Put a label request or challenge to the annotator at a given time.

        This has no effect if the question is asked again while an answer that counts is under way.
        A second question whose answer would not be taken, because the annotator has answered the
        first one, is not answered.
        """
        if isinstance(request, LabelRequest) and request.excluded:
            name = request.key, request.request_id
            for _, _, given in self._waiting:
                if _question_of(given) == name and given.annotator not in request.excluded:
                    return
        truth = self._truths.get((request.key, request.event_id))
        answer = self.annotator.answer(request, truth, now)
        if not (answer is None or isinstance(answer, Answer)):
            raise TypeError(
                f"{type(self.annotator).__name__}.answer must return an Answer or None, got "
                f"{answer!r}"
            )
        if answer is not None and not is_finite(answer.answered_at):  # it would never be due
            raise ValueError(
                f"{type(self.annotator).__name__}.answer must return an Answer with a finite "
                f"answered_at, got {answer.answered_at!r}"
            )
        self._n_asked += 1
        if answer is None or not _is_taken(request, answer.annotator):
            return
        heapq.heappush(self._waiting, (answer.answered_at, self._n_asked, answer))

    def cancel(self, cancel: Cancel) -> None:
        """Drop the answer to a question that was taken back before it was given."""
        name = cancel.key, cancel.request_id
        self._waiting = [each for each in self._waiting if _question_of(each[2]) != name]
        heapq.heapify(self._waiting)

    def due(self, until: float) -> Iterator[Answer]:
        """Yield and remove the answers given by `until`, including to questions asked meanwhile."""
        while self._waiting and self._waiting[0][0] <= until:
            yield heapq.heappop(self._waiting)[2]

    def next_at(self) -> float | None:
        """Return the time of the next answer, or None if there is none."""
        return self._waiting[0][0] if self._waiting else None

    def state(self) -> State:
        """Return the pending answers, the number of questions, and the annotator's state.

        The truths of the events are not part of it: on a restart the log is read again. Pass
        every event before the cut to `see` again, before or after `load_state`.

        Raises
        ------
        TypeError
            If the annotator cannot be saved.

        """
        return {
            "annotator": resumable(self.annotator).state(),
            "n_asked": self._n_asked,
            "waiting": [[number, asdict(answer)] for _, number, answer in sorted(self._waiting)],
        }

    def load_state(self, state: State) -> None:
        """Restore what `state` returned, except the truths."""
        resumable(self.annotator).load_state(state["annotator"])
        self._n_asked = state["n_asked"]
        answers = [(number, answer_of(fields)) for number, fields in state["waiting"]]
        # In order of time and number: a sorted list is a heap.
        self._waiting = [(answer.answered_at, number, answer) for number, answer in answers]


def _is_taken(request: Request, annotator: str | None) -> bool:
    """Whether the answer of an annotator is taken, as far as the request itself tells."""
    # An annotator in quarantine answers first questions if there is no other annotator.
    if isinstance(request, LabelRequest) and request.is_second:
        return request.may_answer(annotator)
    return True


def _question_of(answer: Answer) -> tuple[str | None, str | None]:
    return answer.key, answer.request_id
