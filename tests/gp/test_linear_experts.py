import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgp.gp.expert_evidence import MIN_NOISE_SHARE, Statistics
from streamgp.gp.linear_experts import Experts, SquareRoots

M, P, T = 3, 8, 2
AMPLITUDES = np.array([0.5, 1.0, 4.0])
NOISES = np.array([0.3, 0.01, 1e-4])


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, M, P)) / math.sqrt(P)
    Y = np.column_stack([Phi[:, 1] @ rng.normal(size=P) + 0.1 * rng.normal(size=n), np.ones(n)])
    return Phi, Y


def taught(Phi, Y, forgetting=1.0, amplitudes=AMPLITUDES, noises=NOISES):
    experts = Experts(amplitudes.copy(), noises.copy(), P, forgetting)
    statistics = Statistics(M, P, forgetting)
    for owner in (experts, statistics) * Y.shape[1]:
        owner.add_target()
    for features, y in zip(Phi, Y, strict=True):
        experts.learn(experts.see(features), y)
        statistics.note(features, y)
    return experts, statistics


def ridge(Phi, Y, amplitude, noise):
    """Posterior mean (t, p) and covariance (p, p) of one expert, in one solve."""
    A = Phi.T @ Phi / noise + np.eye(P) / amplitude
    return np.linalg.solve(A, Phi.T @ Y / noise).T, np.linalg.inv(A)


def covariance(experts, m):
    """Columns of the covariance of the weights of an expert."""
    known = experts.covariances
    columns = [
        known.gain(known.look(np.tile(unit, (len(experts.amplitudes), 1)))[0])[m]
        for unit in np.eye(experts.theta.shape[2])
    ]
    return np.array(columns).T


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(0, 99))
def test_the_recursion_is_batch_ridge_regression(n, seed):
    Phi, Y = drawn(n, seed)
    experts, _ = taught(Phi, Y)
    for m in range(M):
        theta, Sigma = ridge(Phi[:, m], Y, AMPLITUDES[m], NOISES[m])
        assert experts.theta[m] == pytest.approx(theta, abs=1e-8)
        assert covariance(experts, m) == pytest.approx(Sigma, abs=1e-8)


def test_the_recursion_is_batch_ridge_regression_after_20_000_steps_with_tiny_noise():
    Phi, Y = drawn(20_000)
    experts, _ = taught(Phi, Y)
    for m in range(M):
        theta, Sigma = ridge(Phi[:, m], Y, AMPLITUDES[m], NOISES[m])
        assert experts.theta[m] == pytest.approx(theta, abs=1e-8)
        assert np.linalg.eigvalsh(covariance(experts, m)).min() > 0.0
        assert covariance(experts, m) == pytest.approx(Sigma, rel=1e-6, abs=1e-14)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 99))
def test_log_predictives_one_after_the_other_add_up_to_the_log_marginal_likelihood(n, seed):
    Phi, Y = drawn(n, seed)
    experts, _ = taught(Phi, Y)
    direction = np.array([[0.7], [-0.2]])
    z = (Y @ direction)[:, 0]
    for m, found in enumerate(experts.log_evidences(direction)):
        K = AMPLITUDES[m] * Phi[:, m] @ Phi[:, m].T + NOISES[m] * np.eye(n)
        expected = -0.5 * (
            z @ np.linalg.solve(K, z) + np.linalg.slogdet(K)[1] + n * math.log(2 * math.pi)
        )
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_predictions_are_of_the_posterior():
    Phi, Y = drawn(20)
    experts, _ = taught(Phi[:-1], Y[:-1])
    seen = experts.see(Phi[-1])
    for m in range(M):
        theta, Sigma = ridge(Phi[:-1, m], Y[:-1], AMPLITUDES[m], NOISES[m])
        assert seen.means[m] == pytest.approx(theta @ Phi[-1, m])
        assert seen.variances[m] == pytest.approx(Phi[-1, m] @ Sigma @ Phi[-1, m])


def test_another_target_changes_no_bit_of_the_others():
    Phi, Y = drawn(30)
    one, _ = taught(Phi, Y[:, :1])
    two, _ = taught(Phi, Y)
    seen = one.see(Phi[0])
    assert np.array_equal(seen.means[:, 0], two.see(Phi[0]).means[:, 0])
    assert np.array_equal(one.covariances.roots, two.covariances.roots)


def test_a_late_target_was_0_so_far():
    Phi, Y = drawn(30)
    late, statistics = taught(Phi[:10], Y[:10, :1])
    for owner in (late, statistics):
        owner.add_target()
    Y[:10, 1] = 0.0
    for features, y in zip(Phi[10:], Y[10:], strict=True):
        late.learn(late.see(features), y)
        statistics.note(features, y)
    whole, its_statistics = taught(Phi, Y)
    assert np.array_equal(late.theta, whole.theta)
    assert late.quadratic_forms == pytest.approx(whole.quadratic_forms)
    statistics.fit(late, np.eye(T))
    its_statistics.fit(whole, np.eye(T))
    assert late.theta == pytest.approx(whole.theta)


