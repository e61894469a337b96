import itertools

import numpy as np
import pytest

from streamgp.gp.latent_noise.batch_ep import UnconvergedError, believe, factor, propagate
from streamgp.kernels import SquaredExponential


def covariance(X, length_scale=1.0, variance=1.0):
    kernel = SquaredExponential(length_scale, variance)
    return kernel.matrix(np.array([kernel.embed(x) for x in X]))


def problem(n, seed=0, theta_g=1.0):
    rng = np.random.default_rng(seed)
    X, S = rng.uniform(-2.0, 2.0, (n, 2)), rng.normal(size=(n, 2))
    y = np.where(np.sin(1.5 * X[:, 0]) + rng.normal(size=n) * np.exp(0.5 * S[:, 0]) > 0, 1.0, -1.0)
    return covariance(X), theta_g * covariance(S), y


def solved(K_f, K_g, m0, y, **options):
    return propagate(factor(K_f), factor(K_g), m0, y, **options)


def orthant(C):
    """Probability that normal variables with two or three dimensions are all positive."""
    s = np.sqrt(np.diagonal(C))
    angles = [
        np.arcsin(C[i, j] / (s[i] * s[j])) for i, j in itertools.combinations(range(len(C)), 2)
    ]
    return {2: 0.25 + sum(angles) / (2 * np.pi), 3: 0.125 + sum(angles) / (4 * np.pi)}[len(C)]


