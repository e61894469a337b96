"""Kernels that depend only on the distance of two points, and decrease with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from streamgp.base import Array
from streamgp.common.signatures import parameters
from streamgp.features import Columns
from streamgp.kernels.base import LengthScale
from streamgp.kernels.hyperparameters import ColumnScales, ParametricKernel
from streamgp.kernels.spaces import Space, space_of

__all__ = ["Categorical", "Matern32", "Matern52", "RationalQuadratic", "SquaredExponential"]


@dataclass(frozen=True, slots=True)
class Radial(ParametricKernel, ABC):
    """`k(x, x') = variance * c(h)` with `h = -|x - x'|² / (2 length_scale²)` and `c(0) = 1`.

    Subclasses define `c` and its spectral density (`Spectral`).

    Parameters
    ----------
    length_scale
        Distance over which the function changes, in units of x: a number, or one for each feature
        by name. A feature that is not named has the geometric mean of those that are.
    variance
        Prior variance of the function, in units of y².

    """

    length_scale: LengthScale = 1.0
    variance: float = 1.0
    symbolic: ClassVar[bool] = False
    # _columns  columns of the coordinates, None for numbers only
    _columns: Columns | None = field(init=False, repr=False, compare=False)
    _space: Space = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ParametricKernel.__post_init__(self)
        self._settle(None)

    @abstractmethod
    def _correlation(self, h: Array) -> Array:
        """Compute `c(h)` in place of `h`, which by rounding may be slightly above 0."""

    @abstractmethod
    def _slope(self, h: Array) -> Array:
        """Return the derivative of `c` at `h`, a new array."""

    @abstractmethod
    def frequency_factors(self, uniform: Callable[[], Array]) -> Array | float:
        """Draw the factors of the frequencies of a squared exponential; see `Spectral`."""

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with other hyperparameters."""
        other = ParametricKernel.with_theta(self, theta)
        return other if self._columns is None else other.bound(self._columns)

    def bound(self, columns: Columns) -> Self:
        """Return the kernel for points whose coordinates are these columns."""
        named = isinstance(self.length_scale, Mapping)
        if self._columns is None and not named and not columns.texts:
            return self
        bound = type(self)(*(getattr(self, name) for name in parameters(type(self))))
        bound._settle(columns)
        return bound

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only: true for numbers."""
        return self._space.by_differences

    def embed(self, x: Array) -> Array:
        """Turn a point of shape (d,) into the row that is stored for it.

        Raises
        ------
        TypeError
            If the length scales are by name, and the kernel is not bound.
        ValueError
            If `x` is not finite, or so large that its square is not.

        """
        return self._space.embed(x)

    def vector(self, rows: Array, row: Array) -> Array:
        """Covariances of one point with `n` stored ones, shape (n,)."""
        return self._covariance(self._space.halves(rows, row))

    def prior_variance(self, row: Array) -> float:  # noqa: ARG002 - the same everywhere
        """Covariance of a point with itself."""
        return self.variance

    def matrix(self, rows: Array) -> Array:
        """Covariances of points with each other, shape (n, n)."""
        return self._covariance(self._space.halves_matrix(rows))

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivatives of the matrix with respect to the logs of length scales and variance."""
        h = self._space.halves_matrix(rows)
        # A squared length scale divides its part of h: ∂h / ∂ ln length_scale = -2 part.
        slope = self._slope(h)
        slope *= -2.0 * self.variance
        parts = self._space.parts(rows)
        if parts is None:
            slope *= h
            yield slope
        else:
            for part in parts:
                part *= slope
                yield part
        yield self._covariance(h)

    def _covariance(self, h: Array) -> Array:
        """Compute `k` in place of `h`."""
        covariances = self._correlation(h)
        if self.variance != 1.0:
            covariances *= self.variance
        return covariances

    def _settle(self, columns: Columns | None) -> None:
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_space", self._space_of(columns))

    def _space_of(self, columns: Columns | None) -> Space:
        return space_of(self.length_scale, columns)


# --- Matérn kernels: functions that are differentiable once or twice.


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

    def frequency_factors(self, uniform: Callable[[], Array]) -> Array:
        """Draw from a Student t distribution with 3 degrees of freedom (GPML Eq. 4.15)."""
        return _student_t_factors(1.5, uniform())


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

    def frequency_factors(self, uniform: Callable[[], Array]) -> Array:
        """Draw from a Student t distribution with 5 degrees of freedom (GPML Eq. 4.15)."""
        return _student_t_factors(2.5, uniform())


def _root(h: Array, factor: float) -> Array:
    """Return the square root of `-factor * h`; by rounding, h may be slightly above 0."""
    squares = -factor * h
    return np.sqrt(np.maximum(squares, 0.0, out=squares), squares)


def _student_t_factors(nu: float, uniform: Array) -> Array:
    """Factors that turn normal frequencies into Student t ones, with smoothness `nu`."""
    factors: Array = np.sqrt(1.0 / _gamma(nu, uniform))
    return factors


