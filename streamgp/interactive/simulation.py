"""Answers on their way: what simulated annotators have been asked and not yet said."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from streamgp.interactive.annotators import resumable
from streamgp.interactive.border import flaw_of_label
from streamgp.interactive.messages import Answer

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.annotators import Annotator
    from streamgp.interactive.messages import Event, Request


class AnswerQueue:
    """The answers of an annotator, in order of time.

    The truth of every event shown is kept for good: a later question may be about any of them.

    Parameters
    ----------
    annotator
        Whoever answers.

    Examples
    --------
    >>> from streamgp.interactive import AnswerQueue, Event, LabelRequest, SimulatedAnnotator
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

    # _truths   truth of every event that has one, by key and event id.
    # _waiting  heap of (answered_at, number, answer); numbers count the questions and put equal
    #           moments into the order of asking.
    # _n_asked  questions so far.

    def __init__(self, annotator: Annotator) -> None:
        self.annotator = annotator
        self._truths: dict[tuple[str | None, str], Label] = {}
        self._waiting: list[tuple[float, int, Answer]] = []
        self._n_asked = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def see(self, event: Event) -> None:
        """Show an event to the annotator, before anything is asked about it.

        Of a truth that is no label nobody can say it, and the annotator declines.
        """
        if event.truth is not None and flaw_of_label(event.truth) is None:
            self._truths[event.key, event.event_id] = event.truth
            self.annotator.see(event.truth)

    def ask(self, request: Request, now: float) -> None:
        """Hand a label request or challenge to the annotator at a moment."""
        truth = self._truths.get((request.key, request.event_id))
        answer = self.annotator.answer(request, truth, now)
        self._n_asked += 1
        heapq.heappush(self._waiting, (answer.answered_at, self._n_asked, answer))

    def due(self, until: float) -> Iterator[Answer]:
        """Yield, and remove, the answers given by a moment; also those asked for meanwhile."""
        while self._waiting and self._waiting[0][0] <= until:
            yield heapq.heappop(self._waiting)[2]

    def next_at(self) -> float | None:
        """Return the moment of the next answer, or None if nothing is asked."""
        return self._waiting[0][0] if self._waiting else None

    def state(self) -> State:
        """Return the answers on their way, the number of questions, and the annotator's state.

        The truths of the events are no part of it: on a restart the log is read again. Tell `see`
        of every event before the cut once more, before or after `load_state`.

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
        """Become what the state was taken from, but for the truths."""
        resumable(self.annotator).load_state(state["annotator"])
        self._n_asked = state["n_asked"]
        answers = [(number, Answer(**fields)) for number, fields in state["waiting"]]
        # In order of time and number: a sorted list is a heap.
        self._waiting = [(answer.answered_at, number, answer) for number, answer in answers]
