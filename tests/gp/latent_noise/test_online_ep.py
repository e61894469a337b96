import numpy as np
import pytest

from streamgp.gp.latent_noise.batch_ep import factor, propagate
from streamgp.gp.latent_noise.online_ep import OnlineLabels
from streamgp.kernels import SquaredExponential

NOISE_MEAN = -1.0


def covariance(X, length_scale, variance):
    kernel = SquaredExponential(length_scale, variance)
    return kernel.matrix(np.array([kernel.embed(x) for x in X]))


def problem(n, seed=0):
    rng = np.random.default_rng(seed)
    X, S = rng.uniform(-2.0, 2.0, (n, 2)), rng.normal(size=(n, 2))
    y = np.where(np.sin(1.5 * X[:, 0]) + rng.normal(size=n) * np.exp(S[:, 0]) > 0, 1.0, -1.0)
    return covariance(X, 1.2, 1.0), covariance(S, 1.5, 2.0), y


def taught(K_f, K_g, y, n_replays=3, **options):
    labels = OnlineLabels(
        NOISE_MEAN, has_noise_process=K_g is not None, n_replays=n_replays, **options
    )
    for i in range(len(y)):
        labels.learn(at(K_f, i), None if K_g is None else at(K_g, i), y[i])
    return labels


def at(K, i):
    return K[i, :i].copy(), K[i, i]


def far_from(labels, fixed):
    """Root mean square distance of posterior means, of f and of g."""
    return [
        np.sqrt(np.mean((process.means - belief.means) ** 2))
        for process, belief in ((labels.f, fixed.f), (labels.g, fixed.g))
    ]


def test_the_first_label_is_expectation_propagation():
    K_f, K_g, y = problem(1)
    labels, fixed = taught(K_f, K_g, y), propagate(factor(K_f), factor(K_g), NOISE_MEAN, y)
    assert far_from(labels, fixed) == pytest.approx([0.0, 0.0], abs=1e-5)


def test_replays_come_near_to_expectation_propagation_of_all_labels():
    K_f, K_g, y = problem(150)
    fixed = propagate(factor(K_f), factor(K_g), NOISE_MEAN, y)
    without, few = (far_from(taught(K_f, K_g, y, n), fixed) for n in (0, 3))
    assert few[0] < 0.5 * without[0]
    assert few[1] < without[1]
    assert few[0] < 0.05


def test_with_many_replays_it_is_expectation_propagation_of_all_labels():
    K_f, K_g, y = problem(40)
    labels = taught(K_f, K_g, y, n_replays=400)
    for _ in range(60):
        labels.relabel(0, y[0])
    fixed = propagate(factor(K_f), factor(K_g), NOISE_MEAN, y, tolerance=1e-9)
    assert far_from(labels, fixed) == pytest.approx([0.0, 0.0], abs=1e-6)


def test_known_noise_is_probit_classification():
    K_f, K_g, y = problem(40)
    labels = taught(K_f, None, y, n_replays=400)
    for _ in range(60):
        labels.relabel(0, y[0])
    fixed = propagate(factor(K_f), factor(0.0 * K_g), NOISE_MEAN, y, tolerance=1e-9)
    assert labels.g is None
    assert labels.f.means == pytest.approx(fixed.f.means, abs=1e-6)


def test_no_noise_process_is_one_without_amplitude():
    K_f, K_g, y = problem(60)
    plain, vanishing = taught(K_f, None, y), taught(K_f, 1e-9 * K_g, y)
    assert vanishing.f.means == pytest.approx(plain.f.means, abs=1e-5)


