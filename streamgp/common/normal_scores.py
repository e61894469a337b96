"""Normal scores: numbers with heavy tails by their ranks, as if they were normally distributed."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np

from streamgp.base import Array

# The tail (5 %) is this many times as far from the median as the quartiles are on average, or more:
# 2.4 times in a normal distribution, 4.2 in an exponential, 5.7 in a log-normal one. Of few numbers
# it must be more, so that one normal sample in 500 is taken for heavy.
_HEAVY: Final = 3.0
_FEW: Final = 3.0
# Most ranks that are kept; between them, scores are linear.
_MOST_RANKS: Final = 33


class NormalScores:
    """Piecewise linear function from numbers to their normal scores, constant beyond the ends.

    Parameters
    ----------
    values
        Numbers, rising.
    scores
        Their scores.

    Examples
    --------
    >>> scores = NormalScores.of(np.array([1.0, 10.0, 100.0, 1000.0]))
    >>> [round(scores(value), 2) for value in (10.0, 55.0, 100.0, 1e9)]
    [-0.32, 0.0, 0.32, 1.15]

    """

    __slots__ = ("scores", "values")

    def __init__(self, values: Sequence[float], scores: Sequence[float]) -> None:
        self.values, self.scores = values, scores

    def __call__(self, value: float) -> float:
        values, scores = self.values, self.scores
        i = bisect_right(values, value)
        if i == 0 or i == len(values):
            return scores[min(i, len(values) - 1)]
        share = (value - values[i - 1]) / (values[i] - values[i - 1])
        return scores[i - 1] + share * (scores[i] - scores[i - 1])

    @classmethod
    def of(cls, numbers: Array) -> NormalScores:
        """Return the scores of numbers: normal quantiles of their ranks, equal ones together."""
        values, counts = np.unique(numbers, return_counts=True)
        ranks = (np.cumsum(counts) - counts / 2) / len(numbers)
        if len(values) > _MOST_RANKS:
            kept = np.linspace(0, len(values) - 1, _MOST_RANKS).round().astype(int)
            values, ranks = values[kept], ranks[kept]
        return cls(values.tolist(), list(map(NormalDist().inv_cdf, ranks.tolist())))


def has_heavy_tail(numbers: Array) -> bool:
    """Return whether some of the numbers are far from the median, beside the distance of most."""
    low, first, median, third, high = np.quantile(numbers, (0.05, 0.25, 0.5, 0.75, 0.95))
    far = _HEAVY * (1.0 + _FEW / math.sqrt(len(numbers)))
    return bool(max(high - median, median - low) > far * (third - first) / 2.0 > 0.0)
