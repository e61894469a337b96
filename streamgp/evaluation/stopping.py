"""Stopping advice: expected gain from further labels, based on the learning curve of a run.

The curve is the prequential record: how many predictions were right at each number of labels asked
for. It knows nothing of what is to come, such as a new class.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgp.base import Array

MORE = 50
"""Number of further labels that the advice is about."""

# With fewer labels or points than these, a curve cannot be extrapolated.
_FEWEST_LABELS, _FEWEST_POINTS = 20, 40
# Shapes of curves, equally probable a priori: error ∝ ρ + (1 - ρ) ((n + m) / (N + m))^-b. A large m
# with a large b is nearly an exponential decay.
_SHIFTS = (10.0, 50.0, 200.0)
_EXPONENTS = (0.25, 0.5, 1.0, 2.0, 4.0)
_LASTING = np.linspace(0.0, 0.95, 12)
_N_LEVELS = 40
# The record is compared with a curve in this many parts; three of its parameters were fitted.
_N_PARTS, _N_FITTED = 20, 3
_LOW, _HIGH = 0.05, 0.95
# A fall of the accuracy that is told of: at least so large, and so many standard errors.
_LEAST_FALL, _N_ERRORS = 0.1, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Expected gain in accuracy from further labels.

    Parameters
    ----------
    n_labels
        Number of further labels.
    expected
        Mean of the posterior.
    low, high
        Its 5 % and 95 % quantiles.

    """

    n_labels: int
    expected: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"another {self.n_labels} labels are expected to bring about +{self.expected:.3f} of "
            f"accuracy (between {self.low:.3f} and {self.high:.3f}), if events go on as they did"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """Fall of the accuracy along a run, as by concept drift.

    Parameters
    ----------
    quarter
        Quarter of the events in which the accuracy was highest: 1, 2 or 3.

    """

    quarter: int
    before: float
    now: float

    def __str__(self) -> str:
        return (
            f"accuracy fell from {self.before:.3f} in quarter {self.quarter} of the events to "
            f"{self.now:.3f} in the last"
        )


def found_fall(
    n_events: Sequence[int], accuracy: Sequence[float | None], *, n_scored: int
) -> Fall | None:
    """Find out whether the accuracy in the last quarter of a run is lower than in an earlier one.

    A fall counts if it is more than .1 and more than 4 standard errors. Their variance is binomial,
    multiplied by the dispersion (at least 1) of the fifths of each quarter, since errors come in
    runs.

    Parameters
    ----------
    n_events, accuracy, n_scored
        As for `expected_gain`.

    Returns
    -------
    The fall, or None where there is none, or too little is known: fewer than 40 points, or a truth
    for less than 95 % of the events.

    Examples
    --------
    >>> n = range(10, 2010, 10)
    >>> right = np.cumsum([9 if events <= 1000 else 5 for events in n])
    >>> print(found_fall(n, list(right / n), n_scored=2000))
    accuracy fell from 0.900 in quarter 1 of the events to 0.500 in the last

    """
    found = _steps(n_events, accuracy, n_scored)
    if found is None:
        return None
    _, *steps = found
    parts = np.array_split(np.arange(len(steps[0])), _N_PARTS)
    n, right = (np.array([step[part].sum() for part in parts]).reshape(4, -1) for step in steps)
    shares = right.sum(axis=1) / n.sum(axis=1)
    best = int(shares[:-1].argmax())
    p = _probabilities(shares[[best, -1]])
    variances = p * (1.0 - p)
    squares = (right[[best, -1]] - n[[best, -1]] * p[:, None]) ** 2 / n[[best, -1]]
    # Of the fifths of two quarters; a mean of each has been fitted.
    dispersion = max(1.0, float((squares / variances[:, None]).sum()) / (squares.size - 2))
    error = np.sqrt(dispersion * (variances / n[[best, -1]].sum(axis=1)).sum())
    if shares[best] - shares[-1] <= max(_LEAST_FALL, _N_ERRORS * error):
        return None
    return Fall(quarter=best + 1, before=float(shares[best]), now=float(shares[-1]))


