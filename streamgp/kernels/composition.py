"""Sums and products of kernels, and the operators that make them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar, Self, TypeVar, cast

import numpy as np

from streamgp.base import Array, FeatureName
from streamgp.features import Columns
from streamgp.kernels.base import Kernel, check_kernel, refuse_unbound

__all__ = ["Composable", "On", "Product", "Sum"]

_T = TypeVar("_T", float, Array)


class Composable:
    """Base class of kernels that can be added and multiplied.

    A number stands for `Constant`: `2.0 * kernel` has twice the covariances.
    """

    __slots__ = ()
    # So that a numpy scalar leaves the operation to the kernel on its right.
    __array_ufunc__: ClassVar[None] = None
    # What a number stands for; set by `linear`, whose `Constant` is composable itself.
    of_number: ClassVar[Callable[[float], Kernel]]

    def __add__(self: Kernel, other: Kernel | float) -> Sum:
        term = _as_kernel(other)
        return NotImplemented if term is None else Sum(self, term)

    def __radd__(self: Kernel, other: float) -> Kernel:
        if type(other) is int and other == 0:  # the start value of `sum`
            return self
        term = _as_kernel(other)
        return NotImplemented if term is None else Sum(term, self)

    def __mul__(self: Kernel, other: Kernel | float) -> Product:
        factor = _as_kernel(other)
        return NotImplemented if factor is None else Product(self, factor)

    def __rmul__(self: Kernel, other: float) -> Product:
        factor = _as_kernel(other)
        return NotImplemented if factor is None else Product(factor, self)


def _as_kernel(value: object) -> Kernel | None:
    """Return a kernel as it is and a number as `Constant`; None for anything else."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return Composable.of_number(float(value))
    return cast("Kernel", value) if hasattr(value, "embed") else None