# --- forgetting


def test_forgetting_is_the_recursion_of_the_covariance():
    """theta <- sqrt(l) theta, Sigma <- l Sigma + (1 - l) s² I, after each update."""
    share, (Phi, Y) = 0.9, drawn(25)
    experts, _ = taught(Phi, Y, share)
    for m in range(M):
        theta, Sigma = np.zeros((T, P)), AMPLITUDES[m] * np.eye(P)
        for phi, y in zip(Phi[:, m], Y, strict=True):
            gain = Sigma @ phi / (phi @ Sigma @ phi + NOISES[m])
            theta = theta + np.outer(y - theta @ phi, gain)
            Sigma = Sigma - np.outer(gain, Sigma @ phi)
            theta = math.sqrt(share) * theta
            Sigma = share * Sigma + (1.0 - share) * AMPLITUDES[m] * np.eye(P)
        assert experts.theta[m] == pytest.approx(theta, abs=1e-9)
        assert covariance(experts, m) == pytest.approx(Sigma, abs=1e-9)


def test_forgetting_for_long_loses_no_digits():
    """Over 20 000 steps what was learned is multiplied by numbers below 1e-100, and kept apart."""
    share, (Phi, Y) = 0.97, drawn(20_000)
    late, _ = taught(Phi, Y, share)
    fresh, _ = taught(Phi[-2500:], Y[-2500:], share)  # .97^2500 = 8e-34
    assert late.theta == pytest.approx(fresh.theta, abs=1e-9)
    for m in range(M):
        assert covariance(late, m) == pytest.approx(covariance(fresh, m), abs=1e-11)
        assert np.linalg.eigvalsh(covariance(late, m)).min() > 0.03 * AMPLITUDES[m] * 0.999


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
def test_a_fit_and_a_copy_are_for_forgetting_experts_too(forgetting):
    Phi, Y = drawn(80)
    experts, statistics = taught(Phi, Y, forgetting)
    statistics.fit(experts, np.eye(T)[:, :1])
    shares = forgetting ** np.arange(79, -1, -1)
    for m in range(M):
        ratio = experts.noise_variances[m] / experts.amplitudes[m]
        A = (Phi[:, m] * shares[:, None]).T @ Phi[:, m] + ratio * np.eye(P)
        expected = experts.noise_variances[m] * np.linalg.inv(A)
        assert covariance(experts, m) == pytest.approx(expected, abs=1e-10)
    twin = copy.deepcopy(experts)
    for each in (experts, twin):
        each.learn(each.see(Phi[0]), Y[0])
    assert np.array_equal(covariance(experts, 0), covariance(twin, 0))


def test_what_is_no_longer_observed_falls_back_to_the_prior():
    Phi, Y = drawn(3000)
    Phi[50:, :, 0] = 0.0  # from here on nothing is heard of the first feature
    experts, _ = taught(Phi, Y, 0.99)
    for m in range(M):
        assert covariance(experts, m)[0, 0] == pytest.approx(AMPLITUDES[m], rel=1e-6)
        assert abs(experts.theta[m][:, 0]).max() < 1e-5
        assert np.linalg.eigvalsh(covariance(experts, m)).max() <= AMPLITUDES[m] * (1 + 1e-9)


def test_evidence_is_forgotten_as_well():
    Phi, Y = drawn(400)
    experts, statistics = taught(Phi, Y, 0.9)
    assert experts.n == pytest.approx(10.0) == statistics.n
    assert np.all(np.isfinite(experts.log_evidences()))


@pytest.mark.parametrize("n", [0, 1, 40])
def test_no_directions_are_those_of_the_targets_bit_by_bit(n):
    experts, _ = taught(*drawn(n), forgetting=0.9)
    assert experts.log_evidences().tolist() == experts.log_evidences(np.eye(T)).tolist()


# --- amplitude and noise


def evidence(Phi, z, amplitude, noise):
    K = amplitude * Phi @ Phi.T + noise * np.eye(len(z))
    return -0.5 * (z @ np.linalg.solve(K, z) + np.linalg.slogdet(K)[1])


@pytest.mark.parametrize("n", [10, 200])
def test_no_amplitude_and_noise_near_those_found_have_more_evidence(n):
    Phi, Y = drawn(n)
    direction = np.array([[1.0], [0.0]])
    experts, statistics = taught(Phi, Y)
    statistics.fit(experts, direction)
    for m in range(M):
        found = experts.amplitudes[m], experts.noise_variances[m]
        best = evidence(Phi[:, m], Y[:, 0], *found)
        least = MIN_NOISE_SHARE * (Y[:, 0] ** 2).mean()
        for factors in ((1.05, 1.0), (1 / 1.05, 1.0), (1.0, 1.05), (1.0, 1 / 1.05), (3.0, 3.0)):
            amplitude, noise = (v * f for v, f in zip(found, factors, strict=True))
            if noise >= least and 1e-8 <= noise / amplitude <= 1e3:
                assert evidence(Phi[:, m], Y[:, 0], amplitude, noise) <= best + 1e-3


