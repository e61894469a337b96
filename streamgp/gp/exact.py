"""Exact Gaussian process regression on several targets that share one covariance, online.

Learning after predicting the same point costs no second solve: the row that extends the Cholesky
factor is the one that gave the variance.

"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import ddot

from streamgp.base import Array
from streamgp.gp.packed import NotPositiveDefiniteError, PackedCholesky
from streamgp.kernels import Kernel

_EPSILON = float(np.finfo(float).eps)


# What one pass over the factor found out about one point: its bytes, its row, its prior variance,
# v = L⁻¹ k and its posterior variance. A bare tuple, which is made faster than an object.
_Solve: TypeAlias = tuple[bytes, Array, float, Array, float]


def check_noise_variance(value: float) -> None:
    """Raise ValueError if a noise variance is negative or not finite."""
    if not (value >= 0.0 and math.isfinite(value)):
        raise ValueError(f"noise_variance must be non-negative and finite, got {value!r}")


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

    Attributes
    ----------
    n
        Number of points.
    n_targets
        Number of functions.

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
    # _points, _targets  what was learned, as it was handed over; needed only when a point is
    #          changed, so that appending to lists is the cheapest way to keep them
    # _rows    the points as the kernel stores them, relative to _origin (n, w)
    # _Z       L⁻¹ y of each target, one row each (m, n); one row each, so that adding a target
    #          changes no bit of the others
    # _d       number of features, None before the first point
    # _origin  what points are measured from, so that distances survive large offsets; None for 0
    # _last    the last solve, None once the points have changed
    # _means   means of the last solve, None once a target has changed
    __slots__ = (
        "_Z",
        "_d",
        "_factor",
        "_last",
        "_means",
        "_origin",
        "_points",
        "_rows",
        "_targets",
        "kernel",
        "n",
        "n_targets",
        "noise_variance",
    )

    def __init__(self, kernel: Kernel, noise_variance: float) -> None:
        check_noise_variance(noise_variance)
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.n = 0
        self.n_targets = 0
        self._factor = PackedCholesky()
        self._points: list[Array] = []
        self._targets: list[Array] = []
        self._rows: Array = np.empty((0, 0))
        self._Z: Array = np.zeros((0, 0))
        self._d: int | None = None
        self._origin: Array | None = None
        self._last: _Solve | None = None
        self._means: Array | None = None

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        # What is only remembered for speed is no state: predicting changes nothing.
        state = {name: getattr(self, name) for name in self.__slots__}
        return None, {**state, "_last": None, "_means": None}

    def predict(self, x: Array) -> tuple[Array, float]:
        """Posterior means (m,), not to be written to, and latent variance at `x` of shape (d,)."""
        _, _, _, v, variance = self._solve(x)
        return self._means_of(v), variance

    def append(self, x: Array, y: Array) -> None:
        """Learn the targets `y` of shape (m,) at the point `x` of shape (d,).

        A longer `y` brings new functions, which were zero wherever they have been observed. Both
        arrays are kept, not copied: do not write to them afterwards.

        Raises
        ------
        NotPositiveDefiniteError
            If the point is, up to rounding, determined by the old ones. Nothing is learned then.

        """
        if self._d is None:
            self._d = len(x)
            self._origin = self._origin_for(x)
            self._last = None
        _, row, prior, v, variance = self._solve(x)
        d = math.sqrt(self._residual(prior, variance))
        while self.n_targets < len(y):
            self.add_target()
        means = self._means_of(v)
        n = self.n
        if n == len(self._rows):
            capacity = max(16, 2 * n)
            self._rows = _enlarged(self._rows, (capacity, len(row)))
            self._Z = _enlarged(self._Z, (len(self._Z), capacity))
        self._rows[n] = row
        self._points.append(x)
        self._targets.append(y)
        # Forward substitution of the new last row, GPML Alg. 2.1, line 3.
        np.divide(y - means, d, self._Z[: self.n_targets, n])
        self._factor.append(v, d)
        self.n = n + 1
        self._last = None

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        if self.n_targets == len(self._Z):
            self._Z = _enlarged(self._Z, (max(4, 2 * self.n_targets), self._Z.shape[1]))
        self.n_targets += 1
        self._means = None

    def widen(self, d: int) -> None:
        """Make room for points with `d` features; the old points have 0 in the new ones."""
        if self._d is not None and d > self._d:
            self._resize(d)

    def narrow(self, d: int) -> None:
        """Take room for features back that no point has used."""
        if self._d is not None and d < self._d:
            self._resize(d)

    def relabel(self, i: int, y: Array) -> None:
        """Replace the targets of point `i`; the factor stays as it is.

        To the last bit as if `y` had been learned in the first place: what follows from it is
        computed once more by the same steps, point after point.
        """
        changed = np.flatnonzero(_padded(self._targets[i], self.n_targets) != y)
        self._targets[i] = y
        for r in range(i, self.n):
            v, d = self._factor.row(r)
            targets = self._targets[r]
            for j in changed.tolist():
                mean = np.vecdot(self._Z[j, :r], v)
                # GPML Alg. 2.1, line 3, as in `append`.
                self._Z[j, r] = ((targets[j] if j < len(targets) else 0.0) - mean) / d
        self._means = None

    def remove(self, i: int) -> None:
        """Forget point `i`, exactly: later points are learned again."""
        later = list(zip(self._points[i + 1 :], self._targets[i + 1 :], strict=True))
        del self._points[i:], self._targets[i:]
        self._factor.truncate(i)
        self.n = i
        self._last = None
        for x, y in later:
            self.append(_padded(x, self._d or 0), _padded(y, self.n_targets))

    def log_evidence(self) -> float:
        """Log marginal likelihood of all targets together, in nats (GPML Eq. 2.30)."""
        Z = self._Z[: self.n_targets, : self.n]
        log_det = 2.0 * float(np.log(self._factor.diagonal()).sum())
        constant = log_det + self.n * math.log(2.0 * math.pi)
        return -0.5 * (float(np.vdot(Z, Z)) + self.n_targets * constant)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Posterior means (n, m) and latent variances (n,) at each point, had it not been learned.

        In closed form from one factor: `mean_i = y_i - [Γ Y]_i / Γ_ii` and
        `variance_i = 1 / Γ_ii - noise_variance` (GPML Eq. 5.12).
        """
        n = self.n
        inverse = solve_triangular(self._factor.dense(), np.eye(n), lower=True)
        precision = np.einsum("ij,ij->j", inverse, inverse)  # the diagonal of Γ = L⁻ᵀ L⁻¹
        alpha = inverse.T @ self._Z[: self.n_targets, :n].T
        means = self._all_targets() - alpha / precision[:, None]
        return means, np.maximum(1.0 / precision - self.noise_variance, 0.0)

    def _solve(self, x: Array) -> _Solve:
        key = x.tobytes()
        last = self._last
        if last is not None and last[0] == key:
            return last
        n = self.n
        row = self.kernel.embed(x if self._origin is None else x - self._origin)
        variance = prior = self.kernel.prior_variance(row)
        if n:
            v = self._factor.solve(self.kernel.vector(self._rows[:n], row))
            variance -= ddot(v, v)
            if variance < 0.0:  # rounding, where it is exhausted
                variance = 0.0
        else:
            v = np.empty(0)
        self._last = key, row, prior, v, variance
        self._means = None
        return self._last

    def _means_of(self, v: Array) -> Array:
        if self._means is None:
            # One dot product per target: a matrix product takes several rows at a time, and its
            # last digits depend on how many there are.
            self._means = np.vecdot(self._Z[: self.n_targets, : self.n], v)
        return self._means

    def _residual(self, prior: float, variance: float) -> float:
        """Variance that an observation has left, noise included."""
        residual = variance + self.noise_variance
        # What is below the rounding errors, about n ε of v'v and 1e-12 of a covariance, is not
        # known to be positive.
        floor = (1e-12 + 4.0 * _EPSILON * self.n) * (prior + self.noise_variance)
        if residual > floor:
            return residual
        raise NotPositiveDefiniteError(
            f"new point leaves residual variance {residual:.3}, expected more than {floor:.2}; "
            "raise noise_variance or drop repeated points"
        )

    def _all_targets(self) -> Array:
        """Return the targets of all points, shape (n, m)."""
        rows = [_padded(y, self.n_targets) for y in self._targets]
        return np.array(rows).reshape(self.n, self.n_targets)

    def _origin_for(self, x: Array) -> Array | None:
        """Measure from the first point if it is so far from 0 that it knows nothing of it."""
        kernel = self.kernel
        row, zero = kernel.embed(x), kernel.embed(np.zeros(len(x)))
        near = kernel.vector(zero[None], row)[0] > 1e-20 * kernel.prior_variance(row)
        return None if near or not kernel.stationary else x.copy()

    def _resize(self, d: int) -> None:
        """Store the points once more, in another number of features."""
        self._d = d
        points = [_padded(x, d) for x in self._points]
        if self._origin is not None:
            # 0 in a new feature, so that old points keep their distances.
            self._origin = _padded(self._origin, d)
            points = [x - self._origin for x in points]
        # One row, of whatever point, says how wide they are when there is none.
        points = points or [np.zeros(d)]
        rows = np.array([self.kernel.embed(point) for point in points])
        self._rows = _enlarged(rows, (max(len(rows), len(self._rows)), rows.shape[1]))
        self._last = None


def _enlarged(array: Array, shape: tuple[int, ...]) -> Array:
    larger = np.zeros(shape)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger


def _padded(x: Array, d: int) -> Array:
    return x[:d] if len(x) >= d else _enlarged(x, (d,))
