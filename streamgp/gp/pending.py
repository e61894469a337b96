"""Posterior at a point, given also points where something was asked and not answered yet.

What will be observed at pending points is not known, but that it will be observed is: the variance
falls as if it were. A function of its own, the share of what is asked about, is 0 at all points
that were learned and has the target of its question at a pending one.

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from streamgp.base import Array
from streamgp.gp.joint_posterior import MIN_SHARE_OF_NOISE
from streamgp.kernels import Kernel


class Covarying(Protocol):
    """Protocol of a process that tells posterior covariances of two points."""

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
    """Points with pending answers, beside what a process has learned.

    With `C` the posterior covariances of these points, `c(x)` those with another one and
    `A = C + noise_variance I`, the share has the mean `c(x)' A⁻¹ r`, and the variance at `x` falls
    by `c(x)' A⁻¹ c(x)`: what a process has that learns the points as well, with targets of zero for
    the share everywhere else. Valid until the process changes.

    Parameters
    ----------
    gp
        The process.
    X
        The points, at least one, each of shape (d,).
    targets
        The target `r` of the share at each.

    Examples
    --------
    Nothing learned, one pending point; noise 1, kernel 1:

    >>> from streamgp.gp.exact import ExactGP
    >>> from streamgp.kernels import SquaredExponential
    >>> x = np.array([0.0])
    >>> PendingPoints(ExactGP(SquaredExponential(), 1.0), [x], [1.0]).predict(x)
    (0.5, 0.5)

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 2.23 and 2.24, with the posterior in the place of the prior.

    """

    # _rows, _left  the points as the kernel stores them, and `a` of each
    # _L, _weights  Cholesky factor of A, and A⁻¹ r
    __slots__ = ("_L", "_gp", "_left", "_rows", "_weights")

    def __init__(self, gp: Covarying, X: Sequence[Array], targets: Sequence[float]) -> None:
        rows, left, right = zip(*map(gp.covariance_terms, X), strict=True)
        self._gp = gp
        self._rows: Array = np.array(rows)
        # In single precision a process stores them rounded; sums of them are not.
        self._left: Array = np.array(left, float)
        K = gp.kernel.matrix(self._rows)
        # Repeated points leave nothing but noise, be there ever so little of it.
        noise = max(gp.noise_variance, MIN_SHARE_OF_NOISE * float(np.diagonal(K).max()))
        A = K - self._left @ np.array(right, float).T
        A[np.diag_indices_from(A)] += noise
        self._L: Array = np.linalg.cholesky(A)
        half = self._solve(np.array(targets, float))
        self._weights: Array = self._solve(half, transposed=True)

    def predict(self, x: Array) -> tuple[float, float]:
        """Posterior mean of the share, and latent variance, at `x` of shape (d,)."""
        row, _, right = self._gp.covariance_terms(x)
        c = self._gp.kernel.vector(self._rows, row) - self._left @ right
        half = self._solve(c)
        variance = self._gp.predict(x)[1] - float(half @ half)
        return float(c @ self._weights), max(variance, 0.0)

    def _solve(self, b: Array, *, transposed: bool = False) -> Array:
        """Return `L⁻¹ b`, or `L⁻ᵀ b`.

        By LAPACK itself, once for every event: what `scipy.linalg.solve_triangular` does around it
        takes longer than solving for a few points. It reads `L`, which lies in rows, as its
        transpose.
        """
        solved: Array = lapack.dtrtrs(self._L.T, b, lower=0, trans=0 if transposed else 1)[0]
        return solved
