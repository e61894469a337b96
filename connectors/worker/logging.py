"""Log lines of a worker, and the file that shows that it is alive."""

from __future__ import annotations

import logging
from contextlib import suppress
from time import perf_counter
from typing import Any

from connectors.storage.snapshots import StateDirectory
from connectors.worker.metrics import WorkerMetrics

ALIVE = "alive"
"""File in the state directory that is touched at every turn, and while a restore gets on."""

_log = logging.getLogger("streamgp.worker")


class WorkerLog:
    """The log of a worker.

    Parameters
    ----------
    state
        Where the file is that shows life; None for nowhere.
    metrics
        Told of life, too.

    """

    def __init__(self, state: StateDirectory | None, metrics: WorkerMetrics | None = None) -> None:
        self._state = state
        self._metrics = metrics
        self._said_at = perf_counter()

    @property
    def quiet_s(self) -> float:
        """For how many seconds nothing was said."""
        return perf_counter() - self._said_at

    def info(self, event: str, **fields: Any) -> None:
        """Write a line about what is as it should be."""
        self._said_at = perf_counter()
        say(logging.INFO, event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Write a line that the operator should look at."""
        self._said_at = perf_counter()
        say(logging.WARNING, event, **fields)

    def show_life(self) -> None:
        """Touch the file that shows it."""
        if self._metrics is not None:
            self._metrics.show_life()
        if self._state is not None:
            with suppress(OSError):
                self._state.file(ALIVE).touch()


def say(level: int, event: str, **fields: Any) -> None:
    """Write a line into the log."""
    _log.log(level, event, extra={"fields": fields})


def in_ms(seconds: float) -> float:
    """Return milliseconds, rounded for the log.

    Examples
    --------
    >>> in_ms(0.0123456)
    12.35

    """
    return round(1e3 * seconds, 2)
