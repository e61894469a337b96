import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.latent_noise.batch_ep import believe, factor
from streamgp.gp.latent_noise.online_ep import SiteProcess
from streamgp.kernels import SquaredExponential


def covariance(n, seed=0):
    kernel = SquaredExponential(1.0, 1.5)
    X = np.random.default_rng(seed).uniform(-2.0, 2.0, (n, 2))
    return kernel.matrix(np.array([kernel.embed(x) for x in X]))


def taught(K, prior_mean=0.0, most=None, seed=1):
    """A process whose factors change as often as there are examples."""
    rng = np.random.default_rng(seed)
    process = SiteProcess(prior_mean, most)
    for i in range(len(K)):
        process.append(K[i, :i].copy(), K[i, i])
        process.update(i, rng.uniform(-0.05, 3.0), rng.normal())
        process.update(rng.integers(i + 1), rng.uniform(-0.02, 0.5), rng.normal())
    return process


def directly(K, prior_mean, tau, nu):
    S = np.linalg.solve(np.eye(len(K)) + K * tau, K)  # (I + K T)^-1 K
    return S, prior_mean + S @ (nu - tau * prior_mean)


@pytest.mark.parametrize("prior_mean", [0.0, -1.5])
def test_changing_factors_one_by_one_is_the_posterior_of_all(prior_mean):
    K = covariance(60)
    process = taught(K, prior_mean)
    S, means = directly(K, prior_mean, process.tau, process.nu)
    assert process.variances == pytest.approx(np.diagonal(S), abs=1e-9)
    assert process.means == pytest.approx(means, abs=1e-8)


@pytest.mark.parametrize("prior_mean", [0.0, -1.5])
def test_predictions_are_those_of_the_joint_posterior(prior_mean):
    """A point to be predicted is an example whose factor says nothing."""
    K = covariance(31)
    process = taught(K[:30, :30], prior_mean)
    S, means = directly(K, prior_mean, np.r_[process.tau, 0.0], np.r_[process.nu, 0.0])
    mean, variance = process.predict(K[30, :30], K[30, 30])
    assert mean == pytest.approx(means[30], abs=1e-9)
    assert variance == pytest.approx(S[30, 30], abs=1e-9)


@given(st.integers(1, 20), st.floats(-0.2, 4.0), st.floats(-3.0, 3.0), st.data())
def test_a_factor_that_is_taken_back_leaves_no_trace(n, tau, nu, data):
    K = covariance(n)
    process = taught(K)
    means, variances = process.means.copy(), process.variances.copy()
    i = data.draw(st.integers(0, n - 1))
    if process.update(i, tau, nu):
        process.update(i, -tau, -nu)
    assert process.means == pytest.approx(means, abs=1e-8)
    assert process.variances == pytest.approx(variances, abs=1e-8)


@pytest.mark.parametrize("i", [0, 7, 19])
def test_an_example_that_is_dropped_was_never_there(i):
    K = covariance(20)
    process = taught(K)
    process.divide_out(i)
    process.drop(i)
    rest = [j for j in range(20) if j != i]
    S, means = directly(K[np.ix_(rest, rest)], 0.0, process.tau, process.nu)
    assert process.n == 19
    assert process.means == pytest.approx(means, abs=1e-8)
    assert process.variances == pytest.approx(np.diagonal(S), abs=1e-8)


def test_an_example_can_take_the_place_of_another():
    K = covariance(13)
    process = taught(K[:12, :12])
    process.divide_out(4)
    process.append(K[12, :12].copy(), K[12, 12], slot=4)
    process.update(4, 2.0, 1.0)
    order = [0, 1, 2, 3, 12, *range(5, 12)]
    S, means = directly(K[np.ix_(order, order)], 0.0, process.tau, process.nu)
    assert process.n == 12
    assert process.means == pytest.approx(means, abs=1e-8)
    assert process.variances == pytest.approx(np.diagonal(S), abs=1e-8)


@pytest.mark.parametrize("most", [None, 20, 60])
def test_room_is_made_as_it_is_needed(most):
    K = covariance(60)
    with_room = taught(K, most=most)
    assert with_room.means == pytest.approx(taught(K).means, abs=1e-9)
    if most is not None:
        assert with_room._S.size >= 60
    assert taught(K, most=60)._S.size == 60


def test_a_change_that_leaves_no_posterior_is_refused():
    process = taught(covariance(10))
    means = process.means.copy()
    limit = 1.0 / process.variances[3]
    assert not process.update(3, -1.01 * limit, 0.0)
    assert np.array_equal(process.means, means)
    assert process.update(3, -0.99 * limit, 0.0)


def test_a_factor_that_holds_others_together_cannot_be_divided_out():
    process = SiteProcess(0.0)
    process.append(np.empty(0), 1.0)
    process.append(np.array([0.999]), 1.0)
    process.update(0, 5.0, 0.0)
    assert process.update(1, -2.0, 0.0)  # only beside the first one
    assert not process.is_divisible(0)
    assert process.is_divisible(1)


def test_turned_round_it_is_the_other_side():
    process = taught(covariance(20))
    other = process.mirrored()
    assert np.array_equal(other.means, -process.means)
    assert np.array_equal(other.nu, -process.nu)
    assert np.array_equal(other.variances, process.variances)
    other.update(0, 1.0, 1.0)
    assert not np.array_equal(other.means, -process.means)
    copied = process.copy()
    assert np.array_equal(copied.means, process.means)
    copied.update(0, 1.0, 1.0)
    assert not np.array_equal(copied.means, process.means)


def test_a_belief_can_be_gone_on_from():
    K = covariance(25)
    reference = taught(K[:24, :24], -1.0)
    found = believe(factor(K[:24, :24]), -1.0, reference.tau, reference.nu)
    process = SiteProcess.of(found, -1.0, reference.tau, reference.nu)
    for one in (process, reference):
        one.append(K[24, :24].copy(), K[24, 24])
        one.update(24, 1.0, 2.0)
    assert process.means == pytest.approx(reference.means, abs=1e-7)
    assert process.variances == pytest.approx(reference.variances, abs=1e-7)


def test_rounding_errors_do_not_grow():
    """Twenty thousand changes of factors of 40 examples, all of which come and go."""
    rng = np.random.default_rng(0)
    K = covariance(400)
    process, order = taught(K[:40, :40]), list(range(40))
    for _ in range(10_000):
        slot, new = rng.integers(40), rng.integers(400)
        process.divide_out(slot)
        order[slot] = new
        process.append(K[new, order], K[new, new], slot=slot)
        process.update(slot, rng.uniform(0.01, 5.0), rng.normal())
    S, means = directly(K[np.ix_(order, order)], 0.0, process.tau, process.nu)
    assert process.variances == pytest.approx(np.diagonal(S), abs=1e-8)
    assert process.means == pytest.approx(means, abs=1e-7)
