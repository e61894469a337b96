import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.joint_posterior import PoolPosterior
from tests.helpers.laws import examples
from tests.helpers.pool_cases import case_of, cases


@examples(60)
@given(cases())
def test_learning_one_by_one_equals_one_solve(case):
    posterior = case.taught()
    functions, covariances, norms = case.refit()
    np.testing.assert_allclose(posterior.functions, functions, atol=1e-8)
    np.testing.assert_allclose(posterior.covariances, covariances, atol=1e-8)
    np.testing.assert_allclose(posterior.square_norms, norms, rtol=1e-8)


@examples(30)
@given(cases())
def test_the_covariance_stays_symmetric_up_to_rounding(case):
    C = case.taught().covariances
    # Kernels of BLAS round the product and the difference at once, or both of them: at most half a
    # unit in the last place of the prior for each, on either side of the diagonal.
    rounding = np.finfo(float).eps * case.K.max()
    np.testing.assert_allclose(C, C.T, rtol=0.0, atol=2.0 * rounding * len(case.told))


@examples(30)
@given(cases(n_classes=st.just(4)))
def test_a_function_that_comes_late_was_minus_one_before_and_changes_no_bit_of_the_others(case):
    late = PoolPosterior(case.K.copy(), case.noise_variance)
    late.add_function()
    n = len(case.told) // 2
    codes = case.codes.copy()
    codes[:n, 2:] = -1.0
    for k, i in enumerate(case.told):
        if k == n:
            late.add_function()
            late.add_function()
        late.learn(i, codes[k, : len(late.functions)])
    expected, _, norms = type(case)(case.K, case.told, codes, case.noise_variance).refit()
    np.testing.assert_allclose(late.functions, expected, atol=1e-8)
    np.testing.assert_allclose(late.square_norms, norms, rtol=1e-8)
    alone = type(case)(case.K, case.told, codes[:, :2], case.noise_variance).taught()
    assert late.functions[:2].tobytes() == alone.functions.tobytes()


def test_a_copy_learns_alone():
    posterior = case_of(12, 3, 2, 0.1, seed=1).taught()
    before = [posterior.functions.copy(), posterior.covariances.copy(), posterior.square_norms]
    other = posterior.copy()
    other.learn(int(np.argmax(other.variances)), np.array([1.0, -1.0]))
    other.add_function()
    after = [posterior.functions, posterior.covariances, posterior.square_norms]
    assert all((b == a).all() for b, a in zip(before, after, strict=True))
    assert len(other.functions) == 3


@pytest.mark.parametrize("noise_variance", [0.0, 1e-7, 2e-6])
def test_too_little_noise_is_refused(noise_variance):
    with pytest.raises(ValueError, match=r"must be at least 3e-06, a millionth .*; raise it"):
        PoolPosterior(3.0 * np.eye(2), noise_variance)


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match=r"non-negative and finite, got -0\.1"):
        PoolPosterior(np.eye(2), -0.1)


def test_many_labels_with_least_noise_leave_no_negative_variance():
    x = np.linspace(0.0, 1.0, 60)
    K = np.exp(-0.5 * np.square(x[:, None] - x))
    posterior = PoolPosterior(K, 1e-6)
    for i in range(60):
        posterior.learn(i, np.array([1.0 if i < 30 else -1.0]))
    assert (posterior.variances > 0.0).all()
    assert (posterior.variances <= 2.1e-6).all()
