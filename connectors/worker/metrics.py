"""Metrics of a worker: what it has committed, and how it gets on, in plain numbers.

The thread of the worker writes them and other threads read them, under one lock. What is counted
was committed: it is counted after the commit, so that a worker that is killed has never counted
what it did not do. Without metrics nothing of this is kept or computed.

"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from time import monotonic

from connectors.topics import Outgoing, Place, TopicName, WorkerClient
from connectors.worker.batch import Batch, Heard
from connectors.worker.partition import Partition
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    LabelledExample,
    Message,
    Rejected,
)

PHASES = ("poll", "decode", "loop", "state", "commit")
"""Phases of a batch: waiting for records; bytes become messages; loops and learners work on them,
and what they say becomes bytes; what has changed in them is collected; all of it is written."""
DURATIONS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
HEALTHY_S = 60.0
"""A worker without a cycle for so long hangs, as its file `alive` says, too."""
_LOOK_EVERY_S = 1.0


class Histogram:
    """Histogram of numbers.

    Parameters
    ----------
    bounds
        Upper bounds of its buckets; a last one has none.

    Attributes
    ----------
    total
        Sum of the numbers.

    Examples
    --------
    >>> histogram = Histogram((0.1, 1.0))
    >>> for seconds in (0.1, 0.5, 7.0):
    ...     histogram.observe(seconds)
    >>> histogram.cumulated(), round(histogram.total, 1)
    ([1, 2, 3], 7.6)

    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.total = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count a number."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulated(self) -> list[int]:
        """Return how many numbers were at most as large as each bound, and how many there were."""
        n, found = 0, []
        for count in self._counts:
            n += count
            found.append(n)
        return found


def result_of(messages: Iterable[Message]) -> str:
    """Return what became of an answer.

    It was `learned` or `challenged`; `duplicate` (sent again, and dropped) or `refused` (a dead
    letter); or `noted`, where it taught nothing: it declined, or repeated what was known.

    Examples
    --------
    >>> result_of([Rejected(subject="a1", fault="late", reason="too late", at=9.0)])
    'refused'
    >>> result_of([])
    'noted'

    """
    result = "noted"
    for message in messages:
        if isinstance(message, Rejected):
            return "duplicate" if message.fault == "duplicate" else "refused"
        if isinstance(message, LabelledExample):
            result = "learned"
        elif isinstance(message, Challenge):
            result = "challenged"
    return result


class WorkerMetrics:
    """Metrics of one worker, from its start.

    Parameters
    ----------
    clock
        Tells the seconds that pass.

    Attributes
    ----------
    events, predictions, duplicates
        What was committed; duplicates are answers that were sent again.
    answers
        Answers by result, see `result_of`.
    dead_letters
        Dead letters by stage.
    durations
        Durations of batches in seconds, by phase.
    restores
        Durations of restores in seconds.
    rebalances
        How often the assignment of partitions has changed.
    committed_at
        When a batch was committed last, POSIX seconds; None for never.
    lags
        Records that wait in each partition of the inputs, by the topic's name on the broker.
    stuck
        Those of these partitions that have records and yield none.
    keys
        Keys by where their loops are: `ready` in memory, or `evicted`.
    is_ready
        Whether the partitions assigned to the worker are restored.

    """

    # _lived_at     when the worker last began a cycle, or a restore got on
    # _looked_at    when gauges were last brought up to date
    # _assigned_at  when partitions last came or went
    # _lock         held while a batch is counted, or all is read
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.events = self.predictions = self.duplicates = self.rebalances = 0
        self.answers: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self.durations = {phase: Histogram(DURATIONS_S) for phase in PHASES}
        self.restores = Histogram((0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0))
        self.committed_at: float | None = None
        self.lags: dict[tuple[str, int], int] = {}
        self.stuck: frozenset[tuple[str, int]] = frozenset()
        self.keys = {"ready": 0, "evicted": 0}
        self.is_ready = False
        self._clock = clock
        self._lived_at = self._looked_at = self._assigned_at = clock()
        self._lock = Lock()

    def reading(self) -> AbstractContextManager[object]:
        """Return a context within which no batch is counted."""
        return self._lock

    @property
    def is_alive(self) -> bool:
        """Whether there was a cycle within the last minute."""
        return self._clock() - self._lived_at <= HEALTHY_S

    # --- written by the worker

    def show_life(self) -> None:
        """Record that a cycle begins, or a restore gets on."""
        self._lived_at = self._clock()

    def note_assignment(self) -> None:
        """Record that partitions have come or gone; any that have come are restored now."""
        self.rebalances += 1
        self.is_ready = False
        self._assigned_at = self._clock()

    def note_restored(self, *, n: int) -> None:
        """Record that all partitions are restored, of which so many have come."""
        if n:
            with self._lock:
                self.restores.observe(self._clock() - self._assigned_at)
        self.is_ready = True

    def note_batch(
        self, batch: Batch, outgoing: Sequence[Outgoing], took_s: Mapping[str, float], at: float
    ) -> None:
        """Count a batch that is committed.

        Parameters
        ----------
        batch
            The batch.
        outgoing
            What it has written.
        took_s
            Seconds that it took, by phase.
        at
            The time, POSIX seconds.

        """
        with self._lock:
            self.committed_at = at
            for phase, seconds in took_s.items():
                self.durations[phase].observe(seconds)
            self.events += batch.counts["events"]
            self.predictions += batch.counts["predictions"]
            self.duplicates += batch.counts["duplicates"]
            if batch.counts["dead_letters"]:
                self.dead_letters.update(_stages(outgoing))
            for heard in batch.heard:
                self._count(heard)

    def look(
        self,
        client: WorkerClient,
        partitions: Iterable[Partition],
        stuck: Iterable[Place],
        names: Mapping[TopicName, str],
    ) -> None:
        """Bring up to date what goes up and down, once a second at most."""
        now = self._clock()
        if now - self._looked_at < _LOOK_EVERY_S:
            return
        self._looked_at = now
        # Replaced as a whole: what is read meanwhile is one or the other.
        self.lags = {
            (names[topic], number): n
            for (topic, number), n in client.lag().items()
            if n is not None
        }
        self.stuck = frozenset((names[topic], number) for topic, number in stuck)
        all_loops = [partition.loops for partition in partitions]
        n_ready = sum(len(loops.loops) for loops in all_loops)
        n_keys = sum(loops.n_keys for loops in all_loops)
        self.keys = {"ready": n_ready, "evicted": n_keys - n_ready}

    def _count(self, heard: Heard) -> None:
        if isinstance(heard.said, Answer):
            self.answers[result_of(heard.messages)] += 1


def _stages(outgoing: Iterable[Outgoing]) -> list[str]:
    """Return the stage of each dead letter."""
    return [
        dict(out.headers)["dlq.stage"].decode() for out in outgoing if out.topic == "dead-letters"
    ]
