"""How far predictions of numbers are off, what their distributions are worth, and what is wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from streamgp import gaussian
from streamgp.moments import Moments
from streamgp.values import is_number

if TYPE_CHECKING:
    from streamgp.base import Label, State


LEVEL = 0.9
"""Probability of the interval whose coverage is counted."""


class NumberErrors:
    """Errors of the predictions of a run, and scores of their distributions, taken as normal.

    Attributes
    ----------
    n
        Events counted.
    n_with_std
        Those of them whose prediction had a standard deviation above 0.

    Examples
    --------
    >>> errors = NumberErrors()
    >>> for truth, guess in [(10.0, 11.0), (20.0, 20.0), (30.0, 27.0)]:
    ...     errors.count(truth, guess)
    >>> errors.mae, errors.nmse
    (1.333..., 0.05)

    """

    # _absolute, _squared  sums over the errors
    # _truths              mean and variance of the truths of the events counted
    # _log_densities, _crps, _n_inside  sums over those with a standard deviation
    def __init__(self) -> None:
        self.n_with_std = 0
        self._log_densities = self._crps = 0.0
        self._n_inside = 0
        self._absolute = 0.0
        self._squared = 0.0
        self._truths = Moments()

    @property
    def n(self) -> int:
        return int(self._truths.n)

    def count(self, truth: Label, guess: Label, std: float | None = None) -> None:
        """Count an event; what is no number is passed over."""
        if not (is_number(truth) and is_number(guess)):
            return
        y, mu = float(truth), float(guess)
        error = abs(mu - y)
        self._absolute += error
        self._squared += error * error
        self._truths.add(y)
        if std is not None and std > 0.0:
            self.n_with_std += 1
            self._log_densities += gaussian.log_density(y, mu, std)
            self._crps += gaussian.crps(y, mu, std)
            self._n_inside += gaussian.is_inside(y, gaussian.cdf(y, mu, std), mu, LEVEL)

    def remove(self, part: NumberErrors) -> None:
        """Take out events that were counted here and in `part`, exact up to rounding."""
        mine, theirs = self._truths, part._truths
        left = Moments()
        left.n = mine.n - theirs.n
        if left.n:
            # Chan, Golub and LeVeque 1983, Eq. 2.1, solved for one of the two parts
            left.mean = (mine.n * mine.mean - theirs.n * theirs.mean) / left.n
            apart = theirs.mean - left.mean
            left.m2 = max(0.0, mine.m2 - theirs.m2 - apart * apart * theirs.n * left.n / mine.n)
        self._absolute = max(0.0, self._absolute - part._absolute) if left.n else 0.0
        self._squared = max(0.0, self._squared - part._squared) if left.n else 0.0
        self._truths = left
        self.n_with_std -= part.n_with_std
        self._n_inside -= part._n_inside
        self._log_densities = self._log_densities - part._log_densities if self.n_with_std else 0.0
        self._crps = max(0.0, self._crps - part._crps) if self.n_with_std else 0.0

    @property
    def mae(self) -> float | None:
        """Mean absolute error, in units of the target; None before the first event."""
        return self._absolute / self.n if self.n else None

    @property
    def nmse(self) -> float | None:
        """Mean squared error over the variance of the truths, 1 - R²; None while there is none."""
        return self._squared / self._truths.m2 if self._truths.m2 > 0.0 else None

    @property
    def npll(self) -> float | None:
        """Mean negative log density, for truths in units of their standard deviation, in nats.

        None before the first standard deviation.
        """
        if not self.n_with_std:
            return None
        unit = 0.5 * math.log(self._truths.variance) if self._truths.m2 > 0.0 else 0.0
        return -self._log_densities / self.n_with_std - unit

    @property
    def crps(self) -> float | None:
        """Mean continuous ranked probability score, in units of the target."""
        return self._crps / self.n_with_std if self.n_with_std else None

    @property
    def coverage(self) -> float | None:
        """Share of the truths within the central interval of probability `LEVEL`."""
        return self._n_inside / self.n_with_std if self.n_with_std else None

    def summary(self) -> dict[str, Any]:
        """Return the scores of distributions as plain JSON values."""
        names = ("npll", "crps", "coverage")
        return {"n": self.n_with_std, **{name: getattr(self, name) for name in names}}

    def state(self) -> State:
        """Return all sums."""
        truths = self._truths
        scores = [self.n_with_std, self._log_densities, self._crps, self._n_inside]
        return {
            "scores": scores,
            "absolute": self._absolute,
            "squared": self._squared,
            "truths": [truths.n, truths.mean, truths.m2],
        }

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._absolute, self._squared = float(state["absolute"]), float(state["squared"])
        truths = self._truths = Moments()
        truths.n, truths.mean, truths.m2 = state["truths"]
        if "scores" in state:  # else of a replay that was begun before there were any
            self.n_with_std, self._log_densities, self._crps, self._n_inside = state["scores"]


class Tolerances:
    """How far a number may be from the truth and still count as right.

    By the standard deviation of all truths up to and including that of the event: a number that is
    further off says less than their mean does, which everybody knows without asking. As long as the
    truths do not differ, only the truth itself is right.

    Examples
    --------
    >>> tolerances = Tolerances()
    >>> [tolerances.next(truth) for truth in (1.0, 3.0)]
    [0.0, 1.0]

    """

    def __init__(self) -> None:
        self._truths = Moments()

    def next(self, truth: Label) -> float:
        """Return the tolerance for the next event, once each."""
        if not is_number(truth):
            return 0.0
        self._truths.add(float(truth))
        return self._truths.std if self._truths.m2 > 0.0 else 0.0


def is_off(y: Any, truth: Any, tolerance: float) -> bool:
    """Whether a number is further from the truth than the tolerance, or is no number."""
    if not (is_number(y) and is_number(truth)):
        return bool(y != truth)
    return abs(float(y) - float(truth)) > tolerance
