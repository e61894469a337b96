"""Protocol of a covariance function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn, Protocol, Self, TypeAlias, runtime_checkable

from streamgp.base import Array, FeatureName
from streamgp.features import Columns

__all__ = ["Kernel", "Spectral"]

LengthScale: TypeAlias = float | Mapping[FeatureName, float]
"""One for all features, or one for each by name."""


class Kernel(Protocol):
    """A covariance function, with the hyper-parameters that its user gave it."""

    @property
    def theta(self) -> Array:
        """Natural logarithms of all hyper-parameters, in the order of their declaration, (p,)."""

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with other hyper-parameters."""

    def bound(self, columns: Columns) -> Self:
        """Return the kernel for points whose coordinates are these columns.

        Only kernels that know features by name, or meet texts, need that; others return themselves.
        """

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only."""

    def embed(self, x: Array) -> Array:
        """Turn a point of shape (d,) into the row that is stored for it, shape (w,)."""

    def vector(self, rows: Array, row: Array) -> Array:
        """Covariances of the point behind `row` with the others behind `rows`, a new array (n,)."""

    def prior_variance(self, row: Array) -> float:
        """Covariance of the point behind `row` with itself."""

    def matrix(self, rows: Array) -> Array:
        """Covariances of the points behind `rows` with each other, shape (n, n)."""

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivatives of `matrix(rows)` by each entry of `theta`, one (n, n) after the other."""


@runtime_checkable
class Spectral(Protocol):
    """A kernel with a spectral density that can be drawn from, as random features need.

    It is a mixture of squared exponentials: a frequency is that of a squared exponential with these
    length scales, times a factor of its own.
    """

    @property
    def length_scale(self) -> LengthScale:
        """Distance over which functions change: a number, or one for each feature by name."""

    @property
    def variance(self) -> float:
        """Prior variance of the function, in units of y²; no part of random features."""

    @property
    def symbolic(self) -> bool:
        """Whether numbers are symbols as well, that are equal or not with nothing between."""

    def frequency_factors(self, uniform: Callable[[], Array]) -> Array | float:
        """Draw what the frequencies are multiplied by.

        `uniform` returns numbers uniform in (0, 1), one for each frequency; a kernel all of whose
        frequencies have the same factor does not call it, and returns that.
        """


def check_kernel(kernel: object, name: str = "kernel") -> None:
    """Raise TypeError if `kernel` is not a kernel; a class of kernels is not one."""
    if isinstance(kernel, type) or not hasattr(kernel, "embed"):
        raise TypeError(f"{name} must be one of streamgp.kernels, got {kernel!r}")


def refuse_unbound(x: Array) -> NoReturn:
    """Say that names of features are no help with coordinates."""
    raise TypeError(
        f"a kernel that names features cannot tell which of {len(x)} coordinates are theirs; "
        "call `bound` with their columns first, as GPClassifier does"
    )