def test_amplitude_and_noise_that_made_the_targets_are_found():
    rng = np.random.default_rng(1)
    Phi = rng.normal(size=(4000, 1, 60))
    weights = 1.5 * rng.normal(size=60)
    y = Phi[:, 0] @ weights + 0.5 * rng.normal(size=4000)
    experts, statistics = Experts(np.ones(1), np.ones(1), 60), Statistics(1, 60)
    for owner in (experts, statistics):
        owner.add_target()
    for features, target in zip(Phi, y[:, None], strict=True):
        statistics.note(features, target)
    statistics.fit(experts, np.eye(1))
    assert experts.noise_variances[0] == pytest.approx(0.25, rel=0.05)
    assert experts.amplitudes[0] == pytest.approx(np.mean(weights**2), rel=0.1)


def test_what_a_fit_leaves_is_what_learning_with_its_findings_makes():
    Phi, Y = drawn(100)
    experts, statistics = taught(Phi, Y)
    direction = np.array([[1.0], [-0.1]])
    statistics.fit(experts, direction)
    again, _ = taught(Phi, Y, amplitudes=experts.amplitudes, noises=experts.noise_variances)
    assert experts.theta == pytest.approx(again.theta, abs=1e-7)
    assert experts.log_evidences(direction) == pytest.approx(again.log_evidences(direction))
    for m in range(M):
        assert covariance(experts, m) == pytest.approx(covariance(again, m), abs=1e-9)
    seen, other = experts.see(Phi[0]), again.see(Phi[0])
    experts.learn(seen, Y[0])
    again.learn(other, Y[0])
    assert experts.theta == pytest.approx(again.theta, abs=1e-7)


def test_statistics_are_sums_of_shares_whenever_they_are_added():
    Phi, Y = drawn(150)
    _, statistics = taught(Phi, Y, 0.97)
    statistics._fold()
    shares = 0.97 ** np.arange(149, -1, -1)
    for m in range(M):
        weighted = Phi[:, m] * shares[:, None]
        assert statistics._A[m] == pytest.approx(weighted.T @ Phi[:, m])
        assert statistics._B[m] == pytest.approx(weighted.T @ Y)
    assert statistics._yy == pytest.approx((Y * shares[:, None]).T @ Y)
    assert statistics.n == pytest.approx(shares.sum())


def test_noise_is_never_less_than_its_floor():
    Phi, _ = drawn(4)
    y = Phi[:, 1] @ np.ones((P, 1))
    experts, statistics = taught(Phi, y)
    statistics.fit(experts, np.eye(1))
    assert np.all(experts.noise_variances >= MIN_NOISE_SHARE * (y**2).mean() * (1 - 1e-12))


def test_targets_that_are_all_0_leave_everything_as_it_is():
    Phi, Y = drawn(20)
    experts, statistics = taught(Phi, 0.0 * Y)
    statistics.fit(experts, np.eye(T))
    assert np.array_equal(experts.noise_variances, NOISES)


# --- copies, time


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_a_copy_goes_its_own_way_from_the_same_bits(copied):
    Phi, Y = drawn(60)
    experts, _ = taught(Phi[:30], Y[:30])
    twin = copied(experts)
    before = pickle.dumps(experts)
    for features, y in zip(Phi[30:], Y[30:], strict=True):
        twin.learn(twin.see(features), y)
    assert pickle.dumps(experts) == before
    for features, y in zip(Phi[30:], Y[30:], strict=True):
        experts.learn(experts.see(features), y)
    assert np.array_equal(experts.theta, twin.theta)
    assert np.array_equal(experts.quadratic_forms, twin.quadratic_forms)
    assert np.array_equal(experts.covariances.roots, twin.covariances.roots)


def test_a_precision_of_0_is_no_observation():
    weights = SquareRoots(AMPLITUDES, P)
    before = weights.roots.copy()
    image, variances = weights.look(drawn(1)[0][0])
    weights.shrink(image, weights.gain(image), variances, np.zeros(M))
    assert np.array_equal(weights.roots, before)


def test_memory_is_flat():
    Phi, Y = drawn(1100)
    experts, statistics = taught(Phi[:128], Y[:128])
    sizes = [len(pickle.dumps((experts, statistics)))]
    for features, y in zip(Phi[128:1088], Y[128:1088], strict=True):
        experts.learn(experts.see(features), y)
        statistics.note(features, y)
    assert len(pickle.dumps((experts, statistics))) == sizes[0]
