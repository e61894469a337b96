"""What is believed of several points at once."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgp.features import Columns
from streamgp.gp.bounded import UnboundedGP
from streamgp.gp.exact import ExactGP
from streamgp.gp.joint_posterior import PoolPosterior
from streamgp.gp.sparse import SparseGP, WindowGP
from streamgp.kernels import Categorical, Linear, On, SquaredExponential
from tests.helpers.gp_cases import Dense, bits, problem, taught
from tests.helpers.laws import examples

KERNEL = SquaredExponential()


def covariances(dense, probes):
    """Posterior covariances by one dense solve."""
    K = dense.k(probes, dense.X)
    return dense.k(probes, probes) - K @ np.linalg.solve(dense.G, K.T)


def learned(gp, X, Y):
    for x, y in zip(X, Y, strict=True):
        gp.append(x, y.copy())
    return gp


@examples(60)
@given(st.integers(0, 40), st.integers(1, 3), st.integers(1, 9), st.integers(0, 1000))
def test_it_equals_a_dense_solve(n, m, b, seed):
    X, Y = problem(n, 3, m, seed)
    probes = problem(b, 3, seed=seed + 1)[0]
    gp = ExactGP(KERNEL, 0.1)
    for _ in range(m):
        gp.add_target()
    means, C = learned(gp, X, Y).joint(probes)
    dense = Dense(X.reshape(n, 3), Y.reshape(n, m), noise_variance=0.1)
    np.testing.assert_allclose(C, covariances(dense, probes), atol=1e-9)
    expected = dense.k(probes, dense.X) @ np.linalg.solve(dense.G, dense.Y)
    np.testing.assert_allclose(means, expected, atol=1e-9)


@given(st.integers(1, 30), st.integers(1, 9), st.integers(0, 1000))
def test_on_the_diagonal_it_is_what_is_predicted_bitwise(n, b, seed):
    X, Y = problem(n, 3, 2, seed)
    probes = problem(b, 3, seed=seed + 1)[0]
    for gp in (
        learned(UnboundedGP(KERNEL, 0.1), X, Y),
        learned(SparseGP(KERNEL, 0.1, 8), X, Y),
        learned(WindowGP(KERNEL, 0.1, 8), X, Y),
    ):
        means, C = gp.joint(probes)
        for i, x in enumerate(probes):
            assert bits((means[i], C[i, i])) == bits(gp.predict(x))


@given(st.integers(1, 30), st.integers(2, 9), st.integers(0, 1000))
def test_an_exact_covariance_is_symmetric_bitwise(n, b, seed):
    _, C = taught(*problem(n, seed=seed), noise_variance=0.1).joint(problem(b, seed=seed + 1)[0])
    assert (C == C.T).all()


@examples(40)
@given(
    st.integers(1, 40), st.integers(2, 12), st.sampled_from([1e-3, 0.1, 1.0]), st.integers(0, 99)
)
def test_of_a_few_points_it_is_what_would_be_left_of_the_variance_after_a_label(
    n, max_points, noise_variance, seed
):
    """`variance(v | u) = c(v, v) - c(u, v)² / (c(u, u) + noise)`, where nothing is lost."""
    assume(n != max_points)  # else the label is the first one for which a point is dropped, maybe u
    X, Y = problem(n, 2, 1, seed)
    gp = learned(SparseGP(KERNEL, noise_variance, max_points), X, Y)
    # At a point of the basis a label is learned without loss; any other point may be looked at.
    u = gp.points[seed % len(gp.points)]
    v = problem(1, 2, seed=seed + 1)[0][0]
    means, C = gp.joint(np.array([u, v]))
    np.testing.assert_allclose(C, C.T, atol=1e-9)
    gap = 1.0 - means[0]
    gp.append(u, np.ones(1))
    mean, variance = gp.predict(v)
    share = C[1, 0] / (C[0, 0] + noise_variance)
    assert variance == pytest.approx(C[1, 1] - share * C[0, 1], abs=1e-9)
    np.testing.assert_allclose(mean, means[1] + share * gap, atol=1e-8)


def test_it_follows_a_new_label_a_removal_and_the_end_of_a_window():
    X, Y = problem(30)
    probes = problem(5, seed=1)[0]
    gp = learned(UnboundedGP(KERNEL, 0.1), X, Y)
    gp.relabel(7, -Y[7])
    gp.remove(3)
    Y[7] = -Y[7]
    dense = Dense(np.delete(X, 3, axis=0), np.delete(Y, 3, axis=0), noise_variance=0.1)
    means, C = gp.joint(probes)
    np.testing.assert_allclose(C, covariances(dense, probes), atol=1e-9)
    np.testing.assert_allclose(means, [dense.predict(x)[0] for x in probes], atol=1e-9)
    window = learned(WindowGP(KERNEL, 0.1, 8), X, Y)
    dense = Dense(X[window.retained], Y[window.retained], noise_variance=0.1)
    np.testing.assert_allclose(window.joint(probes)[1], covariances(dense, probes), atol=1e-9)


def test_it_is_exact_where_all_that_was_learned_is_at_the_basis():
    corners = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    X, Y = 1.2 * corners, problem(16, m=2)[1]
    exact, sparse = ExactGP(KERNEL, 0.1), SparseGP(KERNEL, 0.1, 16)
    for gp in (exact, sparse):
        learned(gp, np.tile(X, (3, 1)), np.tile(Y, (3, 1)))
    assert (sparse.n, len(sparse.retained)) == (48, 16)
    probes = problem(6, 2, seed=1)[0]
    for mine, others in zip(sparse.joint(probes), exact.joint(probes), strict=True):
        np.testing.assert_allclose(mine, others, atol=1e-8)


@pytest.mark.parametrize("kernel", [Linear() + Categorical(), On(["0"], KERNEL) * Linear()])
def test_before_the_first_example_it_is_the_prior(kernel):
    kernel = kernel.bound(Columns(["0", "1"]))
    probes = problem(4, 2)[0]
    rows = np.array([kernel.embed(x) for x in probes])
    for gp in (UnboundedGP(kernel, 0.1), SparseGP(kernel, 0.1, 3)):
        means, C = gp.joint(probes)
        assert means.shape == (4, 0)
        np.testing.assert_allclose(C, kernel.matrix(rows), atol=1e-12)


def test_it_measures_from_where_the_points_are():
    X, Y = problem(30)
    probes = problem(5, seed=1)[0]
    far = taught(X + 1e6, Y, noise_variance=0.1)
    dense = Dense(X, Y, noise_variance=0.1)
    # An offset of 1e6 leaves 10 digits behind the point.
    np.testing.assert_allclose(far.joint(probes + 1e6)[1], covariances(dense, probes), atol=1e-6)


def test_looking_at_many_changes_no_bit_of_what_follows():
    X, Y = problem(40)
    for make in (lambda: UnboundedGP(KERNEL, 0.1), lambda: SparseGP(KERNEL, 0.1, 10)):
        one, other = learned(make(), X[:30], Y[:30]), learned(make(), X[:30], Y[:30])
        for x, y in zip(X[30:], Y[30:], strict=True):
            one.joint(X)
            one.append(x, y)
            other.append(x, y)
        assert bits(one.predict(np.zeros(3))) == bits(other.predict(np.zeros(3)))


def test_of_all_points_at_once_it_is_the_posterior_of_a_pool():
    X, _ = problem(15, 2)
    codes = np.where(X[:6, :1] > 0.0, 1.0, -1.0)
    pool = PoolPosterior(KERNEL.matrix(np.array([KERNEL.embed(x) for x in X])), 0.5)
    for i, code in enumerate(codes):
        pool.learn(i, code)
    means, C = learned(ExactGP(KERNEL, 0.5), X[:6], codes).joint(X)
    np.testing.assert_allclose(means.T, pool.functions, atol=1e-9)
    np.testing.assert_allclose(C, pool.covariances, atol=1e-9)
