"""Where points lie: how a kernel stores them, and how far they are from each other.

All distances are squared, halved and negative, as exponents need them, and in length scales. Points
of numbers only are here; those with texts are in `texts`.

"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg.blas import ddot, dgemm

from streamgp.base import Array

# Half the squared distance from the origin, in length scales, beyond which the expanded square
# would lose more than three digits to cancellation; differences are taken one by one there.
FAR = 1e3

# Rows of a matrix of distances that stay in the cache while they are worked on.
_BAND = 64


def products_of(rows: Array, probe: Array) -> Array:
    """Scalar products of `n` rows with one more, shape (n,).

    numpy's own product lets other threads of the process go first, each time.
    """
    if not len(rows):
        return np.empty(0)
    # A small product of matrices is faster than one of a matrix and a vector, by a quarter, where
    # OpenBLAS has AVX-512, and slower elsewhere, by as many microseconds.
    products: Array = dgemm(1.0, probe[None], rows.T)[0]
    return products


class Space(Protocol):
    """What a kernel that depends on distances needs to know of them."""

    @property
    def by_differences(self) -> bool:
        """Whether distances depend on the differences of coordinates only."""

    def embed(self, x: Array) -> Array:
        """Turn a point of shape (d,) into the row that is stored for it, shape (w,)."""

    def halves(self, rows: Array, row: Array) -> Array:
        """Minus half the squared distances of a point from `n` others, a new array (n,)."""

    def halves_matrix(self, rows: Array) -> Array:
        """Minus half the squared distances of `n` points from each other, shape (n, n)."""

    def parts(self, rows: Array) -> Iterator[Array]:
        """Half the derivatives of `halves_matrix(rows)` by `-ln length_scale`.

        One (n, n) for each length scale; they sum to the whole.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Euclidean:
    """Points of numbers, which are coordinates in length scales.

    A stored row is `[s, -|s|²/2, 1]` with `s = x / length_scale`. With the last two entries swapped
    on one side, the product of two rows is minus half their squared distance.

    Parameters
    ----------
    inverse
        One over the length scales, shape () or (d,).
    shares
        What each hyper-parameter contributes to each column's length scale, (p, d); None for one
        length scale for all.

    """

    inverse: Array
    shares: Array | None

    @property
    def by_differences(self) -> bool:
        """Whether distances depend on the differences of coordinates only: they do."""
        return True

    def embed(self, x: Array) -> Array:
        """Return `[s, -|s|²/2, 1]`, shape (d + 2,).

        Raises
        ------
        ValueError
            If `x` is not finite, or so large that its square is not.

        """
        d = len(x)
        row: Array = np.empty(d + 2)
        s = row[:d]
        np.multiply(x, self.inverse, s)
        half_norm: float = -0.5 * ddot(s, s) if d else 0.0
        if not math.isfinite(half_norm):
            raise ValueError("a point must be finite and its square too; scale the features")
        row[d] = half_norm
        row[d + 1] = 1.0
        return row

    def square(self, row: Array) -> float:
        """Squared distance of a point from the origin."""
        return -2.0 * float(row[-2])

    def halves(self, rows: Array, row: Array) -> Array:
        """Minus half the squared distances of a point from `n` others, shape (n,)."""
        half_norm = row[-2]
        halves: Array
        if half_norm < -FAR:
            differences = rows[:, :-2] - row[:-2]
            halves = -0.5 * np.einsum("ij,ij->i", differences, differences)
        else:
            probe = row.copy()
            probe[-2] = 1.0
            probe[-1] = half_norm
            halves = products_of(rows, probe)
        return halves

    def halves_matrix(self, rows: Array) -> Array:
        """Minus half the squared distances of `n` points from each other, shape (n, n)."""
        return _halves_matrix(rows[:, :-2])

    def products(self, rows: Array, row: Array) -> Array:
        """Scalar products of a point with `n` others, shape (n,)."""
        products: Array = rows[:, :-2] @ row[:-2]
        return products

    def products_matrix(self, rows: Array) -> Array:
        """Scalar products of `n` points with each other, shape (n, n)."""
        s = rows[:, :-2]
        products: Array = s @ s.T
        return products

    def parts(self, rows: Array) -> Iterator[Array]:
        """Return what each length scale has in `halves_matrix(rows)`."""
        if self.shares is None:
            yield self.halves_matrix(rows)
        else:
            for share in self.shares:
                yield self._part(rows, share)

    def _part(self, rows: Array, share: Array) -> Array:
        mine = np.flatnonzero(share)
        return _halves_matrix(rows[:, mine] * np.sqrt(share[mine]))


def _halves_matrix(s: Array) -> Array:
    """Minus half the squared distances of points (n, d) from each other."""
    if not s.size:
        return np.zeros((len(s), len(s)))
    s = s - s.mean(axis=0)  # distances do not change, and squares become smaller
    norms = -0.5 * np.einsum("ij,ij->i", s, s)
    halves: Array = s @ s.T
    # A band at a time: of all rows at once, the sums would be another large matrix.
    for start in range(0, len(s), _BAND):
        band = halves[start : start + _BAND]
        band += norms[start : start + _BAND, None] + norms
        np.minimum(band, 0.0, out=band)
    np.fill_diagonal(halves, 0.0)
    for i in np.flatnonzero(norms < -FAR):
        differences = s - s[i]
        halves[i] = halves[:, i] = -0.5 * np.einsum("ij,ij->i", differences, differences)
    return halves
