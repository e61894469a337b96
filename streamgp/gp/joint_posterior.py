"""Joint posteriors of several points: of a pool, and of points whose answers are pending.

At all points of a fixed pool, some of which have a label, the effect of a label is known everywhere
at once, so that all candidates for the next one can be compared without learning any of them. Time
and memory are quadratic in the size of the pool.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from operator import eq
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg.blas import dger

from streamgp.base import Array
from streamgp.gp.cholesky import PackedCholesky, check_noise_variance
from streamgp.kernels import Kernel

MIN_SHARE_OF_NOISE = 1e-6
"""Least noise variance, in units of the largest prior variance.

A covariance is updated label after label. With less noise than this, what remains of it after many
labels in one place would be rounding error.
"""


class PoolPosterior:
    """Functions on `P` points, each observed as -1 or +1 at the same few of them.

    With `K` the prior covariances of the points observed and `Γ = (K + noise_variance I)⁻¹`,
    function `j` is `f_j(u) = k(u)' Γ y_j`, and `c(u, v) = k(u, v) - k(u)' Γ k(v)`. Both are kept
    for all `u` and `v`; one more label changes them in O(P²).

    Parameters
    ----------
    covariances
        Prior covariances of the points, shape (P, P), symmetric; the array is overwritten.
    noise_variance
        Variance of the observation noise, in units of y²: `lam` of the criteria.

    Attributes
    ----------
    covariances
        Posterior covariances `c` of the points, noise not included, shape (P, P), read only.
    noise_variance
        Variance of the observation noise.

    Raises
    ------
    ValueError
        If `noise_variance` is less than `MIN_SHARE_OF_NOISE` of the largest prior variance.

    Examples
    --------
    Two points, correlated by one half; the first is observed as +1, with noise 1:

    >>> posterior = PoolPosterior(np.array([[1.0, 0.5], [0.5, 1.0]]), noise_variance=1.0)
    >>> posterior.learn(0, np.array([1.0]))
    >>> posterior.functions
    array([[0.5 , 0.25]])
    >>> posterior.covariances
    array([[0.5  , 0.25 ],
           [0.25 , 0.875]])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 2.25 and 2.26, one point at a time.

    """

    # _means    row 0: a function observed as +1 everywhere; the others: the functions
    # _squares  y' Γ y of each of them
    # All are changed by the same step, once for each label, and so keep what a solve would lose
    # to rounding.
    __slots__ = ("_means", "_squares", "covariances", "noise_variance")

    def __init__(self, covariances: Array, noise_variance: float) -> None:
        check_noise_variance(noise_variance)
        least = MIN_SHARE_OF_NOISE * float(covariances.diagonal().max())
        if noise_variance < least:
            raise ValueError(
                f"noise_variance must be at least {least:.2}, a millionth of the prior variance, "
                f"got {noise_variance!r}; raise it"
            )
        self.covariances = covariances
        self.noise_variance = noise_variance
        self._means = np.zeros((2, len(covariances)))
        self._squares = np.zeros(2)

    @property
    def functions(self) -> Array:
        """Posterior means of the functions, shape (m, P), read only."""
        return self._means[1:]

    @property
    def square_norms(self) -> Array:
        """`y_j' Γ y_j` of each function, shape (m,).

        It is the squared norm of `f_j` if the kernel is `k` with the noise on its diagonal.
        """
        return self._squares[1:]

    @property
    def variances(self) -> Array:
        """Posterior variance of an observation at each point, noise included, a new array (P,)."""
        return self.covariances.diagonal() + self.noise_variance

    def copy(self) -> PoolPosterior:
        """Return an independent copy."""
        other = PoolPosterior(self.covariances.copy(), self.noise_variance)
        other._means, other._squares = self._means.copy(), self._squares.copy()
        return other

    def add_function(self) -> None:
        """Add a function that was -1 wherever it has been observed."""
        self._means = np.vstack([self._means, -self._means[0]])
        self._squares = np.append(self._squares, self._squares[0])

    def learn(self, i: int, codes: Array) -> None:
        """Observe the functions, -1 or +1 each, as `codes` of shape (m,) at point `i`."""
        c = self.covariances[i]
        std = math.sqrt(c[i] + self.noise_variance)
        # Half of c c' / v. Row i is used for column i below: the two differ only by rounding, as a
        # BLAS may round the product at (j, k) and that at (k, j) differently, and no step increases
        # the difference. Without BLAS they would be equal, but a step would take four times as
        # long.
        half: Array = c / std
        gaps = (np.append(1.0, codes) - self._means[:, i]) / std
        self._means += gaps[:, None] * half  # f += c(., i) (y - f_i) / v
        self._squares += gaps * gaps  # the norm grows by (y - f_i)² / v, as the document derives
        # C -= c(., i) c(i, .) / v, in place: BLAS sees a matrix by columns as its transpose.
        self.covariances = dger(-1.0, half, half, a=self.covariances.T, overwrite_a=1).T


# --- Posterior at a point, given also points with questions that are not answered yet.
#
# What will be observed at pending points is not known, but that it will be observed is: the
# variance falls as if it had been. A separate function, the share of what is asked about, is 0 at
# all points that were learned and has the target of its question at a pending one.

# Number of points that there is room for at first.
_SMALLEST = 16


class Covarying(Protocol):
    """Protocol of a process that provides posterior covariances of two points."""

    @property
    def kernel(self) -> Kernel:
        """Covariance function."""

    @property
    def noise_variance(self) -> float:
        """Variance of the observation noise."""

    def predict(self, x: Array) -> tuple[Array, float]:
        """Posterior means (m,) and latent variance at `x` of shape (d,)."""

    def covariance_terms(self, x: Array) -> tuple[Array, Array, Array]:
        """Row of a point and two vectors `a`, `b`: `cov(u, v) = k(u, v) - a(u)' b(v)`."""


class _PendingPoint(NamedTuple):
    """A point's covariance terms, its latent variance without other points, and its target."""

    row: Array
    left: Array
    right: Array
    variance: float
    target: float


