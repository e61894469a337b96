"""The kernel of values that are equal or not, with nothing between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamgp.base import Array
from streamgp.features import Columns
from streamgp.kernels.hyperparameters import ColumnScales
from streamgp.kernels.spaces import Space, space_of
from streamgp.kernels.stationary import Radial

__all__ = ["Categorical"]


@dataclass(frozen=True, slots=True)
class Categorical(Radial):
    """Values that are equal or not: `k(x, x') = variance * exp(-n / length_scale²)`.

    `n` is the number of features in which the two points differ, be they numbers, truth values or
    texts; a missing value is one of its own. Other kernels tell texts apart as well; this one is
    for numbers that only name something, as those of rooms do: `On(["room"], Categorical())`.

    Parameters
    ----------
    length_scale
        How little a different value matters, the more the larger: a number, or one for each feature
        by name. A feature that is not named has the geometric mean of those that are.
    variance
        Prior variance of the function, in units of y².

    Raises
    ------
    ValueError
        If a parameter is not positive and finite.

    Examples
    --------
    Points that differ in two of three features:

    >>> kernel = Categorical()
    >>> kernel.vector(kernel.embed(np.array([1.0, 2.0, 3.0]))[None], np.array([1.0, 3.0, 2.0]))
    array([0.13533528])

    References
    ----------
    [^1]: Kondor, R.I. and Lafferty, J., 2002. Diffusion kernels on graphs and other discrete input
        spaces. ICML: products of complete graphs, in another parametrisation.

    """

    symbolic: ClassVar[bool] = True

    def frequency_factors(self, uniform: Callable[[], Array]) -> float:  # noqa: ARG002
        """Return 1: of values that are symbols, it is a squared exponential."""
        return 1.0

    def _correlation(self, h: Array) -> Array:
        return np.exp(h, h)

    def _slope(self, h: Array) -> Array:
        return np.exp(h)

    def _space_of(self, columns: Columns | None) -> Space:
        if not isinstance(self.length_scale, Mapping):
            return _Hamming(np.array(self.length_scale**-2.0), None)
        if columns is None:
            return space_of(self.length_scale, None)
        found = ColumnScales.of(self.length_scale, columns)
        return _Hamming(found.scales**-2.0, found.shares)


@dataclass(frozen=True, slots=True, eq=False)
class _Hamming:
    """Points whose squared distance counts the coordinates in which they differ, twice.

    Parameters
    ----------
    weights
        One over the squared length scales of the coordinates, shape () or (d,).
    shares
        What each hyper-parameter contributes to each column's length scale, (p, d); None for one
        length scale for all.

    """

    weights: Array
    shares: Array | None

    @property
    def by_differences(self) -> bool:
        # A difference that rounds to 0 must not make values equal.
        return False

    def embed(self, x: Array) -> Array:
        return x.copy()

    def halves(self, rows: Array, row: Array) -> Array:
        differ = rows != row
        n: Array = differ @ self.weights if self.weights.ndim else differ.sum(axis=1) * self.weights
        return -n

    def halves_matrix(self, rows: Array) -> Array:
        return self._halves_matrix(rows, np.broadcast_to(self.weights, rows.shape[1:]))

    def parts(self, rows: Array) -> Iterator[Array]:
        if self.shares is None:
            yield self.halves_matrix(rows)
        else:
            for share in self.shares:
                yield self._halves_matrix(rows, share * self.weights)

    @staticmethod
    def _halves_matrix(rows: Array, weights: Array) -> Array:
        halves = np.zeros((len(rows), len(rows)))
        for values, weight in zip(rows.T, weights, strict=True):
            if weight:
                halves -= weight * (values[:, None] != values)
        return halves
