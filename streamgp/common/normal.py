"""Functions of a normal distribution, which may have no variance at all."""

from __future__ import annotations

import math

_ROOT_2 = math.sqrt(2.0)
_ROOT_PI = math.sqrt(math.pi)
_LOG_2_PI = math.log(2.0 * math.pi)


def log_density(y: float, mu: float, sigma: float) -> float:
    """Log density at `y`, in nats; at the only possible value, if there is one, infinite.

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
    """Whether `y` lies within the central interval of a distribution with mean `mu`.

    Parameters
    ----------
    y
        A value.
    probability_below
        That of a value of at most `y`.
    mu
        Mean of the distribution.
    level
        Probability of the interval.

    """
    # A distribution without any variance is a step: all that is at its place is inside.
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
