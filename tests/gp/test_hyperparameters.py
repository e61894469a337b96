import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.hyperparameters import (
    MIN_NOISE_VARIANCE,
    Hyperparameters,
    fit_steps,
    maximum_a_posteriori,
    prediction_steps,
)
from streamgp.gp.marginal_likelihood import at_once, likelihood_steps
from streamgp.kernels import Linear, Matern52, RationalQuadratic, SquaredExponential
from tests.helpers.gp_cases import problem, taught

START = Hyperparameters(kernel=SquaredExponential(), noise_variance=0.5)


def drawn(these, n, m, d=1, seed=0):
    """Return points, and targets drawn from the prior there."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, size=(n, d))
    K = these.kernel.matrix(np.array([these.kernel.embed(x) for x in X]))
    L = np.linalg.cholesky(K + these.noise_variance * np.eye(n))
    return X, L @ rng.normal(size=(n, m))


def loss(these, prior, X, Y):
    """What a fit makes small."""
    value, _ = at_once(likelihood_steps(these.kernel, these.noise_variance, X, Y))
    off = these.vector - prior.vector
    return 0.5 * off @ off - value


def fit(*arguments, **options):
    return at_once(fit_steps(*arguments, **options))


def predicted(*arguments):
    return at_once(prediction_steps(*arguments))


def test_a_vector_of_logarithms_leads_there_and_back():
    these = Hyperparameters(kernel=SquaredExponential(2.0, 3.0), noise_variance=0.1)
    assert these.vector.tolist() == [math.log(2.0), math.log(3.0), math.log(0.1)]
    moved = START.moved_to(these.vector)
    assert moved.vector == pytest.approx(these.vector)
    assert START.vector.tolist() == [0.0, 0.0, math.log(0.5)]


@pytest.mark.parametrize(
    "kernel", [SquaredExponential(1.5, 2.0), Matern52(1.5, 2.0), RationalQuadratic(1.5)]
)
def test_hyperparameters_are_found_again_in_what_was_drawn_with_them(kernel):
    """From three times too much or too little; 20 functions tell much more than a prior."""
    true = Hyperparameters(kernel=kernel, noise_variance=0.1)
    X, Y = drawn(true, n=60, m=20)
    signs = np.where(np.arange(len(true.vector)) % 2, -1.0, 1.0)
    start = true.moved_to(true.vector + signs * math.log(3.0))
    found = fit(start, start, X, Y, n_evaluations=60)
    # About two standard errors of 20 functions over a handful of length scales each; the shape of
    # a rational quadratic is not told by so little.
    compared = slice(0, 1) if isinstance(kernel, RationalQuadratic) else slice(None)
    assert found.vector[compared] == pytest.approx(true.vector[compared], abs=0.35)


def test_a_fit_is_a_point_where_nothing_can_be_gained_nearby():
    X, Y = drawn(Hyperparameters(kernel=SquaredExponential(2.0), noise_variance=0.1), 40, 2)
    found = fit(START, START, X, Y, n_evaluations=100)
    here = loss(found, START, X, Y)
    for j in range(3):
        for step in (-0.05, 0.05):
            aside = found.moved_to(found.vector + step * (np.arange(3) == j))
            assert loss(aside, START, X, Y) > here


@given(st.integers(1, 15), st.integers(1, 3), st.integers(0, 100), st.integers(1, 30))
def test_a_fit_never_explains_less_than_its_start(n, m, seed, n_evaluations):
    X, Y = problem(n, 2, m, seed)
    found = fit(START, START, X, Y, n_evaluations=n_evaluations)
    assert loss(found, START, X, Y) <= loss(START, START, X, Y) + 1e-9


@pytest.mark.parametrize("noise_variance", [0.5, 1e-4])
def test_a_fit_in_steps_is_bitwise_an_optimiser_that_runs_through(noise_variance):
    X, Y = drawn(Hyperparameters(kernel=SquaredExponential(0.3), noise_variance=0.01), 150, 2)
    start = Hyperparameters(kernel=SquaredExponential(), noise_variance=noise_variance)

    def explained(vector):
        tried = start.moved_to(vector)
        try:
            return at_once(likelihood_steps(tried.kernel, tried.noise_variance, X, Y))
        except NotPositiveDefiniteError:
            return None

    centre, lowest = start.vector, start.vector - 6.0
    lowest[-1] = math.log(MIN_NOISE_VARIANCE)
    expected = maximum_a_posteriori(
        explained, centre, centre, np.ones(3), (lowest, centre + 6.0), n_evaluations=25
    )
    steps = fit_steps(start, start, X, Y)
    assert at_once(steps).vector.tolist() == start.moved_to(expected).vector.tolist()


@pytest.mark.parametrize("n_evaluations", [1, 5, 25])
def test_a_fit_costs_hardly_more_evaluations_than_were_allowed(n_evaluations, monkeypatch):
    X, Y = drawn(Hyperparameters(kernel=SquaredExponential(0.3), noise_variance=0.01), 50, 1)
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return likelihood_steps(*arguments)

    monkeypatch.setattr("streamgp.gp.hyperparameters.likelihood_steps", counted)
    fit(START, START, X, Y, n_evaluations=n_evaluations)
    # L-BFGS-B counts after each search along a line, which takes a few.
    assert 1 <= len(calls) <= n_evaluations + 5


def test_a_fit_is_deterministic():
    X, Y = problem(30)
    one, other = (fit(START, START, X, Y) for _ in range(2))
    assert one.vector.tolist() == other.vector.tolist()


def test_what_data_do_not_tell_stays_at_the_prior():
    """One point says nothing about a length scale."""
    prior = Hyperparameters(kernel=SquaredExponential(3.0), noise_variance=0.5)
    found = fit(START, prior, np.zeros((1, 1)), np.ones((1, 1)), n_evaluations=100)
    assert found.vector[0] == pytest.approx(math.log(3.0), abs=1e-3)


def test_few_data_move_little_and_many_move_far():
    true = Hyperparameters(kernel=SquaredExponential(10.0), noise_variance=0.1)
    X, Y = drawn(true, n=100, m=5)
    few = fit(START, START, X[:2], Y[:2, :1])
    many = fit(START, START, X, Y)
    assert few.kernel.length_scale == pytest.approx(1.0, rel=0.5)
    assert many.kernel.length_scale == pytest.approx(10.0, rel=0.5)


@pytest.mark.parametrize("noise_variance", [0.5, MIN_NOISE_VARIANCE, 1e-12])
def test_targets_without_noise_lower_it_to_the_smallest_that_is_learned(noise_variance):
    """Also where even less was expected, and where points repeat."""
    start = Hyperparameters(kernel=SquaredExponential(), noise_variance=noise_variance)
    X = np.linspace(0.0, 10.0, 20).repeat(2)[:, None]
    found = fit(start, start, X, np.sin(X))
    assert found.noise_variance == pytest.approx(MIN_NOISE_VARIANCE)
    assert np.isfinite(found.vector).all()


def test_a_start_whose_covariance_is_singular_is_left_where_possible():
    """The smallest noise that is learned makes it regular."""
    start = Hyperparameters(kernel=SquaredExponential(1e6), noise_variance=1e-30)
    found = fit(start, start, np.linspace(0.0, 1.0, 20)[:, None], np.ones((20, 1)))
    assert found.noise_variance >= MIN_NOISE_VARIANCE * (1 - 1e-9)


def test_where_every_covariance_is_singular_the_start_is_kept():
    """A linear function of points so large that no noise within reach shows beside it."""
    start = Hyperparameters(kernel=Linear(), noise_variance=0.5)
    X = np.array([[1e12], [1e12], [2e12]])
    assert fit(start, start, X, np.ones((3, 1))).vector == pytest.approx(start.vector)


@pytest.mark.parametrize("which", ["start", "prior"])
def test_without_noise_none_can_be_learned(which):
    without = Hyperparameters(kernel=SquaredExponential(), noise_variance=0.0)
    arguments = {"start": START, "prior": START, which: without}
    with pytest.raises(ValueError, match="noise_variance must be positive to be learned, got"):
        fit(**arguments, X=np.zeros((1, 1)), Y=np.ones((1, 1)))


@given(
    st.integers(1, 40),
    st.integers(1, 3),
    st.floats(0.3, 3.0),
    st.floats(0.1, 10.0),
    st.floats(1e-2, 10.0),
    st.integers(0, 100),
)
def test_one_factorisation_predicts_what_was_predicted_one_by_one(
    n, m, length_scale, variance, noise_variance, seed
):
    X, Y = problem(n, 3, m, seed)
    kernel = SquaredExponential(length_scale, variance)
    these = Hyperparameters(kernel=kernel, noise_variance=noise_variance)
    means, variances = predicted(these, X, Y)
    gp = taught([], [], length_scale=length_scale, variance=variance, noise_variance=noise_variance)
    for _ in range(m):
        gp.add_target()
    for x, y, mean, variance in zip(X, Y, means, variances, strict=True):
        expected_mean, expected_variance = gp.predict(x)
        np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
        assert variance == pytest.approx(expected_variance, abs=1e-9)
        gp.append(x, y)


def test_means_far_from_all_points_before_keep_their_digits_in_a_replay():
    """Of two points, the second is predicted to be k y / (variance + noise), however small k is."""
    these = Hyperparameters(kernel=SquaredExponential(), noise_variance=1.0)
    for distance in (1.0, 9.0, 20.0):
        X, Y = np.array([[0.0], [distance]]), np.array([[1.0, 3.0], [1.0, 0.0]])
        k = math.exp(-0.5 * distance**2)
        means, _ = predicted(these, X, Y)
        np.testing.assert_allclose(means[1], [k / 2.0, 3.0 * k / 2.0], rtol=1e-12)


def test_a_replay_changes_no_arguments():
    X, Y = problem(10)
    before = X.copy(), Y.copy()
    predicted(START, X, Y)
    assert np.array_equal(X, before[0])
    assert np.array_equal(Y, before[1])


def test_a_replay_with_a_singular_covariance_is_refused():
    these = Hyperparameters(kernel=SquaredExponential(), noise_variance=0.0)
    with pytest.raises(NotPositiveDefiniteError, match="is singular; raise noise_variance or drop"):
        predicted(these, np.zeros((2, 1)), np.ones((2, 1)))


def test_where_the_variance_is_exhausted_a_replay_has_none_below_zero():
    these = Hyperparameters(kernel=SquaredExponential(), noise_variance=1e-12)
    X = np.linspace(0.0, 3.0, 12)[:, None]
    _, variances = predicted(these, X, np.sin(X))
    assert (variances >= 0.0).all()
