"""Time that counts for patience: only what passes while somebody waits."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class WakingClock:
    """A clock that goes on only as long as it is looked at.

    What did not come while a process was stopped, or busy with something else, was not waited for
    in vain. Between two looks no more time passes than `longest_s`.

    Parameters
    ----------
    longest_s
        Longer than whoever waits goes without a look, in seconds.
    clock
        Tells the true time.

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
        """Return the seconds that have passed since it was made."""
        now = self._clock()
        self._passed_s += min(self._longest_s, now - self._last)
        self._last = now
        return self._passed_s
