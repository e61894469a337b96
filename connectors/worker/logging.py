"""Log lines of a worker, among them what keeps it from its inputs, and its heartbeat file."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Thread
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from connectors.stalls import STALL_S, WakingClock
from connectors.storage.snapshots import StateDirectory
from connectors.topics import (
    BrokerError,
    Obstacle,
    OffsetReset,
    Place,
    Record,
    Silence,
    StalledPartition,
    TopicName,
    WorkerClient,
)
from streamgp.common.private_files import FILE_MODE

if TYPE_CHECKING:
    from connectors.worker.metrics import WorkerMetrics

ALIVE = "alive"
"""Heartbeat file in the state directory, touched in every cycle and while a restore advances."""

_SUMMARY_EVERY_S = 1.0

_log = logging.getLogger("streamgp.worker")


class WorkerLog:
    """The log of a worker.

    Parameters
    ----------
    state
        Directory of the heartbeat file; None for no file.
    metrics
        Also notified of each heartbeat.

    """

    def __init__(self, state: StateDirectory | None, metrics: WorkerMetrics | None = None) -> None:
        self._state = state
        self._metrics = metrics
        self._said_at = perf_counter()

    @property
    def quiet_s(self) -> float:
        """Seconds since the last line."""
        return perf_counter() - self._said_at

    def info(self, event: str, **fields: Any) -> None:
        """Write a line about normal operation."""
        self._said_at = perf_counter()
        say(logging.INFO, event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Write a line that needs the operator's attention."""
        self._said_at = perf_counter()
        say(logging.WARNING, event, **fields)

    def show_life(self) -> None:
        """Touch the heartbeat file."""
        if self._metrics is not None:
            self._metrics.show_life()
        if self._state is not None:
            with suppress(OSError):
                self._state.file(ALIVE).touch(mode=FILE_MODE)


class BatchSummary:
    """Summarizes committed batches in at most one log line per second.

    Parameters
    ----------
    lag
        Returns how many inputs are waiting.

    """

    # _n, _counts, _partitions, _took_s  sums over the batches since the last line
    # _next                              when the next line may be written, by perf_counter

    def __init__(self, log: WorkerLog, lag: Callable[[], int]) -> None:
        self._log = log
        self._lag = lag
        self._next = 0.0
        self._start_over()

    def note(
        self, counts: Mapping[str, int], partitions: Iterable[int], took_s: Mapping[str, float]
    ) -> None:
        """Add a batch: its counts, its partitions, and the seconds of its phases."""
        self._n += 1
        self._counts.update(counts)
        self._partitions.update(partitions)
        for phase, seconds in took_s.items():
            self._took_s[phase] += seconds

    def write_when_due(self) -> None:
        """Write a line if there are new batches and the last line is at least a second old."""
        if self._n and perf_counter() >= self._next:
            self.write()

    def write(self) -> None:
        """Write a line about the remaining batches."""
        if not self._n:
            return
        took_s = self._took_s
        fields: dict[str, Any] = {
            "work_ms": in_ms(took_s["decode"] + took_s["loop"] + took_s["state"]),
            "commit_ms": in_ms(took_s["commit"]),
        }
        with suppress(OSError):  # without the broker, the batches are still reported
            fields["lag"] = self._lag()
        partitions = sorted(self._partitions)
        self._log.info("batch", batches=self._n, partitions=partitions, **self._counts, **fields)
        self._next = perf_counter() + _SUMMARY_EVERY_S
        self._start_over()

    def _start_over(self) -> None:
        self._n = 0
        self._counts: Counter[str] = Counter()
        self._partitions: set[int] = set()
        self._took_s: defaultdict[str, float] = defaultdict(float)


def say(level: int, event: str, /, **fields: Any) -> None:
    """Write a line to the log: an event with its fields."""
    _log.log(level, event, extra={"fields": fields})


def in_ms(seconds: float) -> float:
    """Return milliseconds, rounded for the log.

    Examples
    --------
    >>> in_ms(0.0123456)
    12.35

    """
    return round(1e3 * seconds, 2)


# --- Reports of partitions that yield no inputs, and of inputs that were deleted.


_LOOK_EVERY_S = 1.0
REPEAT_S = 300.0


