"""Normal distributions, with zero variance allowed, and predictions made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from streamgp.base import Posterior

_ROOT_2 = math.sqrt(2.0)
_ROOT_PI = math.sqrt(math.pi)
_LOG_2_PI = math.log(2.0 * math.pi)


def log_density(y: float, mu: float, sigma: float) -> float:
    """Log density at `y`, in nats; infinite at the mean if the standard deviation is 0.

    Examples
    --------
    >>> log_density(1.0, mu=1.0, sigma=2.0)
    -1.612...

    """
    if sigma == 0.0:
        return math.inf if y == mu else -math.inf
    z = (y - mu) / sigma
    return -0.5 * (z * z + _LOG_2_PI) - math.log(sigma)


def cdf(y: float, mu: float, sigma: float) -> float:
    """Probability of a value of at most `y`.

    Examples
    --------
    >>> cdf(3.0, mu=1.0, sigma=2.0)
    0.841...

    """
    if sigma == 0.0:
        return float(y >= mu)
    return 0.5 * math.erfc((mu - y) / (sigma * _ROOT_2))


def is_inside(y: float, probability_below: float, mu: float, level: float) -> bool:
    """Whether `y` lies within the central interval of a distribution with mean `mu`."""
    # A distribution without variance is a step: values at the step are inside.
    outside = 0.5 * (1.0 - level)
    return outside <= probability_below <= 1.0 - outside or y == mu


def mean_distance(mu: float, sigma: float) -> float:
    """`E|X|` for a normal X: `2 sigma phi(mu / sigma) + mu (2 Phi(mu / sigma) - 1)`.

    Examples
    --------
    >>> mean_distance(0.0, 1.0), mean_distance(-3.0, 0.0)
    (0.797..., 3.0)

    """
    if sigma == 0.0:
        return abs(mu)
    z = mu / sigma
    return sigma * _ROOT_2 / _ROOT_PI * math.exp(-0.5 * z * z) + mu * math.erf(z / _ROOT_2)


def crps(y: float, mu: float, sigma: float) -> float:
    """Continuous ranked probability score at `y`, `E|Y - y| - E|Y - Y'| / 2`.

    Examples
    --------
    >>> crps(0.0, mu=0.0, sigma=1.0)
    0.233695

    """
    return mean_distance(mu - y, sigma) - 0.5 * mean_distance(0.0, math.hypot(sigma, sigma))


def mixture_moments(parts: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Mean and standard deviation of a mixture; its variance includes that of the means (Eq. 11).

    Parameters
    ----------
    parts
        Weight, mean and standard deviation of each.

    Examples
    --------
    >>> mixture_moments([(0.5, -3.0, 1.0), (0.5, 3.0, 1.0)])
    (0.0, 3.162...)

    """
    mu = sum([w * m for w, m, _ in parts])
    return mu, math.sqrt(sum([w * (s * s + (m - mu) * (m - mu)) for w, m, s in parts]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """A normal distribution with the attribute names of River's `proba.Gaussian`.

    Parameters
    ----------
    mu
        Mean.
    sigma
        Standard deviation.

    Examples
    --------
    >>> p = Normal(mu=1.0, sigma=2.0)
    >>> p(1.0), p.cdf(3.0)
    (0.199..., 0.841...)
    >>> p.log_density(1.0)
    -1.612...

    """

    mu: float
    sigma: float

    @property
    def mode(self) -> float:
        """The most probable value."""
        return self.mu

    def __call__(self, y: float) -> float:
        """Density at `y`."""
        return math.exp(self.log_density(y))

    def log_density(self, y: float) -> float:
        """Log density at `y`, in nats; infinite at the mean if the standard deviation is 0."""
        return log_density(y, self.mu, self.sigma)

    def cdf(self, y: float) -> float:
        """Probability of a value of at most `y`."""
        return cdf(y, self.mu, self.sigma)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianMixture:
    """A mixture of normal distributions, with the methods of `Normal` and its parts.

    Parameters
    ----------
    weights
        Weight of each part; they sum to 1.
    mus, sigmas
        Means and standard deviations of the parts.

    Examples
    --------
    >>> p = GaussianMixture(weights=(0.5, 0.5), mus=(-3.0, 3.0), sigmas=(1.0, 1.0))
    >>> p.mu, p.sigma
    (0.0, 3.162...)
    >>> p.log_density(3.0), p.cdf(0.0)
    (-1.612..., 0.5)

    References
    ----------
    [^1]: Polyzos, K.D., Lu, Q. and Giannakis, G.B., 2023. Active labeling for online ensemble
        learning. Asilomar, Eqs. 7 and 11.

    """

    weights: tuple[float, ...]
    mus: tuple[float, ...]
    sigmas: tuple[float, ...]

    @property
    def parts(self) -> list[tuple[float, float, float]]:
        """Weight, mean and standard deviation of each normal part."""
        return list(zip(self.weights, self.mus, self.sigmas, strict=True))

    @property
    def mu(self) -> float:
        """Mean."""
        return sum([w * m for w, m in zip(self.weights, self.mus, strict=True)])

    @property
    def sigma(self) -> float:
        """Standard deviation, including the spread of the parts' means (Eq. 11)."""
        _, sigma = mixture_moments(self.parts)
        return sigma

    @property
    def components(self) -> list[Normal]:
        """The parts."""
        pairs = zip(self.mus, self.sigmas, strict=True)
        return [Normal(mu=mu, sigma=sigma) for mu, sigma in pairs]

    def __call__(self, y: float) -> float:
        """Density at `y`."""
        return math.exp(self.log_density(y))

    def log_density(self, y: float) -> float:
        """Log density at `y`, in nats."""
        logs = [math.log(w) + log_density(y, mu, sigma) for w, mu, sigma in self.parts if w > 0.0]
        largest = max(logs)
        if math.isinf(largest):
            return largest
        return largest + math.log(sum([math.exp(value - largest) for value in logs]))

    def cdf(self, y: float) -> float:
        """Probability of a value of at most `y`."""
        return min(1.0, sum([w * cdf(y, mu, sigma) for w, mu, sigma in self.parts]))


class MixturePosterior(Posterior, frozen=True, kw_only=True):
    """A `Posterior` together with the parts that it is a mixture of.

    Its variance is that of the class of largest mean, the differences between the parts included.

    Parameters
    ----------
    weights
        Weight of each part; they sum to 1.
    components
        Posterior of each expert.

    """

    weights: tuple[float, ...]
    components: tuple[Posterior, ...]


# --- Predictions with lighter tails than normal ones.
#
# Where targets are bounded, a normal distribution of the right variance reaches beyond the bounds:
# its intervals cover too much. Two normal parts, at equal distances on both sides of the mean, have
# the same variance and lighter tails. Whether they fit better is tested as targets arrive.


# Three quarters of the variance come from the distance of the parts from the mean: a kurtosis of
# 1.9, where that of a uniform distribution is 1.8 and that of a normal one 3.
_DISTANCE = math.sqrt(0.75)
_WIDTH = 0.5
# One target in twenty is taken to follow the normal distribution, so that an outlier costs little.
_STRAY = 0.05
# A test at the 1 % level, valid at any time (Ville's inequality).
_EVIDENCE = math.log(100.0)
# Adaptive conformal inference: steps of the logarithm of the factor, towards intervals that cover
# 95 %. It only narrows: whether variances are too small was not tested.
_STEP = 0.02
_OUTSIDE = 0.05
_LEAST_FACTOR = 0.5
# Further away, all densities but that of a stray target are 0.
_FURTHEST = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LightTailedMixture(GaussianMixture):
    """A mixture in which each normal distribution is split in two, except for a stray share.

    Parameters
    ----------
    factor
        Factor of the standard deviations of the split ones.

    Examples
    --------
    >>> normal = GaussianMixture(weights=(1.0,), mus=(0.0,), sigmas=(1.0,))
    >>> light = LightTailedMixture(weights=(1.0,), mus=(0.0,), sigmas=(1.0,), factor=1.0)
    >>> light.sigma, 1.0 - light.cdf(1.96), 1.0 - normal.cdf(1.96)
    (1.0, 0.0080..., 0.0249...)

    """

    factor: float

    @property
    def parts(self) -> list[tuple[float, float, float]]:
        """Weight, mean and standard deviation of each normal part."""
        parts = []
        for w, mu, sigma in zip(self.weights, self.mus, self.sigmas, strict=True):
            half, scaled = 0.5 * (1.0 - _STRAY) * w, self.factor * sigma
            distance, width = _DISTANCE * scaled, _WIDTH * scaled
            parts += [
                (_STRAY * w, mu, sigma),
                (half, mu - distance, width),
                (half, mu + distance, width),
            ]
        return parts


class LightTails:
    """Test of whether prediction errors have lighter tails than normal ones.

    The evidence is the product, over the targets, of the density under the split distribution
    divided by that under the predicted one. If predictions are right, the probability that it ever
    exceeds 100 is at most 1 %. Distributions are split only while it does.

    Parameters
    ----------
    forgetting
        Share of the log evidence so far that is kept whenever a target arrives.

    Attributes
    ----------
    log_evidence
        Logarithm of the evidence, in nats.
    factor
        Factor of the standard deviations that makes central intervals of split distributions cover
        95 % of the targets; at most 1.

    Examples
    --------
    >>> tails = LightTails()
    >>> predicted = GaussianMixture(weights=(1.0,), mus=(0.0,), sigmas=(1.0,))
    >>> for y in [-1.0, 1.0] * 10:
    ...     tails.learn(0.0, 1.0, y)
    >>> tails.log_evidence, tails.factor, tails.shaped(predicted) is predicted
    (9.00..., 0.98..., False)

    References
    ----------
    [^1]: Ramdas, A., Grünwald, P., Vovk, V. and Shafer, G., 2023. Game-theoretic statistics and
        safe anytime-valid inference. Statistical Science 38(4).
    [^2]: Gibbs, I. and Candès, E., 2021. Adaptive conformal inference under distribution shift.
        NeurIPS.

    """

    def __init__(self, forgetting: float = 1.0) -> None:
        self._forgetting = forgetting
        self.log_evidence = 0.0
        self.factor = 1.0

    def shaped(self, predicted: GaussianMixture) -> GaussianMixture:
        """Return a prediction, with light tails if the evidence calls for them."""
        if self.log_evidence <= _EVIDENCE:
            return predicted
        return LightTailedMixture(
            weights=predicted.weights,
            mus=predicted.mus,
            sigmas=predicted.sigmas,
            factor=self.factor,
        )

    def learn(self, mu: float, sigma: float, y: float) -> None:
        """Learn a target for which this mean and standard deviation were predicted."""
        if sigma == 0.0:
            return  # below 1e-162 the variance is no float, and there is nothing to compare with
        z = abs(y - mu) / sigma
        if not z < _FURTHEST:
            z = _FURTHEST
        near, far = (z / self.factor - _DISTANCE) / _WIDTH, (z / self.factor + _DISTANCE) / _WIDTH
        densities = math.exp(0.5 * (z * z - near * near)) + math.exp(0.5 * (z * z - far * far))
        ratio = 0.5 * densities / (_WIDTH * self.factor)
        self.log_evidence *= self._forgetting
        self.log_evidence += math.log((1.0 - _STRAY) * ratio + _STRAY)
        # Twice the probability of a target further from the mean on the same side.
        above = 0.5 * (1.0 - _STRAY) * (math.erfc(near / _ROOT_2) + math.erfc(far / _ROOT_2))
        above += _STRAY * math.erfc(z / _ROOT_2)
        is_outside = above < _OUTSIDE
        factor = self.factor * math.exp(_STEP * (is_outside - _OUTSIDE))
        self.factor = min(1.0, max(_LEAST_FACTOR, factor))