def evidence_by_quadrature(K_f, K_g, m0, y, n_nodes=24):
    """Over g by brute force; over f and the noise in closed form."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / weights.sum()
    L = np.linalg.cholesky(K_g)
    total = 0.0
    for index in itertools.product(range(n_nodes), repeat=len(y)):
        g = m0 + L @ nodes[list(index)]
        C = np.outer(y, y) * (K_f + np.diag(np.exp(g)))
        total += weights[list(index)].prod() * orthant(C)
    return np.log(total)


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("theta_g", "m0"), [(0.5, -1.0), (2.0, 0.0), (4.0, -2.0)])
def test_the_evidence_is_that_of_brute_force(n, theta_g, m0):
    for seed in range(3):
        K_f, K_g, y = problem(n, seed, theta_g)
        found = solved(K_f, K_g, m0, y)
        expected = evidence_by_quadrature(K_f, K_g, m0, y)
        # 1 %: factors of f and g are taken for independent
        assert found.log_evidence == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("n", [2, 3])
def test_posterior_means_are_those_of_brute_force(n):
    """A million draws of everything from the prior; those with the labels given count."""
    rng = np.random.default_rng(1)
    K_f, K_g, y = problem(n, 3, theta_g=2.0)
    f = rng.normal(size=(1_000_000, n)) @ np.linalg.cholesky(K_f).T
    g = -1.0 + rng.normal(size=f.shape) @ np.linalg.cholesky(K_g).T
    noisy = f + rng.normal(size=f.shape) * np.exp(0.5 * g)
    seen = (np.sign(noisy) == y).all(axis=1)
    found = solved(K_f, K_g, -1.0, y)
    for belief, draws in ((found.f, f[seen]), (found.g, g[seen])):
        # .03: of that the draws leave .005, the rest is the method's
        assert belief.means == pytest.approx(draws.mean(axis=0), abs=0.03)
        assert belief.variances == pytest.approx(draws.var(axis=0), rel=0.05)


def test_one_label_is_exact():
    found = propagate(np.ones((1, 1)), np.ones((1, 1)), -1.0, np.array([1.0]), tolerance=1e-10)
    assert found.log_evidence == pytest.approx(np.log(0.5))


@pytest.mark.parametrize("m0", [-2.0, 0.0])
def test_a_vanishing_amplitude_of_the_noise_is_the_probit_classifier(m0):
    K_f, K_g, y = problem(40)
    plain = solved(K_f, 0.0 * K_g, m0, y, tolerance=1e-9)
    nearly = solved(K_f, 1e-8 * K_g, m0, y, tolerance=1e-9)
    assert nearly.log_evidence == pytest.approx(plain.log_evidence, abs=1e-5)
    assert nearly.f.means == pytest.approx(plain.f.means, abs=1e-5)
    assert nearly.f.variances == pytest.approx(plain.f.variances, abs=1e-5)
    assert nearly.g.means == pytest.approx(m0, abs=1e-5)


def test_the_probit_classifier_is_that_of_the_textbook():
    """GPML Alg. 3.5, one site after the other, with a noise variance of 1."""
    from scipy.stats import norm

    K, _, y = problem(25)
    n = len(y)
    tau, nu = np.zeros(n), np.zeros(n)
    for _ in range(200):
        for i in range(n):
            S = np.linalg.inv(np.linalg.inv(K + 1e-10 * np.eye(n)) + np.diag(tau))
            mu = S @ nu
            v = 1.0 / (1.0 / S[i, i] - tau[i])
            m = v * (mu[i] / S[i, i] - nu[i])
            z = y[i] * m / np.sqrt(1.0 + v)
            hazard = np.exp(norm.logpdf(z) - norm.logcdf(z))
            mean = m + y[i] * v * hazard / np.sqrt(1.0 + v)
            variance = v - v * v * hazard / (1.0 + v) * (z + hazard)
            tau[i], nu[i] = 1.0 / variance - 1.0 / v, mean / variance - m / v
        if np.abs(mu - S @ nu).max() < 1e-9:
            break
    found = solved(K, 0.0 * K, 0.0, y, tolerance=1e-9)
    assert found.f.means == pytest.approx(mu, abs=1e-4)
    assert found.f.variances == pytest.approx(np.diagonal(S), abs=1e-4)


def test_where_it_begins_does_not_matter():
    K_f, K_g, y = problem(60)
    once = solved(K_f, K_g, -1.0, y)
    again = solved(K_f, K_g, -1.0, y, start=(once.tau, once.nu))
    assert again.n_sweeps < 5 < once.n_sweeps
    assert again.log_evidence == pytest.approx(once.log_evidence, abs=1e-5)
    other = solved(K_f, 2.0 * K_g, -1.5, y)
    back = solved(K_f, K_g, -1.0, y, start=(other.tau, other.nu))
    assert back.f.means == pytest.approx(once.f.means, abs=1e-4)


def test_negative_precisions_are_kept():
    K_f, K_g, y = problem(80, theta_g=4.0)
    found = solved(K_f, K_g, -1.0, y)
    assert 0.05 < (found.tau[1] < 0.0).mean() < 0.5
    S = np.linalg.solve(np.eye(80) + K_g @ np.diag(found.tau[1]), K_g)  # (I + K T)^-1 K
    assert found.g.variances == pytest.approx(np.diagonal(S), abs=1e-6)


def test_labels_turned_round_turn_the_function_round():
    K_f, K_g, y = problem(30)
    one, other = solved(K_f, K_g, -1.0, y), solved(K_f, K_g, -1.0, -y)
    assert np.array_equal(one.f.means, -other.f.means)
    assert np.array_equal(one.g.means, other.g.means)
    assert one.log_evidence == pytest.approx(other.log_evidence)


def test_repeated_points_are_no_obstacle():
    K_f, K_g, y = problem(20)
    twice = np.r_[np.arange(20), np.arange(20)]
    found = solved(K_f[np.ix_(twice, twice)], K_g[np.ix_(twice, twice)], -1.0, np.r_[y, y])
    assert found.f.half.shape == (20, 40)
    assert found.f.means[:20] == pytest.approx(found.f.means[20:])


def test_labels_that_privileged_features_call_noisy_count_less():
    K_f, K_g, y = problem(200, seed=2, theta_g=4.0)
    found = solved(K_f, K_g, -1.0, y)
    truth = problem_noise(200, seed=2)
    assert np.corrcoef(found.g.means, truth)[0, 1] > 0.5


def problem_noise(n, seed):
    rng = np.random.default_rng(seed)
    rng.uniform(-2.0, 2.0, (n, 2))
    return rng.normal(size=(n, 2))[:, 0]


def test_a_factor_gives_the_matrix_back():
    for n in (1, 30, 200):
        K = covariance(np.random.default_rng(0).normal(size=(n, 2)))
        L = factor(K)
        assert np.abs(L @ L.T - K).max() < 1e-9
    assert L.shape[1] < 150
    assert factor(np.zeros((3, 3))).shape == (3, 0)


def test_a_posterior_is_that_of_the_definition():
    K, _, _ = problem(12)
    rng = np.random.default_rng(0)
    tau, nu = rng.uniform(-0.05, 2.0, 12), rng.normal(size=12)
    S = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
    found = believe(factor(K), 0.7, tau, nu)
    assert found.variances == pytest.approx(np.diagonal(S), abs=1e-6)
    assert found.half.T @ found.half == pytest.approx(S, abs=1e-6)
    assert found.means == pytest.approx(S @ (nu + np.linalg.solve(K, np.full(12, 0.7))), abs=1e-6)


def test_factors_to_begin_with_that_leave_no_posterior_are_refused():
    K_f, K_g, y = problem(5)
    start = np.full((2, 5), -9.0), np.zeros((2, 5))
    with pytest.raises(UnconvergedError, match="leave no posterior; begin without any"):
        solved(K_f, K_g, 0.0, y, start=start)


def test_a_search_that_does_not_end_is_reported(monkeypatch):
    monkeypatch.setattr("streamgp.gp.latent_noise.batch_ep._MOST_SWEEPS", 3)
    with pytest.raises(UnconvergedError, match="means and variances still change by 0"):
        solved(*problem(20)[:2], 0.0, problem(20)[2])


def test_a_probability_above_one_is_no_evidence(monkeypatch):
    K_f, K_g, y = problem(5)
    real = believe

    def boasting(*arguments):
        from dataclasses import replace

        return replace(real(*arguments), log_norm=9.0)

    monkeypatch.setattr("streamgp.gp.latent_noise.batch_ep.believe", boasting)
    with pytest.raises(UnconvergedError, match="labels cannot have a log probability of"):
        solved(K_f, K_g, 0.0, y)


def test_a_step_that_leaves_no_posterior_is_halved_and_in_the_end_given_up(monkeypatch):
    K_f, K_g, y = problem(5)
    real, calls = believe, []

    def failing(*arguments):
        calls.append(arguments)
        return real(*arguments) if len(calls) <= 2 else None

    monkeypatch.setattr("streamgp.gp.latent_noise.batch_ep.believe", failing)
    with pytest.raises(UnconvergedError, match="no step leaves a posterior in sweep 1"):
        solved(K_f, K_g, 0.0, y)
    steps = [np.abs(arguments[2]).max() for arguments in calls[2:]]
    assert all(b == pytest.approx(a / 2.0) for a, b in itertools.pairwise(steps))
