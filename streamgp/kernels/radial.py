"""Kernels that fall with the distance of two points, and with nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from streamgp.base import Array
from streamgp.features import Columns
from streamgp.kernels.hyperparameters import Hyperparameters, LengthScale
from streamgp.kernels.spaces import Space
from streamgp.kernels.texts import space_of
from streamgp.signatures import parameters


@dataclass(frozen=True, slots=True)
class Radial(Hyperparameters, ABC):
    """`k(x, x') = variance * c(h)` with `h = -|x - x'|² / (2 length_scale²)` and `c(0) = 1`.

    Subclasses say what `c` is.

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
    # _columns  what the coordinates are, None for numbers only
    _columns: Columns | None = field(init=False, repr=False, compare=False)
    _space: Space = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Hyperparameters.__post_init__(self)
        self._settle(None)

    @abstractmethod
    def _correlation(self, h: Array) -> Array:
        """Return `c(h)`, in the place of `h`."""

    @abstractmethod
    def _slope(self, h: Array) -> Array:
        """Return the derivative of `c` at `h`, a new array."""

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with other hyper-parameters."""
        other = Hyperparameters.with_theta(self, theta)
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
        """Whether covariances depend on differences of points only: of numbers, they do."""
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
        """Derivatives of the matrix by the logarithms of length scales and variance."""
        h = self._space.halves_matrix(rows)
        # A squared length scale divides its part of h: ∂h / ∂ ln length_scale = -2 part.
        slope = self._slope(h)
        slope *= -2.0 * self.variance
        for part in self._space.parts(rows):
            part *= slope
            yield part
        yield self._covariance(h)

    def _covariance(self, h: Array) -> Array:
        """Return `k` in the place of `h`."""
        covariances = self._correlation(h)
        if self.variance != 1.0:
            covariances *= self.variance
        return covariances

    def _settle(self, columns: Columns | None) -> None:
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_space", self._space_of(columns))

    def _space_of(self, columns: Columns | None) -> Space:
        return space_of(self.length_scale, columns)