def expected_gain(
    n_events: Sequence[int],
    accuracy: Sequence[float | None],
    n_asked: Sequence[int],
    *,
    n_scored: int,
    n_labels: int = MORE,
) -> Gain | None:
    """Estimate the gain from further labels by a Bayesian fit of power laws to the record of a run.

    A share ρ of the error is assumed to stay, and the rest to fall as `(n + m)^-b` after n labels.
    All ρ, m, b on a grid, and all levels of the error on a log scale, are equally probable a
    priori. The log likelihood is binomial, divided by the dispersion (at least 1) of the record
    around the best curve, since errors come in runs.

    Parameters
    ----------
    n_events, accuracy, n_asked
        Points of the run, as in `summary.json`: number of events, accuracy of all predictions so
        far, and number of labels asked for so far.
    n_scored
        Number of predictions of the whole run whose truth is known.
    n_labels
        Number of further labels.

    Returns
    -------
    The gain, or None where too little is known: fewer than 20 labels or 40 points, or a truth for
    less than 95 % of the events. None, too, where the accuracy fell (`found_fall`): none of the
    curves does, and a fit would promise a gain that the last quarter contradicts.

    Examples
    --------
    After n labels the error is .1 + 9 / (n + 10):

    >>> n = range(10, 2010, 10)
    >>> asked = [events // 20 for events in n]
    >>> right = np.cumsum([10 * (1 - 0.1 - 9 / (labels + 10)) for labels in asked])
    >>> gain = expected_gain(n, list(right / n), asked, n_scored=2000)
    >>> print(f"{9 / 110 - 9 / 160:.3f}: {gain.expected:.3f}, {gain.low:.3f} to {gain.high:.3f}")
    0.026: 0.021, 0.007 to 0.026

    """
    found = _steps(n_events, accuracy, n_scored)
    if found is None or n_asked[-1] < _FEWEST_LABELS:
        return None
    if found_fall(n_events, accuracy, n_scored=n_scored) is not None:
        return None
    kept, n, right = found
    labels = np.array([n_asked[i] for i in kept], dtype=float)
    wrong = np.clip(n - right, 0.0, n)
    shapes, falls = _shapes((labels[1:] + labels[:-1]) / 2.0, labels[-1], n_labels)
    mean = (wrong.sum() + 1.0) / (n.sum() + 2.0)
    levels = np.geomspace(mean / 20.0, min(0.98, 3.0 * mean), _N_LEVELS)
    fits = np.array([_log_likelihoods(level * shapes, n, wrong) for level in levels])
    level, shape = np.unravel_index(fits.argmax(), fits.shape)
    dispersion = _dispersion(_probabilities(levels[level] * shapes[shape]), n, wrong)
    weights = np.exp((fits - fits.max()) / dispersion).ravel()
    gains = np.outer(levels, falls).ravel()
    order = np.argsort(gains, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    low, high = (gains[order][np.searchsorted(shares, q)] for q in (_LOW, _HIGH))
    return Gain(
        n_labels=n_labels,
        expected=float(weights @ gains / weights.sum()),
        low=float(low),
        high=float(high),
    )


def _steps(
    n_events: Sequence[int], accuracy: Sequence[float | None], n_scored: int
) -> tuple[list[int], Array, Array] | None:
    """Return the points with an accuracy, and events and hits between them; None if too few."""
    kept = [i for i, score in enumerate(accuracy) if score is not None]
    if len(kept) < _FEWEST_POINTS:
        return None
    # Events not scored are the first ones, for which nothing could be predicted.
    n_unscored = n_events[-1] - n_scored
    if n_unscored > 0.05 * n_events[-1]:
        return None
    events = np.array([n_events[i] for i in kept], dtype=float) - n_unscored
    scores = np.array([accuracy[i] for i in kept], dtype=float)
    return kept, np.diff(events), np.diff(scores * events)


def _shapes(labels: Array, now: float, more: int) -> tuple[Array, Array]:
    """Return the error of each curve along the record, 1 at present, and its further decrease."""
    shapes, falls = [], []
    for shift in _SHIFTS:
        for b in _EXPONENTS:
            before = ((labels + shift) / (now + shift)) ** -b
            after = ((now + more + shift) / (now + shift)) ** -b
            shapes += [lasting + (1.0 - lasting) * before for lasting in _LASTING]
            falls += [(1.0 - lasting) * (1.0 - after) for lasting in _LASTING]
    return np.array(shapes), np.array(falls)


def _probabilities(errors: Array) -> Array:
    return np.clip(errors, 1e-4, 0.99)


def _log_likelihoods(errors: Array, n: Array, wrong: Array) -> Array:
    p = _probabilities(errors)
    found: Array = np.log(p) @ wrong + np.log1p(-p) @ (n - wrong)
    return found


def _dispersion(p: Array, n: Array, wrong: Array) -> float:
    """Return Pearson's chi-squared statistic of a curve per degree of freedom, at least 1."""
    parts = np.array_split(np.arange(len(n)), _N_PARTS)
    squares = [
        (wrong[i] - n[i] * p[i]).sum() ** 2 / (n[i] * p[i] * (1.0 - p[i])).sum() for i in parts
    ]
    return max(1.0, float(np.sum(squares)) / (_N_PARTS - _N_FITTED))
