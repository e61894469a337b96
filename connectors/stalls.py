"""Stall detection: how long partitions have not advanced, and a clock of the time spent waiting."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from time import monotonic
from typing import Generic, TypeVar

_Place = TypeVar("_Place", bound=Hashable)

STALL_S = 30.0
"""A partition with waiting inputs and no progress for this long is worth a warning."""


class StallTracker(Generic[_Place]):
    """Records since when each place has been at its current position.

    Examples
    --------
    >>> tracker = StallTracker()
    >>> tracker.update({"a": 7, "b": 3}, now=0.0)
    >>> tracker.update({"a": 7, "b": 4}, now=40.0)
    >>> tracker.still(now=45.0)
    {'a': 45.0, 'b': 5.0}

    """

    # _since  the position of each place, and when it was first seen there

    def __init__(self) -> None:
        self._since: dict[_Place, tuple[int, float]] = {}

    def update(self, positions: Mapping[_Place, int], now: float) -> None:
        """Record the positions of the places that should advance; forget all others."""
        since = self._since
        self._since = {
            place: since[place] if since.get(place, (None,))[0] == position else (position, now)
            for place, position in positions.items()
        }

    def still(self, now: float) -> dict[_Place, float]:
        """Return for how many seconds each place has not advanced."""
        return {place: now - at for place, (_, at) in self._since.items()}


class WakingClock:
    """A clock that advances only while it is read regularly.

    Time during which a process was stopped, or busy with something else, must not count as time
    spent waiting. Between two readings the clock advances by at most `longest_s`.

    Parameters
    ----------
    longest_s
        Upper bound of the time between two readings while the caller waits, in seconds.
    clock
        Returns the actual time, in seconds.

    Examples
    --------
    >>> times = iter([100.0, 100.5, 160.0, 160.5])
    >>> clock = WakingClock(1.0, lambda: next(times))
    >>> clock(), clock(), clock()
    (0.5, 1.5, 2.0)

    """

    def __init__(self, longest_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._longest_s = longest_s
        self._clock = clock
        self._last = clock()
        self._passed_s = 0.0

    def __call__(self) -> float:
        """Return the seconds that have passed since the clock was created."""
        now = self._clock()
        self._passed_s += min(self._longest_s, now - self._last)
        self._last = now
        return self._passed_s
