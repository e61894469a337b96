"""The laws of `ExactGP` with a factor in single precision, and what the digits left out cost."""

import copy
import math

import numpy as np
import pytest

from streamgp.gp.cholesky import MIN_NOISE_IN_SINGLE_PRECISION, NotPositiveDefiniteError
from streamgp.gp.exact import ExactGP
from streamgp.gp.hyperparameters import Hyperparameters, prediction_steps
from streamgp.gp.marginal_likelihood import at_once
from streamgp.kernels import SquaredExponential
from tests.helpers.gp_cases import Dense, assert_same, bits, problem, taught


def single(X, Y, *, noise_variance=0.1, **options):
    return taught(X, Y, noise_variance=noise_variance, single_precision=True, **options)


def both(X, Y, *, noise_variance, length_scale):
    """Return what is predicted at each point before it is learned, in double and in single."""
    kernel = SquaredExponential(length_scale)
    these = Hyperparameters(kernel=kernel, noise_variance=noise_variance)
    double = np.column_stack(at_once(prediction_steps(these, X, Y)))
    gp = ExactGP(kernel, noise_variance, single_precision=True)
    for _ in range(Y.shape[1]):
        gp.add_target()
    found = np.empty_like(double)
    for row, x, y in zip(found, X, Y, strict=True):
        row[:-1], row[-1] = gp.predict(x)
        gp.append(x, y)
    return double, found


def overlapping_clouds(n, m=5, d=8):
    """Return points of moving clouds that overlap, and their classes, a tenth of them wrong."""
    rng = np.random.default_rng(0)
    labels = rng.integers(m, size=n)
    centres = rng.normal(size=(m, d)) + np.linspace(0, 1, n)[:, None, None] * rng.normal(size=d)
    X = centres[np.arange(n), labels] + 0.7 * rng.normal(size=(n, d))
    return X, np.eye(m)[np.where(rng.random(n) < 0.1, rng.integers(m, size=n), labels)]


@pytest.mark.parametrize(
    ("noise_variance", "error", "n_others"),
    [(0.5, 2e-5, 0), pytest.param(1e-3, 1e-2, 2, marks=pytest.mark.nightly)],
)
def test_three_thousand_events_are_of_the_same_classes(noise_variance, error, n_others):
    """But, with the smallest noise, for one or two whose best classes are equally probable."""
    X, Y = overlapping_clouds(3000)
    double, single = (
        p[:, :-1] for p in both(X, Y, noise_variance=noise_variance, length_scale=2.5)
    )
    np.testing.assert_allclose(single, double, atol=error)
    others = double[double.argmax(axis=1) != single.argmax(axis=1)]
    assert len(others) <= n_others
    best = np.sort(others, axis=1)[:, -2:]
    np.testing.assert_allclose(best[:, 0], best[:, 1], atol=2 * error)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("kind", ["clouds", "repeated", "walk"])
def test_variances_are_off_by_a_hundredth_of_the_smallest_noise_at_most(kind, d):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, d))
    if kind == "repeated":
        X = np.round(X)
    elif kind == "walk":
        X = np.cumsum(0.1 * X, axis=0)
    Y = rng.normal(size=(400, 1))
    for length_scale in (0.3, 1.0, 3.0):
        noise_variance = MIN_NOISE_IN_SINGLE_PRECISION
        double, single = both(X, Y, noise_variance=noise_variance, length_scale=length_scale)
        assert np.abs(single[:, 1] - double[:, 1]).max() < 0.01 * noise_variance


def test_means_variance_and_evidence_are_those_of_a_dense_solve_to_five_digits():
    X, Y = problem(40)
    gp, dense = single(X, Y), Dense(X, Y, noise_variance=0.1)
    assert_same(gp, dense, [X[0], X[-1] + 0.1, np.zeros(3), np.full(3, 1e3)], tolerance=1e-5)
    assert gp.log_evidence() == pytest.approx(dense.log_evidence(), rel=1e-5)
    means, variances = gp.leave_one_out()
    for i in (0, 7, 39):
        expected_means, expected_variance = dense.without(i).predict(X[i])
        np.testing.assert_allclose(means[i], expected_means, atol=1e-5)
        assert variances[i] == pytest.approx(expected_variance, abs=1e-5)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [15, 150, 600])
def test_learning_the_same_again_gives_the_same_bits(n):
    """Whatever was asked in between, wherever the numbers lie in memory."""
    X, Y = problem(n)
    one = single(X, Y)
    other = single([], [])
    padding = []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        other.predict(x + 1.0)
        if i % 100 == 0:
            other.predict_many(X[:3])
            other = copy.deepcopy(other)
            padding.append(np.empty(1000 + 16 * i))
        other.append(x, y)
    for x in problem(10, seed=1)[0]:
        assert bits(one.predict(x)) == bits(other.predict(x))
    assert one.log_evidence() == other.log_evidence()


@pytest.mark.parametrize("value", [0.0, 1e-4, math.nextafter(MIN_NOISE_IN_SINGLE_PRECISION, 0)])
def test_a_noise_too_small_for_the_precision_is_refused(value):
    with pytest.raises(ValueError, match=r"at least 0.001 in single precision, .*, got .*; raise"):
        ExactGP(SquaredExponential(), value, single_precision=True)
    ExactGP(SquaredExponential(), value)


def test_a_point_determined_by_the_others_is_refused_and_nothing_changes():
    """The prior variance is so large that 7 digits of it do not show the noise any more."""
    gp = single([[0.0]], [[1.0]], variance=1e4, noise_variance=1e-3)
    before = bits(gp.predict(np.ones(1)))
    with pytest.raises(NotPositiveDefiniteError, match=r"expected more than .*; raise noise_var"):
        gp.append(np.zeros(1), np.array([1.0, 1.0]))
    assert (gp.n, gp.n_targets) == (1, 1)
    assert bits(gp.predict(np.ones(1))) == before


def test_two_thousand_repeated_points_stay_exact_with_the_smallest_noise():
    """n equal points are one point with noise_variance / n."""
    gp = ExactGP(SquaredExponential(), MIN_NOISE_IN_SINGLE_PRECISION, single_precision=True)
    x = np.array([0.3, -0.2])
    for i in range(2000):
        gp.append(x, np.array([float(i % 2)]))
    means, variance = gp.predict(x)
    noise = MIN_NOISE_IN_SINGLE_PRECISION / 2000
    assert means[0] == pytest.approx(0.5 / (1 + noise), abs=3e-3)
    assert variance == pytest.approx(noise / (1 + noise), abs=4e-6)
