import numpy as np
import pytest

from streamgp.gp.latent_noise.batch_ep import UnconvergedError
from streamgp.gp.latent_noise.model import (
    LabelledPoints,
    LabelModel,
    covariances,
    explain,
    log_evidence,
)
from streamgp.kernels import Matern52, RationalQuadratic, SquaredExponential


def drawn(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X, S = rng.uniform(-2.0, 2.0, (n, 2)), rng.normal(size=(n, 2))
    y = np.where(np.sin(1.5 * X[:, 0]) + rng.normal(size=n) * np.exp(S[:, 0]) > 0, 1.0, -1.0)
    return X, y, S


def model(kernel=None, privileged_kernel=None, noise_mean=-0.5):
    return LabelModel(
        kernel=kernel or SquaredExponential(1.2, 1.5),
        privileged_kernel=privileged_kernel or SquaredExponential(1.5, 2.0),
        noise_mean=noise_mean,
    )


def points(n=30, seed=0):
    X, y, S = drawn(n, seed)
    return LabelledPoints.of(X, y, S)


def differences(these, data, step=1e-4):
    vector, found = these.vector, []
    for i in range(len(vector)):
        off = step * (np.arange(len(vector)) == i)
        up = log_evidence(these.moved_to(vector + off), data, tolerance=1e-9).value
        down = log_evidence(these.moved_to(vector - off), data, tolerance=1e-9).value
        found.append((up - down) / (2.0 * step))
    return np.array(found)


@pytest.mark.parametrize(
    "these",
    [
        model(),
        model(noise_mean=-4.0),
        model(Matern52(0.7), RationalQuadratic(1.0, 3.0)),
        model(SquaredExponential(2.0) + Matern52(0.5), SquaredExponential(9.0, 0.1)),
    ],
    ids=["usual", "little noise", "other kernels", "a sum of kernels"],
)
def test_the_gradient_is_the_limit_of_differences(these):
    found = log_evidence(these, points(), tolerance=1e-9)
    assert found.gradient == pytest.approx(differences(these, points()), abs=1e-6, rel=1e-5)


def test_the_gradient_of_several_tasks_and_of_missing_features_is_so_too():
    X, y, S = drawn()
    known = np.arange(len(y)) % 3 > 0
    data = LabelledPoints(X=X, X_privileged=S * known[:, None], known=known, Y=np.array([y, -y]))
    found = log_evidence(model(), data, tolerance=1e-9)
    assert found.gradient == pytest.approx(differences(model(), data), abs=1e-6, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_amplitude_of_the_function_and_the_mean_of_the_noise_are_one_number(seed):
    """d log Z / d log theta_f = -d log Z / d m0."""
    found = log_evidence(model(), points(seed=seed), tolerance=1e-9).gradient
    assert found[1] == pytest.approx(-found[-1], abs=1e-6)


def test_without_privileged_features_the_noise_is_one_number():
    X, y, _ = drawn()
    these = LabelModel(kernel=SquaredExponential(), privileged_kernel=None, noise_mean=0.3)
    data = LabelledPoints.of(X, y)
    found = log_evidence(these, data, tolerance=1e-9)
    assert len(found.gradient) == 3
    assert found.gradient == pytest.approx(differences(these, data), abs=1e-6, rel=1e-5)
    assert found.fixed[0].g.means == pytest.approx(0.3)


def test_noise_without_features_is_independent_of_all_others():
    X, y, S = drawn(6)
    known = np.array([True, True, False, True, False, True])
    data = LabelledPoints(X=X, X_privileged=S * known[:, None], known=known, Y=y[None])
    _, K_g = covariances(model(), data)
    assert np.diagonal(K_g) == pytest.approx(2.0)
    assert not K_g[2, [0, 1, 3, 4, 5]].any()
    assert K_g[0, 1] > 0.0


def test_tasks_add_up():
    X, y, S = drawn()
    z = np.where(X[:, 1] > 0, 1.0, -1.0)
    both = log_evidence(model(), LabelledPoints.of(X, np.array([y, z]), S))
    each = [log_evidence(model(), LabelledPoints.of(X, one, S)) for one in (y, z)]
    assert both.value == pytest.approx(each[0].value + each[1].value)
    assert both.gradient == pytest.approx(each[0].gradient + each[1].gradient)


def test_a_model_is_its_vector():
    these = model()
    assert these.vector == pytest.approx([np.log(1.2), np.log(1.5), np.log(1.5), np.log(2.0), -0.5])
    moved = these.moved_to(these.vector + 1.0)
    assert moved.vector == pytest.approx(these.vector + 1.0)
    plain = LabelModel(kernel=SquaredExponential(2.0), privileged_kernel=None, noise_mean=1.0)
    assert plain.moved_to(plain.vector) == plain


def test_a_start_that_leads_nowhere_is_left():
    data = points()
    once = explain(model(), data)
    bad = tuple(
        type(one)(**{**{k: getattr(one, k) for k in one.__slots__}, "tau": one.tau - 9.0})
        for one in once
    )
    again = explain(model(), data, start=bad)
    assert again[0].f.means == pytest.approx(once[0].f.means)


def test_what_has_no_fixed_point_has_no_evidence(monkeypatch):
    monkeypatch.setattr("streamgp.gp.latent_noise.batch_ep._MOST_SWEEPS", 2)
    with pytest.raises(UnconvergedError):
        log_evidence(model(), points())
