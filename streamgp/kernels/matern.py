"""Matérn kernels: functions that are differentiable once or twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamgp.base import Array
from streamgp.kernels.radial import Radial


@dataclass(frozen=True, slots=True)
class Matern32(Radial):
    """Functions with one derivative: `k(x, x') = variance * (1 + u) exp(-u)`.

    With `u = √3 |x - x'| / length_scale`.

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
    >>> kernel = Matern32()
    >>> kernel.vector(kernel.embed(np.array([1.0]))[None], kernel.embed(np.array([0.0])))
    array([0.48335772])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eq. 4.17.

    """

    def _correlation(self, h: Array) -> Array:
        u = _root(h, 6.0)
        return np.multiply(1.0 + u, np.exp(-u), h)

    def _slope(self, h: Array) -> Array:
        # dc/du = -u exp(-u), and u² = -6h makes du/dh = -3 / u.
        return 3.0 * np.exp(-_root(h, 6.0))


@dataclass(frozen=True, slots=True)
class Matern52(Radial):
    """Functions with two derivatives: `k(x, x') = variance * (1 + u + u²/3) exp(-u)`.

    With `u = √5 |x - x'| / length_scale`.

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
    >>> kernel = Matern52()
    >>> kernel.vector(kernel.embed(np.array([1.0]))[None], kernel.embed(np.array([0.0])))
    array([0.52399411])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eq. 4.17.

    """

    def _correlation(self, h: Array) -> Array:
        u = _root(h, 10.0)
        return np.multiply(1.0 + u + u * u / 3.0, np.exp(-u), h)

    def _slope(self, h: Array) -> Array:
        # dc/du = -u (1 + u) exp(-u) / 3, and u² = -10h makes du/dh = -5 / u.
        u = _root(h, 10.0)
        return 5.0 / 3.0 * (1.0 + u) * np.exp(-u)


def _root(h: Array, factor: float) -> Array:
    """Return the root of `-factor * h`; by rounding, h may be a little above 0."""
    squares = -factor * h
    return np.sqrt(np.maximum(squares, 0.0, out=squares), squares)
