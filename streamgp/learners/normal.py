"""A normal distribution, as a prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamgp import gaussian


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
        return gaussian.log_density(y, self.mu, self.sigma)

    def cdf(self, y: float) -> float:
        """Probability of a value of at most `y`."""
        return gaussian.cdf(y, self.mu, self.sigma)
