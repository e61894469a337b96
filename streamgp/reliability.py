"""How often forecasts came true: counts by their probability, for reliability diagrams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamgp.arguments import check_whole
from streamgp.base import Label, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Predictions of about the same probability.

    Parameters
    ----------
    n
        How many there are.
    mean
        Mean of their probabilities.
    share
        Share of them that came true.

    """

    n: int
    mean: float
    share: float


class Bins:
    """Counts of forecasts by their probability, in intervals of equal width.

    An interval holds its lower end, the last one 1 as well.

    Parameters
    ----------
    n_bins
        How many intervals there are between 0 and 1.

    Raises
    ------
    ValueError
        If that is no whole number of at least 1.

    """

    # _n, _hits, _total  of each interval: forecasts, those that came true, sum of probabilities

    def __init__(self, n_bins: int) -> None:
        n_bins = check_whole("n_bins", n_bins, 1)
        self._n = [0] * n_bins
        self._hits = [0] * n_bins
        self._total = [0.0] * n_bins

    def add(self, probability: float, came_true: bool, step: int = 1) -> None:
        """Count `step` forecasts; -1 takes one back."""
        last = len(self._n) - 1
        i = min(max(int(probability * (last + 1)), 0), last)
        self._n[i] += step
        self._hits[i] += step * came_true
        self._total[i] += step * probability

    def add_zeros(self, n: int) -> None:
        """Count so many forecasts of 0 that did not come true."""
        self._n[0] += n

    def filled(self) -> list[Bin]:
        """Return the intervals that hold forecasts, in ascending order."""
        counted = zip(self._n, self._hits, self._total, strict=True)
        return [Bin(n=n, mean=total / n, share=hits / n) for n, hits, total in counted if n]

    def counts(self) -> list[tuple[int, int]]:
        """Return how many came true, and how many did not, of each interval."""
        return [(hits, n - hits) for n, hits in zip(self._n, self._hits, strict=True)]

    def remove(self, part: Bins) -> None:
        """Take out what was counted here and in `part`; sums of floats are exact up to rounding."""
        for i, (n, hits, total) in enumerate(zip(part._n, part._hits, part._total, strict=True)):
            self._n[i] -= n
            self._hits[i] -= hits
            self._total[i] = self._total[i] - total if self._n[i] else 0.0

    def state(self) -> State:
        """Return all counts."""
        return {"n": list(self._n), "hits": list(self._hits), "total": list(self._total)}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._n, self._hits = list(state["n"]), list(state["hits"])
        self._total = list(state["total"])


def expected_error(bins: Iterable[Bin]) -> float:
    """Mean distance of the probability of forecasts from the share that came true."""
    bins = list(bins)
    n = sum(b.n for b in bins)
    return sum(b.n * abs(b.share - b.mean) for b in bins) / n if n else 0.0


def squared_distance(p: Mapping[Label, float], y: Label) -> float:
    """Squared distance of class probabilities from the truth, `Σ_k (p_k - [y = k])²`.

    Examples
    --------
    >>> squared_distance({"hall": 0.75, "den": 0.25}, "hall")
    0.125

    """
    apart = sum((q - (label == y)) ** 2 for label, q in p.items())
    return apart if y in p else apart + 1.0
