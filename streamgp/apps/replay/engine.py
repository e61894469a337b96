"""Replay engine: a log, a loop and a simulated annotator, run to the end, with statistics.

Shared by `streamgp demo`, `streamgp replay` and the benchmarks. Nothing is printed and no file is
opened here.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

from connectors.broker import Received, Sink, Source
from connectors.runner import RunResult, run
from connectors.tables.log_source import AnnotatedLog
from connectors.tables.readers import TableError
from streamgp.base import State, Target
from streamgp.common.annotator_error import Reliability, combined
from streamgp.evaluation import RunStatistics
from streamgp.evaluation.counts import Drifts
from streamgp.evaluation.run_statistics import SCORES
from streamgp.interactive import InteractiveLoop, KeyedLoops
from streamgp.interactive.messages import Answer, Event, Input, Message, Prediction, Rejected
from streamgp.interactive.people import LoopRules
from streamgp.report.charts import Curve
from streamgp.report.tables import Row
from streamgp.simulation import AnswerQueue
from streamgp.simulation.annotators import Annotator
from streamgp.simulation.driver import Loop

# --- Curve of a run, with a bounded number of points.


N_POINTS = 400


class Points:
    """Counts after every k-th event; k doubles when there are too many points.

    Examples
    --------
    >>> from streamgp.interactive import Event
    >>> statistics, points = RunStatistics(), Points(n_points=2)
    >>> for n in range(5):
    ...     statistics.event(Event(event_id=str(n), x={}, occurred_at=0.0))
    ...     points.note(statistics)
    >>> points.summary()["n_events"]
    [2, 4]

    """

    # _every  k.
    # _names  names of the counts; the second is the score.
    # _kept   their values, one row per point.

    def __init__(self, n_points: int = N_POINTS, target: Target = "label") -> None:
        self._n_points = n_points
        self._names = ("n_events", SCORES[target][0], "n_asked", "n_challenges")
        self._every = 1
        self._kept: list[list[Any]] = []

    def note(self, statistics: RunStatistics) -> None:
        """Record the counts after an event, if a point is due."""
        if statistics.n_events % self._every:
            return
        self._kept.append([getattr(statistics, name) for name in self._names])
        while len(self._kept) > self._n_points:
            self._every *= 2
            self._kept = [point for point in self._kept if point[0] % self._every == 0]

    def cut_back(self, statistics: RunStatistics) -> None:
        """Drop the points beyond the counts left after a key was subtracted.

        Counts never fall along a curve: the remaining points show the past, and further ones
        continue it.
        """
        left = [statistics.n_events, statistics.n_asked, statistics.n_challenges]
        self._kept = [
            point
            for point in self._kept
            if all(n <= limit for n, limit in zip((point[0], *point[2:]), left, strict=True))
        ]

    def summary(self) -> dict[str, list[Any]]:
        """Return the points as plain JSON values: parallel lists."""
        return {name: [point[i] for point in self._kept] for i, name in enumerate(self._names)}

    def curve(self, name: str) -> Curve:
        """Return the points as a curve to draw, without points at which nothing was scored yet."""
        return Curve(
            name=name,
            n_events=[n for n, _, _, _ in self._kept],
            accuracy=[nan if accuracy is None else accuracy for _, accuracy, _, _ in self._kept],
            questions=[n_asked + n_challenges for _, _, n_asked, n_challenges in self._kept],
        )

    def state(self) -> State:
        """Return the points and their distance."""
        return {"every": self._every, "kept": [list(point) for point in self._kept]}

    def load_state(self, state: State) -> None:
        self._every = state["every"]
        self._kept = [list(point) for point in state["kept"]]


# --- Counts of a replay: over all events, for each key, and over time.


class CountingSink:
    """A sink that counts all messages and passes them on to another sink.

    Call `event` with every event before the messages that result from it.

    Parameters
    ----------
    sink
        The other sink; None to drop all messages.
    target
        Type of the labels: `label`, names of classes, or `number`.
    asks_twice, horizon_s
        As in `RunStatistics`.

    Attributes
    ----------
    by_key
        The same for each key, in order of appearance.

    """

    # _first    id of the first counted event of each key
    # _to_come  those of them that have not been seen since the counts were loaded

    def __init__(
        self,
        sink: Sink | None = None,
        target: Target = "label",
        *,
        asks_twice: bool = False,
        horizon_s: float | None = None,
    ) -> None:
        self._sink = sink
        self._target = target
        self._horizon_s = horizon_s
        self.statistics = self._fresh(asks_twice=asks_twice)
        self.by_key: dict[str | None, RunStatistics] = {}
        self.points = Points(target=target)
        self._first: dict[str | None, str] = {}
        self._to_come: dict[str | None, str] = {}

    def event(self, event: Event) -> None:
        self._first.setdefault(event.key, event.event_id)
        self._of(event.key).event(event)
        self.statistics.event(event)

    def see(self, event: Event) -> None:
        """Record the truth of an event that a loaded state already counts."""
        own = self.by_key.get(event.key)
        if own is None:
            return  # the key has since been forgotten
        if self._to_come.get(event.key, event.event_id) != event.event_id:
            return  # the key was forgotten after this event, and has come back
        self._to_come.pop(event.key, None)
        own.see(event)
        self.statistics.see(event)

    def forget(self, key: str | None) -> RunStatistics | None:
        """Subtract a key from all counts, as if it had never occurred; return its counts."""
        own = self.by_key.pop(key, None)
        self._first.pop(key, None)
        if own is not None:
            self.statistics.remove(own)
            self.points.cut_back(self.statistics)
        return own

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        for statistics in self._statistics_for(message):
            if isinstance(message, Answer):
                statistics.answer(message)
            elif not isinstance(message, Event):
                statistics.message(message)
        if isinstance(message, Prediction):
            self.points.note(self.statistics)
        if self._sink is not None:
            self._sink.send(message, cause=cause)

    def state(self) -> State:
        """Return all counts, without the truths of events; see `RunStatistics.state`."""
        return {
            "tally": self.statistics.state(),
            "by_key": [[key, statistics.state()] for key, statistics in self.by_key.items()],
            "points": self.points.state(),
            "first": [[key, event_id] for key, event_id in self._first.items()],
        }

    def load_state(self, state: State) -> None:
        """Restore a state; then call `see` with its events again."""
        self.statistics.load_state(state["tally"])
        for key, statistics in state["by_key"]:
            self._of(key).load_state(statistics)
        self.points.load_state(state["points"])
        self._first = dict(state.get("first", ()))
        self._to_come = dict(self._first)

    def _statistics_for(self, message: Input | Message) -> tuple[RunStatistics, ...]:
        own = self.by_key.get(message.key)  # None for a row whose key could not be read
        if isinstance(message, Rejected) and message.key is not None:
            own = self._of(message.key)  # one of its rows may be the key's first
        return (self.statistics,) if own is None else (self.statistics, own)

    def _of(self, key: str | None) -> RunStatistics:
        own = self.by_key.get(key)
        if own is None:
            own = self.by_key[key] = self._fresh(asks_twice=self.statistics.asks_twice)
        return own

    def _fresh(self, *, asks_twice: bool) -> RunStatistics:
        return RunStatistics(self._target, asks_twice=asks_twice, horizon_s=self._horizon_s)

    def flush(self) -> None:
        if self._sink is not None:
            self._sink.flush()

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Result of a run.

    Parameters
    ----------
    by_key
        The same for each key, in order of appearance.
    result
        Counts of inputs, and the duration of the loop.
    reliability
        Estimated reliability of each annotator from all answers; empty if it cannot be estimated.
    drifts
        Concept drifts that the learners have found; None if there were none.
    weights
        Weights of the columns at the end, the largest first; empty if they count alike, or each key
        has its own.
    forms
        What columns count as that do not count as the numbers that they hold; likewise.
    damage
        Why the log could not be read to its end; None if it could.

    """

    statistics: RunStatistics
    by_key: dict[str | None, RunStatistics]
    result: RunResult
    points: Points
    reliability: Mapping[str | None, Reliability] = field(default_factory=dict)
    drifts: Drifts | None = None
    weights: Mapping[Any, float] = field(default_factory=dict)
    forms: Mapping[Any, Sequence[str]] = field(default_factory=dict)
    damage: TableError | None = None

    def row(self, name: str) -> Row:
        return row_of(name, self.statistics, self.result.microseconds_per_event)


