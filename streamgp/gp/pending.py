"""Posterior at a point, given also points with questions that are not answered yet.

What will be observed at pending points is not known, but that it will be observed is: the variance
falls as if it had been. A separate function, the share of what is asked about, is 0 at all points
that were learned and has the target of its question at a pending one.

"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from streamgp.base import Array
from streamgp.gp.cholesky import PackedCholesky
from streamgp.gp.joint_posterior import MIN_SHARE_OF_NOISE
from streamgp.kernels import Kernel

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

    Attributes
    ----------
    n
        Number of points.

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

    # _rows, _left  the points as the kernel stores them, and `a` of each, in the first n rows
    # _factor, _z   Cholesky factor L of A, and L⁻¹ r. It grows by a row for each point, so that its
    #               bits do not depend on which points are appended together.
    __slots__ = ("_factor", "_gp", "_left", "_rows", "_z", "n")

    def __init__(self, gp: Covarying) -> None:
        self._gp = gp
        self.n = 0
        self._factor = PackedCholesky()
        self._rows: Array = np.empty((0, 0))
        self._left: Array = np.empty((0, 0))
        self._z: Array = np.empty(0)

    def append(self, x: Array, target: float) -> None:
        """Add the point `x` of shape (d,), and the target `r` of the share there."""
        row, left, right = self._gp.covariance_terms(x)
        prior = self._gp.kernel.prior_variance(row)
        # Repeated points leave nothing but noise, however little there is of it.
        noise = max(self._gp.noise_variance, MIN_SHARE_OF_NOISE * prior)
        half = self._half(row, right)
        residual = self._gp.predict(x)[1] + noise - float(half.dot(half))
        d = math.sqrt(max(residual, noise))
        n = self.n
        if n == len(self._z):
            self._grow(row, left)
        self._rows[n] = row
        self._left[n, : len(left)] = left
        self._z[n] = (target - float(half.dot(self._z[:n]))) / d
        self._factor.append(half, d)
        self.n = n + 1

    def truncate(self, n: int) -> None:
        """Keep only the first `n` points."""
        self._factor.truncate(n)
        self.n = n

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
