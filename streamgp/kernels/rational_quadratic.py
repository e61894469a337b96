"""The rational quadratic kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamgp.base import Array
from streamgp.kernels.radial import Radial


@dataclass(frozen=True, slots=True)
class RationalQuadratic(Radial):
    """Squared exponentials of many length scales: far points stay a little alike.

    `k(x, x') = variance * (1 + |x - x'|² / (2 alpha length_scale²))^-alpha`; the larger alpha, the
    closer to a squared exponential.

    Parameters
    ----------
    length_scale
        Distance over which the function changes, in units of x: a number, or one for each feature
        by name. A feature that is not named has the geometric mean of those that are.
    variance
        Prior variance of the function, in units of y².
    alpha
        How similar the length scales are that are mixed.

    Raises
    ------
    ValueError
        If a parameter is not positive and finite.

    Examples
    --------
    >>> kernel = RationalQuadratic()
    >>> kernel.vector(kernel.embed(np.array([1.0]))[None], kernel.embed(np.array([0.0])))
    array([0.66666667])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eq. 4.19.

    """

    alpha: float = 1.0

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivatives of the matrix by the logarithms of length scales, variance and alpha."""
        yield from Radial.gradients(self, rows)
        h = self._space.halves_matrix(rows)
        # d ln c / d ln α = -α ln(1 - h/α) - h / (1 - h/α)
        logarithm = np.log1p(h / -self.alpha)
        slope = -self.alpha * logarithm - h / (1.0 - h / self.alpha)
        yield self.variance * np.exp(-self.alpha * logarithm) * slope

    def _correlation(self, h: Array) -> Array:
        h /= -self.alpha
        np.log1p(h, h)
        h *= -self.alpha
        return np.exp(h, h)

    def _slope(self, h: Array) -> Array:
        return np.exp((-self.alpha - 1.0) * np.log1p(h / -self.alpha))
