"""Log lines of a worker, and its heartbeat file."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from connectors.storage.snapshots import StateDirectory
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
