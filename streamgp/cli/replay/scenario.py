"""A log, a loop and a simulated annotator, played to the end and counted.

What `streamgp demo`, `streamgp replay` and the benchmarks have in common. Nothing is printed and
no file is opened here.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from connectors.broker import Received, Sink, Source
from connectors.runner import Loop, RunResult, run
from connectors.tables.annotated import AnnotatedLog
from streamgp.base import State
from streamgp.cli.replay.counting import CountingSink
from streamgp.cli.replay.points import Points
from streamgp.interactive import AnswerQueue, Tally
from streamgp.interactive.annotators import Annotator
from streamgp.interactive.judge import Target
from streamgp.interactive.messages import Event, Rejected
from streamgp.report import Row


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
    points
        How it went on: accuracy and questions so far.

    """

    tally: Tally
    by_key: dict[str | None, Tally]
    result: RunResult
    points: Points

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
        mae=tally.mae,
        nmse=tally.nmse,
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
    sink: Sink | None = None,
    on_event: Callable[[int], None] | None = None,
) -> Played:
    """Play a game from its beginning to its end; see `Game`."""
    return Game(loop, log, annotator, sink).play(on_event=on_event)


class Game:
    """A log replayed through a loop, with an annotator who answers its questions.

    It can be cut after any input: `state` says how far everything around the loop is, and
    `load_state` makes a new game with the loop of that moment go on from there.

    Parameters
    ----------
    loop
        One loop, or keyed loops.
    log
        Source of events with their truth, from the first one.
    annotator
        Who answers.
    sink
        Where all messages go, answers included; None to drop them.
    target
        What the labels are: `label`, names of classes, or `number`.

    """

    # _last_at  the latest time of any record handed over
    def __init__(
        self,
        loop: Loop,
        log: Source,
        annotator: Annotator,
        sink: Sink | None = None,
        *,
        target: Target = "label",
    ) -> None:
        self._loop = loop
        self._counter = CountingSink(sink, target)
        self._source = AnnotatedLog(log, self._counter, AnswerQueue(annotator))
        self._last_at: float | None = None

    def play(
        self,
        *,
        on_event: Callable[[int], None] | None = None,
        on_commit: Callable[[], None] | None = None,
    ) -> Played:
        """Play on to the end of the log, or until Ctrl-C.

        Parameters
        ----------
        on_event
            Called with the number of events so far.
        on_commit
            Called after every input with all that came of it: the game can be cut here.

        """
        counter = self._counter

        def on_input(received: Received) -> None:
            if not isinstance(received.message, Rejected):
                at = received.at
                self._last_at = at if self._last_at is None else max(self._last_at, at)
            if isinstance(received.message, Event):
                counter.event(received.message)
                if on_event is not None:
                    on_event(counter.tally.n_events)

        result = run(
            self._loop,
            self._source if on_commit is None else _Committing(self._source, on_commit),
            self._source,
            on_input=on_input,
            last_at=self._last_at,
        )
        return Played(
            tally=counter.tally, by_key=counter.by_key, result=result, points=counter.points
        )

    def state(self) -> State:
        """Return how far the game is, beside the loop's own snapshot."""
        return {
            "source": self._source.state(),
            "counts": self._counter.state(),
            "last_at": self._last_at,
        }

    def load_state(self, state: State, *, on_event: Callable[[int], None] | None = None) -> None:
        """Become what the state was taken from; the log is read again up to there.

        Parameters
        ----------
        state
            What `state` returned.
        on_event
            Called with the number of events read again so far.

        Raises
        ------
        ValueError
            If the log is shorter than it was.

        """
        self._counter.load_state(state["counts"])
        for n, event in enumerate(self._source.load_state(state["source"]), 1):
            self._counter.see(event)
            if on_event is not None:
                on_event(n)
        self._last_at = state["last_at"]


class _Committing:
    """A source that tells when everything polled from it is done with."""

    def __init__(self, source: Source, on_commit: Callable[[], None]) -> None:
        self._source = source
        self._on_commit = on_commit

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        return self._source.poll(timeout_s)

    @property
    def exhausted(self) -> bool:
        return self._source.exhausted

    def commit(self) -> None:
        self._source.commit()
        self._on_commit()

    def close(self) -> None:
        self._source.close()


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
