"""Hyperparameters from data: type-II maximum likelihood with a weak prior and bounded cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from scipy.linalg import blas, solve_triangular

from streamgp.base import Array
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.marginal_likelihood import (
    EMBEDDED,
    Steps,
    covariance_factor_steps,
    embedded,
    likelihood_steps,
    step_cost,
)
from streamgp.kernels import Kernel

_T = TypeVar("_T")
# Value and gradient of a criterion, None where they do not exist.
_Result: TypeAlias = tuple[float, Array] | None

MIN_NOISE_VARIANCE = 1e-4
"""Least noise that is learned: targets that repeat exactly would make it vanish."""

# Standard deviation of the prior, in natural logarithms: a factor of e up or down is not
# unusual, one of 100 needs evidence.
_PRIOR_SD = 1.0
# No hyperparameter is searched farther from its start than this factor, in natural logarithms.
_FARTHEST = 6.0
_WORTHLESS = 1e300
# Microseconds for the optimiser to reach the next point, for each point that it was at before.
_REPEATED = 60.0
# How many times as long the first evaluations take at most, and their number.
_SLOWER = 2.0
_N_SLOWER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """A kernel and the noise variance that belongs to it.

    Parameters
    ----------
    kernel
        Covariance function.
    noise_variance
        Variance of the observation noise, in units of y².

    """

    kernel: Kernel
    noise_variance: float

    @property
    def vector(self) -> Array:
        """Natural logarithms, first those of the kernel, then that of the noise variance."""
        return np.append(self.kernel.theta, math.log(self.noise_variance))

    def moved_to(self, vector: Array) -> Hyperparameters:
        """Return a copy with other values."""
        return Hyperparameters(
            kernel=self.kernel.with_theta(vector[:-1]), noise_variance=math.exp(vector[-1])
        )


def fit_steps(
    start: Hyperparameters,
    prior: Hyperparameters,
    X: Array,
    Y: Array,
    *,
    n_evaluations: int = 25,
) -> Steps[Hyperparameters]:
    """Find hyperparameters that explain targets better, near the prior.

    The marginal likelihood is maximised together with a normal density of the logarithms around
    `prior`, so that few data change little. Deterministic, with bounded numbers of evaluations, of
    O(n³) each, and of their steps.

    Parameters
    ----------
    start
        Where the search begins.
    prior
        The prior, expected without data.
    X, Y
        Points (n, d) and targets (n, m).
    n_evaluations
        Approximate upper limit of evaluations.

    Raises
    ------
    ValueError
        If the start has no noise.

    Examples
    --------
    Targets that change slowly and without noise make the length scale longer, and the noise as low
    as possible:

    >>> from streamgp.gp.marginal_likelihood import at_once
    >>> from streamgp.kernels import SquaredExponential
    >>> X = np.linspace(0.0, 10.0, 40)[:, None]
    >>> before = Hyperparameters(kernel=SquaredExponential(1.0), noise_variance=0.5)
    >>> after = at_once(fit_steps(before, before, X, np.sin(X / 2.0)))
    >>> round(after.kernel.length_scale, 1), round(after.noise_variance, 4)
    (4.2, 0.0001)

    """
    for noise_variance in (start.noise_variance, prior.noise_variance):
        if not noise_variance > 0.0:
            raise ValueError(
                f"noise_variance must be positive to be learned, got {noise_variance!r}; "
                f"start from {MIN_NOISE_VARIANCE}"
            )
    centre = prior.vector
    lowest, highest = centre - _FARTHEST, centre + _FARTHEST
    lowest[-1] = math.log(MIN_NOISE_VARIANCE)
    highest[-1] = max(highest[-1], lowest[-1] + _FARTHEST)
    results: list[_Result] = []
    while True:
        # The optimiser cannot be suspended. It is run from the start each time, with the results
        # so far, up to the first point of unknown likelihood: comparatively little work.
        yield _REPEATED * (len(results) + 1)
        try:
            found = maximum_a_posteriori(
                _recalled(results),
                start.vector,
                centre,
                np.full_like(centre, _PRIOR_SD),
                (lowest, highest),
                n_evaluations=n_evaluations,
            )
        except _UnknownError as unknown:
            tried = start.moved_to(unknown.vector)
        else:
            return start.moved_to(found)
        steps = likelihood_steps(tried.kernel, tried.noise_variance, X, Y)
        try:
            result = yield from steps if len(results) >= _N_SLOWER else _slower(steps)
        except NotPositiveDefiniteError:
            results.append(None)
        else:
            results.append(result)


def _recalled(results: list[_Result]) -> Callable[[Array], _Result]:
    """Return a criterion that knows the results of its first calls; others raise _UnknownError."""
    known = iter(results)

    def explained(vector: Array) -> _Result:
        for result in known:
            return result
        raise _UnknownError(vector.copy())

    return explained


def _slower(steps: Steps[_T]) -> Steps[_T]:
    """Estimate the steps of an evaluation whose matrices the system still has to allocate."""
    while True:
        try:
            cost = next(steps)
        except StopIteration as end:
            result: _T = end.value
            return result
        yield _SLOWER * cost


class _UnknownError(Exception):
    """The optimiser reached a point where the criterion is not known."""

    def __init__(self, vector: Array) -> None:
        super().__init__(vector)
        self.vector = vector


def maximum_a_posteriori(
    explained: Callable[[Array], _Result],
    start: Array,
    centre: Array,
    std: Array,
    bounds: tuple[Array, Array],
    *,
    n_evaluations: int,
    first_step: float | None = None,
) -> Array:
    """Return, approximately, the vector of largest criterion and prior density together.

    Parameters
    ----------
    explained
        Returns the criterion and its gradient; None where they do not exist.
    start
        Where the search begins.
    centre, std
        Of the normal density that is the prior; an infinite standard deviation stands for no prior.
    bounds
        Lowest and highest values; where they are equal, a value is held fixed.
    n_evaluations
        Approximate upper limit of evaluations of the criterion.
    first_step
        Largest length of the first step; None for that of the gradient.

    Examples
    --------
    A criterion that falls off like the prior, around 1 instead of 0:

    >>> one = np.ones(1)
    >>> maximum_a_posteriori(
    ...     lambda v: (-0.5 * float((v[0] - 1.0) ** 2), 1.0 - v), 0.0 * one, 0.0 * one, one,
    ...     (-9.0 * one, 9.0 * one), n_evaluations=9,
    ... )
    array([0.5])

    """
    # Importing it takes a third of the import time of a learner, and most learners fit nothing.
    from scipy.optimize import minimize

    def loss(vector: Array) -> tuple[float, Array]:
        found = explained(vector)
        if found is None:
            return _WORTHLESS, np.zeros_like(vector)
        value, gradient = found
        off = (vector - centre) / std
        return 0.5 * float(off @ off) - value, off / std - gradient

    begin = np.clip(start, *bounds)
    unit = 1.0
    if first_step is not None:
        # Within bounds L-BFGS-B starts with a step as long as the gradient, however long that is.
        unit = max(1.0, float(np.linalg.norm(loss(begin)[1])) / first_step)

    def in_units(vector: Array) -> tuple[float, Array]:
        value, gradient = loss(vector)
        return value / unit, gradient / unit

    found = minimize(
        in_units,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack(bounds),
        options={"maxfun": n_evaluations},
    )
    vector: Array = found.x
    return vector


def prediction_steps(these: Hyperparameters, X: Array, Y: Array) -> Steps[tuple[Array, Array]]:
    """Return the posterior at each point given those before: means (n, m), latent variances (n,).

    All come from one factorisation: with `L L' = K + noise_variance I` and `Z = L⁻¹ Y`, the
    mean before observation t is the sum of `L_ti z_i` over all i before t, and its variance is
    `L_tt² - noise_variance`.

    Raises
    ------
    NotPositiveDefiniteError
        If the covariance of the observations is singular up to rounding.

    Examples
    --------
    >>> from streamgp.gp.marginal_likelihood import at_once
    >>> from streamgp.kernels import SquaredExponential
    >>> these = Hyperparameters(kernel=SquaredExponential(), noise_variance=1.0)
    >>> X, Y = np.array([[0.0], [0.0]]), np.array([[1.0], [1.0]])
    >>> means, variances = at_once(prediction_steps(these, X, Y))
    >>> means.tolist(), variances.round(3).tolist()
    ([[0.0], [0.5]], [1.0, 0.5])

    """
    kernel = these.kernel
    yield EMBEDDED * len(X)
    rows = embedded(kernel, X)
    L = yield from covariance_factor_steps(kernel, these.noise_variance, rows)
    yield 0.5 * step_cost(len(X))
    Z = solve_triangular(L, Y, lower=True, check_finite=False)
    d = np.diagonal(L).copy()
    # Not y_t - L_tt z_t, which is the same: far from everything the mean is tiny, and would be lost
    # to rounding in a difference of large numbers. Probabilities are ratios of such means.
    np.fill_diagonal(L, 0.0)
    means: Array = blas.dtrmm(1.0, L, Z, lower=1)
    return means, np.maximum(d * d - these.noise_variance, 0.0)
