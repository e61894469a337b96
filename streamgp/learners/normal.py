"""A normal distribution, as a prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass

_LOG_2_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """A normal distribution with the names that River's `proba.Gaussian` has.

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
        """Log density at `y`, in nats; at the only possible value, if there is one, infinite."""
        if self.sigma == 0.0:
            return math.inf if y == self.mu else -math.inf
        z = (y - self.mu) / self.sigma
        return -0.5 * (z * z + _LOG_2_PI) - math.log(self.sigma)

    def cdf(self, y: float) -> float:
        """Probability of a value of at most `y`."""
        if self.sigma == 0.0:
            return float(y >= self.mu)
        return 0.5 * math.erfc((self.mu - y) / (self.sigma * math.sqrt(2.0)))
