"""Confidences of right and wrong predictions, and how well probabilities fit what comes true.

The curve behind the confidences has, for every one of them, on one axis the share of the wrong
predictions that are less confident, and on the other the share of the right ones that are not.

"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from streamgp.base import Label, State
from streamgp.common.uncertainty import most_probable
from streamgp.common.validation import check_whole

Cell: TypeAlias = tuple[float, float]
"""Numbers of right and of wrong predictions of about the same confidence."""

# Uncertainties below this count as equal: such probabilities are indistinguishable from 0.
_LEAST_OCTAVE = -64


def is_right(p: Mapping[Label, float], y: Label) -> bool:
    """Whether the most probable class, the first of several, is the given one."""
    return most_probable(p) == y


def equal_error_threshold(right: Iterable[float], wrong: Iterable[float]) -> float:
    """Return the confidence below which to ask: where both kinds of error are equally frequent.

    There, the share of the wrong predictions that are asked about, being less confident, is as
    close as possible to the share of the right ones that are not asked about; of two equally close
    places, the one that asks more is taken. The threshold lies midway between the confidences on
    both sides of that place; above the highest confidence, 1 takes the place of the upper one.

    Parameters
    ----------
    right
        Confidences of right predictions, between 0 and 1.
    wrong
        Confidences of wrong predictions.

    Returns
    -------
    The threshold. Infinity, to ask about everything, if there are no right or no wrong ones, and
    thus nothing to compare, or if even the confidence 1 is to be asked about.

    Examples
    --------
    Three of four wrong predictions are below, three of four right ones above:

    >>> equal_error_threshold(right=[0.4, 0.7, 0.8, 0.9], wrong=[0.1, 0.2, 0.5, 0.8])
    0.6
    >>> equal_error_threshold(right=[0.9, 0.95], wrong=[])
    inf

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Sec. III-C. Its stepwise search until both are equal
        does not cover shares that jump past each other.

    """
    cells: dict[float, list[float]] = {}
    for side, confidences in enumerate((right, wrong)):
        for confidence in confidences:
            cells.setdefault(confidence, [0, 0])[side] += 1
    values = sorted(cells)
    n = n_cells_asked([(cells[value][0], cells[value][1]) for value in values])
    if n is None:
        return math.inf
    below, above = values[n - 1], values[n] if n < len(values) else 1.0
    if not below < above:
        return math.inf
    middle = 0.5 * (below + above)
    return middle if middle > below else above  # no float lies between two adjacent ones


def n_cells_asked(cells: Sequence[Cell]) -> int | None:
    """Return the number of cells to ask about, starting from the least confidence.

    Parameters
    ----------
    cells
        Predictions by confidence, in ascending order.

    Returns
    -------
    The number, at least 1; None if there are no right or no wrong ones.

    """
    n_right, n_wrong = _sums(cells)
    if not (n_right > 0.0 and n_wrong > 0.0):
        return None
    best, found = math.inf, 0
    right_above, wrong_below = n_right, 0.0
    for n, (right, wrong) in enumerate(cells, 1):
        right_above -= right
        wrong_below += wrong
        # The two shares are compared without division, so that equal counts compare equal.
        apart = abs(wrong_below * n_right - right_above * n_wrong)
        if apart > best:  # it only grows from here on
            break
        best, found = apart, n
    return found


def area_under_curve(cells: Sequence[Cell]) -> float | None:
    """Probability that a right prediction is more confident than a wrong one; ties count half.

    None if there are no right or no wrong ones.

    Parameters
    ----------
    cells
        Predictions by confidence, in ascending order.

    """
    n_right, n_wrong = _sums(cells)
    if not (n_right > 0.0 and n_wrong > 0.0):
        return None
    above = wrong_below = 0.0
    for right, wrong in cells:
        above += right * (wrong_below + 0.5 * wrong)
        wrong_below += wrong
    return above / (n_right * n_wrong)


class Confidences:
    """Counts of right and wrong predictions by confidence, in bounded memory.

    Cells are fine where predictions are sure: each spans a fraction of an octave of uncertainty,
    down to 2^-64, as uncertainties of an overconfident classifier differ by orders of magnitude.

    Parameters
    ----------
    cells_per_octave
        Number of cells per octave; a power of 2.

    Examples
    --------
    >>> seen = Confidences(cells_per_octave=32)
    >>> for uncertainty, is_right in [(0.6, True), (0.3, True), (0.2, True), (0.8, False)]:
    ...     seen.add(uncertainty, is_right)
    >>> seen.add(0.5, is_right=False)
    >>> area_under_curve(seen.cells()), seen.threshold()
    (0.833..., 0.546...)

    """

    # _counts  counts of right and wrong ones by cell number: 0 for the least confidence, negative
    #          above. Cell i holds the uncertainties in (_edge(i - 1), _edge(i)].

    def __init__(self, cells_per_octave: int) -> None:
        self._per_octave = cells_per_octave
        self._last = _LEAST_OCTAVE * cells_per_octave
        self._counts: dict[int, list[float]] = {}

    def add(self, uncertainty: float, is_right: bool, weight: float = 1.0) -> None:
        """Count a prediction; a negative weight uncounts it."""
        self._change(self._cell(uncertainty), 0 if is_right else 1, weight)

    def fade(self, is_right: bool, share: float) -> None:
        """Multiply the counts of all right, or of all wrong ones, by a share."""
        side = 0 if is_right else 1
        for counts in self._counts.values():
            counts[side] *= share

    def remove(self, part: Confidences) -> None:
        """Uncount what was counted here and in `part`, which has the same cells."""
        for cell, counts in part._counts.items():
            for side, weight in enumerate(counts):
                self._change(cell, side, -weight)

    def cells(self) -> list[Cell]:
        """Return the numbers of right and wrong ones, by ascending confidence."""
        counts = self._counts
        return [(counts[i][0], counts[i][1]) for i in sorted(counts, reverse=True)]

    def threshold(self) -> float | None:
        """Return the uncertainty above which to ask; see `equal_error_threshold`.

        None if there are no right or no wrong ones; -1 to ask about everything.
        """
        n = n_cells_asked(self.cells())
        if n is None:
            return None
        order = sorted(self._counts, reverse=True)
        sure = self._edge(order[n]) if n < len(order) else 0.0
        unsure = self._edge(order[n - 1] - 1)
        return 0.5 * (unsure + sure) if unsure > 0.0 else -1.0

    def state(self) -> State:
        """Return all counts."""
        return {"counts": [[cell, *counts] for cell, counts in self._counts.items()]}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._counts = {int(cell): [right, wrong] for cell, right, wrong in state["counts"]}

    def _change(self, cell: int, side: int, by: float) -> None:
        counts = self._counts.setdefault(cell, [0.0, 0.0])
        counts[side] += by
        if counts == [0.0, 0.0]:
            del self._counts[cell]

    def _cell(self, uncertainty: float) -> int:
        if uncertainty <= 0.0:
            return self._last
        fraction, octave = math.frexp(uncertainty)
        position = self._per_octave * (2.0 * fraction - 2.0 + octave)
        return max(math.ceil(position), self._last)

    def _edge(self, cell: int) -> float:
        """Return the largest uncertainty of a cell, 0 below the last one."""
        if cell < self._last:
            return 0.0
        octave, part = divmod(cell, self._per_octave)
        return math.ldexp(1.0 + part / self._per_octave, octave)


def _sums(cells: Sequence[Cell]) -> Cell:
    return sum(right for right, _ in cells), sum(wrong for _, wrong in cells)


# --- Frequencies of outcomes by their forecast probability, for reliability diagrams.


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Predictions of about the same probability.

    Parameters
    ----------
    n
        Number of predictions; the sum of their weights, if they have some.
    mean
        Mean of their probabilities.
    share
        Share of them that came true.

    """

    n: float
    mean: float
    share: float


