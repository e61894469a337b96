"""Exact Gaussian process regression on several targets that share one covariance, online.

This module has the points, the targets at the same points, and the process that holds both and the
factor of their covariance. Learning after predicting the same point costs no second solve: the row
that extends the Cholesky factor is the one that gave the variance.

"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from scipy.linalg import solve_triangular
from scipy.linalg.blas import ddot, sdot

from streamgp.base import Array
from streamgp.gp.arrays import enlarged, padded
from streamgp.gp.cholesky import (
    DOUBLE,
    SINGLE,
    NotPositiveDefiniteError,
    PackedCholesky,
    check_noise_variance,
)
from streamgp.kernels import Kernel


class Points:
    """Points measured by a kernel, in a number of features that may grow.

    Parameters
    ----------
    kernel
        Covariance function.

    Attributes
    ----------
    n
        Number of points.
    kernel
        Covariance function.
    given
        The points as they were passed in, with the features that they had then.
    d
        Number of features, None before the first point.
    origin
        Origin from which points are measured, so that distances survive large offsets; None for 0.

    Examples
    --------
    >>> from streamgp.kernels import SquaredExponential
    >>> points = Points(SquaredExponential())
    >>> x = np.array([0.0])
    >>> points.settle(x)
    >>> row, prior_variance, covariances = points.covariances_with(x)
    >>> prior_variance, covariances
    (1.0, array([], dtype=float64))
    >>> points.append(x, row)
    >>> points.covariances_with(np.array([1.0]))[2]
    array([0.60653066])

    """

    # given  needed only when something is changed: appending to a list is the cheapest way to
    #        store it
    # _rows  the points as the kernel stores them, relative to the origin, with room for more
    __slots__ = ("_rows", "d", "given", "kernel", "n", "origin")

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.n = 0
        self.given: list[Array] = []
        self._rows: Array = np.empty((0, 0))
        self.d: int | None = None
        self.origin: Array | None = None

    @property
    def rows(self) -> Array:
        """The points as the kernel stores them, relative to the origin, a view of shape (n, w)."""
        return self._rows[: self.n]

    def settle(self, x: Array) -> None:
        """Choose the origin by `x` of shape (d,), which will be the first point.

        It is the first point if that is so far from 0 that their covariance vanishes.
        """
        self.d = len(x)
        kernel = self.kernel
        row, zero = kernel.embed(x), kernel.embed(np.zeros(len(x)))
        near = kernel.vector(zero[None], row)[0] > 1e-20 * kernel.prior_variance(row)
        self.origin = None if near or not kernel.stationary else x.copy()

    def covariances_with(self, x: Array) -> tuple[Array, float, Array]:
        """Return the row of a point, its prior variance and its covariances (n,), a new array."""
        kernel = self.kernel
        row = kernel.embed(x if self.origin is None else x - self.origin)
        n = self.n
        k = kernel.vector(self._rows[:n], row) if n else np.empty(0)
        return row, kernel.prior_variance(row), k

    def append(self, x: Array, row: Array) -> None:
        """Add a point, which is stored and not copied, and its row."""
        n = self.n
        if n == len(self._rows):
            self._rows = enlarged(self._rows, (max(16, 2 * n), len(row)))
        self._rows[n] = row
        self.given.append(x)
        self.n = n + 1

    def truncate(self, n: int) -> list[Array]:
        """Keep only the first `n` points, and return the others, with all features."""
        others = [padded(x, self.d or 0) for x in self.given[n:]]
        del self.given[n:]
        self.n = n
        return others

    def resize(self, d: int, kernel: Kernel | None = None) -> None:
        """Change the number of features: 0 in new ones; those removed are ones that no point used.

        `kernel` is the same kernel, bound to that many columns; None if names do not matter.
        """
        if self.d is not None and d != self.d:
            self._resize(d, kernel)

    def _resize(self, d: int, kernel: Kernel | None) -> None:
        """Store the points again, with another number of features."""
        kernel, origin = kernel or self.kernel, self.origin
        points = [padded(x, d) for x in self.given]
        if origin is not None:
            # 0 in a new feature, so that old points keep their distances.
            origin = padded(origin, d)
            points = [x - origin for x in points]
        # One row, of any point, tells their width when there is none.
        points = points or [np.zeros(d)]
        rows = np.array([kernel.embed(point) for point in points])
        # The kernel may have refused a point: nothing has changed until here.
        self.d, self.kernel, self.origin = d, kernel, origin
        self._rows = enlarged(rows, (max(len(rows), len(self._rows)), rows.shape[1]))


# --- Training set: values of several functions at the same points.


class Targets:
    """Observed values of `m` functions that share one factor `L`, with `z = L⁻¹ y` of each.

    Parameters
    ----------
    m
        Number of functions, zero wherever they have been observed.
    dtype
        Type of `z`, the same as that of the factor.

    Attributes
    ----------
    m
        Number of functions.
    values
        The values as they were passed in, shorter where functions were not yet known.

    Examples
    --------
    One observation of 3 whose variance is 4:

    >>> targets = Targets(1)
    >>> targets.append(np.array([3.0]), targets.means(np.empty(0)), 2.0)
    >>> targets.Z
    array([[1.5]])

    """

    # values  needed only when one is changed: appending to a list is the cheapest way to store them
    # _Z      one row for each function, so that adding one changes no bit of the others; with room
    #         for more
    __slots__ = ("_Z", "m", "values")

    def __init__(self, m: int = 0, dtype: np.dtype[Any] = DOUBLE) -> None:
        self.m = m
        self.values: list[Array] = []
        self._Z: Array = np.zeros((m, 0), dtype)

    @property
    def Z(self) -> Array:  # noqa: N802 - mathematics keeps its letters
        """`L⁻¹ y` of each function, a view of shape (m, n)."""
        return self._Z[: self.m, : len(self.values)]

    def means(self, v: Array) -> Array:
        """Return the posterior means (m,) at a point with `v = L⁻¹ k`, shape (n,)."""
        # One dot product for each function: a matrix product takes several rows at a time, and its
        # last digits depend on how many there are.
        means: Array = np.vecdot(self._Z[: self.m, : len(self.values)], v)
        return means

    def add(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        if self.m == len(self._Z):
            self._Z = enlarged(self._Z, (max(4, 2 * self.m), self._Z.shape[1]))
        self.m += 1

    def append(self, y: Array, means: Array, d: float) -> None:
        """Add values at a point, given its means (m,) and the last entry `d` of its row of `L`.

        `y` is stored. A longer `y` adds new functions.
        """
        n = len(self.values)
        if self.m < len(y):
            while self.m < len(y):
                self.add()
            means = padded(means, self.m)
        if n == self._Z.shape[1]:
            self._Z = enlarged(self._Z, (len(self._Z), max(16, 2 * n)))
        # Forward substitution of the new last row, GPML Alg. 2.1, line 3.
        np.divide(y - means, d, self._Z[: self.m, n])
        self.values.append(y)

    def truncate(self, n: int) -> list[Array]:
        """Keep only the first `n` points, and return the values at the others, each (m,)."""
        others = [padded(y, self.m) for y in self.values[n:]]
        del self.values[n:]
        return others

    def relabel(self, i: int, y: Array, factor: PackedCholesky) -> None:
        """Replace the values of point `i`, bitwise as if these had been learned.

        What follows from them is recomputed by the same steps, point after point.
        """
        changed = np.flatnonzero(padded(self.values[i], self.m) != y)
        self.values[i] = y
        for r in range(i, len(self.values)):
            v, d = factor.row(r)
            values = self.values[r]
            for j in changed.tolist():
                mean = np.vecdot(self._Z[j, :r], v)
                # GPML Alg. 2.1, line 3, as in `append`.
                self._Z[j, r] = ((values[j] if j < len(values) else 0.0) - mean) / d

    def dense(self) -> Array:
        """Return all values, shape (n, m)."""
        rows = [padded(y, self.m) for y in self.values]
        return np.array(rows).reshape(len(rows), self.m)


_EPSILON = float(np.finfo(float).eps)

# Largest number of points that are predicted at once: more are not faster, and take memory.
_AT_ONCE = 256


class _Solve(Struct, frozen=True, gc=False):
    """Result of one pass over the factor: the point's bytes and row, v = L⁻¹ k, the posterior."""

    key: bytes
    row: Array
    prior_variance: float
    v: Array
    means: Array
    variance: float