def row_of(name: str, statistics: RunStatistics, microseconds: float | None) -> Row:
    return Row(
        name=name,
        n_events=statistics.n_events,
        accuracy=statistics.accuracy,
        macro_f1=statistics.macro_f1,
        mae=statistics.mae,
        nmse=statistics.nmse,
        n_asked=statistics.n_asked,
        n_challenges=statistics.n_challenges,
        challenge_precision=statistics.challenge_precision,
        wrong_kept=statistics.wrong_kept,
        microseconds=microseconds,
    )


# Each learner is restored if it was evicted, and evaluated by leaving out every example.
_MOST_LEARNERS = 100


def reliability_of(
    loop: InteractiveLoop | KeyedLoops, keys: Iterable[str | None]
) -> dict[str | None, Reliability]:
    """Return the reliability of each annotator, estimated by the learners from all answers.

    Empty if targets are numbers, and with more than 100 learners, which would take too long.
    """
    return combined(learner.estimate_annotators() for learner in _classifiers(loop, keys))


def drifts_of(loop: InteractiveLoop | KeyedLoops, keys: Iterable[str | None]) -> Drifts | None:
    """Return the drifts that the learners have found, None for none; as `reliability_of`."""
    found = [learner for learner in _classifiers(loop, keys) if learner.n_drifts]
    if not found:
        return None
    keyed = isinstance(loop, KeyedLoops) and loop.keyed
    since = None if keyed else found[0].examples()[found[0].n_outdated :]
    return Drifts(
        n_found=sum(learner.n_drifts for learner in found),
        n_outdated=sum(learner.n_outdated for learner in found),
        since=since[0].event_id if since else None,
        n_keys=len(found) if keyed else None,
    )


