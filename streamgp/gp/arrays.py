"""Arrays that grow, and symmetric matrices that are modified in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dsymv, dsyr

from streamgp.base import Array


def padded(x: Array, d: int) -> Array:
    """Return the first `d` entries of `x` of shape (n,), zeros if it has fewer."""
    return x[:d] if len(x) >= d else enlarged(x, (d,))


def enlarged(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of another, larger shape: `array`, followed by zeros."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger


class SymmetricMatrix:
    """A symmetric matrix of shape (size, size), zero at first, whose upper triangle is stored.

    Parameters
    ----------
    size
        Number of rows.

    Examples
    --------
    >>> A = SymmetricMatrix(2)
    >>> A.add(0.5, np.array([2.0, 4.0]))
    >>> A.times(np.array([1.0, 0.0]))
    array([2., 4.])

    """

    # _a  in the order of Fortran: otherwise BLAS would work on a copy
    __slots__ = ("_a", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._a: Array = np.zeros((size, size), order="F")

    def times(self, x: Array) -> Array:
        """Return the product with a vector that starts with `size` numbers, a new array (size,)."""
        product: Array = dsymv(1.0, self._a, x)
        return product

    def times_into(self, x: Array, out: Array, offset: int = 0) -> None:
        """Write the product with a vector into `out`, which holds zeros there."""
        # Positional for speed: beta=0, y=out, offx=0, incx=1, offy, incy=1, lower=0, overwrite_y=1.
        dsymv(1.0, self._a, x, 0.0, out, 0, 1, offset, 1, 0, 1)

    def add(self, factor: float, x: Array) -> None:
        """Add `factor x x'`; only the first `size` numbers of `x` count."""
        # Positional for speed: lower=0, incx=1, offx=0, n, a, overwrite_a=1.
        self._a = dsyr(factor, x, 0, 1, 0, self.size, self._a, 1)

    def diagonal(self) -> Array:
        """Return a view of the diagonal."""
        return self._a.diagonal()

    def column(self, i: int) -> Array:
        """Return a copy of a column."""
        column: Array = self._a[i].copy()
        column[:i] = self._a[:i, i]
        return column

    def set_column(self, i: int, column: Array, pivot: float) -> None:
        """Replace a column and its row; `pivot` is their common entry."""
        self._a[:i, i] = column[:i]
        self._a[i, i:] = column[i : self.size]
        self._a[i, i] = pivot

    def dense(self, n: int) -> Array:
        """Return the first `n` rows and columns as an ordinary array."""
        upper = np.triu(self._a[:n, :n])
        return upper + np.triu(upper, 1).T

    def set(self, found: Array) -> None:
        """Set the first rows and columns to the upper triangle of `found`, the others to zero."""
        n = len(found)
        self._a[:] = 0.0
        self._a[:n, :n] = np.triu(found)

    def enlarged(self, size: int) -> SymmetricMatrix:
        """Return a larger matrix: this one, followed by zeros."""
        larger = SymmetricMatrix(size)
        larger.set(self._a)
        return larger

    def keep(self, rows: Sequence[int]) -> None:
        """Keep some rows and columns, in their order, as the first ones; the others become zero."""
        self.set(self._a[np.ix_(rows, rows)])
