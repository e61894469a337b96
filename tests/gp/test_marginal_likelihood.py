import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from streamgp.features import Columns
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.marginal_likelihood import at_once, likelihood_steps
from streamgp.kernels import (
    Constant,
    Linear,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)
from tests.helpers.gp_cases import problem, taught

KERNELS = {
    "squared exponential": SquaredExponential(1.3, 0.7),
    "Matern 3/2": Matern32(0.8, 2.0),
    "rational quadratic": RationalQuadratic(1.1),
    "sum": SquaredExponential(1.3) + Linear() + Constant(0.4),
    "product": Matern52(2.0) * Constant(3.0),
    "a length scale for each feature": SquaredExponential({"a": 0.5, "b": 1.0, "c": 2.0}).bound(
        Columns(["a", "b", "c"])
    ),
}
kernels = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())

problems = st.tuples(
    st.integers(1, 12), st.integers(1, 3), st.floats(1e-3, 10.0), st.integers(0, 100)
)


def covariance(kernel, noise_variance, X):
    rows = np.array([kernel.embed(x) for x in X])
    points = np.array([kernel.vector(rows, row) for row in rows])
    return points + noise_variance * np.eye(len(X))


@kernels
@given(problems)
def test_the_marginal_likelihood_is_the_density_of_a_normal_distribution(kernel, a_problem):
    n, m, noise_variance, seed = a_problem
    X, Y = problem(n, 3, m, seed)
    value, _ = at_once(likelihood_steps(kernel, noise_variance, X, Y))
    normal = multivariate_normal(cov=covariance(kernel, noise_variance, X))
    # A linear kernel and the smallest noise leave a condition number of 1e5.
    assert value == pytest.approx(sum(map(normal.logpdf, Y.T)), rel=1e-8, abs=1e-8)


def density(y, mean, variance):
    return -0.5 * ((y - mean) ** 2 / variance + np.log(2 * math.pi * variance))


@kernels
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (25, 2)])
def test_the_gradient_is_what_differences_show(kernel, n, m):
    X, Y = problem(n, 3, m, seed=n)
    start = np.append(kernel.theta, math.log(0.3))

    def value(vector):
        these = kernel.with_theta(vector[:-1]), math.exp(vector[-1])
        return at_once(likelihood_steps(*these, X, Y))[0]

    _, gradient = at_once(likelihood_steps(kernel, 0.3, X, Y))
    step = 1e-5
    for j, slope in enumerate(gradient):
        aside = step * (np.arange(len(start)) == j)
        difference = (value(start + aside) - value(start - aside)) / (2 * step)
        # The square of the step, and the rounding errors of the values over it.
        assert slope == pytest.approx(difference, rel=1e-6, abs=1e-7)
    assert len(gradient) == len(start)


def test_the_value_is_what_the_online_process_says_of_the_same_points():
    X, Y = problem(30)
    gp = taught(X, Y, length_scale=1.5, variance=2.0, noise_variance=0.2)
    value, _ = at_once(likelihood_steps(SquaredExponential(1.5, 2.0), 0.2, X, Y))
    assert value == pytest.approx(gp.log_evidence(), rel=1e-9)


def test_a_singular_covariance_is_refused():
    X, Y = np.zeros((3, 2)), np.ones((3, 1))
    with pytest.raises(NotPositiveDefiniteError, match="is singular; raise noise_variance or drop"):
        at_once(likelihood_steps(SquaredExponential(), 0.0, X, Y))


def test_arguments_are_not_changed():
    X, Y = problem(10)
    before = X.copy(), Y.copy()
    at_once(likelihood_steps(SquaredExponential(), 0.1, X, Y))
    assert np.array_equal(X, before[0])
    assert np.array_equal(Y, before[1])