def test_an_example_that_is_divided_out_and_dropped_leaves_its_factor_nowhere():
    K_f, K_g, y = problem(30)
    labels = taught(K_f, K_g, y)
    assert labels.is_divisible(11)
    tau = np.delete(labels.f.tau, 11)
    labels.divide_out(11)
    labels.drop(11)
    rest = [j for j in range(30) if j != 11]
    S = np.linalg.solve(np.eye(29) + K_f[np.ix_(rest, rest)] * tau, K_f[np.ix_(rest, rest)])
    assert labels.n == 29
    assert labels.f.variances == pytest.approx(np.diagonal(S), abs=1e-8)
    assert labels.f.means == pytest.approx(S @ labels.f.nu, abs=1e-8)


def test_a_relabelled_example_is_soon_what_it_were_had_it_been_so_from_the_beginning():
    K_f, K_g, y = problem(60)
    mistaken = y.copy()
    mistaken[20] = -y[20]
    wrong = taught(K_f, K_g, mistaken)
    before = np.abs(wrong.f.means - taught(K_f, K_g, y).f.means).max()
    wrong.relabel(20, y[20])
    after = np.abs(wrong.f.means - taught(K_f, K_g, y).f.means).max()
    assert after < 0.35 * before


def test_turned_round_it_is_what_it_were_had_it_learned_the_opposite():
    K_f, K_g, y = problem(40)
    labels = taught(K_f[:30, :30], K_g[:30, :30], y[:30]).mirrored()
    for i in range(30, 40):
        labels.learn(at(K_f, i), at(K_g, i), -y[i])
    opposite = taught(K_f, K_g, -y)
    assert np.array_equal(labels.f.means, opposite.f.means)
    assert np.array_equal(labels.g.means, opposite.g.means)


def test_what_was_found_for_all_labels_can_be_gone_on_from():
    K_f, K_g, y = problem(41)
    L_f, L_g = factor(K_f[:40, :40]), factor(K_g[:40, :40])
    fixed = propagate(L_f, L_g, NOISE_MEAN, y[:40])
    labels = OnlineLabels.of(fixed, y[:40], NOISE_MEAN, has_noise_process=True, n_replays=3)
    assert far_from(labels, fixed) == pytest.approx([0.0, 0.0])
    labels.relabel(3, y[3])  # nothing new: a fixed point stays where it is
    assert far_from(labels, fixed) == pytest.approx([0.0, 0.0], abs=1e-4)
    labels.learn(at(K_f, 40), at(K_g, 40), y[40])
    all_of_them = propagate(factor(K_f), factor(K_g), NOISE_MEAN, y)
    assert far_from(labels, all_of_them)[0] < 0.05


def test_replays_take_turns(monkeypatch):
    K_f, K_g, y = problem(7)
    labels, visited = taught(K_f[:5, :5], K_g[:5, :5], y[:5], n_replays=0), []
    labels._n_replays = 3
    monkeypatch.setattr(OnlineLabels, "_visit", lambda _, indices: visited.append(indices))
    labels.learn(at(K_f, 5), at(K_g, 5), y[5])
    labels.learn(at(K_f, 6), at(K_g, 6), y[6])
    labels.relabel(1, y[1])
    assert visited == [[5], [0, 1, 2], [6], [3, 4, 5], [1], [6, 0, 2]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_examples_are_replayed_once_each(monkeypatch, n):
    K_f, K_g, y = problem(n)
    visited = []
    monkeypatch.setattr(OnlineLabels, "_visit", lambda _, indices: visited.append(indices))
    taught(K_f, K_g, y, n_replays=9)
    assert all(len(set(indices)) == len(indices) < n for indices in visited[-1:] if n > 1)


def test_labels_that_narrow_what_is_believed_tell_most():
    K_f, K_g, y = problem(100)
    labels = taught(K_f, K_g, y)
    tells = labels.tells()
    for i in (int(tells.argmax()), int(tells.argmin())):
        v, tau = labels.f.variances[i], labels.f.tau[i]
        assert tells[i] == pytest.approx(0.5 * np.log((v / (1.0 - v * tau)) / v))
    noisy = np.exp(labels.g.means) > np.median(np.exp(labels.g.means))
    assert tells[noisy].mean() < tells[~noisy].mean()
