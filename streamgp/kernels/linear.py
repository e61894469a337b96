"""Kernels of linear functions, of constants and of white noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from streamgp.base import Array
from streamgp.features import Columns
from streamgp.kernels.composition import Composable
from streamgp.kernels.hyperparameters import ParametricKernel
from streamgp.kernels.spaces import Euclidean, space_of

__all__ = ["Constant", "Linear", "White"]


@dataclass(frozen=True, slots=True)
class Linear(ParametricKernel):
    """Linear functions through the origin: `k(x, x') = variance * x'x`.

    A string is a direction of its own, of length 1. Add `Constant` for functions that do not pass
    through the origin.

    Parameters
    ----------
    variance
        Prior variance of the slopes, in units of y² over x².

    Raises
    ------
    ValueError
        If the variance is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = Linear(variance=0.5)
    >>> kernel.vector(kernel.embed(np.array([2.0, 1.0]))[None], kernel.embed(np.array([3.0, 0.0])))
    array([3.])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        §4.2.2, without σ₀².

    """

    variance: float = 1.0
    _space: Euclidean = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ParametricKernel.__post_init__(self)
        object.__setattr__(self, "_space", space_of(1.0, None))

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with another variance."""
        other = ParametricKernel.with_theta(self, theta)
        object.__setattr__(other, "_space", self._space)
        return other

    def bound(self, columns: Columns) -> Self:
        """Return the kernel for points whose coordinates are these columns."""
        if not columns.texts and self._space.by_differences:
            return self
        bound = type(self)(self.variance)
        object.__setattr__(bound, "_space", space_of(1.0, columns))
        return bound

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only: they do not."""
        return False

    def embed(self, x: Array) -> Array:
        """Turn a point of shape (d,) into the row that is stored for it, shape (d + 2,).

        Raises
        ------
        ValueError
            If `x` is not finite, or so large that its square is not.

        """
        return self._space.embed(x)

    def vector(self, rows: Array, row: Array) -> Array:
        """Covariances of one point with `n` stored ones, shape (n,)."""
        return self.variance * self._space.products(rows, row)

    def prior_variance(self, row: Array) -> float:
        """Covariance of a point with itself."""
        return self.variance * self._space.square(row)

    def matrix(self, rows: Array) -> Array:
        """Covariances of points with each other, shape (n, n)."""
        return self.variance * self._space.products_matrix(rows)

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivative of the matrix with respect to the logarithm of the variance: itself."""
        yield self.matrix(rows)


# --- Kernels that ignore where the points are: the same value for all, or one for each.


@dataclass(frozen=True, slots=True)
class _Blind(ParametricKernel):
    """A kernel that stores nothing about a point."""

    variance: float = 1.0

    def bound(self, columns: Columns) -> Self:  # noqa: ARG002 - it ignores them
        """Return the kernel itself."""
        return self

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only: true."""
        return True

    def embed(self, x: Array) -> Array:  # noqa: ARG002
        """Return an empty row."""
        return np.empty(0)

    def prior_variance(self, row: Array) -> float:  # noqa: ARG002
        """Covariance of a point with itself."""
        return self.variance


@dataclass(frozen=True, slots=True)
class Constant(_Blind):
    """Constant functions: `k(x, x') = variance`.

    Parameters
    ----------
    variance
        Prior variance of the value, in units of y².

    Raises
    ------
    ValueError
        If the variance is not positive and finite.

    Examples
    --------
    >>> kernel = Constant(2.0)
    >>> kernel.vector(np.empty((3, 0)), np.empty(0))
    array([2., 2., 2.])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Table 4.1.

    """

    def vector(self, rows: Array, row: Array) -> Array:  # noqa: ARG002
        """Covariances of one point with `n` stored ones, shape (n,)."""
        return np.full(len(rows), self.variance)

    def matrix(self, rows: Array) -> Array:
        """Covariances of points with each other, shape (n, n)."""
        return np.full((len(rows), len(rows)), self.variance)

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivative of the matrix with respect to the logarithm of the variance: itself."""
        yield self.matrix(rows)


Composable.of_number = Constant


@dataclass(frozen=True, slots=True)
class White(_Blind):
    """White noise: `k(x, x') = variance` if x and x' are the same event, else 0.

    Two events with equal features are still two events: the value of one says nothing about that of
    the other, so a repeated example never makes the matrix singular. It is noise that counts as
    part of the function: the variance of a prediction includes it and never falls below it, whereas
    `noise_variance` is left out. Rules that ask while the variance is large therefore ask more; use
    `noise_variance` unless a formula prescribes this kernel.

    Parameters
    ----------
    variance
        Variance of the values, in units of y².

    Raises
    ------
    ValueError
        If the variance is not positive and finite.

    Examples
    --------
    >>> kernel = White(2.0)
    >>> kernel.matrix(np.empty((2, 0)))
    array([[2., 0.],
           [0., 2.]])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eq. 2.20, where it is the noise of the observations.

    """

    def vector(self, rows: Array, row: Array) -> Array:  # noqa: ARG002
        """Covariances of one point with `n` others, shape (n,): all 0."""
        return np.zeros(len(rows))

    def matrix(self, rows: Array) -> Array:
        """Covariances of points with each other, shape (n, n)."""
        return self.variance * np.eye(len(rows))

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivative of the matrix with respect to the logarithm of the variance: itself."""
        yield self.matrix(rows)
