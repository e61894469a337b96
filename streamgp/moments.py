"""Mean and standard deviation of numbers that come, and sometimes go."""

from __future__ import annotations

import math
from collections.abc import Sequence


class Moments:
    """Running mean and standard deviation (Welford), in population form.

    Attributes
    ----------
    n
        How many numbers there are; if they fade, the sum of what they count.
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
        """Where the numbers are: the mean."""
        return self.mean

    @property
    def scale(self) -> float:
        """How far they are apart: the standard deviation."""
        return self.std

    @property
    def std(self) -> float:
        """The standard deviation; 1 as long as the numbers do not differ."""
        # Below this, the spread is rounding of a constant.
        rounding = 1e-12 * self.mean
        variance = self.variance
        return math.sqrt(variance) if variance > rounding * rounding else 1.0

    def add(self, value: float) -> None:
        """Add a number."""
        self.n += 1
        delta = value - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (value - self.mean)

    def remove(self, value: float) -> None:
        """Take a number back that was added."""
        self.n -= 1
        if self.n == 0:
            self.mean = self.m2 = 0.0
            return
        delta = value - self.mean
        self.mean -= delta / self.n
        self.m2 = max(self.m2 - delta * (value - self.mean), 0.0)

    def fade(self, share: float) -> None:
        """Let all numbers so far count less: as this share of what they counted."""
        self.n *= share
        self.m2 *= share

    def plain(self) -> Sequence[float]:
        """Return what `of` makes the same of."""
        return [self.n, self.mean, self.m2]

    @classmethod
    def of(cls, n: float, mean: float, m2: float) -> Moments:
        """Return what `plain` was taken from."""
        moments = cls()
        moments.n, moments.mean, moments.m2 = n, float(mean), float(m2)
        return moments