@dataclass(frozen=True, slots=True)
class _Pair(Composable, ABC):
    """Two kernels on the same points.

    A row is the length of the first kernel's row, that row, and the second's: where one ends and
    the other begins depends on the points, which a kernel does not know.
    """

    first: Kernel
    second: Kernel

    def __post_init__(self) -> None:
        check_kernel(self.first, "first")
        check_kernel(self.second, "second")

    @abstractmethod
    def _join(self, first: _T, second: _T) -> _T:
        """Combine two covariances, in place of the first."""

    @abstractmethod
    def _gradients(self, first: Array, second: Array) -> Iterator[Array]:
        """Derivatives of the matrix of some points, given their rows in both parts."""

    @property
    def theta(self) -> Array:
        """Logarithms of the hyperparameters, those of the first part first."""
        return np.concatenate([self.first.theta, self.second.theta])

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with other hyperparameters."""
        n = len(self.first.theta)
        return type(self)(self.first.with_theta(theta[:n]), self.second.with_theta(theta[n:]))

    def bound(self, columns: Columns) -> Self:
        """Return the kernel for points whose coordinates are these columns."""
        first, second = self.first.bound(columns), self.second.bound(columns)
        if first is self.first and second is self.second:
            return self
        return type(self)(first, second)

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only: true if both parts' do."""
        return self.first.stationary and self.second.stationary

    def embed(self, x: Array) -> Array:
        """Return the length of the first row, then both rows."""
        first = self.first.embed(x)
        return np.concatenate([[len(first)], first, self.second.embed(x)])

    def vector(self, rows: Array, row: Array) -> Array:
        """Covariances of one point with `n` stored ones, shape (n,)."""
        n = 1 + int(row[0])
        first = self.first.vector(rows[:, 1:n], row[1:n])
        return self._join(first, self.second.vector(rows[:, n:], row[n:]))

    def prior_variance(self, row: Array) -> float:
        """Covariance of a point with itself."""
        n = 1 + int(row[0])
        return self._join(self.first.prior_variance(row[1:n]), self.second.prior_variance(row[n:]))

    def matrix(self, rows: Array) -> Array:
        """Covariances of points with each other, shape (n, n)."""
        if not len(rows):
            return np.empty((0, 0))
        n = 1 + int(rows[0, 0])
        return self._join(self.first.matrix(rows[:, 1:n]), self.second.matrix(rows[:, n:]))

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivatives of the matrix with respect to the logarithms of the hyperparameters."""
        if not len(rows):
            return (np.empty((0, 0)) for _ in self.theta)
        n = 1 + int(rows[0, 0])
        return self._gradients(rows[:, 1:n], rows[:, n:])


@dataclass(frozen=True, slots=True)
class Sum(_Pair):
    """`first + second`: a sum of independent functions, one from each kernel.

    Parameters
    ----------
    first, second
        The kernels; `first + second` creates the same object.

    Examples
    --------
    >>> from streamgp.kernels import Constant, SquaredExponential
    >>> kernel = SquaredExponential() + Constant(2.0)
    >>> row = kernel.embed(np.zeros(1))
    >>> kernel.vector(row[None], row)
    array([3.])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        §4.2.4.

    """

    def _join(self, first: _T, second: _T) -> _T:
        first += second
        return first

    def _gradients(self, first: Array, second: Array) -> Iterator[Array]:
        yield from self.first.gradients(first)
        yield from self.second.gradients(second)


@dataclass(frozen=True, slots=True)
class Product(_Pair):
    """`first * second`: points are similar if they are so for both kernels.

    Parameters
    ----------
    first, second
        The kernels; `first * second` creates the same object.

    Examples
    --------
    >>> from streamgp.kernels import Constant, SquaredExponential
    >>> kernel = SquaredExponential() * Constant(2.0)
    >>> row = kernel.embed(np.zeros(1))
    >>> kernel.vector(row[None], row)
    array([2.])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        §4.2.4.

    """

    def _join(self, first: _T, second: _T) -> _T:
        first *= second
        return first

    def _gradients(self, first: Array, second: Array) -> Iterator[Array]:
        other = self.second.matrix(second)
        for gradient in self.first.gradients(first):
            yield gradient * other
        other = self.first.matrix(first)
        for gradient in self.second.gradients(second):
            yield other * gradient


# --- A kernel on some of the features only.


@dataclass(frozen=True, slots=True)
class On(Composable):
    """A kernel on some features, to be added to or multiplied by one on others.

    Parameters
    ----------
    names
        Names of the features; one that no example has had counts as missing.
    kernel
        The kernel.

    Examples
    --------
    The place does not matter:

    >>> from streamgp import GPClassifier
    >>> from streamgp.kernels import SquaredExponential
    >>> model = GPClassifier(On(["light"], SquaredExponential()), noise_variance=1.0)
    >>> model.learn_one({"light": 0.5, "place": "hall"}, "awake")
    >>> model.predict_proba_one({"light": 0.5, "place": "bath"}, with_dist=True)
    Posterior(mean={'awake': 0.5}, variance=0.5, prior_variance=1.0, pending=None)

    """

    names: Collection[FeatureName]
    kernel: Kernel
    # _positions  positions of the coordinates, once they are known
    _positions: list[int] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or not isinstance(self.names, Iterable):
            raise TypeError(f"names must be a list of names of features, got {self.names!r}")
        check_kernel(self.kernel)
        # The order does not matter, and that of a set differs from one process to the next.
        object.__setattr__(self, "names", tuple(sorted(set(self.names), key=repr)))
        object.__setattr__(self, "_positions", None)
        if not self.names:
            raise ValueError("names must name at least one feature, got none")

    @property
    def theta(self) -> Array:
        """Logarithms of the hyperparameters of the kernel."""
        return self.kernel.theta

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with other hyperparameters."""
        return self._with(self.kernel.with_theta(theta), self._positions)

    def bound(self, columns: Columns) -> Self:
        """Return the kernel for points whose coordinates are these columns."""
        positions, mine = columns.restricted(self.names)
        return self._with(self.kernel.bound(mine), positions)

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only: true if the kernel's do."""
        return self.kernel.stationary

    def embed(self, x: Array) -> Array:
        """Turn a point of shape (d,) into the row that the kernel stores for it.

        Raises
        ------
        TypeError
            If the kernel is not bound.

        """
        if self._positions is None:
            refuse_unbound(x)
        return self.kernel.embed(x[self._positions])

    def vector(self, rows: Array, row: Array) -> Array:
        """Covariances of one point with `n` stored ones, shape (n,)."""
        return self.kernel.vector(rows, row)

    def prior_variance(self, row: Array) -> float:
        """Covariance of a point with itself."""
        return self.kernel.prior_variance(row)

    def matrix(self, rows: Array) -> Array:
        """Covariances of points with each other, shape (n, n)."""
        return self.kernel.matrix(rows)

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivatives of the matrix with respect to the logarithms of the hyperparameters."""
        return self.kernel.gradients(rows)

    def _with(self, kernel: Kernel, positions: list[int] | None) -> Self:
        other = type(self)(self.names, kernel)
        object.__setattr__(other, "_positions", positions)
        return other
