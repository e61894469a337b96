"""Protocol of a covariance function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, Protocol, Self, TypeAlias, runtime_checkable

from streamgp.base import Array, FeatureName
from streamgp.common.signatures import has_methods, lacking
from streamgp.features import Columns

__all__ = ["Kernel", "Spectral"]

LengthScale: TypeAlias = float | Mapping[FeatureName, float]
"""One length scale for all features, or one for each by name."""


class Kernel(Protocol):
    """A covariance function with its hyperparameters."""

    @property
    def theta(self) -> Array:
        """Natural logarithms of all hyperparameters, in the order of their declaration, (p,)."""

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with other hyperparameters."""

    def bound(self, columns: Columns) -> Self:
        """Return the kernel for points whose coordinates are these columns.

        Only kernels that refer to features by name, or have to deal with strings, need that; others
        return themselves.
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
        """Derivatives of `matrix(rows)` with respect to each entry of `theta`, each (n, n)."""


@runtime_checkable
class Spectral(Protocol):
    """A kernel with a spectral density that can be drawn from, as random features need.

    It is a scale mixture of squared exponentials: each frequency is that of a squared exponential
    with these length scales, times a factor of its own.
    """

    @property
    def length_scale(self) -> LengthScale:
        """Distance over which functions change: a number, or one for each feature by name."""

    @property
    def variance(self) -> float:
        """Prior variance of the function, in units of y²; not part of the random features."""

    @property
    def symbolic(self) -> bool:
        """Whether numbers are symbols as well, which are either equal or different."""

    def frequency_factors(self, uniform: Callable[[], Array]) -> Array | float:
        """Draw the factors by which the frequencies are multiplied.

        `uniform` returns numbers uniform in (0, 1), one for each frequency; a kernel whose
        frequencies all have the same factor returns that without calling it.
        """


def check_kernel(kernel: object, name: str = "kernel") -> None:
    """Raise TypeError if `kernel` is not a kernel; a class of kernels is not one."""
    kind: Any = type(kernel)
    if has_methods(kind, Kernel):
        return
    lacks = ""
    if hasattr(kernel, "embed") and not isinstance(kernel, type):
        missing = lacking(kernel, Kernel)
        if not missing:  # it passes its methods on to another kernel
            return
        lacks = f"; this one lacks {', '.join(missing)}"
    raise TypeError(
        f"{name} must be one of streamgp.kernels, got {kernel!r}; a kernel of your own is an "
        f"object with the methods of streamgp.kernels.Kernel{lacks}"
    )


def refuse_unbound(x: Array) -> NoReturn:
    """Raise TypeError: coordinates cannot be matched with names of features."""
    raise TypeError(
        f"a kernel that names features cannot tell which of {len(x)} coordinates are theirs; "
        "call `bound` with their columns first, as GPClassifier does"
    )
