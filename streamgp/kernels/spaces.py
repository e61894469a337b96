"""Spaces of points: how a kernel stores them, and distances between them.

All distances are squared, halved and negated, as exponents need them, in units of length scales.
First points that consist of numbers, then those with strings.

"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg.blas import ddot, dgemm

from streamgp.base import Array
from streamgp.features import Columns
from streamgp.kernels.base import LengthScale, refuse_unbound
from streamgp.kernels.hyperparameters import ColumnScales

# Half the squared distance from the origin, in length scales, beyond which the expanded square
# would lose more than three digits to cancellation; differences are taken one by one there.
FAR = 1e3

# Rows of a matrix of distances that stay in the cache while they are worked on.
_BAND = 64


def products_of(rows: Array, probe: Array) -> Array:
    """Scalar products of `n` rows with one more, shape (n,).

    numpy's own product would release the GIL to other threads each time.
    """
    if not len(rows):
        return np.empty(0)
    # Where OpenBLAS has AVX-512, a small product of matrices is faster by a quarter than one of a
    # matrix and a vector; elsewhere it is slower by as many microseconds.
    products: Array = dgemm(1.0, probe[None], rows.T)[0]
    return products


class Space(Protocol):
    """Protocol of a space with distances."""

    @property
    def by_differences(self) -> bool:
        """Whether distances depend on the differences of coordinates only."""

    def embed(self, x: Array) -> Array:
        """Turn a point of shape (d,) into the row that is stored for it, shape (w,)."""

    def halves(self, rows: Array, row: Array) -> Array:
        """Minus half the squared distances of a point from `n` others, a new array (n,)."""

    def halves_matrix(self, rows: Array) -> Array:
        """Minus half the squared distances of `n` points from each other, shape (n, n)."""

    def parts(self, rows: Array) -> Iterator[Array] | None:
        """Half the derivatives of `halves_matrix` with respect to `-ln length_scale`.

        A new (n, n) for each length scale; they sum to `halves_matrix`. None for a single length
        scale, whose part is the whole.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Euclidean:
    """Points of numbers; coordinates are in units of length scales.

    A stored row is `[s, -|s|²/2, 1]` with `s = x / length_scale`. With the last two entries swapped
    on one side, the product of two rows is minus half their squared distance.

    Parameters
    ----------
    inverse
        One over the length scales, shape () or (d,).
    shares
        Contribution of each hyperparameter to each column's length scale, shape (p, d); None for a
        single length scale for all.

    """

    inverse: Array
    shares: Array | None

    @property
    def by_differences(self) -> bool:
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

    def parts(self, rows: Array) -> Iterator[Array] | None:
        """Return the part of each length scale in `halves_matrix`; None for a single one."""
        if self.shares is None:
            return None
        return (self._part(rows, share) for share in self.shares)

    def _part(self, rows: Array, share: Array) -> Array:
        mine = np.flatnonzero(share)
        return _halves_matrix(rows[:, mine] * np.sqrt(share[mine]))


def _halves_matrix(s: Array) -> Array:
    """Minus half the squared distances of points (n, d) from each other."""
    if not s.size:
        return np.zeros((len(s), len(s)))
    s = s - s.mean(axis=0)  # leaves distances unchanged, and squares become smaller
    norms = -0.5 * np.einsum("ij,ij->i", s, s)
    halves: Array = s @ s.T
    # A band at a time: for all rows at once, the sums would be another large matrix.
    for start in range(0, len(s), _BAND):
        band = halves[start : start + _BAND]
        band += norms[start : start + _BAND, None] + norms
        np.minimum(band, 0.0, out=band)
    np.fill_diagonal(halves, 0.0)
    far = norms < -FAR
    if far.any():
        _take_differences(halves, s, norms, far)
    return halves


def _take_differences(halves: Array, s: Array, norms: Array, far: Array) -> None:
    """Recompute from differences what cancellation loses: for far points close to each other."""
    # For others, the expanded square is at least an eighth of the terms that it is the difference
    # of.
    close = halves > 0.125 * (norms[:, None] + norms)
    close &= np.logical_or.outer(far, far)
    first, second = np.nonzero(np.triu(close, 1))
    for start in range(0, len(first), _BAND * _BAND):
        i, j = (indices[start : start + _BAND * _BAND] for indices in (first, second))
        differences = s[i] - s[j]
        halves[i, j] = halves[j, i] = -0.5 * np.einsum("ij,ij->i", differences, differences)


# --- Points some of whose coordinates are strings, and points whose columns are not known yet.


