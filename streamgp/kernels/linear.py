"""The kernel of linear functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from streamgp.base import Array
from streamgp.features import Columns
from streamgp.kernels.hyperparameters import Hyperparameters
from streamgp.kernels.spaces import Euclidean, space_of

__all__ = ["Constant", "Linear", "White"]


@dataclass(frozen=True, slots=True)
class Linear(Hyperparameters):
    """Linear functions through the origin: `k(x, x') = variance * x'x`.

    A text is a direction of its own, of length 1. Add `Constant` for functions that do not pass
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
        Hyperparameters.__post_init__(self)
        object.__setattr__(self, "_space", space_of(1.0, None))

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with another variance."""
        other = Hyperparameters.with_theta(self, theta)
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
        """Derivative of the matrix by the logarithm of the variance: itself."""
        yield self.matrix(rows)


# --- Kernels that do not look at the points: the same for all, or for each its own.


@dataclass(frozen=True, slots=True)
class _Blind(Hyperparameters):
    """A kernel that stores nothing of a point."""

    variance: float = 1.0

    def bound(self, columns: Columns) -> Self:  # noqa: ARG002 - whatever they are
        """Return the kernel itself."""
        return self

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only: they do, if on anything."""
        return True

    def embed(self, x: Array) -> Array:  # noqa: ARG002
        """Return an empty row."""
        return np.empty(0)

    def prior_variance(self, row: Array) -> float:  # noqa: ARG002
        """Covariance of a point with itself."""
        return self.variance


@dataclass(frozen=True, slots=True)
class Constant(_Blind):
    """Functions that are the same everywhere: `k(x, x') = variance`.

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
        """Derivative of the matrix by the logarithm of the variance: itself."""
        yield self.matrix(rows)


@dataclass(frozen=True, slots=True)
class White(_Blind):
    """Functions with a value of its own for every event: `k(x, x') = variance` if they are one.

    Two events with equal features are two events: what one had of this function says nothing about
    the other, and so a repeat of an example never is an obstacle. It is noise, but noise that
    counts as part of the function: the variance of a prediction includes it, and never falls below
    it, where `noise_variance` leaves it out. Rules that ask while the variance is large therefore
    ask more; use `noise_variance` unless a formula prescribes this kernel.

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
        Eq. 2.20, where it belongs to the observations.

    """

    def vector(self, rows: Array, row: Array) -> Array:  # noqa: ARG002
        """Covariances of one point with `n` others, shape (n,): none."""
        return np.zeros(len(rows))

    def matrix(self, rows: Array) -> Array:
        """Covariances of points with each other, shape (n, n)."""
        return self.variance * np.eye(len(rows))

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivative of the matrix by the logarithm of the variance: itself."""
        yield self.matrix(rows)
