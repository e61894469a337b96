import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from streamgp.gp.linear_experts import LogisticExperts, _mode

AMPLITUDES = np.array([1.0, 4.0])
P = 6


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, len(AMPLITUDES), P)) / np.sqrt(P), rng.integers(0, 3, n).tolist()


def taught(Phi, labels, n_classes=3, **options):
    experts = LogisticExperts(AMPLITUDES, P, **options)
    for _ in range(n_classes):
        experts.add_target()
    for features, label in zip(Phi, labels, strict=True):
        while label >= experts.n_targets:
            experts.add_target()
        experts.learn(experts.see(features), np.eye(experts.n_targets)[label])
    return experts


@given(st.floats(-40, 40), st.floats(0, 1e4), st.booleans())
@example(4.66176, 12.0, False)
@example(-2.713502088317914, 837.4203406566138, True)
def test_the_mode_solves_its_equation(mean, variance, told):
    found = _mode(np.array([[mean]]), np.array([[variance]]), np.array([[float(told)]]))[0, 0]

    def excess(f):
        return f - mean - variance * (told - expit(f))

    expected = brentq(excess, mean - variance - 1.0, mean + variance + 1.0, xtol=1e-12)
    assert found == pytest.approx(expected, abs=1e-5 * (1.0 + variance / 1e3))


def test_the_first_label_is_laplaces_method():
    """n = 1: mode and curvature of the posterior of a single weight, found by brute force."""
    Phi, _ = drawn(1)
    experts = taught(Phi, [0])
    for m, amplitude in enumerate(AMPLITUDES):
        phi = Phi[0, m]
        for i, told in enumerate((1.0, 0.0, 0.0, 0.0)):
            a = brentq(lambda a: a - told + expit(amplitude * phi @ phi * a), -2, 2)  # noqa: B023
            assert experts.theta[i, m] == pytest.approx(amplitude * phi * a, abs=1e-9)
            yes = expit(experts.theta[i, m] @ phi)
            precision = np.eye(P) / amplitude + yes * (1 - yes) * np.outer(phi, phi)
            root = experts._covariances[i].roots[m]
            assert root @ root.T == pytest.approx(np.linalg.inv(precision), abs=1e-9)


def test_a_late_class_is_what_it_were_had_it_been_known_from_the_beginning():
    Phi, labels = drawn(40)
    labels = [min(label, 1) for label in labels[:20]] + labels[20:]
    late, early = taught(Phi, labels, n_classes=0), taught(Phi, labels)
    assert np.array_equal(late.theta, early.theta)
    for one, other in zip(late._covariances, early._covariances, strict=True):
        assert np.array_equal(one.roots, other.roots)


def test_another_class_changes_no_bit_of_the_others():
    Phi, labels = drawn(40)
    few, many = taught(Phi, labels), taught(Phi, labels, n_classes=5)
    assert np.array_equal(few.theta[:3], many.theta[:3])
    assert np.array_equal(few.see(Phi[0]).variances[:3], many.see(Phi[0]).variances[:3])


def test_many_labels_are_learned():
    rng = np.random.default_rng(0)
    experts = LogisticExperts(np.array([25.0]), 3)
    experts.add_target()
    experts.add_target()
    right = 0
    for i in range(600):
        phi = rng.normal(size=(1, 3))
        label = int(phi[0, 0] > 0.0)
        seen = experts.see(phi)
        p = experts.probabilities(seen)[:2, 0]
        right += i >= 100 and int(p.argmax()) == label
        experts.learn(seen, np.eye(2)[label])
    assert right > 480


def test_probabilities_are_near_the_mean_of_the_sigmoid():
    """MacKay's approximation is good to about .02."""
    Phi, labels = drawn(30)
    experts = taught(Phi, labels)
    seen = experts.see(Phi[0])
    draws = np.random.default_rng(0).normal(size=100_000)
    for i, m in ((0, 0), (1, 1), (3, 0)):
        mean, std = seen.means[i, m], np.sqrt(seen.variances[i, m])
        expected = expit(mean + std * draws).mean()
        assert experts.probabilities(seen)[i, m] == pytest.approx(expected, abs=0.02)


def test_an_expert_counts_what_it_said_of_labels_before_it_learned_them():
    Phi, labels = drawn(20)
    experts, expected = taught(Phi[:0], []), np.zeros(2)
    for features, label in zip(Phi, labels, strict=True):
        seen = experts.see(features)
        p = experts.probabilities(seen)[:-1]
        expected += np.log(p[label] / p.sum(axis=0))
        experts.learn(seen, np.eye(3)[label])
    assert experts.log_likelihoods == pytest.approx(expected)


def test_forgetting_falls_back_to_the_prior():
    Phi, labels = drawn(3)
    experts = taught(Phi, labels, forgetting=0.9)
    for _ in range(300):
        experts.learn(experts.see(np.zeros((2, P))), np.eye(3)[0])
    assert experts.theta == pytest.approx(np.zeros(experts.theta.shape), abs=1e-5)
    variances = experts.see(Phi[0]).variances
    prior = AMPLITUDES * np.vecdot(Phi[0], Phi[0])
    assert variances == pytest.approx(np.tile(prior, (4, 1)), rel=1e-6)
