"""A log, a loop and a simulated annotator, played to the end and counted.

What `streamgp demo`, `streamgp replay` and the benchmarks have in common. Nothing is printed and
no file is opened here.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from connectors.annotated import AnnotatedLog
from connectors.broker import Received, Sink, Source
from connectors.runner import Loop, RunResult, run
from streamgp.interactive import AnswerQueue, Tally
from streamgp.interactive.annotators import Annotator
from streamgp.interactive.messages import Answer, Event, Input, Message, Prediction
from streamgp.report import Curve, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a run.

    Parameters
    ----------
    tally
        Counts over all events.
    by_key
        The same for each key, in order of appearance.
    result
        What was handed over, and how long the loop took.
    curve
        Accuracy and questions so far.

    """

    tally: Tally
    by_key: dict[str | None, Tally]
    result: RunResult
    curve: Curve

    def row(self, name: str) -> Row:
        """Return the line of the table."""
        return row_of(name, self.tally, self.result.microseconds_per_event)


def row_of(name: str, tally: Tally, microseconds: float | None) -> Row:
    """Return the line of the table for one tally."""
    return Row(
        name=name,
        n_events=tally.n_events,
        accuracy=tally.accuracy,
        macro_f1=tally.macro_f1,
        n_asked=tally.n_asked,
        n_challenges=tally.n_challenges,
        challenge_precision=tally.challenge_precision,
        wrong_kept=tally.wrong_kept,
        microseconds=microseconds,
    )


def play(
    loop: Loop,
    log: Source,
    annotator: Annotator,
    *,
    name: str,
    sink: Sink | None = None,
    on_event: Callable[[int], None] | None = None,
    curve_every: int = 10,
) -> Played:
    """Replay a log through a loop, with an annotator who answers its questions.

    Parameters
    ----------
    loop
        One loop, or keyed loops, with a fresh model.
    log
        Source of events with their truth.
    annotator
        Who answers.
    name
        Name of the curve.
    sink
        Where all messages go, answers included; None to drop them.
    on_event
        Called with the number of events so far.
    curve_every
        Number of events between two points of the curve; 0 for no curve.

    """
    counter = _Counter(sink, curve_every)
    source = AnnotatedLog(log, counter, AnswerQueue(annotator))

    def on_input(received: Received) -> None:
        if isinstance(received.message, Event):
            counter.event(received.message)
            if on_event is not None:
                on_event(counter.tally.n_events)

    result = run(loop, source, source, on_input=on_input)
    curve = Curve(
        name=name, n_events=counter.at, accuracy=counter.accuracy, questions=counter.asked
    )
    return Played(tally=counter.tally, by_key=counter.by_key, result=result, curve=curve)


class _Counter:
    """A sink that counts everything on its way to another."""

    def __init__(self, sink: Sink | None, curve_every: int) -> None:
        self._sink = sink
        self._curve_every = curve_every
        self.tally = Tally()
        self.by_key: dict[str | None, Tally] = {}
        self.at: list[int] = []
        self.accuracy: list[float] = []
        self.asked: list[int] = []

    def event(self, event: Event) -> None:
        self.by_key.setdefault(event.key, Tally()).event(event)
        self.tally.event(event)

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        # A row that could not be read has no key to be counted under.
        own = self.by_key.get(message.key)
        for tally in (self.tally,) if own is None else (self.tally, own):
            if isinstance(message, Answer):
                tally.answer(message)
            elif not isinstance(message, Event):
                tally.message(message)
        every = self._curve_every
        if every and isinstance(message, Prediction) and self.tally.n_events % every == 0:
            self._draw()
        if self._sink is not None:
            self._sink.send(message, cause=cause)

    def _draw(self) -> None:
        self.at.append(self.tally.n_events)
        self.accuracy.append(self.tally.accuracy or 0.0)
        self.asked.append(self.tally.n_asked + self.tally.n_challenges)

    def flush(self) -> None:
        if self._sink is not None:
            self._sink.flush()

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()


class EventSource:
    """Events at hand, as a source.

    Examples
    --------
    >>> source = EventSource([Event(event_id="1", x={}, occurred_at=5.0)])
    >>> [received.at for received in source.poll()], source.exhausted
    ([5.0], True)

    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = iter(events)
        self._next = next(self._events, None)

    def poll(self, timeout_s: float = 0.0) -> list[Received]:  # noqa: ARG002
        """Return the next event."""
        event, self._next = self._next, next(self._events, None)
        return [] if event is None else [Received(message=event, at=event.occurred_at)]

    @property
    def exhausted(self) -> bool:
        """Whether there is no further event."""
        return self._next is None

    def commit(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
