"""Training set: points as they were handed over, and as a kernel stores them.

Targets, and what follows from them, are elsewhere.

"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamgp.base import Array
from streamgp.gp.cholesky import DOUBLE, PackedCholesky
from streamgp.kernels import Kernel


class Points:
    """Points that a kernel measures, in a number of features that may grow.

    Parameters
    ----------
    kernel
        Covariance function.

    Attributes
    ----------
    n
        Number of points.
    kernel
        Covariance function.
    given
        The points as they were handed over, with the features that they had then.
    d
        Number of features, None before the first point.
    origin
        What points are measured from, so that distances survive large offsets; None for 0.

    Examples
    --------
    >>> from streamgp.kernels import SquaredExponential
    >>> points = Points(SquaredExponential())
    >>> x = np.array([0.0])
    >>> points.settle(x)
    >>> row, prior_variance, covariances = points.seen_from(x)
    >>> prior_variance, covariances
    (1.0, array([], dtype=float64))
    >>> points.append(x, row)
    >>> points.seen_from(np.array([1.0]))[2]
    array([0.60653066])

    """

    # given  needed only when something is changed: appending to a list is the cheapest way to keep
    # _rows  the points as the kernel stores them, relative to the origin, with room for more
    __slots__ = ("_rows", "d", "given", "kernel", "n", "origin")

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.n = 0
        self.given: list[Array] = []
        self._rows: Array = np.empty((0, 0))
        self.d: int | None = None
        self.origin: Array | None = None

    @property
    def rows(self) -> Array:
        """The points as the kernel stores them, relative to the origin, a view of shape (n, w)."""
        return self._rows[: self.n]

    def settle(self, x: Array) -> None:
        """Let `x` of shape (d,), which will be the first point, say how points are measured.

        From the first point if it is so far from 0 that it knows nothing of it.
        """
        self.d = len(x)
        kernel = self.kernel
        row, zero = kernel.embed(x), kernel.embed(np.zeros(len(x)))
        near = kernel.vector(zero[None], row)[0] > 1e-20 * kernel.prior_variance(row)
        self.origin = None if near or not kernel.stationary else x.copy()

    def seen_from(self, x: Array) -> tuple[Array, float, Array]:
        """Return the row of a point, its prior variance and its covariances (n,), a new array."""
        kernel = self.kernel
        row = kernel.embed(x if self.origin is None else x - self.origin)
        n = self.n
        k = kernel.vector(self._rows[:n], row) if n else np.empty(0)
        return row, kernel.prior_variance(row), k

    def append(self, x: Array, row: Array) -> None:
        """Add a point, which is kept and not copied, and its row."""
        n = self.n
        if n == len(self._rows):
            self._rows = enlarged(self._rows, (max(16, 2 * n), len(row)))
        self._rows[n] = row
        self.given.append(x)
        self.n = n + 1

    def cut(self, n: int) -> list[Array]:
        """Keep the first `n` points only, and return the others, with all features."""
        others = [padded(x, self.d or 0) for x in self.given[n:]]
        del self.given[n:]
        self.n = n
        return others

    def widen(self, d: int, kernel: Kernel | None = None) -> None:
        """Make room for points with `d` features; the old points have 0 in the new ones.

        `kernel` is the same kernel, bound to that many columns; None where names do not matter.
        """
        if self.d is not None and d > self.d:
            self._resize(d, kernel)

    def narrow(self, d: int, kernel: Kernel | None = None) -> None:
        """Take room for features back that no point has used; `kernel` as for `widen`."""
        if self.d is not None and d < self.d:
            self._resize(d, kernel)

    def _resize(self, d: int, kernel: Kernel | None) -> None:
        """Store the points once more, in another number of features."""
        self.d = d
        self.kernel = kernel or self.kernel
        points = [padded(x, d) for x in self.given]
        if self.origin is not None:
            # 0 in a new feature, so that old points keep their distances.
            self.origin = padded(self.origin, d)
            points = [x - self.origin for x in points]
        # One row, of whatever point, says how wide they are when there is none.
        points = points or [np.zeros(d)]
        rows = np.array([self.kernel.embed(point) for point in points])
        self._rows = enlarged(rows, (max(len(rows), len(self._rows)), rows.shape[1]))


def enlarged(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of another, larger shape: `array`, and zeros behind it."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger


def padded(x: Array, d: int) -> Array:
    """Return the first `d` entries of `x` of shape (n,), zeros if it has fewer."""
    return x[:d] if len(x) >= d else enlarged(x, (d,))


# --- What was learned: values of several functions at the same points.
#
# Where it was learned, and the factor, are elsewhere.


class Targets:
    """Observed values of `m` functions that share one factor `L`, with `z = L⁻¹ y` of each.

    Parameters
    ----------
    dtype
        Of `z`, as that of the factor.

    Attributes
    ----------
    m
        Number of functions.
    values
        The values as they were handed over, shorter where functions were not yet known.

    Examples
    --------
    One observation of 3 whose variance is 4:

    >>> targets = Targets()
    >>> targets.add()
    >>> targets.append(np.array([3.0]), targets.means(np.empty(0)), 2.0)
    >>> targets.Z
    array([[1.5]])

    """

    # values  needed only when one is changed: appending to a list is the cheapest way to keep them
    # _Z      one row for each function, so that adding one changes no bit of the others; with room
    #         for more
    __slots__ = ("_Z", "m", "values")

    def __init__(self, dtype: np.dtype[Any] = DOUBLE) -> None:
        self.m = 0
        self.values: list[Array] = []
        self._Z: Array = np.zeros((0, 0), dtype)

    @property
    def Z(self) -> Array:  # noqa: N802 - mathematics keeps its letters
        """`L⁻¹ y` of each function, a view of shape (m, n)."""
        return self._Z[: self.m, : len(self.values)]

    def means(self, v: Array) -> Array:
        """Return the posterior means (m,) at a point of which `v = L⁻¹ k`, shape (n,)."""
        # One dot product for each function: a matrix product takes several rows at a time, and its
        # last digits depend on how many there are.
        means: Array = np.vecdot(self._Z[: self.m, : len(self.values)], v)
        return means

    def add(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        if self.m == len(self._Z):
            self._Z = enlarged(self._Z, (max(4, 2 * self.m), self._Z.shape[1]))
        self.m += 1

    def append(self, y: Array, means: Array, d: float) -> None:
        """Add values at a point, given its means (m,) and the last entry `d` of its row of `L`.

        `y` is kept. A longer one brings new functions.
        """
        n = len(self.values)
        if self.m < len(y):
            while self.m < len(y):
                self.add()
            means = padded(means, self.m)
        if n == self._Z.shape[1]:
            self._Z = enlarged(self._Z, (len(self._Z), max(16, 2 * n)))
        # Forward substitution of the new last row, GPML Alg. 2.1, line 3.
        np.divide(y - means, d, self._Z[: self.m, n])
        self.values.append(y)

    def cut(self, n: int) -> list[Array]:
        """Keep the first `n` points only, and return the values at the others, each (m,)."""
        others = [padded(y, self.m) for y in self.values[n:]]
        del self.values[n:]
        return others

    def relabel(self, i: int, y: Array, factor: PackedCholesky) -> None:
        """Replace the values of point `i`, to the last bit as if they had been learned so.

        What follows from them is computed once more by the same steps, point after point.
        """
        changed = np.flatnonzero(padded(self.values[i], self.m) != y)
        self.values[i] = y
        for r in range(i, len(self.values)):
            v, d = factor.row(r)
            values = self.values[r]
            for j in changed.tolist():
                mean = np.vecdot(self._Z[j, :r], v)
                # GPML Alg. 2.1, line 3, as in `append`.
                self._Z[j, r] = ((values[j] if j < len(values) else 0.0) - mean) / d

    def dense(self) -> Array:
        """Return all values, shape (n, m)."""
        rows = [padded(y, self.m) for y in self.values]
        return np.array(rows).reshape(len(rows), self.m)
