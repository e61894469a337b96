"""Median and interquartile range of a few numbers, which a single wild one hardly moves."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from streamgp.moments import Moments

# Interquartile range of a standard normal number.
_NORMAL_RANGE = 1.3489795003921634


class Quartiles:
    """Median, and a standard deviation by the interquartile range; all numbers are kept.

    Attributes
    ----------
    values
        The numbers.

    Examples
    --------
    >>> quartiles = Quartiles([2.0, 1.0, 3.0, 2.0, 1800.0])
    >>> quartiles.location, round(quartiles.scale, 2)
    (2.0, 0.74)

    """

    __slots__ = ("values",)

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.values = list(values)

    @property
    def n(self) -> int:
        """How many numbers there are."""
        return len(self.values)

    @property
    def location(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def scale(self) -> float:
        """Interquartile range, in units of that of a standard normal number.

        The standard deviation if more than half of the numbers are the same, as truth values may
        be; 1 if all are.
        """
        if self.n > 1:
            low, middle, high = statistics.quantiles(self.values, method="inclusive")
            # Below this, the spread is rounding of a constant.
            if high - low > 1e-12 * abs(middle):
                return (high - low) / _NORMAL_RANGE
        moments = Moments()
        for value in self.values:
            moments.add(value)
        return moments.scale

    def add(self, value: float) -> None:
        """Add a number."""
        self.values.append(value)

    def plain(self) -> Sequence[float]:
        """Return what `of` makes the same of."""
        return self.values

    @classmethod
    def of(cls, *plain: float) -> Quartiles:
        """Return what `plain` was taken from."""
        return cls(plain)
