"""Log marginal likelihood of hyperparameters, and its gradient.

It is a sum over all targets, which share one covariance. The gradient is with respect to the
natural logarithms of the kernel's hyperparameters and of the noise variance.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from scipy.linalg import cholesky, lapack, solve_triangular

from streamgp.base import Array
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.kernels import Kernel

_T = TypeVar("_T")

Steps: TypeAlias = Generator[float, None, _T]
"""A computation in steps: before each it yields about how many microseconds that takes.

These are estimated from sizes, not measured, so that a computation is divided alike on all
machines.
"""

_LOG_2_PI = math.log(2.0 * math.pi)
EMBEDDED = 1.5
"""Approximate microseconds to embed a point."""
CUBIC = 1.5e-5
"""Approximate microseconds to factorise a matrix (n, n), over n³: 1.9 ms with 500 rows."""
NEW_MEMORY = 4e-3
"""Approximate microseconds to allocate a new matrix (n, n) in memory, over n²."""
# Number of rows or columns of a product of two matrices (n, n) that are computed at a time.
_BAND = 128


def at_once(steps: Steps[_T]) -> _T:
    """Run all steps of a computation, and return its result.

    Examples
    --------
    >>> from streamgp.kernels import SquaredExponential
    >>> X, Y = np.zeros((1, 1)), np.ones((1, 1))
    >>> at_once(likelihood_steps(SquaredExponential(), 1.0, X, Y))[0]
    -1.515...

    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: _T = end.value
            return result


class Spread(Generic[_T]):
    """A computation that is done a few steps at a time.

    A copy repeats the steps done so far when it does its next ones.

    Parameters
    ----------
    begin
        Returns the steps from the first one on; the steps change nothing that it depends on.

    Attributes
    ----------
    has_ended
        Whether all steps are done.
    result
        The result of the computation, once it has ended.

    Examples
    --------
    >>> X, Y = np.zeros((1, 1)), np.ones((1, 1))
    >>> from streamgp.kernels import SquaredExponential
    >>> spread = Spread(lambda: likelihood_steps(SquaredExponential(), 1.0, X, Y))
    >>> while spread.advance(work=0.0) is None:
    ...     pass
    >>> spread.result[0]
    -1.515...

    """

    # _steps    the remaining steps; _n_begun were begun, and _cost is that of the next
    result: _T

    def __init__(self, begin: Callable[[], Steps[_T]]) -> None:
        self.has_ended = False
        self._begin = begin
        self._steps: Steps[_T] | None = None
        self._n_begun = 0
        self._cost = 0.0

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_steps": None}

    def advance(self, work: float = math.inf) -> float | None:
        """Do some steps, at least one; return the work that is left, None before the end.

        Parameters
        ----------
        work
            Microseconds to spend, by the estimates of the steps.

        """
        steps = self._steps
        if steps is None:
            steps = self._steps = self._begin()
            for _ in range(self._n_begun):
                next(steps)
        spent = self._cost
        while True:
            try:
                self._cost = next(steps)
            except StopIteration as end:
                self.has_ended, self.result = True, end.value
                return work - spent
            self._n_begun += 1
            spent += self._cost
            if spent > work:
                return None


def step_cost(n: int) -> float:
    """Return about how many microseconds it takes to compute and factorise a matrix (n, n).

    Measured on one core of a cloud server: 3.8 ms with 512 rows.
    """
    return 50.0 + 1.75e-5 * n * n * (n + 300.0)


def likelihood_steps(
    kernel: Kernel, noise_variance: float, X: Array, Y: Array
) -> Steps[tuple[float, Array]]:
    """Compute the log marginal likelihood of all targets together, in nats, and its gradient.

    In steps of O(n³) operations each.

    Parameters
    ----------
    kernel
        Covariance function with `p` hyperparameters.
    noise_variance
        Variance of the observations around the functions, in units of y².
    X, Y
        Points (n, d) and targets (n, m).

    Returns
    -------
    The value, and the gradient by `[*kernel.theta, log noise_variance]`, shape (p + 1,).

    Raises
    ------
    NotPositiveDefiniteError
        If the covariance of the observations is singular up to rounding.

    Examples
    --------
    One observation of 1 whose variance is 1 + 1:

    >>> from streamgp.kernels import SquaredExponential
    >>> X, Y = np.array([[0.0]]), np.array([[1.0]])
    >>> value, gradient = at_once(likelihood_steps(SquaredExponential(), 1.0, X, Y))
    >>> value, gradient.tolist()
    (-1.515..., [0.0, -0.125, -0.125])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 2.30 and 5.9.

    """
    n, m = Y.shape
    yield EMBEDDED * n
    rows = embedded(kernel, X)
    G, log_det = yield from _inverse_steps(kernel, noise_variance, rows)
    yield 0.5 * step_cost(n)
    A = G @ Y
    value = -0.5 * (float(np.vdot(Y, A)) + m * (log_det + n * _LOG_2_PI))  # GPML Eq. 2.30
    G *= m
    W = A @ A.T
    W -= G
    del G  # its memory is reused for the derivatives
    by_kernel = yield from _half_products_steps(W, kernel.gradients(rows))  # GPML Eq. 5.9
    by_noise = 0.5 * noise_variance * float(np.trace(W))
    return value, np.array([*by_kernel, by_noise])


