"""Metrics of predicted distributions of numbers.

A distribution is what `predict_one(x, with_dist=True)` returns: a normal one, or a mixture of
normals. Errors of NMSE and NPLL are in units of the standard deviation of the targets, so that a
predictor that knows only their mean and variance scores the same whatever the targets are.

"""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import Any, Protocol

from river import base

from streamgp.base import Distribution, Mixture
from streamgp.common.normal import GaussianMixture, is_inside, mean_distance
from streamgp.common.running_stats import Moments
from streamgp.common.validation import check_number
from streamgp.metrics.metric import WeightedMetric

# Relative error of the few operations that a removal takes.
_ROUNDING = 8.0 * sys.float_info.epsilon


class Density(Distribution, Protocol):
    """A distribution with a density."""

    def log_density(self, y: float) -> float:
        """Log density at `y`, in nats."""


class Cumulative(Distribution, Protocol):
    """A distribution with a cumulative distribution function."""

    def cdf(self, y: float) -> float:
        """Probability of a value of at most `y`."""


class DistributionMetric(WeightedMetric):
    """Base class of metrics that need the distribution of a number, not only its mean.

    `interactive_val_score` passes it on; River's evaluators do not.
    """


class NMSE(WeightedMetric):
    """Mean squared error divided by the variance of the targets: 1 for predicting their mean.

    0 before the first update, and while all targets are equal.

    Examples
    --------
    >>> from streamgp.metrics import NMSE
    >>> metric = NMSE()
    >>> for y, predicted in [(1.0, 1.5), (3.0, 2.5), (5.0, 5.0)]:
    ...     metric.update(y, predicted)
    >>> metric
    NMSE: 0.0625

    """

    def __init__(self) -> None:
        self._targets = _Targets()
        self._squares = 0.0

    def works_with(self, model: base.Estimator) -> bool:
        """Whether the model predicts numbers."""
        return isinstance(model, base.Regressor)

    def get(self) -> float:
        """Return the mean squared error in units of the variance of the targets."""
        variance = self._targets.variance
        return self._squares / self._targets.n / variance if variance != 0.0 else 0.0

    def _note(self, y_true: float, y_pred: Distribution | float, weight: float) -> None:
        if isinstance(y_pred, float | Real):
            step = y_true - float(y_pred)
        else:
            _check(y_pred, "mu")
            step = y_true - y_pred.mu
        self._squares += weight * step * step
        self._targets.count(y_true, weight)


class NPLL(DistributionMetric):
    """Mean negative log density of the targets in units of their standard deviation, in nats.

    `-mean ln p(y) - ln std(y)`: a normal distribution with the mean and variance of the targets
    scores `(1 + ln 2 pi) / 2 = 1.419`. While all targets are equal, the unit is 1.

    Examples
    --------
    >>> from streamgp.common.normal import Normal
    >>> from streamgp.metrics import NPLL
    >>> metric = NPLL()
    >>> for y in (1.0, 3.0, 5.0):
    ...     metric.update(y, Normal(mu=3.0, sigma=(8 / 3) ** 0.5))
    >>> metric
    NPLL: 1.41894

    """

    def __init__(self) -> None:
        self._targets = _Targets()
        self._log_densities = 0.0

    def get(self) -> float:
        """Return the mean negative log density."""
        targets = self._targets
        if targets.n == 0:
            return 0.0
        unit = 0.5 * math.log(targets.variance) if targets.variance > 0.0 else 0.0
        return -self._log_densities / targets.n - unit

    def _note(self, y_true: float, y_pred: Density, weight: float) -> None:
        _check(y_pred, "log_density")
        self._log_densities += weight * y_pred.log_density(y_true)
        self._targets.count(y_true, weight)


class CRPS(DistributionMetric):
    """Mean continuous ranked probability score, in units of the targets.

    The integral of the squared difference between the cumulative distribution function and the step
    at the target; for a prediction without variance, the absolute error. In closed form.

    Examples
    --------
    >>> from streamgp.common.normal import Normal
    >>> from streamgp.metrics import CRPS
    >>> metric = CRPS()
    >>> metric.update(0.0, Normal(mu=0.0, sigma=1.0))
    >>> metric
    CRPS: 0.233695

    References
    ----------
    [^1]: Gneiting, T. and Raftery, A.E., 2007. Strictly proper scoring rules, prediction, and
        estimation. JASA 102, Eq. 21.
    [^2]: Grimit, E.P., Gneiting, T., Berrocal, V.J. and Johnson, N.A., 2006. The continuous ranked
        probability score for circular variables. QJRMS 132, Eq. 5: mixtures.

    """

    def __init__(self) -> None:
        self._n = 0.0
        self._total = 0.0

    def get(self) -> float:
        """Return the mean score."""
        return self._total / self._n if self._n else 0.0

    def _note(self, y_true: float, y_pred: Distribution, weight: float) -> None:
        _check(y_pred, "mu")
        self._total += weight * _crps(y_true, y_pred)
        self._n += weight


