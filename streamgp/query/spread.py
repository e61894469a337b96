"""How widely a belief is spread, and how far experts are apart: functions of distributions.

For numbers the belief is the distribution of an observation; for classes it is the posterior of the
predicted one. What is done with the numbers is decided in `acquisition.py`.

"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from streamgp.base import Belief, Distribution, Label, Posterior

# Scores are finite, also where a distribution without any variance is compared with another.
LARGEST = sys.float_info.max


@runtime_checkable
class Mixture(Protocol):
    """A belief that is made of those of several experts."""

    @property
    def weights(self) -> Sequence[float]:
        """How much each expert counts; they sum to 1."""

    @property
    def components(self) -> Sequence[Distribution | Posterior]:
        """What each expert believes."""


AnyBelief: TypeAlias = Belief | Distribution


def variance(belief: AnyBelief) -> float:
    """Variance of a belief: of an observation, or of the predicted class (Eq. 11).

    For a mixture that is the mean of the variances and the variance of the means. For plain
    probabilities that of an indicator, `p (1 - p)`.

    Examples
    --------
    >>> variance(Posterior(mean={"home": 0.7}, variance=0.3))
    0.3
    >>> variance({"home": 0.9, "work": 0.1})
    0.09

    """
    if isinstance(belief, Posterior):
        return belief.variance
    if isinstance(belief, Mapping):
        p = max(belief.values(), default=0.5)
        return p * (1.0 - p)
    return _finite(belief.sigma * belief.sigma)


def divergence(p: tuple[float, float], q: tuple[float, float]) -> float:
    """Kullback-Leibler divergence `D(p || q)` of two normal distributions, in nats.

    Given as mean and variance; at most `LARGEST`, which is what stands for infinity.

    Examples
    --------
    >>> divergence((0.0, 1.0), (1.0, 1.0)), divergence((0.0, 1.0), (0.0, 4.0))
    (0.5, 0.318...)
    >>> divergence((0.0, 1.0), (0.0, 0.0))
    1.797...e+308

    """
    (mean, variance), (other_mean, other_variance) = p, q
    if (mean, variance) == (other_mean, other_variance):
        return 0.0
    if variance <= 0.0 or other_variance <= 0.0:
        return LARGEST
    ratio = variance / other_variance
    step = mean - other_mean
    # ln(ratio) from both logarithms: the ratio may be 0 or infinite.
    log_ratio = math.log(variance) - math.log(other_variance)
    # Rounding can leave a little less than nothing.
    return _finite(max(0.0, 0.5 * (ratio + step / other_variance * step - 1.0 - log_ratio)))


def largest_divergence(belief: AnyBelief, least_weight: float) -> float:
    """Largest weighted divergence of the experts from one of them (Eq. 10), in nats.

    `max over m' of sum over m of w_m D(p_m || p_m')`, where `m'` is any expert whose weight is at
    least a share of the largest.

    Raises
    ------
    TypeError
        If the belief is not that of several experts.

    """
    parts = _parts(belief)
    living = least_weight * max([w for w, _ in parts])
    return max(
        [
            _finite(sum([w * divergence(p, q) for w, p in parts if w > 0.0]))
            for v, q in parts
            if v >= living
        ]
    )


def largest_distance(belief: AnyBelief) -> float:
    """Largest weighted squared distance of what experts predict from one of them (Eq. 12).

    Raises
    ------
    TypeError
        If the belief is not that of several experts.

    """
    parts = _parts(belief)
    return max(
        [
            _finite(sum([w * (mean - mu) * (mean - mu) for w, (mean, _) in parts]))
            for _, (mu, _) in parts
        ]
    )


def _parts(belief: AnyBelief) -> list[tuple[float, tuple[float, float]]]:
    """Return weight, and mean and variance, of what each expert predicts."""
    if not isinstance(belief, Mixture) or len(belief.components) < 2:
        raise TypeError(
            "experts can only be compared in an ensemble of two or more, got "
            f"{type(belief).__name__}; "
            "use one, such as EnsembleGPRegressor, or the rule Variance()"
        )
    best = _predicted(belief.mean) if isinstance(belief, Posterior) else None
    moments = [
        (part.mean[best] if best is not None else 0.0, part.variance)
        if isinstance(part, Posterior)
        else (part.mu, part.sigma * part.sigma)
        for part in belief.components
    ]
    return list(zip(belief.weights, moments, strict=True))


def _predicted(means: Mapping[Label, float]) -> Label | None:
    return max(means, key=means.__getitem__) if means else None


def _finite(value: float) -> float:
    return min(value, LARGEST)