def log_density(quadratic_forms: Array, log_det: float, n: int) -> float:
    """Log density of `n` observations of all functions together, in nats (GPML Eq. 2.30).

    Parameters
    ----------
    quadratic_forms, log_det
        What `ExactGP.quadratic_forms` returns.
    n
        Number of observations.

    """
    constant = log_det + n * math.log(2.0 * math.pi)
    return -0.5 * (float(np.trace(quadratic_forms)) + len(quadratic_forms) * constant)


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
    n_targets
        Number of functions, zero wherever they have been observed.
    single_precision
        Store the Cholesky factor, and what follows from it, in half the memory, and read it in half
        the time. Means change in the third or fourth decimal if the noise variance is a thousandth
        of the prior variance, less if it is larger; smaller ones are refused. Points, targets and
        covariances keep all their digits.

    Attributes
    ----------
    n
        Number of points.
    n_targets
        Number of functions.
    kernel
        Covariance function.
    points, targets
        The points and targets that were learned; to be changed only by the methods here.

    Examples
    --------
    One point, noise 1, kernel 1: the mean is half the target.

    >>> from streamgp.kernels import SquaredExponential
    >>> gp = ExactGP(SquaredExponential(), noise_variance=1.0, n_targets=1)
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
    # _solved  the last solves, the latest first, () once anything has changed: two points, as a
    #          question about the previous one may come between
    __slots__ = (
        "_factor",
        "_solved",
        "noise_variance",
        "points",
        "single_precision",
        "targets",
    )

    def __init__(
        self,
        kernel: Kernel,
        noise_variance: float,
        *,
        n_targets: int = 0,
        single_precision: bool = False,
    ) -> None:
        check_noise_variance(noise_variance, single_precision=single_precision)
        self.noise_variance = noise_variance
        self.single_precision = single_precision
        dtype = SINGLE if single_precision else DOUBLE
        self.points = Points(kernel)
        self.targets = Targets(n_targets, dtype)
        self._factor = PackedCholesky(dtype)
        self._solved: tuple[_Solve, ...] = ()

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        # What is only remembered for speed is not part of the state: predicting changes nothing.
        state = {name: getattr(self, name) for name in self.__slots__}
        return None, {**state, "_solved": ()}

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
        """Posterior means (m,), read only, and latent variance at `x` of shape (d,)."""
        last = self._solve(x)
        return last.means, last.variance

    def predict_many(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent variances (b,) at the points `X` of shape (b, d).

        It is faster than `predict` one by one, and equal to it up to rounding (1e-9, except in
        single precision). There is no such way to learn many points: a restart learns them one by
        one, and has to arrive at the same bits.
        """
        Z = self.targets.Z.astype(float, copy=False)
        means, variances = np.empty((len(X), len(Z))), np.empty(len(X))
        for i in range(0, len(X), _AT_ONCE):
            part = slice(i, i + _AT_ONCE)
            _, priors, K = zip(*map(self.points.covariances_with, X[part]), strict=True)
            V = self._factor.solve_many(np.array(K)).astype(float, copy=False)
            means[part] = V @ Z.T
            variances[part] = np.maximum(priors - np.vecdot(V, V), 0.0)
        return means, variances

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent covariances (b, b) at points `X` of shape (b, d).

        Means and variances are bitwise those of `predict`. Each point is solved alone: its bits
        depend on what was learned, and not on which points are asked about.

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
        solves = [self._solve(x) for x in X]
        C = self.kernel.matrix(np.array([one.row for one in solves]))
        # Of even length, so that all have the same alignment: some kernels of BLAS sum from where
        # a vector is aligned.
        solved = np.empty((len(solves), self.n + self.n % 2))[:, : self.n]
        solved[:] = [one.v for one in solves]
        for i, v in enumerate(solved):
            C[i, :i] -= np.vecdot(solved[:i], v)
            C[:i, i] = C[i, :i]
        np.fill_diagonal(C, [one.variance for one in solves])
        return np.array([one.means for one in solves]), C

    def covariance_terms(self, x: Array) -> tuple[Array, Array, Array]:
        """Row of a point, and `a` and `b` with `cov(u, v) = k(u, v) - a(u)' b(v)`: `v` twice.

        The arrays are read only.
        """
        last = self._solve(x)
        return last.row, last.v, last.v

    def append(self, x: Array, y: Array) -> None:
        """Learn the targets `y` of shape (m,) at the point `x` of shape (d,).

        A longer `y` adds new functions, which were zero wherever they have been observed. Both
        arrays are stored, not copied: do not write to them afterwards.

        Raises
        ------
        NotPositiveDefiniteError
            If the point is, up to rounding, determined by the old ones. Nothing is learned then.

        """
        if self.points.d is None:
            self.points.settle(x)
            self._solved = ()
        last = self._solve(x)
        d = math.sqrt(self._residual(last.prior_variance, last.variance))
        self._solved = ()
        self.points.append(x, last.row)
        self.targets.append(y, last.means, self._factor.append(last.v, d))

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        self.targets.add()
        self._solved = ()

    def resize(self, d: int, kernel: Kernel | None = None) -> None:
        """Change the number of features; see `Points.resize`."""
        self.points.resize(d, kernel)
        self._solved = ()

    def relabel(self, i: int, y: Array) -> None:
        """Replace the targets of point `i`; the factor stays the same.

        Bitwise as if `y` had been learned in the first place: what follows from it is
        recomputed by the same steps, point after point.
        """
        self.targets.relabel(i, y, self._factor)
        self._solved = ()

    def remove(self, i: int) -> None:
        """Forget point `i`, exactly: later points are learned again."""
        points, targets = self.points.truncate(i), self.targets.truncate(i)
        self._factor.truncate(i)
        self._solved = ()
        for x, y in zip(points[1:], targets[1:], strict=True):
            self.append(x, y)

    def log_evidence(self) -> float:
        """Log marginal likelihood of all targets together, in nats (GPML Eq. 2.30)."""
        return log_density(*self.quadratic_forms(), self.n)

    def quadratic_forms(self) -> tuple[Array, float]:
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
        for known in self._solved:
            if known.key == key:
                return known
        row, prior, k = self.points.covariances_with(x)
        v = self._factor.solve(k)
        dot = sdot if self.single_precision else ddot
        # BLAS does not accept empty vectors.
        variance = prior - dot(v, v) if len(v) else prior
        if variance < 0.0:  # rounding, where it is exhausted
            variance = 0.0
        found = _Solve(key, row, prior, v, self.targets.means(v), variance)
        self._solved = found, *self._solved[:1]
        return found

    def _residual(self, prior: float, variance: float) -> float:
        """Remaining variance of an observation, noise included."""
        residual = variance + self.noise_variance
        # A residual below the rounding errors, about n ε of v'v and 1e-12 of a covariance, is not
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
