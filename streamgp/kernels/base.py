"""What a Gaussian process needs to know of a covariance function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn, Protocol, Self

from streamgp.base import Array
from streamgp.features import Columns


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


def check_kernel(kernel: object) -> None:
    """Raise TypeError if something is no kernel; a class of kernels is none."""
    if isinstance(kernel, type) or not hasattr(kernel, "embed"):
        raise TypeError(f"kernel must be one of streamgp.kernels, got {kernel!r}")


def refuse_unbound(x: Array) -> NoReturn:
    """Say that names of features are no help with coordinates."""
    raise TypeError(
        f"a kernel that names features cannot tell which of {len(x)} coordinates are theirs; "
        "call `bound` with their columns first, as GPClassifier does"
    )
