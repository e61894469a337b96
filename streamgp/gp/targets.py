"""What was learned: values of several functions at the same points.

Where it was learned, and the factor, are elsewhere.

"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamgp.base import Array
from streamgp.gp.packed import PackedCholesky
from streamgp.gp.points import enlarged, padded
from streamgp.gp.precision import DOUBLE


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