def columns_of(
    loop: InteractiveLoop | KeyedLoops, keys: Iterable[str | None]
) -> tuple[dict[Any, float], dict[Any, list[str]]]:
    """Return weights and forms of the columns; empty if they are usual, or each key has its own."""
    found = [] if isinstance(loop, KeyedLoops) and loop.keyed else _classifiers(loop, keys)
    return (found[0].feature_weights, found[0].feature_forms) if found else ({}, {})


def _classifiers(loop: InteractiveLoop | KeyedLoops, keys: Iterable[str | None]) -> list[Any]:
    """Return the skeptical classifiers of up to 100 loops; none of more."""
    if isinstance(loop, InteractiveLoop):
        learners: list[Any] = [loop.model]
    elif loop.n_keys > _MOST_LEARNERS:
        return []
    else:
        learners = [loop.learner(key) for key in (keys if loop.keyed else [None])]
    return [learner for learner in learners if hasattr(learner, "estimate_annotators")]


def baseline_rows(statistics: RunStatistics) -> list[Row]:
    """Return the rows of baselines that need no features; none if no truth is known."""
    return [
        Row(
            name=name,
            n_events=statistics.n_events,
            accuracy=scores.get("accuracy"),
            macro_f1=scores.get("macro_f1"),
            mae=scores.get("mae"),
            nmse=scores.get("nmse"),
        )
        for name, scores in statistics.baselines().items()
    ]


class _SavedLog(AnnotatedLog):
    """An annotated log that ends where it is damaged, so that the results before are not lost.

    It reports when everything polled from it has been processed.
    """

    on_commit: Callable[[], None] | None = None
    damage: TableError | None = None

    def _fetch(self, timeout_s: float) -> None:
        try:
            super()._fetch(timeout_s)
        except TableError as error:
            self.damage, self._log = error, EventSource(())

    def commit(self) -> None:
        super().commit()
        if self.on_commit is not None:
            self.on_commit()


class Replay:
    """A log replayed through a loop, with an annotator who answers its questions.

    It can be interrupted after any input: `state` returns the state of everything around the loop,
    and with it `load_state` lets a new replay, with the loop of that time, continue.

    Parameters
    ----------
    log
        Source of events with their truth, starting with the first one.
    sink
        Receives all messages, answers included; None to drop them.
    target
        Type of the labels: `label`, names of classes, or `number`.

    """

    # _last_at  the latest time of any record passed to the loop
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
        rules = loop.rules if isinstance(loop, InteractiveLoop | KeyedLoops) else LoopRules()
        horizon_s = rules.answer_horizon_s
        self._counter = CountingSink(
            sink, target, asks_twice=rules.people.asks_twice, horizon_s=horizon_s
        )
        queue = AnswerQueue(annotator, horizon_s=horizon_s)
        self._source = _SavedLog(log, self._counter, queue)
        self._last_at: float | None = None

    def run(
        self,
        *,
        on_event: Callable[[int], None] | None = None,
        on_commit: Callable[[], None] | None = None,
    ) -> Played:
        """Run to the end of the log, or until Ctrl-C.

        Parameters
        ----------
        on_event
            Called with the number of events so far.
        on_commit
            Called after every input and its results: the replay can be interrupted here.

        """
        counter = self._counter

        def on_input(received: Received) -> None:
            if not isinstance(received.message, Rejected):
                at = received.at
                self._last_at = at if self._last_at is None else max(self._last_at, at)
            if isinstance(received.message, Event):
                counter.event(received.message)
                if on_event is not None:
                    on_event(counter.statistics.n_events)

        self._source.on_commit = on_commit
        result = run(
            self._loop,
            self._source,
            self._source,
            on_input=on_input,
            last_at=self._last_at,
        )
        return Played(
            statistics=counter.statistics,
            by_key=counter.by_key,
            result=result,
            points=counter.points,
            damage=self._source.damage,
        )

    def state(self) -> State:
        """Return the state of the replay, besides the loop's own snapshot."""
        return {
            "source": self._source.state(),
            "counts": self._counter.state(),
            "last_at": self._last_at,
        }

    def load_state(self, state: State, *, on_event: Callable[[int], None] | None = None) -> None:
        """Restore a state; the log is read again up to its position.

        Parameters
        ----------
        on_event
            Called with the number of events read again so far.

        Raises
        ------
        ValueError
            If the log is shorter than before.

        """
        self._counter.load_state(state["counts"])
        for n, event in enumerate(self._source.load_state(state["source"]), 1):
            self._counter.see(event)
            if on_event is not None:
                on_event(n)
        self._last_at = state["last_at"]


class EventSource:
    """A source of given events.

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
        event, self._next = self._next, next(self._events, None)
        return [] if event is None else [Received(message=event, at=event.occurred_at)]

    @property
    def exhausted(self) -> bool:
        return self._next is None

    def commit(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
