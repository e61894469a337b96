"""Predicting many points at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp import cholesky, exact
from streamgp.gp.exact import ExactGP
from streamgp.kernels import SquaredExponential
from tests.helpers.gp_cases import Dense, bits, problem, taught


def one_by_one(gp, X):
    means, variances = zip(*(gp.predict(x) for x in X), strict=True)
    return np.array(means), np.array(variances)


@given(
    st.integers(0, 40), st.integers(1, 3), st.integers(1, 9), st.integers(0, 50), st.integers(1, 4)
)
def test_predicting_many_equals_predicting_each(n, m, b, seed, at_once):
    X, Y = problem(n, 3, m, seed)
    gp = taught(X, Y, noise_variance=0.1)
    probes = problem(b, 3, seed=seed + 1)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_AT_ONCE", at_once)
        means, variances = gp.predict_many(probes)
    expected_means, expected_variances = one_by_one(gp, probes)
    np.testing.assert_allclose(means, expected_means, atol=1e-9)
    np.testing.assert_allclose(variances, expected_variances, atol=1e-9)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("single_precision", "tolerance"), [(False, 1e-9), (True, 1e-3)])
def test_so_it_does_with_a_factor_of_several_blocks(monkeypatch, single_precision, tolerance):
    monkeypatch.setattr(cholesky, "_CACHED", 64)
    monkeypatch.setattr(cholesky, "_UNPACKED", 16)
    X, Y = problem(340, d=5)  # in blocks of 16, 16, 32, 64, 128 and 84: the last two are unpacked
    gp = taught(X, Y, noise_variance=0.1, single_precision=single_precision)
    probes = problem(40, d=5, seed=1)[0]
    means, variances = gp.predict_many(probes)
    expected_means, expected_variances = one_by_one(gp, probes)
    np.testing.assert_allclose(means, expected_means, atol=tolerance)
    np.testing.assert_allclose(variances, expected_variances, atol=tolerance)


def test_it_equals_a_dense_solve_where_points_are_far_from_zero():
    X, Y = problem(30)
    gp = taught(X + 1e6, Y, noise_variance=0.1)
    dense = Dense(X, Y, noise_variance=0.1)
    means, variances = gp.predict_many(X + 1e6)
    for x, mean, variance in zip(X, means, variances, strict=True):
        expected_mean, expected_variance = dense.predict(x)
        # An offset of 1e6 leaves 10 digits behind the point.
        np.testing.assert_allclose(mean, expected_mean, atol=1e-6)
        assert variance == pytest.approx(expected_variance, abs=1e-6)


def test_no_points_have_no_predictions():
    gp = taught(*problem(5), noise_variance=0.1)
    means, variances = gp.predict_many(np.empty((0, 3)))
    assert means.shape == (0, 2)
    assert variances.shape == (0,)


def test_nothing_learned_is_the_prior():
    gp = ExactGP(SquaredExponential(variance=2.0), 0.1)
    gp.add_target()
    means, variances = gp.predict_many(np.zeros((2, 3)))
    assert means.tolist() == [[0.0], [0.0]]
    assert variances.tolist() == [2.0, 2.0]


def test_where_the_variance_is_exhausted_it_is_not_negative():
    X, Y = problem(20, d=1)
    gp = taught(X, Y, noise_variance=1e-9, length_scale=0.01)
    _, variances = gp.predict_many(np.repeat(X, 3, axis=0))
    assert (variances >= 0.0).all()


def test_predicting_many_changes_no_bit_of_what_follows():
    X, Y = problem(40)
    one, other = (taught(X[:30], Y[:30], noise_variance=0.1) for _ in range(2))
    for x, y in zip(X[30:], Y[30:], strict=True):
        one.predict_many(X)
        one.append(x, y)
        other.append(x, y)
    assert bits(one.predict(np.zeros(3))) == bits(other.predict(np.zeros(3)))
