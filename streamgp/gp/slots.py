"""Points of which one can take the place of another, and which of many to begin with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from streamgp.base import Array
from streamgp.gp.basis import NOVELTY
from streamgp.gp.points import Points
from streamgp.kernels import Kernel


class Slots(Points):
    """Points whose places can be taken by others.

    Examples
    --------
    >>> from streamgp.kernels import SquaredExponential
    >>> slots = Slots(SquaredExponential())
    >>> slots.settle(np.array([0.0]))
    >>> slots.extend([np.array([0.0]), np.array([1.0])])
    >>> x = np.array([2.0])
    >>> row, _, _ = slots.seen_from(x)
    >>> slots.put(0, x, row)
    >>> slots.prior_covariances().round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]

    """

    __slots__ = ()

    def extend(self, X: Sequence[Array]) -> None:
        """Add points at the end."""
        for x in X:
            self.append(x, self.seen_from(x)[0])

    def put(self, slot: int, x: Array, row: Array) -> None:
        """Put a point and its row into a slot, the first free one at most."""
        if slot == self.n:
            self.append(x, row)
        else:
            self.given[slot] = x
            self._rows[slot] = row

    def keep(self, slots: Sequence[int]) -> None:
        """Keep the points in some slots, and move them up."""
        self.n = len(slots)
        self.given = [self.given[i] for i in slots]
        self._rows[: self.n] = self._rows[slots]

    def measure(self, kernel: Kernel) -> None:
        """Measure the points with another kernel."""
        if self.d is not None:
            self._resize(self.d, kernel)

    def prior_covariances(self) -> Array:
        """Return the prior covariances of all points with each other, shape (n, n)."""
        kernel, rows = self.kernel, self.rows
        K: Array = np.empty((self.n, self.n))
        for i, row in enumerate(rows):
            K[i, :i] = K[:i, i] = kernel.vector(rows[:i], row)
            K[i, i] = kernel.prior_variance(row)
        return K


def new_to_each_other(K: Array) -> list[int]:
    """Return the indices of points from which all others follow, but for a share of `NOVELTY`.

    Parameters
    ----------
    K
        Prior covariances of the points, shape (n, n).

    Examples
    --------
    >>> new_to_each_other(np.array([[1.0, 0.3, 0.9999], [0.3, 1.0, 0.3], [0.9999, 0.3, 1.0]]))
    [0, 1]

    """
    std = np.sqrt(np.diagonal(K))
    std[std == 0.0] = 1.0  # what is known beforehand is never new
    # Cholesky with pivoting takes the point that is newest to those taken, until none is new.
    _, order, rank, _ = lapack.dpstrf(K / np.outer(std, std), tol=NOVELTY, lower=1)
    return sorted((order[:rank] - 1).tolist())