def space_of(length_scale: LengthScale, columns: Columns | None) -> Euclidean:
    """Return the space of points with the given columns, of numbers if these are not known."""
    if columns is None:
        if isinstance(length_scale, Mapping):
            return _Unbound(np.empty(0), None)
        # A zero-dimensional array, by which numpy multiplies faster than by a float.
        return Euclidean(np.array(1.0 / length_scale), None)
    found = ColumnScales.of(length_scale, columns)
    shares = found.shares if isinstance(length_scale, Mapping) else None
    if not columns.texts:
        return Euclidean(1.0 / found.scales, shares)
    texts = list(columns.texts)
    numbers = [i for i in range(len(columns)) if i not in columns.texts]
    return _WithTexts(
        1.0 / found.scales[numbers], shares, numbers, texts, found.scales[texts] ** -2.0
    )


@dataclass(frozen=True, slots=True, eq=False)
class _WithTexts(Euclidean):
    """Points of numbers and strings, each string in a direction of its own.

    A string lies at distance 1 from an absent one, and √2 from any other, divided by its length
    scale: as far apart as two values of a standardised number may be expected to lie
    (docs/decisions/texts.md). A stored row is the codes of the strings, minus half their squared
    norm, and what is stored for the numbers.

    Parameters
    ----------
    numbers, texts
        Positions of the coordinates that hold numbers, and strings.
    weights
        One over the squared length scales of the strings.

    """

    numbers: list[int]
    texts: list[int]
    weights: Array

    @property
    def by_differences(self) -> bool:
        return False  # not that of two codes

    def embed(self, x: Array) -> Array:
        """Return `[codes, -|texts|²/2, s, -|s|²/2, 1]`, shape (d + 3,)."""
        codes = x[self.texts]
        half_norm = -0.5 * ((codes != 0.0) @ self.weights)
        return np.concatenate([codes, [half_norm], Euclidean.embed(self, x[self.numbers])])

    def square(self, row: Array) -> float:
        return Euclidean.square(self, row) - 2.0 * float(row[len(self.texts)])

    def halves(self, rows: Array, row: Array) -> Array:
        c = len(self.texts)
        halves: Array
        if row[-2] < -FAR:
            halves = Euclidean.halves(self, rows[:, c + 1 :], row[c + 1 :])
            halves += rows[:, c] + row[c]
        else:
            # As for numbers alone, in one product with the rows as stored.
            probe = row.copy()
            probe[:c] = 0.0
            probe[c] = probe[-2] = 1.0
            probe[-1] = row[c] + row[-2]
            halves = products_of(rows, probe)
        halves += self._common(rows, row)
        return halves

    def halves_matrix(self, rows: Array) -> Array:
        return self._with_texts(
            Euclidean.halves_matrix(self, rows[:, len(self.texts) + 1 :]), rows, self.weights
        )

    def products(self, rows: Array, row: Array) -> Array:
        c = len(self.texts) + 1
        return Euclidean.products(self, rows[:, c:], row[c:]) + self._common(rows, row)

    def products_matrix(self, rows: Array) -> Array:
        c = len(self.texts) + 1
        products = Euclidean.products_matrix(self, rows[:, c:])
        for code, weight in zip(rows[:, :c].T, self.weights, strict=False):
            products += weight * ((code[:, None] == code) & (code != 0.0))
        return products

    def _part(self, rows: Array, share: Array) -> Array:
        c = len(self.texts) + 1
        part = Euclidean._part(self, rows[:, c:], share[self.numbers])
        return self._with_texts(part, rows, share[self.texts] * self.weights)

    def _with_texts(self, halves: Array, rows: Array, weights: Array) -> Array:
        """Add the contribution of strings to distances of points from each other."""
        for j in np.flatnonzero(weights):
            code = rows[:, j]
            present = 0.5 * weights[j] * (code != 0.0)
            halves -= np.where(code[:, None] == code, 0.0, present[:, None] + present)
        return halves

    def _common(self, rows: Array, row: Array) -> Array:
        """Scalar products of the strings of points with those of one, shape (n,)."""
        c = len(self.texts)
        # NaN equals nothing: points without a string have none in common.
        codes = np.where(row[:c] == 0.0, math.nan, row[:c])
        common: Array = (rows[:, :c] == codes) @ self.weights
        return common


class _Unbound(Euclidean):
    """The space of a kernel that refers to features by name, until their columns are set."""

    __slots__ = ()

    def embed(self, x: Array) -> Array:
        """Refuse: which coordinate is which feature is not known."""
        refuse_unbound(x)