class PendingPoints:
    """Points with pending answers, in addition to what a process has learned.

    With `C` the posterior covariances of these points, `c(x)` those with another one and
    `A = C + noise_variance I`, the share has the mean `c(x)' A⁻¹ r`, and the variance at `x` falls
    by `c(x)' A⁻¹ c(x)`. That is the result of a process that learns the points as well, with
    targets of zero for the share everywhere else. Valid until the process changes.

    Parameters
    ----------
    gp
        The process.

    Examples
    --------
    Nothing learned, one pending point; noise 1, kernel 1:

    >>> from streamgp.gp.exact import ExactGP
    >>> from streamgp.kernels import SquaredExponential
    >>> pending = PendingPoints(ExactGP(SquaredExponential(), 1.0))
    >>> pending.append(np.array([0.0]), 1.0)
    >>> pending.predict(np.array([0.0]))
    (0.5, 0.5)

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 2.23 and 2.24, with the posterior in the place of the prior.

    """

    # _points       what is known of each point whatever the others are
    # _rows, _left  the points as the kernel stores them, and `a` of each, in the first n rows
    # _factor, _z   Cholesky factor L of A, and L⁻¹ r. It grows by a row for each point, so that its
    #               bits do not depend on which points are appended together.
    __slots__ = ("_factor", "_gp", "_left", "_points", "_rows", "_z")

    def __init__(self, gp: Covarying) -> None:
        self._gp = gp
        self._points: list[_PendingPoint] = []
        self._factor = PackedCholesky()
        self._rows: Array = np.empty((0, 0))
        self._left: Array = np.empty((0, 0))
        self._z: Array = np.empty(0)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self._points)

    def append(self, x: Array, target: float) -> None:
        """Add the point `x` of shape (d,), and the target `r` of the share there."""
        terms = self._gp.covariance_terms(x)
        self._append(_PendingPoint(*terms, self._gp.predict(x)[1], target))

    def keep(self, kept: Sequence[int]) -> None:
        """Keep only the points with these numbers, which ascend.

        Bitwise as if the others had never been added.
        """
        n = sum(map(eq, kept, count()))
        others = [self._points[i] for i in kept[n:]]
        del self._points[n:]
        self._factor.truncate(n)
        for point in others:
            self._append(point)

    def _append(self, point: _PendingPoint) -> None:
        row, left, right, variance, target = point
        prior = self._gp.kernel.prior_variance(row)
        # Repeated points leave nothing but noise, however little there is of it.
        noise = max(self._gp.noise_variance, MIN_SHARE_OF_NOISE * prior)
        half = self._half(row, right)
        d = math.sqrt(max(variance + noise - float(half.dot(half)), noise))
        n = self.n
        if n == len(self._z):
            self._grow(row, left)
        self._rows[n] = row
        self._left[n, : len(left)] = left
        self._z[n] = (target - float(half.dot(self._z[:n]))) / d
        self._factor.append(half, d)
        self._points.append(point)

    def predict(self, x: Array) -> tuple[float, float]:
        """Posterior mean of the share, and latent variance, at `x` of shape (d,)."""
        row, _, right = self._gp.covariance_terms(x)
        half = self._half(row, right)
        # `dot` takes half the time of the operator, for vectors, and makes the same call of BLAS.
        variance = self._gp.predict(x)[1] - float(half.dot(half))
        return float(half.dot(self._z[: self.n])), max(variance, 0.0)

    def _half(self, row: Array, right: Array) -> Array:
        """Return `L⁻¹ c` for the covariances `c` of the points with another one."""
        n = self.n
        if n == 0:
            return np.empty(0)
        c = self._gp.kernel.vector(self._rows[:n], row)
        c -= self._left[:n, : len(right)] @ right.astype(float, copy=False)
        return self._factor.solve(c)

    def _grow(self, row: Array, left: Array) -> None:
        """Double the room for points, at least to 16."""
        n = self.n
        rows, lefts, z = self._rows, self._left, self._z
        capacity = max(_SMALLEST, 2 * n)
        # Of even length, so that all have the same alignment: some kernels of BLAS sum from where
        # a vector is aligned. In single precision a process stores them rounded; sums are not.
        width = len(left) + len(left) % 2
        self._rows = np.empty((capacity, len(row)), row.dtype)
        self._left = np.empty((capacity, width))
        self._z = np.empty(capacity)
        if n:
            self._rows[:n], self._left[:n], self._z[:n] = rows, lefts, z
