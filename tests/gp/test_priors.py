import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.marginal_likelihood import another_prior_steps, at_once


def under_another_prior(*arguments):
    return at_once(another_prior_steps(*arguments))


def correlation(X, length_scale):
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * length_scale**2))


def posterior(K, H, Y, noise_variance):
    """Of functions with prior covariance K, of which `H f` was observed to be Y, (n, m)."""
    G = H @ K @ H.T + noise_variance * np.eye(len(H))
    KH = K @ H.T
    return (KH @ np.linalg.solve(G, Y)).T, K - KH @ np.linalg.solve(G, KH.T)


@given(
    st.integers(1, 8),
    st.integers(0, 20),
    st.integers(0, 100),
    st.floats(0.3, 3.0),
    st.floats(1e-2, 10.0),
    st.floats(0.1, 10.0),
)
def test_it_is_what_the_observations_would_have_led_to(n, k, seed, length_scale, noise, gain):
    rng = np.random.default_rng(seed)
    X = 1.5 * np.arange(n)[:, None] + 0.1 * rng.normal(size=(n, 1))
    H, Y = rng.normal(size=(k, n)), rng.normal(size=(k, 2))
    K, prior = correlation(X, 1.0), 2.0 * correlation(X, length_scale)
    means, S = under_another_prior(K, *posterior(K, H, Y, noise), prior, gain)
    expected_means, expected_S = posterior(prior, H, Y, noise / gain)
    np.testing.assert_allclose(means, expected_means, atol=1e-6)
    np.testing.assert_allclose(S, expected_S, atol=1e-6)


def test_the_same_prior_changes_nothing():
    rng = np.random.default_rng(0)
    K = correlation(1.2 * np.arange(6.0)[:, None], 1.0)
    means, S = posterior(K, rng.normal(size=(9, 6)), rng.normal(size=(9, 2)), 0.5)
    again = under_another_prior(K, means, S, K)
    np.testing.assert_allclose(again[0], means, atol=1e-12)
    np.testing.assert_allclose(again[1], S, atol=1e-12)


def test_a_prior_may_be_singular():
    """Two functions values that are the same from now on share what was observed of either."""
    means, S = under_another_prior(np.eye(2), np.array([[0.5, 0.0]]), np.diag([0.5, 1.0]),
                                   np.ones((2, 2)))  # fmt: skip
    np.testing.assert_allclose(means, [[0.5, 0.5]])
    np.testing.assert_allclose(S, np.full((2, 2), 0.5))


@pytest.mark.parametrize("variance", [0.0, 1e-12])
def test_what_is_known_for_certain_does_not_tell_what_was_observed(variance):
    one = np.array([[1.0]])
    assert under_another_prior(one, one, variance * one, one) is None


def test_a_prior_that_knew_two_functions_to_be_the_same_does_not_tell_either():
    ones = np.ones((2, 2))
    assert under_another_prior(ones, np.zeros((1, 2)), 0.5 * ones, np.eye(2)) is None


def test_a_prior_that_rounding_has_made_none_does_not_tell_either():
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert under_another_prior(np.eye(2), np.zeros((1, 2)), 0.01 * np.eye(2), indefinite) is None


def test_one_more_function_changes_no_bit():
    rng = np.random.default_rng(0)
    K, prior = (correlation(np.arange(5.0)[:, None], scale) for scale in (1.0, 0.7))
    means, S = posterior(K, rng.normal(size=(9, 5)), rng.normal(size=(9, 3)), 0.5)
    one, _ = under_another_prior(K, means[:1], S, prior)
    three, _ = under_another_prior(K, means, S, prior)
    assert one[0].tolist() == three[0].tolist()
