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
