"""Covariance functions: frozen, without state, on arrays.

A kernel stores each point as a row of its own making (`embed`), so that the covariances of a new
point with all stored ones cost one matrix-vector product and one pass over the result (`vector`).

"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.linalg.blas import ddot, dgemv

from streamgp.base import Array


class Kernel(Protocol):
    """What a Gaussian process needs to know of a covariance function."""

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only."""

    def embed(self, x: Array) -> Array:
        """Turn a point of shape (d,) into the row that is stored for it."""

    def vector(self, rows: Array, row: Array) -> Array:
        """Covariances of the point behind `row` with those behind `rows`, a new array (n,)."""

    def prior_variance(self, row: Array) -> float:
        """Covariance of the point behind `row` with itself."""


def _positive(name: str, value: float) -> None:
    # The inverse of the smallest numbers is infinite.
    if not (value > 0.0 and math.isfinite(value) and math.isfinite(1.0 / value)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


# Half the squared distance from the origin, in length scales, beyond which the expanded square
# would lose more than three digits to cancellation; differences are taken one by one there.
_FAR = 1e3


@dataclass(frozen=True, slots=True)
class SquaredExponential:
    """Smooth functions: `k(x, x') = variance * exp(-|x - x'|² / (2 length_scale²))`.

    Parameters
    ----------
    length_scale
        Distance over which the function changes, in units of x.
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
        Eq. 4.9.

    """

    length_scale: float = 1.0
    variance: float = 1.0
    # As an array without dimensions, which numpy multiplies by twice as fast as by a float.
    _inverse_length: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _positive("length_scale", self.length_scale)
        _positive("variance", self.variance)
        object.__setattr__(self, "_inverse_length", np.array(1.0 / self.length_scale))

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only: they do."""
        return True

    def embed(self, x: Array) -> Array:
        """Return `[s, -|s|²/2, 1]` with `s = x / length_scale`, shape (d + 2,).

        With the last two entries swapped on one side, the product of two rows is the exponent.

        Raises
        ------
        ValueError
            If `x` is not finite, or so large that its square is not.

        """
        d = len(x)
        row: Array = np.empty(d + 2)
        s = row[:d]
        np.multiply(x, self._inverse_length, s)
        half_norm: float = -0.5 * ddot(s, s) if d else 0.0
        if not math.isfinite(half_norm):
            raise ValueError("a point must be finite and its square too; scale the features")
        row[d] = half_norm
        row[d + 1] = 1.0
        return row

    def vector(self, rows: Array, row: Array) -> Array:
        """Covariances of one point with `n` stored ones, shape (n,)."""
        exponent: Array
        half_norm = row[-2]
        if half_norm < -_FAR:
            differences = rows[:, :-2] - row[:-2]
            exponent = -0.5 * np.einsum("ij,ij->i", differences, differences)
        else:
            probe = row.copy()
            probe[-2] = 1.0
            probe[-1] = half_norm
            # numpy's product would let other threads go first, each time; this is as fast alone.
            exponent = dgemv(1.0, rows.T, probe, trans=1) if len(rows) else np.empty(0)
        np.exp(exponent, exponent)
        if self.variance != 1.0:
            exponent *= self.variance
        return exponent

    def prior_variance(self, row: Array) -> float:  # noqa: ARG002 - the same everywhere
        """Covariance of a point with itself."""
        return self.variance