class ProgressReports:
    """Writes to a worker's log what keeps it from its inputs.

    Parameters
    ----------
    read_to
        Returns how far a partition of a topic, by its name on the broker, was read at least
        according to a snapshot; None if that is not known.

    Attributes
    ----------
    n_missed
        How many inputs were deleted before they were read.

    """

    # _said      when the warning about a partition was last written, with its topic's name
    # _asked_at  when the client was last asked
    # _away_at   when the warning about a broker that does not answer was last written

    def __init__(
        self,
        client: WorkerClient,
        log: WorkerLog,
        read_to: Callable[[tuple[str, int]], int | None],
    ) -> None:
        self._client = client
        self._log = log
        self._read_to = read_to
        self.n_missed = 0
        self._said: dict[Place, tuple[float, str]] = {}
        self._asked_at = 0.0
        self._away_at: float | None = None

    @property
    def stuck(self) -> Iterable[Place]:
        """The partitions that have records but yield none."""
        return self._said

    def look(self) -> None:
        """Report what is new; to be called after every poll."""
        begun = self._client.begun()
        if begun:
            self._say_begun(begun)
        now = monotonic()
        if now - self._asked_at >= _LOOK_EVERY_S:
            self._asked_at = now
            self._say_away(self._client.silence(), now)
            self._say_stalled(
                {(each.topic, each.partition): each for each in self._client.stalled()}
            )

    def _say_away(self, silence: Silence | None, now: float) -> None:
        if silence is None:
            if self._away_at is not None:
                self._away_at = None
                self._log.info("broker-back")
        elif silence.since_s >= STALL_S and (
            self._away_at is None or now - self._away_at >= REPEAT_S
        ):
            self._away_at = now
            self._log.warning(
                "broker-away",
                away_s=round(silence.since_s),
                reason=silence.reason,
                consequence="waits for it; how many records wait is not known",
            )

    def _say_begun(self, begun: Sequence[OffsetReset]) -> None:
        fresh: dict[str, dict[int, int]] = {}
        for each in begun:
            if each.position is None:
                fresh.setdefault(each.topic, {})[each.partition] = each.offset
            elif each.position == each.offset:
                self._log.warning(
                    "position-set",
                    topic=each.topic,
                    partition=each.partition,
                    offset=each.offset,
                    **self._skipped(each),
                    reason="another program has set where the group reads on",
                    consequence="if that is further on, the inputs skipped are never predicted",
                )
            else:
                n = each.offset - each.position
                self.n_missed += n
                self._log.warning(
                    "missed",
                    topic=each.topic,
                    partition=each.partition,
                    n=n,
                    first=each.position,
                    last=each.offset - 1,
                    reason="these records were deleted before they were read",
                    consequence="continues with the first one that exists",
                )
        if fresh:
            self._log.info(
                "begins", offsets=fresh, reason="the group has no position in these partitions"
            )

    def _skipped(self, begun: OffsetReset) -> dict[str, int]:
        """Return where a worker had read on, and the number of offsets skipped, if known."""
        before = self._read_to((begun.topic, begun.partition))
        return {} if before is None else {"was": before, "n": max(0, begun.offset - before)}

    def _say_stalled(self, stalled: dict[Place, StalledPartition]) -> None:
        now = monotonic()
        for place in [place for place in self._said if place not in stalled]:
            _, called = self._said.pop(place)
            self._log.info("progressing", topic=called, partition=place[1])
        due = [
            place
            for place in stalled
            if place not in self._said or now - self._said[place][0] >= REPEAT_S
        ]
        if not due:
            return
        obstacles: dict[Place, Obstacle] = {}
        with suppress(BrokerError):
            obstacles = self._client.obstacles(due)
        for place in due:
            each, obstacle = stalled[place], obstacles.get(place)
            self._said[place] = now, each.called
            self._log.warning(
                "stuck",
                topic=each.called,
                partition=each.partition,
                offset=each.offset,
                waiting=each.n_waiting,
                still_s=round(each.still_s),
                reason="the broker does not say why" if obstacle is None else obstacle.text,
            )


# --- Reports of an input that takes too long.


class SlowInputs:
    """Thread that writes to a worker's log which input keeps it from all others.

    A learner or a rule that does not come to an end keeps the worker from everything, until its
    supervisor restarts it and it meets the same input again.

    Parameters
    ----------
    names
        Names of the topics on the broker.

    Attributes
    ----------
    current
        The input being processed; the worker sets it to None between batches.

    """

    # _clock  time spent working: a process that was stopped has not been slow
    def __init__(self, log: WorkerLog, names: Mapping[TopicName, str]) -> None:
        self.current: Record | None = None
        self._log = log
        self._names = names
        self._clock = WakingClock(2 * _LOOK_EVERY_S)
        self._is_over = Event()
        Thread(target=self._watch, name="streamgp: slow inputs", daemon=True).start()

    def begin(self, record: Record) -> None:
        """Note the input that is processed from now on."""
        self.current = record

    def close(self) -> None:
        """End the thread."""
        self._is_over.set()

    def _watch(self) -> None:
        seen, since, due = None, 0.0, STALL_S
        while not self._is_over.wait(_LOOK_EVERY_S):
            record, now = self.current, self._clock()
            if record is not seen:
                seen, since, due = record, now, STALL_S
            elif record is not None and now - since >= due:
                due += REPEAT_S
                self._log.warning(
                    "slow-input",
                    topic=self._names.get(record.topic, record.topic),
                    partition=record.partition,
                    offset=record.offset,
                    busy_s=round(now - since),
                    consequence="all inputs of this worker wait for the learner or a rule",
                )