class IntervalCoverage(DistributionMetric):
    """Share of the targets within the central interval of their predicted distribution.

    Predictions are calibrated if it equals the level; closer is better.

    Parameters
    ----------
    level
        Probability of the interval.

    Examples
    --------
    >>> from streamgp.common.normal import Normal
    >>> from streamgp.metrics import IntervalCoverage
    >>> metric = IntervalCoverage(level=0.5)
    >>> for y in (-2.0, -0.6, 0.1, 0.7):
    ...     metric.update(y, Normal(mu=0.0, sigma=1.0))
    >>> metric
    IntervalCoverage: 50.00%

    """

    _format = ".2%"

    def __init__(self, level: float = 0.9) -> None:
        check_number("level", level, "between 0 and 1", lambda p: 0.0 < p < 1.0)
        self.level = level
        self._n = 0.0
        self._n_inside = 0.0

    def get(self) -> float:
        """Return the share; 0 before the first update."""
        return self._n_inside / self._n if self._n else 0.0

    def is_better_than(self, other: IntervalCoverage) -> bool:
        """Whether the share is closer to the level than that of another metric."""
        return abs(self.get() - self.level) < abs(other.get() - other.level)

    def _note(self, y_true: float, y_pred: Cumulative, weight: float) -> None:
        _check(y_pred, "cdf")
        self._n_inside += weight * is_inside(y_true, y_pred.cdf(y_true), y_pred.mu, self.level)
        self._n += weight


class _Targets(Moments):
    """Moments of targets, of which a spread that may be nothing but rounding counts as none.

    What is removed leaves its rounding errors behind: of an outlier, those of its square.
    """

    # rounding  a bound of the error of m2, in units of it
    __slots__ = ("rounding",)

    def __init__(self) -> None:
        super().__init__()
        self.rounding = 0.0

    @property
    def variance(self) -> float:
        return 0.0 if self.m2 <= self.rounding else super().variance

    def count(self, y: float, weight: float) -> None:
        """Count a target, or uncount it if the weight is negative."""
        if weight > 0 and not self.n:
            # Multiplied by the weight and divided by it, the mean would not quite be the target.
            self.n, self.mean = weight, float(y)
            return
        if weight > 0:
            self.add(y, weight)
            return
        distance = abs(y - self.mean)
        products = self.m2 + abs(weight) * distance * (abs(y) + distance)
        self.remove(y, -weight)
        self.rounding = self.rounding + _ROUNDING * products if self.n else 0.0


def _crps(y: float, distribution: Distribution) -> float:
    """`E|Y - y| - E|Y - Y'| / 2` for independent Y and Y' from the distribution."""
    parts = _parts(distribution)
    from_y = sum([w * mean_distance(mu - y, sigma) for w, mu, sigma in parts])
    apart = sum(
        [
            w * v * mean_distance(mu - nu, math.hypot(sigma, tau))
            for w, mu, sigma in parts
            for v, nu, tau in parts
        ]
    )
    return from_y - 0.5 * apart


def _check(y_pred: Any, wanted: str) -> None:
    """Raise TypeError for what is not a distribution, such as a plain prediction."""
    if not hasattr(y_pred, wanted):
        raise TypeError(
            "y_pred must be a distribution with "
            f"{wanted!r}, as predict_one(x, with_dist=True) returns, got {y_pred!r:.80}"
        )


def _parts(distribution: Distribution) -> list[tuple[float, float, float]]:
    if isinstance(distribution, GaussianMixture):
        return [part for part in distribution.parts if part[0] > 0.0]
    if isinstance(distribution, Mixture):
        pairs = zip(distribution.weights, distribution.components, strict=True)
        return [(w, part.mu, part.sigma) for w, part in pairs if w > 0.0]
    return [(1.0, distribution.mu, distribution.sigma)]