def embedded(kernel: Kernel, X: Array) -> Array:
    """Return the points (n, d) as the kernel stores them, shape (n, w)."""
    return np.array([kernel.embed(x) for x in X])


def covariance_factor_steps(kernel: Kernel, noise_variance: float, rows: Array) -> Steps[Array]:
    """Factorise the covariance of observations at the points behind `rows`, in two steps.

    Returns
    -------
    Its lower Cholesky factor, shape (n, n), column-major. Entries above the diagonal are not part
    of it, and not set to zero.

    Raises
    ------
    NotPositiveDefiniteError
        If the covariance of the observations is singular up to rounding.

    """
    cost = 0.5 * step_cost(len(rows))
    yield cost
    K = kernel.matrix(rows)
    K[np.diag_indices(len(K))] += noise_variance
    yield cost
    # A symmetric matrix is its own transpose, which LAPACK takes without a copy.
    L: Array
    L, info = lapack.dpotrf(K.T, lower=1, overwrite_a=1, clean=0)
    if info:
        raise NotPositiveDefiniteError(
            "covariance of the observations is singular; raise noise_variance or drop repeated "
            "points"
        )
    return L


def _inverse_steps(
    kernel: Kernel, noise_variance: float, rows: Array
) -> Steps[tuple[Array, float]]:
    """Compute the inverse of the covariance of observations, and its log determinant."""
    cost = step_cost(len(rows))
    L = yield from covariance_factor_steps(kernel, noise_variance, rows)
    log_det = 2.0 * float(np.log(np.diagonal(L)).sum())
    # From the factor, in a third of the time of solving for the columns of the identity matrix;
    # the same as `dpotri`, in two steps.
    yield 0.65 * cost
    inverse_factor, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
    yield 0.35 * cost
    lower, _ = lapack.dlauum(inverse_factor, lower=1, overwrite_c=1)
    yield 0.2 * cost
    for start in range(0, len(lower), _BAND):
        end = start + _BAND
        corner = np.tril(lower[start:end, start:end], -1)
        lower[start:end, start:end] = np.tril(lower[start:end, start:end]) + corner.T
        lower[start:end, end:] = lower[end:, start:end].T
    # Row-major; for a symmetric matrix that needs no copy.
    inverse: Array = lower.T
    return inverse, log_det


def inverse_of_factor_steps(factor: Array, *, lower: bool) -> Steps[Array]:
    """Compute the inverse of a matrix from its Cholesky factor: the same triangle as the factor.

    Parameters
    ----------
    factor
        Triangular factor, shape (n, n).
    lower
        Whether it is the lower one.

    """
    n = len(factor)
    cubic, memory = CUBIC * n**3, NEW_MEMORY * n * n
    # What `dpotri` does, in two steps.
    yield 1.3 * cubic + memory
    inverse_factor, _ = lapack.dtrtri(factor, lower=lower)
    yield 0.7 * cubic + memory
    inverse: Array
    inverse, _ = lapack.dlauum(inverse_factor, lower=lower)
    return inverse


def _half_products_steps(W: Array, gradients: Iterator[Array]) -> Steps[list[float]]:
    """Compute half the scalar products of a matrix with others."""
    products: list[float] = []
    while True:
        # The first one computes the distances of all points.
        yield (0.6 if products else 1.0) * step_cost(len(W))
        D = next(gradients, None)
        if D is None:
            return products
        products.append(0.5 * float(np.vdot(W, D)))


# --- Posterior under another prior, from the posterior alone.


# Share of the prior variance, in any direction, below which a posterior does not reveal what was
# observed, as too many digits are lost.
_KNOWN_FOR_CERTAIN = 1e-9
# Enough for the order of magnitude.
_ITERATIONS = 6


