"""How much came when: a count for each second of the last minutes."""

from __future__ import annotations

_BARS = " ▁▂▃▄▅▆▇█"
_RECENT_S = 10


class Flow:
    """Counts of something in time.

    Parameters
    ----------
    since
        When the counting began, POSIX seconds.
    span_s
        How far back it reaches.

    Attributes
    ----------
    span_s
        How far back it reaches.
    n
        Number counted.

    Examples
    --------
    >>> flow = Flow(since=100.0)
    >>> for at in (100.5, 104.0, 104.2, 104.5):
    ...     flow.note(at)
    >>> flow.rate(105.0)
    0.8
    >>> flow.bars(108.0, width=60)[-2:]
    '▃█'

    """

    # _counts  number by whole second; no more of them than _span_s, and those to come

    def __init__(self, since: float, *, span_s: int = 300) -> None:
        self.span_s = span_s
        self.n = 0
        self._since = since
        self._counts: dict[int, int] = {}

    def note(self, at: float) -> None:
        """Count one."""
        self.n += 1
        second = int(at)
        self._counts[second] = self._counts.get(second, 0) + 1
        if len(self._counts) > 2 * self.span_s:
            oldest = max(self._counts) - self.span_s
            self._counts = {s: n for s, n in self._counts.items() if s >= oldest}

    def rate(self, now: float) -> float:
        """Return how many came in a second, of late."""
        began = max(self._since, now - _RECENT_S)
        first, last = int(began), int(now)
        if began > self._since:
            # Without the second that has just begun, which would pull the rate down.
            return sum(self._counts.get(s, 0) for s in range(first, last)) / (last - first)
        n = sum(n for s, n in self._counts.items() if s >= first)
        return n / max(now - began, 1.0)

    def bars(self, now: float, *, width: int) -> str:
        """Draw the counts as bars of text, the latest last; the highest is a full one."""
        each = self.span_s / width
        sums = [0] * width
        for second, n in self._counts.items():
            steps = int(max(0.0, now - second - 1.0) / each)
            if steps < width:
                sums[width - 1 - steps] += n
        top = max(sums)
        return "".join(_BARS[-(-n * (len(_BARS) - 1) // top)] if n else " " for n in sums)