def _gamma(shape: float, uniform: Array) -> Array:
    """Turn uniform numbers into draws from a gamma distribution with mean 1."""
    from scipy.special import gammaincinv

    # With a tiny shape, most draws underflow to 0.
    drawn: Array = np.maximum(gammaincinv(shape, uniform) / shape, 1e-100)
    return drawn


# --- The rational quadratic kernel.


@dataclass(frozen=True, slots=True)
class RationalQuadratic(Radial):
    """A mixture of squared exponentials of many length scales: far points stay slightly correlated.

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
        How similar the mixed length scales are.

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
        """Derivatives with respect to the logarithms of length scales, variance and alpha."""
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

    def frequency_factors(self, uniform: Callable[[], Array]) -> Array:
        """Draw inverse squared length scales from a gamma distribution (GPML, below Eq. 4.20)."""
        factors: Array = np.sqrt(_gamma(self.alpha, uniform()))
        return factors


# --- The squared exponential kernel.


# Slightly above the logarithm of the smallest normal (not subnormal) float.
_LOWEST = -700.0


def _exponential(h: Array, out: Array) -> Array:
    """Write `exp(h)` into `out`; for a matrix, 0 where `h` is below `_LOWEST`.

    An exponential that underflows takes ten times as long, and yields slow subnormal numbers. A
    matrix that a fit tries may be full of them, and no step of a fit should take long; for the few
    covariances of one event the check is not worthwhile.
    """
    if h.ndim == 1:
        return np.exp(h, out)
    np.maximum(h, _LOWEST, out=out)
    np.exp(out, out)
    out -= np.exp(_LOWEST)  # below rounding, except where h was clipped
    return out


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
        return _exponential(h, h)

    def _slope(self, h: Array) -> Array:
        return _exponential(h, np.empty_like(h))

    def frequency_factors(self, uniform: Callable[[], Array]) -> float:  # noqa: ARG002
        """Return 1: this is the kernel whose frequencies are multiplied."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Categorical(SquaredExponential):
    """Values that are equal or not: `k(x, x') = variance * exp(-n / length_scale²)`.

    `n` is the number of features in which the two points differ: numbers, booleans or strings; a
    missing value is a value of its own. Other kernels tell strings apart as well; this one is for
    numbers that merely name something, such as room numbers: `On(["room"], Categorical())`.

    Parameters
    ----------
    length_scale
        The larger, the less a different value matters: a number, or one for each feature by name. A
        feature that is not named has the geometric mean of those that are.
    variance
        Prior variance of the function, in units of y².

    Raises
    ------
    ValueError
        If a parameter is not positive and finite.

    Examples
    --------
    Points that differ in two of three features:

    >>> kernel = Categorical()
    >>> kernel.vector(kernel.embed(np.array([1.0, 2.0, 3.0]))[None], np.array([1.0, 3.0, 2.0]))
    array([0.13533528])

    References
    ----------
    [^1]: Kondor, R.I. and Lafferty, J., 2002. Diffusion kernels on graphs and other discrete input
        spaces. ICML: products of complete graphs, in another parametrisation.

    """

    # A squared exponential of distances between symbols.
    symbolic: ClassVar[bool] = True

    def _space_of(self, columns: Columns | None) -> Space:
        if not isinstance(self.length_scale, Mapping):
            return _Hamming(np.array(self.length_scale**-2.0), None)
        if columns is None:
            return space_of(self.length_scale, None)
        found = ColumnScales.of(self.length_scale, columns)
        return _Hamming(found.scales**-2.0, found.shares)


@dataclass(frozen=True, slots=True, eq=False)
class _Hamming:
    """Points whose squared distance is twice the number of coordinates in which they differ.

    Parameters
    ----------
    weights
        One over the squared length scales of the coordinates, shape () or (d,).
    shares
        Contribution of each hyperparameter to each column's length scale, shape (p, d); None for a
        single length scale for all.

    """

    weights: Array
    shares: Array | None

    @property
    def by_differences(self) -> bool:
        # A difference that rounds to 0 must not make values equal.
        return False

    def embed(self, x: Array) -> Array:
        return x.copy()

    def halves(self, rows: Array, row: Array) -> Array:
        differ = rows != row
        n: Array = differ @ self.weights if self.weights.ndim else differ.sum(axis=1) * self.weights
        return -n

    def halves_matrix(self, rows: Array) -> Array:
        return self._halves_matrix(rows, np.broadcast_to(self.weights, rows.shape[1:]))

    def parts(self, rows: Array) -> Iterator[Array] | None:
        if self.shares is None:
            return None
        return (self._halves_matrix(rows, share * self.weights) for share in self.shares)

    @staticmethod
    def _halves_matrix(rows: Array, weights: Array) -> Array:
        halves = np.zeros((len(rows), len(rows)))
        for values, weight in zip(rows.T, weights, strict=True):
            if weight:
                halves -= weight * (values[:, None] != values)
        return halves
