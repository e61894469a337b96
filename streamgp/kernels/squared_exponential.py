"""The squared exponential kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamgp.base import Array
from streamgp.kernels.radial import Radial


@dataclass(frozen=True, slots=True)
class SquaredExponential(Radial):
    """Smooth functions: `k(x, x') = variance * exp(-|x - x'|² / (2 length_scale²))`.

    Parameters
    ----------
    length_scale
        Distance over which the function changes, in units of x: a number, or one for each feature
        by name. A feature that is not named has the geometric mean of those that are.
    variance
        Prior variance of the function, in units of y².

    Raises
    ------
    ValueError
        If a parameter is not positive and finite.

    Examples
    --------
    >>> kernel = SquaredExponential(length_scale=2.0)
    >>> rows = np.array([kernel.embed(np.array([0.0, 0.0])), kernel.embed(np.array([2.0, 0.0]))])
    >>> kernel.vector(rows, kernel.embed(np.array([2.0, 0.0])))
    array([0.60653066, 1.        ])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 4.9 and 5.1.

    """

    def _correlation(self, h: Array) -> Array:
        return np.exp(h, h)

    def _slope(self, h: Array) -> Array:
        return np.exp(h)