def another_prior_steps(
    K: Array, means: Array, S: Array, prior: Array, gain: float = 1.0
) -> Steps[tuple[Array, Array] | None]:
    """Return the posterior of functions at some points, had their prior been another one.

    A posterior is the prior times the likelihood of the observations, whose precision is
    `S⁻¹ - K⁻¹` and whose mean, times the precision, is `S⁻¹ mean`. Both stay.

    Parameters
    ----------
    K
        Old prior covariance, shape (n, n).
    means, S
        Old posterior means, one row for each function (m, n), and their covariance (n, n).
    prior
        New prior covariance; it may be singular.
    gain
        Factor by which the precision of the observations is multiplied.

    Returns
    -------
    New means and covariance; None if posterior or prior are too certain to reveal what was
    observed.

    Examples
    --------
    An observation of 1 with variance 1, under a prior variance of 1 and of 3:

    >>> one = np.array([[1.0]])
    >>> at_once(another_prior_steps(one, 0.5 * one, 0.5 * one, 3.0 * one))
    (array([[0.75]]), array([[0.75]]))

    """
    n = len(K)
    cubic, memory = CUBIC * n**3, NEW_MEMORY * n * n
    try:
        yield cubic + memory
        L = cholesky(K, lower=True, check_finite=False)
        yield cubic + memory
        C = cholesky(S, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    half = yield from _solved_steps(L, C)
    # In units of the prior, `half half'` is the posterior.
    if not n or _smallest_share(half) < _KNOWN_FOR_CERTAIN:
        return None
    # The factor of `C' (S⁻¹ - K⁻¹) C`, which is singular where nothing was observed.
    rest = yield from symmetric_product_steps(half.T, half)
    yield 2.0 * cubic + memory
    np.subtract(np.eye(n), rest, out=rest)
    # A symmetric matrix is its own transpose, which LAPACK takes without a copy.
    A, order, rank, _ = lapack.dpstrf(rest.T, lower=1, overwrite_a=1)
    observed = np.tril(A[:, :rank])[np.argsort(order)]
    # `R R'` is the precision of what was observed.
    R = yield from _solved_steps(C, math.sqrt(gain) * observed, transposed=True)
    KR = yield from _product_steps(prior, R)
    # The prior, conditioned on it (GPML Eq. A.9).
    M = yield from symmetric_product_steps(R.T, KR)
    M[np.diag_indices(len(M))] += 1.0
    yield cubic + memory
    try:
        factor = cholesky(M, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    explained = yield from _solved_steps(factor, KR.T)
    now = yield from symmetric_product_steps(explained.T, explained)
    yield memory
    np.subtract(prior, now, out=now)
    # Function after function: the bits of one function do not depend on how many there are.
    found = np.empty_like(means)
    for i, mean in enumerate(means):
        yield memory
        found[i] = np.vecdot(now, _solved(C, gain * _solved(C, mean), transposed=True))
    return found, now


def _solved_steps(L: Array, B: Array, *, transposed: bool = False) -> Steps[Array]:
    """Compute the result of `_solved`, some columns at a time."""
    found: Array = np.empty(B.shape, order="F")
    for first in range(0, B.shape[1], _BAND):
        band = slice(first, first + _BAND)
        yield 100.0 + 3.0 * CUBIC * len(L) ** 2 * _BAND
        found[:, band] = _solved(L, B[:, band], transposed=transposed)
    return found


def _product_steps(A: Array, B: Array) -> Steps[Array]:
    """Compute the product of two matrices, some rows at a time."""
    found: Array = np.empty((len(A), B.shape[1]))
    for first in range(0, len(A), _BAND):
        band = slice(first, first + _BAND)
        yield 3.0 * CUBIC * _BAND * B.size
        found[band] = A[band] @ B
    return found


def symmetric_product_steps(A: Array, B: Array) -> Steps[Array]:
    """Compute a product that is known to be symmetric, some rows at a time: half of it, mirrored.

    Examples
    --------
    >>> A = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> at_once(symmetric_product_steps(A, A.T))
    array([[ 5., 11.],
           [11., 25.]])

    """
    n, m = A.shape
    found: Array = np.empty((n, n))
    for first in range(0, n, _BAND):
        end = min(first + _BAND, n)
        yield 3.0 * CUBIC * _BAND * end * m
        found[first:end, :end] = A[first:end] @ B[:, :end]
        found[:first, first:end] = found[first:end, :first].T
    return found


def _solved(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """Return `L⁻¹ B` for a lower triangle `L`, or `L'⁻¹ B`."""
    found: Array = solve_triangular(L, B, lower=True, trans=int(transposed), check_finite=False)
    return found


def _smallest_share(half: Array) -> float:
    """Return the smallest eigenvalue of `half half'` for a lower triangle, by inverse iteration."""
    x = np.arange(1.0, len(half) + 1.0)
    for _ in range(_ITERATIONS):
        x = _solved(half, _solved(half, x / np.linalg.norm(x)), transposed=True)
    return 1.0 / float(np.linalg.norm(x))
