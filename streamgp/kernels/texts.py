"""Points some of whose coordinates are texts, and points of which it is not known what they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streamgp.base import Array
from streamgp.features import Columns
from streamgp.kernels.hyperparameters import ColumnScales, LengthScale
from streamgp.kernels.kernel import refuse_unbound
from streamgp.kernels.spaces import FAR, Euclidean, products_of


def space_of(length_scale: LengthScale, columns: Columns | None) -> Euclidean:
    """Return the space of points with the given columns, of numbers if they are not known."""
    if columns is None:
        if isinstance(length_scale, Mapping):
            return _Unbound(np.empty(0), None)
        # As an array without dimensions, which numpy multiplies by faster than by a float.
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
    """Points of numbers and of texts, each text a direction of its own.

    A text lies at distance 1 from none, and √2 from any other, over its length scale: as far as two
    values of a standardised number may be expected to (docs/decisions/texts.md). A stored row is
    the codes of the texts, minus half their squared norm, and what is stored for the numbers.

    Parameters
    ----------
    numbers, texts
        Positions of the coordinates that hold numbers, and texts.
    weights
        One over the squared length scales of the texts.

    """

    numbers: list[int]
    texts: list[int]
    weights: Array

    @property
    def by_differences(self) -> bool:
        """Whether distances depend on the differences of coordinates only: not those of codes."""
        return False

    def embed(self, x: Array) -> Array:
        """Return `[codes, -|texts|²/2, s, -|s|²/2, 1]`, shape (d + 3,)."""
        codes = x[self.texts]
        half_norm = -0.5 * ((codes != 0.0) @ self.weights)
        return np.concatenate([codes, [half_norm], Euclidean.embed(self, x[self.numbers])])

    def square(self, row: Array) -> float:
        """Squared distance of a point from the origin."""
        return Euclidean.square(self, row) - 2.0 * float(row[len(self.texts)])

    def halves(self, rows: Array, row: Array) -> Array:
        """Minus half the squared distances of a point from `n` others, shape (n,)."""
        c = len(self.texts)
        halves: Array
        if row[-2] < -FAR:
            halves = Euclidean.halves(self, rows[:, c + 1 :], row[c + 1 :])
            halves += rows[:, c] + row[c]
        else:
            # As for numbers alone, in one product with rows as they lie.
            probe = row.copy()
            probe[:c] = 0.0
            probe[c] = probe[-2] = 1.0
            probe[-1] = row[c] + row[-2]
            halves = products_of(rows, probe)
        halves += self._common(rows, row)
        return halves

    def halves_matrix(self, rows: Array) -> Array:
        """Minus half the squared distances of `n` points from each other, shape (n, n)."""
        return self._with_texts(
            Euclidean.halves_matrix(self, rows[:, len(self.texts) + 1 :]), rows, self.weights
        )

    def products(self, rows: Array, row: Array) -> Array:
        """Scalar products of a point with `n` others, shape (n,)."""
        c = len(self.texts) + 1
        return Euclidean.products(self, rows[:, c:], row[c:]) + self._common(rows, row)

    def products_matrix(self, rows: Array) -> Array:
        """Scalar products of `n` points with each other, shape (n, n)."""
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
        """Add what texts contribute to distances of points from each other."""
        for j in np.flatnonzero(weights):
            code = rows[:, j]
            present = 0.5 * weights[j] * (code != 0.0)
            halves -= np.where(code[:, None] == code, 0.0, present[:, None] + present)
        return halves

    def _common(self, rows: Array, row: Array) -> Array:
        """Scalar products of the texts of points with those of one, shape (n,)."""
        c = len(self.texts)
        # NaN equals nothing: what has no text has none in common.
        codes = np.where(row[:c] == 0.0, math.nan, row[:c])
        common: Array = (rows[:, :c] == codes) @ self.weights
        return common


class _Unbound(Euclidean):
    """The space of a kernel that knows features by name, until it is told their columns."""

    __slots__ = ()

    def embed(self, x: Array) -> Array:
        """Refuse: which coordinate is which feature is not known."""
        refuse_unbound(x)
