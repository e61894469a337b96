"""Running mean, median and scale of numbers, some of which may be removed again; histograms."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from streamgp.common.feature_values import LARGEST


class Moments:
    """Running mean and standard deviation (Welford), in population form.

    Attributes
    ----------
    n
        Number of numbers; if they have weights or fade, the sum of their weights.
    mean
        Their mean, 0 if there are none.
    m2
        Sum of their squared distances from the mean.

    Examples
    --------
    >>> moments = Moments()
    >>> for value in (1.0, 3.0, 8.0):
    ...     moments.add(value)
    >>> moments.remove(8.0)
    >>> moments.mean, moments.std
    (2.0, 1.0)

    """

    __slots__ = ("m2", "mean", "n")

    def __init__(self) -> None:
        self.n: float = 0
        self.mean = 0.0
        self.m2 = 0.0

    @property
    def variance(self) -> float:
        """The variance, 0 if there are no numbers."""
        return self.m2 / self.n if self.n else 0.0

    @property
    def location(self) -> float:
        """Mean of the numbers."""
        return self.mean

    @property
    def scale(self) -> float:
        """Standard deviation of the numbers."""
        return self.std

    @property
    def varies(self) -> bool:
        """Whether not all numbers are equal."""
        # Below this, the spread is rounding error of a constant, or has no finite inverse.
        rounding = max(1e-12 * abs(self.mean), 1.0 / LARGEST)
        return self.variance > rounding * rounding

    @property
    def std(self) -> float:
        """The standard deviation; 1 while all numbers are equal."""
        return math.sqrt(self.variance) if self.varies else 1.0

    def add(self, value: float, weight: float = 1) -> None:
        """Add a number with a positive weight."""
        self.n += weight
        delta = value - self.mean
        self.mean += weight * delta / self.n
        self.m2 += weight * delta * (value - self.mean)

    def merge(self, n: int, mean: float, m2: float) -> None:
        """Add `n` numbers by their mean and sum of squared distances from it (Chan et al.)."""
        delta = mean - self.mean
        total = self.n + n
        self.mean += delta * n / total
        self.m2 += m2 + delta * delta * self.n * n / total
        self.n = total

    def remove(self, value: float, weight: float = 1) -> None:
        """Remove a number that was added with this weight."""
        self.n -= weight
        if self.n < 1e-9 * weight:  # what is left, if anything, is rounding error
            self.n, self.mean, self.m2 = 0, 0.0, 0.0
            return
        delta = value - self.mean
        self.mean -= weight * delta / self.n
        self.m2 = max(self.m2 - weight * delta * (value - self.mean), 0.0)

    def without(self, part: Moments) -> Moments:
        """Return the moments of the numbers that are not in `part`, exact up to rounding."""
        left = Moments()
        left.n = self.n - part.n
        if left.n:
            # Chan, Golub and LeVeque 1983, Eq. 2.1, solved for one of the two parts
            left.mean = (self.n * self.mean - part.n * part.mean) / left.n
            apart = part.mean - left.mean
            left.m2 = max(0.0, self.m2 - part.m2 - apart * apart * part.n * left.n / self.n)
        return left

    def fade(self, share: float) -> None:
        """Multiply the weights of all numbers so far by a share."""
        self.n *= share
        self.m2 *= share

    def plain(self) -> Sequence[float]:
        """Return plain values from which `of` restores this object."""
        return [self.n, self.mean, self.m2]

    @classmethod
    def of(cls, n: float, mean: float, m2: float) -> Moments:
        """Restore an object from its `plain` values."""
        moments = cls()
        moments.n, moments.mean, moments.m2 = n, float(mean), float(m2)
        return moments


# --- Median and interquartile range of a few numbers, which a single outlier hardly changes.


# Interquartile range of the standard normal distribution.
_NORMAL_RANGE = 1.3489795003921634


class Quartiles:
    """Median, and a standard deviation from the interquartile range; all numbers are kept.

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
        """Number of numbers."""
        return len(self.values)

    @property
    def location(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def scale(self) -> float:
        """Interquartile range, in units of that of the standard normal distribution.

        The standard deviation if the quartiles coincide, as those of booleans may; 1 if all numbers
        are equal.
        """
        if self.n > 1:
            low, middle, high = statistics.quantiles(self.values, method="inclusive")
            # Below this, the spread is rounding error of a constant, or has no finite inverse.
            if high - low > max(1e-12 * abs(middle), 1.0 / LARGEST):
                return (high - low) / _NORMAL_RANGE
        moments = Moments()
        for value in self.values:
            moments.add(value)
        return moments.scale

    def add(self, value: float) -> None:
        """Add a number."""
        self.values.append(value)

    def plain(self) -> Sequence[float]:
        """Return plain values from which `of` restores this object."""
        return self.values

    @classmethod
    def of(cls, *plain: float) -> Quartiles:
        """Restore an object from its `plain` values."""
        return cls(plain)


class Histogram:
    """Numbers of values that are at most as large as each of some bounds.

    Parameters
    ----------
    bounds
        Upper bounds of its buckets; a last bucket has none.

    Attributes
    ----------
    total
        Sum of all values.

    Examples
    --------
    >>> histogram = Histogram((0.1, 1.0))
    >>> histogram.observe(0.1, 0.5, 7.0)
    >>> histogram.buckets(), round(histogram.total, 1)
    ([('0.1', 1), ('1.0', 2), ('+Inf', 3)], 7.6)

    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.total = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, *values: float) -> None:
        """Count values."""
        self.total += sum(values)
        ordered, first = sorted(values), 0
        for i, bound in enumerate((*self.bounds, math.inf)):
            end = bisect_right(ordered, bound, first)
            self._counts[i] += end - first
            first = end

    def buckets(self) -> list[tuple[str, int]]:
        """Return how many values were at most each bound, with the bound as Prometheus writes it.

        The last one is `+Inf`, with the total number of values.
        """
        return list(zip((*map(str, self.bounds), "+Inf"), accumulate(self._counts), strict=True))
