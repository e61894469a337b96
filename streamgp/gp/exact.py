"""Exact Gaussian process regression on several targets that share one covariance, online.

Learning after predicting the same point costs no second solve: the row that extends the Cholesky
factor is the one that gave the variance.

"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import ddot, sdot

from streamgp.base import Array
from streamgp.gp.cholesky import (
    DOUBLE,
    SINGLE,
    NotPositiveDefiniteError,
    PackedCholesky,
    check_noise_variance,
)
from streamgp.gp.training_set import Points, Targets
from streamgp.kernels import Kernel

_EPSILON = float(np.finfo(float).eps)

# Points that are predicted at once at most: more are not faster, and take room.
_AT_ONCE = 256


# What one pass over the factor found out about one point: its bytes, its row, its prior variance,
# v = L⁻¹ k, posterior means and variance. A bare tuple, which is made faster than an object.
_Solve: TypeAlias = tuple[bytes, Array, float, Array, Array, float]


def log_density(misfits: Array, log_det: float, n: int) -> float:
    """Log density of `n` observations of all functions together, in nats (GPML Eq. 2.30).

    Parameters
    ----------
    misfits, log_det
        What `ExactGP.misfits` returns.
    n
        Number of observations.

    """
    constant = log_det + n * math.log(2.0 * math.pi)
    return -0.5 * (float(np.trace(misfits)) + len(misfits) * constant)


class ExactGP:
    """Posterior of `m` functions with zero prior mean, one kernel and one noise variance.

    With `K` the covariances of the `n` points seen and `Γ = (K + noise_variance I)⁻¹`,
    `mean_j(x) = k(x)' Γ y_j` and `variance(x) = k(x, x) - k(x)' Γ k(x)` (latent: without noise).

    Parameters
    ----------
    kernel
        Covariance function.
    noise_variance
        Variance of the observation noise, in units of y².
    single_precision
        Store the Cholesky factor, and what follows from it, in half the room, and read it in half
        the time. Means change in the third or fourth decimal where the noise variance is a
        thousandth of the prior variance, less where it is more; smaller ones are refused. Points,
        targets and covariances keep all their digits.

    Attributes
    ----------
    n
        Number of points.
    n_targets
        Number of functions.
    kernel
        Covariance function.
    points, targets
        Where something was learned, and what; to be changed by the methods here only.

    Examples
    --------
    One point, noise 1, kernel 1: the mean is half the target.

    >>> from streamgp.kernels import SquaredExponential
    >>> gp = ExactGP(SquaredExponential(), noise_variance=1.0)
    >>> gp.add_target()
    >>> x = np.array([0.0])
    >>> gp.append(x, np.array([1.0]))
    >>> means, variance = gp.predict(x)
    >>> means.tolist(), variance
    ([0.5], 0.5)

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Alg. 2.1.
    [^2]: Lütz, A., Rodner, E. and Denzler, J., 2013. I want to know more: efficient multi-class
        incremental learning using Gaussian processes. Pattern Recognition and Image Analysis 23.

    """

    # _factor  L of K + noise_variance I, extended by one row per point
    # _last    the last solve, None once anything has changed
    __slots__ = (
        "_factor",
        "_last",
        "noise_variance",
        "points",
        "single_precision",
        "targets",
    )

    def __init__(
        self, kernel: Kernel, noise_variance: float, *, single_precision: bool = False
    ) -> None:
        check_noise_variance(noise_variance, single_precision=single_precision)
        self.noise_variance = noise_variance
        self.single_precision = single_precision
        dtype = SINGLE if single_precision else DOUBLE
        self.points = Points(kernel)
        self.targets = Targets(dtype)
        self._factor = PackedCholesky(dtype)
        self._last: _Solve | None = None

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        # What is only remembered for speed is no state: predicting changes nothing.
        state = {name: getattr(self, name) for name in self.__slots__}
        return None, {**state, "_last": None}

    @property
    def n(self) -> int:
        """Number of points."""
        return self.points.n

    @property
    def n_targets(self) -> int:
        """Number of functions."""
        return self.targets.m

    @property
    def kernel(self) -> Kernel:
        """Covariance function."""
        return self.points.kernel

    def predict(self, x: Array) -> tuple[Array, float]:
        """Posterior means (m,), not to be written to, and latent variance at `x` of shape (d,)."""
        _, _, _, _, means, variance = self._solve(x)
        return means, variance

    def predict_many(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent variances (b,) at the points `X` of shape (b, d).

        Faster than `predict` one by one, and equal to it up to rounding only (1e-9, but in single
        precision). There is no such way to learn many points: a restart learns them one by one,
        and has to arrive at the same bits.
        """
        Z = self.targets.Z.astype(float, copy=False)
        means, variances = np.empty((len(X), len(Z))), np.empty(len(X))
        for i in range(0, len(X), _AT_ONCE):
            part = slice(i, i + _AT_ONCE)
            _, priors, K = zip(*map(self.points.seen_from, X[part]), strict=True)
            V = self._factor.solve_many(np.array(K)).astype(float, copy=False)
            means[part] = V @ Z.T
            variances[part] = np.maximum(priors - np.vecdot(V, V), 0.0)
        return means, variances

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent covariances (b, b) at points `X` of shape (b, d).

        Means and variances are those of `predict` to the last bit. Each point is solved alone: the
        bits that it has depend on what was learned, and not on which points are asked about.

        Examples
        --------
        >>> from streamgp.kernels import SquaredExponential
        >>> gp = ExactGP(SquaredExponential(), noise_variance=1.0)
        >>> gp.append(np.array([0.0]), np.array([1.0]))
        >>> gp.joint(np.array([[0.0], [0.0]]))[1]
        array([[0.5, 0.5],
               [0.5, 0.5]])

        References
        ----------
        [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
            Eq. 2.24.

        """
        _, rows, _, V, means, variances = zip(*map(self._solve, X), strict=True)
        C = self.kernel.matrix(np.array(rows))
        # Of even length, so that all begin alike in memory: some kernels of BLAS add up from where
        # a vector is aligned.
        solved = np.empty((len(V), self.n + self.n % 2))[:, : self.n]
        solved[:] = V
        for i, v in enumerate(solved):
            C[i, :i] -= np.vecdot(solved[:i], v)
            C[:i, i] = C[i, :i]
        np.fill_diagonal(C, variances)
        return np.array(means), C

    def append(self, x: Array, y: Array) -> None:
        """Learn the targets `y` of shape (m,) at the point `x` of shape (d,).

        A longer `y` brings new functions, which were zero wherever they have been observed. Both
        arrays are kept, not copied: do not write to them afterwards.

        Raises
        ------
        NotPositiveDefiniteError
            If the point is, up to rounding, determined by the old ones. Nothing is learned then.

        """
        if self.points.d is None:
            self.points.settle(x)
            self._last = None
        _, row, prior, v, means, variance = self._solve(x)
        d = math.sqrt(self._residual(prior, variance))
        self._last = None
        self.points.append(x, row)
        self.targets.append(y, means, self._factor.append(v, d))

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        self.targets.add()
        self._last = None

    def widen(self, d: int, kernel: Kernel | None = None) -> None:
        """Make room for points with `d` features; the old points have 0 in the new ones.

        `kernel` is the same kernel, bound to that many columns; None where names do not matter.
        """
        self.points.widen(d, kernel)
        self._last = None

    def narrow(self, d: int, kernel: Kernel | None = None) -> None:
        """Take room for features back that no point has used; `kernel` as for `widen`."""
        self.points.narrow(d, kernel)
        self._last = None

    def relabel(self, i: int, y: Array) -> None:
        """Replace the targets of point `i`; the factor stays as it is.

        To the last bit as if `y` had been learned in the first place: what follows from it is
        computed once more by the same steps, point after point.
        """
        self.targets.relabel(i, y, self._factor)
        self._last = None

    def remove(self, i: int) -> None:
        """Forget point `i`, exactly: later points are learned again."""
        points, targets = self.points.cut(i), self.targets.cut(i)
        self._factor.truncate(i)
        self._last = None
        for x, y in zip(points[1:], targets[1:], strict=True):
            self.append(x, y)

    def log_evidence(self) -> float:
        """Log marginal likelihood of all targets together, in nats (GPML Eq. 2.30)."""
        return log_density(*self.misfits(), self.n)

    def misfits(self) -> tuple[Array, float]:
        """Return `Y' Γ Y` of the targets (n, m), shape (m, m), and the log determinant of `Γ⁻¹`."""
        Z = self.targets.Z.astype(float, copy=False)
        return Z @ Z.T, 2.0 * float(np.log(self._factor.diagonal()).sum())

    def leave_one_out(self) -> tuple[Array, Array]:
        """Posterior means (n, m) and latent variances (n,) at each point, had it not been learned.

        In closed form from one factor: `mean_i = y_i - [Γ Y]_i / Γ_ii` and
        `variance_i = 1 / Γ_ii - noise_variance` (GPML Eq. 5.12).
        """
        n = self.n
        inverse = solve_triangular(self._factor.dense(), np.eye(n), lower=True)
        precision = np.einsum("ij,ij->j", inverse, inverse)  # the diagonal of Γ = L⁻ᵀ L⁻¹
        alpha = inverse.T @ self.targets.Z.T
        means = self.targets.dense() - alpha / precision[:, None]
        return means, np.maximum(1.0 / precision - self.noise_variance, 0.0)

    def _solve(self, x: Array) -> _Solve:
        key = x.tobytes()
        last = self._last
        if last is not None and last[0] == key:
            return last
        row, prior, k = self.points.seen_from(x)
        v = self._factor.solve(k)
        dot = sdot if self.single_precision else ddot
        # BLAS takes no empty vectors.
        variance = prior - dot(v, v) if len(v) else prior
        if variance < 0.0:  # rounding, where it is exhausted
            variance = 0.0
        self._last = last = key, row, prior, v, self.targets.means(v), variance
        return last

    def _residual(self, prior: float, variance: float) -> float:
        """Variance that an observation has left, noise included."""
        residual = variance + self.noise_variance
        # What is below the rounding errors, about n ε of v'v and 1e-12 of a covariance, is not
        # known to be positive. In single precision they grow as the residual shrinks, and reach
        # it at a ten-thousandth of the prior variance.
        relative = 1e-4 if self.single_precision else 1e-12
        floor = (relative + 4.0 * _EPSILON * self.points.n) * (prior + self.noise_variance)
        if residual > floor:
            return residual
        raise NotPositiveDefiniteError(
            f"new point leaves residual variance {residual:.3}, expected more than {floor:.2}; "
            "raise noise_variance or drop repeated points"
        )
