import numpy as np
import pytest

from streamgp.gp.latent_noise import model
from streamgp.gp.latent_noise.batch_ep import UnconvergedError
from streamgp.gp.latent_noise.model import (
    PRESETS,
    LabelledPoints,
    LabelModel,
    fit_labels,
    log_evidence,
)
from streamgp.kernels import Matern52, RationalQuadratic, SquaredExponential


def drawn(n=60, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X, S = rng.uniform(-2.0, 2.0, (n, 2)), rng.normal(size=(n, 2))
    f = 2.0 * np.sin(1.5 * X[:, 0])
    y = np.where(f + noise * rng.normal(size=n) * np.exp(1.5 * S[:, 0]) > 0, 1.0, -1.0)
    return LabelledPoints.of(X, y, S)


NOISE_KERNEL = SquaredExponential(1.3)


def prior(preset="default", privileged_kernel=NOISE_KERNEL):
    return LabelModel(
        kernel=SquaredExponential(1.3),
        privileged_kernel=privileged_kernel,
        noise_mean=PRESETS[preset].noise_mean,
    )


def test_what_is_found_explains_labels_better():
    data = drawn()
    before = log_evidence(prior(), data).value
    found, fixed = fit_labels(prior(), prior(), data)
    assert log_evidence(found, data).value == pytest.approx(fixed[0].log_evidence, abs=1e-4)
    assert fixed[0].log_evidence > before + 0.5


def test_the_amplitude_of_the_function_is_held():
    found, _ = fit_labels(prior(), prior(), drawn())
    assert found.kernel.variance == 1.0
    assert found.kernel.length_scale != 1.3
    assert found.privileged_kernel.variance != 1.0


def test_the_amplitude_is_told_from_what_is_declared_behind_it():
    kernel = RationalQuadratic({"a": 1.0, "b": 2.0}, 1.0, 3.0)
    assert model._lengths(kernel).tolist() == [True, True, False, True]
    assert model._lengths(kernel + Matern52()).all()


def test_the_paper_learns_length_scales_alone():
    found, _ = fit_labels(prior("paper"), prior("paper"), drawn(), preset="paper")
    assert found.noise_mean == 0.0
    assert (found.kernel.variance, found.privileged_kernel.variance) == (1.0, 1.0)
    assert found.kernel.length_scale != 1.3
    assert found.privileged_kernel.length_scale != 1.3


@pytest.mark.parametrize("preset", PRESETS)
def test_without_privileged_features_the_noise_is_learned(preset):
    data = drawn(noise=0.0)
    start = prior(preset, None)
    found, _ = fit_labels(start, start, data, preset=preset)
    assert found.noise_mean < start.noise_mean - 1.0


def test_the_same_labels_give_the_same_bits():
    one, other = (fit_labels(prior(), prior(), drawn())[0] for _ in range(2))
    assert np.array_equal(one.vector, other.vector)


def test_evaluations_are_bounded(monkeypatch):
    calls = []

    def counted(*arguments, **options):
        calls.append(arguments)
        return log_evidence(*arguments, **options)

    monkeypatch.setattr(model, "log_evidence", counted)
    fit_labels(prior(), prior(), drawn(), n_evaluations=4)
    assert len(calls) <= 4 + 25  # the line search that is under way ends, of at most 20 points


def test_a_model_that_explains_nothing_is_not_taken(monkeypatch):
    data, tried = drawn(), []

    def seldom(model, *arguments, **options):
        if tried and len(tried) % 2:
            tried.append(model)
            raise UnconvergedError("no")
        tried.append(model)
        return log_evidence(model, *arguments, **options)

    monkeypatch.setattr(model, "log_evidence", seldom)
    found, fixed = fit_labels(prior(), prior(), data)
    assert log_evidence(found, data).value == pytest.approx(fixed[0].log_evidence, abs=1e-4)
    assert len(tried) > 2


def test_a_start_that_explains_nothing_is_an_error(monkeypatch):
    monkeypatch.setattr("streamgp.gp.latent_noise.batch_ep._MOST_SWEEPS", 2)
    with pytest.raises(UnconvergedError):
        fit_labels(prior(), prior(), drawn())


def test_unknown_presets_are_refused():
    with pytest.raises(ValueError, match="preset must be 'default' or 'paper', got 'x'"):
        fit_labels(prior(), prior(), drawn(), preset="x")


def misled(n=100, seed=0, flip=0.2):
    """Labels of which some are wrong, and their privileged feature: the label given, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.sign(np.sin(2.0 * X[:, 0]) + X[:, 1]) * np.where(rng.random(n) < flip, -1.0, 1.0)
    return LabelledPoints.of(X, y, (y + 0.5 * rng.normal(size=n))[:, None])


def followed(fixed, data):
    """Share of the labels of each class that the decision function has, the smaller one."""
    (y,) = data.Y
    return min(float((np.sign(fixed[0].f.means[y == one]) == one).mean()) for one in (-1.0, 1.0))


@pytest.mark.parametrize("seed", range(2))
def test_labels_of_one_class_are_not_taken_for_noise_together(seed):
    data = misled(seed=seed)
    found, fixed = fit_labels(prior(), prior(), data)
    assert followed(fixed, data) > 0.6
    gpc = prior(privileged_kernel=None)
    alone, fixed_alone = fit_labels(gpc, gpc, data)
    assert found.kernel == alone.kernel
    assert fixed[0].f.means == pytest.approx(fixed_alone[0].f.means, abs=0.01)


def test_privileged_features_that_repeat_right_labels_are_learned_from():
    data = misled(flip=0.0)
    found, fixed = fit_labels(prior(), prior(), data)
    assert followed(fixed, data) > 0.9
    assert found.privileged_kernel.variance > 0.1


@pytest.mark.parametrize(
    ("preset", "kernel"),
    [("paper", NOISE_KERNEL), ("default", NOISE_KERNEL + Matern52(1.0, 0.1))],
    ids=["the paper", "no known amplitude"],
)
def test_without_an_amplitude_to_lower_a_fit_stays(preset, kernel):
    data, start = misled(), prior(preset, kernel)
    found, fixed = fit_labels(start, start, data, preset=preset)
    assert found.privileged_kernel.matrix(np.zeros((1, 1)))[0, 0] > 0.1
    assert fixed[0].log_evidence == pytest.approx(log_evidence(found, data).value, abs=1e-4)