# That many counts are allocated at once.
_MOST_BINS = 10_000


class Bins:
    """Counts of forecasts by their probability, in intervals of equal width.

    An interval includes its lower end; the last one also includes 1.

    Parameters
    ----------
    n_bins
        Number of intervals between 0 and 1.

    Raises
    ------
    ValueError
        If that is not a whole number of at least 1.

    """

    # _n, _hits, _total  for each interval: forecasts, those that came true, sum of probabilities

    def __init__(self, n_bins: int) -> None:
        n_bins = check_whole("n_bins", n_bins, 1, _MOST_BINS)
        self._n: list[float] = [0] * n_bins
        self._hits: list[float] = [0] * n_bins
        self._total = [0.0] * n_bins

    def add(self, probability: float, came_true: bool, weight: float = 1) -> None:
        """Count a forecast; a negative weight uncounts it."""
        last = len(self._n) - 1
        i = min(max(int(probability * (last + 1)), 0), last)
        self._n[i] += weight
        self._hits[i] += weight * came_true
        self._total[i] += weight * probability

    def add_zeros(self, n: float) -> None:
        """Count `n` forecasts of 0 that did not come true."""
        self._n[0] += n

    def filled(self) -> list[Bin]:
        """Return the intervals that hold forecasts, in ascending order."""
        counted = zip(self._n, self._hits, self._total, strict=True)
        return [Bin(n=n, mean=total / n, share=hits / n) for n, hits, total in counted if n]

    def counts(self) -> list[tuple[float, float]]:
        """Return how many forecasts of each interval came true, and how many did not."""
        return [(hits, n - hits) for n, hits in zip(self._n, self._hits, strict=True)]

    def remove(self, part: Bins) -> None:
        """Uncount what was counted here and in `part`; sums of floats are exact up to rounding."""
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
    """Mean distance of forecast probabilities from the share that came true."""
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
