import copy
import json
import math
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import evaluate, metrics

from streamgp import EnsembleGPRegressor
from streamgp.common.normal import GaussianMixture, LightTailedMixture
from streamgp.gp.random_features import RandomFeatures
from streamgp.kernels import Matern52, RationalQuadratic, SquaredExponential
from tests.helpers.laws import examples

KERNELS = [SquaredExponential(0.5), Matern52(1.0), RationalQuadratic(2.0)]
OPTIONS = {
    "default": {"seed": 1},
    "kernels": {"kernels": KERNELS, "seed": 1},
    "paper": {"preset": "paper", "seed": 1},
    "forgetting": {"forgetting": 0.95, "seed": 1},
    "no refit": {"refit": False, "seed": 1},
    "no seed": {},
}


def waves(n, seed=0, offset=20.0, scale=5.0):
    rng = random.Random(seed)
    for i in range(n):
        a, b = rng.uniform(-3.0, 3.0), rng.gauss(0.0, 1.0)
        x = {"a": a, "b": b}
        if i % 5 == 3:
            x["place"] = rng.choice(["hall", "den"])
        yield x, offset + scale * (math.sin(2.0 * a) + 0.1 * rng.gauss(0.0, 1.0))


def taught(pairs, model=None, **options):
    model = EnsembleGPRegressor(**{"n_features": 20} | options) if model is None else model
    for x, y in pairs:
        model.learn_one(x, y)
    return model


def predictions(model, n=8):
    return [model.predict_one(x, with_dist=True) for x, _ in waves(n, seed=9)]


@examples(30)
@given(st.integers(2, 40), st.floats(-1e3, 1e3), st.floats(1e-2, 1e3))
def test_each_expert_is_ridge_regression_of_standardised_targets(n, offset, scale):
    pairs = [(dict(list(x.items())[:2]), y) for x, y in waves(n, offset=offset, scale=scale)]
    model = taught(pairs, kernels=KERNELS, refit=False, noise_variance=0.3, seed=1)
    features = RandomFeatures(KERNELS, 20, seed=1)
    features.widen(model._core._features.columns)
    Phi = np.array([features(np.array([x["a"], x["b"]])) for x, _ in pairs])
    y = np.array([y for _, y in pairs])
    s = y.std()
    z = (y - y.mean()) / s
    evidences = []
    for m in range(3):
        K = Phi[:, m] @ Phi[:, m].T + 0.3 * np.eye(n)
        evidences.append(
            -0.5 * (z @ np.linalg.solve(K, z) + np.linalg.slogdet(K)[1])
            - 0.5 * n * math.log(2 * math.pi)
        )
    for x, _ in waves(4, seed=9):
        phi = features(np.array([x["a"], x["b"]]))
        found = model.predict_one({"a": x["a"], "b": x["b"]}, with_dist=True)
        for m, part in enumerate(found.components):
            A = Phi[:, m].T @ Phi[:, m] / 0.3 + np.eye(40)
            mean = phi[m] @ np.linalg.solve(A, Phi[:, m].T @ z / 0.3)
            assert part.mu == pytest.approx(y.mean() + s * mean, abs=1e-7 * (1 + s))
            sigma = s * math.sqrt(phi[m] @ np.linalg.solve(A, phi[m]) + 0.3)
            assert part.sigma == pytest.approx(sigma, rel=1e-8)
    weights = np.exp(np.array(evidences) - max(evidences))
    assert model.weights == pytest.approx((weights / weights.sum()).tolist(), abs=1e-7)
    expected = max(evidences) + math.log(weights.mean()) - n * math.log(s)
    assert model.log_evidence() == pytest.approx(expected, rel=1e-7, abs=1e-6)


def test_weights_are_probabilities_after_thousands_of_labels():
    """In linear space all but one would have become 0, and all in the end."""
    model = taught(waves(1500), seed=1, refit=False)
    assert sum(model.weights) == pytest.approx(1.0)
    assert max(model.weights) > 0.9
    assert np.all(np.isfinite(model._core.experts.log_evidences(model._standardised)))


def test_targets_whose_spread_has_no_finite_inverse_count_as_equal():
    model = EnsembleGPRegressor(seed=1)
    for i in range(12):
        model.learn_one({"x": float(i)}, 1e-158 * (i % 2))
    assert sum(model.weights) == pytest.approx(1.0)
    assert model.predict_one({"x": 0.5}) == pytest.approx(0.0, abs=1e-157)


def test_targets_are_learned_whose_forecasts_have_a_variance_that_is_no_float():
    rng = np.random.default_rng(2)
    model, sigmas = EnsembleGPRegressor(n_features=4, seed=1), []
    for a, y in rng.normal(size=(80, 2)).tolist():
        sigmas.append(model.predict_one({"a": a}, with_dist=True).sigma)
        model.learn_one({"a": a}, 1e-150 * y)
    assert 0.0 in sigmas
    assert all(map(math.isfinite, sigmas))


def test_before_anything_is_learned_it_is_the_prior():
    found = EnsembleGPRegressor(noise_variance=3.0).predict_one({"a": 1.0}, with_dist=True)
    assert (found.mu, found.sigma) == (0.0, pytest.approx(2.0))
    assert found.weights == pytest.approx([1 / 7] * 7)
    assert EnsembleGPRegressor().log_evidence() == 0.0


def test_one_example_is_the_mean_everywhere():
    model = taught([({"a": 0.0}, 7.0)], seed=1)
    assert [model.predict_one({"a": a}) for a in (0.0, 99.0)] == pytest.approx([7.0, 7.0])


def test_constant_targets_are_predicted():
    model = taught((({"a": i / 10.0}, 4.0) for i in range(50)), seed=1)
    found = model.predict_one({"a": 2.0}, with_dist=True)
    assert found.mu == pytest.approx(4.0)
    assert 0.0 < found.sigma < 1.5


def test_targets_far_from_zero_lose_no_digits():
    near, far = (taught(waves(60, offset=offset), seed=1) for offset in (0.0, 1e9))
    for p, q in zip(predictions(near), predictions(far), strict=True):
        assert q.mu - 1e9 == pytest.approx(p.mu, abs=1e-4)
        assert q.sigma == pytest.approx(p.sigma, rel=1e-4)


def test_a_refit_finds_how_little_noise_there_is():
    fitted, given_ = (
        taught(waves(400), n_features=50, seed=1, refit=refit) for refit in (True, False)
    )
    errors = [
        sum(abs(m.predict_one(x) - y) for x, y in waves(200, seed=5)) / 200
        for m in (fitted, given_)
    ]
    assert errors[0] < 0.95 * errors[1]
    assert errors[0] < 0.6  # .4 of it is noise
    with_most = int(np.argmax(fitted._weights))
    assert fitted._core.experts.noise_variances[with_most] < 0.08


def test_fits_come_whenever_the_number_of_labels_has_doubled():
    model, changed = EnsembleGPRegressor(n_features=5, seed=1), []
    noise = model._core.experts.noise_variances
    for i, (x, y) in enumerate(waves(100)):
        model.learn_one(x, y)
        if not np.array_equal(noise, model._core.experts.noise_variances):
            changed.append(i + 1)
            noise = model._core.experts.noise_variances
    assert changed == [10, 20, 40, 80]


def far_away(n, seed):
    """Inputs with heavy tails, of which some lie far from all others."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(20) / math.sqrt(20.0)
    for x in rng.standard_t(2, (n, 20)):
        yield dict(enumerate(x.tolist())), math.tanh(x @ w)


@pytest.mark.parametrize("seed", [0, 1])
def test_far_from_all_examples_predictions_stay_near_targets_and_intervals_hold(seed):
    events = list(far_away(900, seed))
    model = EnsembleGPRegressor(seed=seed)
    taught(events[:600], model)
    seen = [y for _, y in events[:600]]
    beyond, inside = np.std(seen) + 1e-9, []  # the learner's is a running sum
    for x, y in events[600:]:
        forecast = model.predict_one(x, with_dist=True)
        assert min(seen) - beyond <= min(forecast.mus) <= max(forecast.mus) <= max(seen) + beyond
        assert model.predict_one(x) == pytest.approx(forecast.mu)
        inside.append(0.025 < forecast.cdf(y) < 0.975)
    assert 0.9 <= np.mean(inside) <= 0.98


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_intervals_of_bounded_targets_are_narrowed_but_in_the_setting_of_the_paper(preset):
    rng = np.random.default_rng(2)
    events = [({"a": float(a)}, float(rng.choice([-1.0, 1.0]))) for a in rng.normal(size=600)]
    model = taught(events[:300], preset=preset, seed=1)
    inside = []
    for x, y in events[300:]:
        forecast = model.predict_one(x, with_dist=True)
        assert isinstance(forecast, LightTailedMixture) == (preset == "default")
        assert forecast.mu == pytest.approx(model.predict_one(x))
        inside.append(forecast.cdf(y - 0.2) <= 0.975 and forecast.cdf(y + 0.2) >= 0.025)
        model.learn_one(x, y)
    assert np.mean(inside) >= 0.9


def test_where_noise_is_normal_predictions_are_normal():
    model = taught(waves(600), seed=1)
    assert {type(p) for p in predictions(model)} == {GaussianMixture}


def test_experts_that_count_nothing_for_long_are_dropped_and_predictions_stay():
    names = "a", "b"
    pairs = [({name: x[name] for name in names}, y) for x, y in waves(500)]
    model, whole, faded = (
        taught(pairs, seed=1, **options)
        for options in ({}, {"drop_experts": False}, {"forgetting": 0.999})
    )
    assert 2 <= len(model._core.kept) < 7 == len(whole._core.kept) == len(faded._core.kept)
    assert model.n_experts == len(model.weights) == 7
    assert model.weights == pytest.approx(whole.weights, abs=1e-12)
    # The place of a column that comes later is drawn for those that remain, by their own numbers.
    for m in (model, whole):
        taught([({"a": 1.0, "b": 2.0, "late": 3.0}, 21.0)] * 3, m)
    for x in ({"a": 1.0, "b": 0.5}, {"a": -1.0, "b": 0.1, "late": 2.0}):
        ours, theirs = (m.predict_one(x, with_dist=True) for m in (model, whole))
        assert (ours.mu, ours.sigma) == pytest.approx((theirs.mu, theirs.sigma), rel=1e-6)


def test_equal_targets_tell_nothing_about_the_experts():
    """A sensor that stands still for hundreds of events, then moves."""
    model = taught([(x, 3.0) for x, _ in waves(400)], seed=1)
    assert len(model._core.kept) == 7
    later = [x for x, _ in waves(8, seed=9)]
    assert {model.predict_one(x) for x in later} == {3.0}
    taught(waves(100), model)
    assert len({model.predict_one(x) for x in later}) == 8


def test_the_paper_fits_once_and_multiplies_weights_from_there():
    model, changed = EnsembleGPRegressor(n_features=5, preset="paper", seed=1), []
    noise = model._core.experts.noise_variances
    log_weights = None
    for i, (x, y) in enumerate(waves(60)):
        if log_weights is not None:
            experts, moments = model._core.experts, model._moments
            before = experts.log_evidences(model._standardised)
            seen, c, s = model._core.see(x), moments.mean, moments.std
            means = seen.means
            z = (y - model._origin - c) / s
            e = z - (means[:, 0] - c * means[:, 1]) / s
            v = seen.variances + experts.noise_variances
            log_weights = before - 0.5 * (e * e / v + np.log(2 * np.pi * v))
            expected = np.exp(log_weights - log_weights.max())
        model.learn_one(x, y)
        if log_weights is not None:
            # Eq. 8, but for the mean and the variance of the targets, which have moved a little.
            assert model.weights == pytest.approx((expected / expected.sum()).tolist(), abs=0.15)
        if not np.array_equal(noise, model._core.experts.noise_variances):
            changed.append(i + 1)
            noise = model._core.experts.noise_variances
            assert model.weights == pytest.approx([1 / 11] * 11)
            log_weights = np.zeros(11)
    assert changed == [10]
    scales = [kernel.length_scale for kernel in model._core._features.kernels]
    assert scales == pytest.approx([10.0**c for c in range(-4, 7)])


def test_length_scales_are_in_units_of_the_median_distance_of_the_first_examples():
    near = taught(((x, y) for x, y in waves(40)), seed=1)
    far = taught((({k: 1e3 * v if v.__class__ is float else v for k, v in x.items()}, y)
                  for x, y in waves(40)), seed=1)  # fmt: skip
    assert near._core._features.unit == pytest.approx(2.3, abs=0.7)
    assert far._core._features.unit == pytest.approx(1e3 * near._core._features.unit, rel=0.1)
    assert far.weights == pytest.approx(near.weights, abs=0.3)


def test_a_first_cluster_does_not_hide_the_rest():
    """Ten readings in a row may be nearly the same."""
    first = [({"a": 1e-4 * i, "b": 0.0}, 0.001 * i) for i in range(10)]
    model = taught([*first, *waves(300, offset=0.0)], seed=1)
    assert model._core._features.unit == pytest.approx(0.2)
    r2 = metrics.R2()
    for x, y in waves(200, seed=5, offset=0.0):
        r2.update(y, model.predict_one(x))
    assert r2.get() > 0.9


def test_forgetting_follows_a_change():
    models = [taught(waves(400), n_features=50, seed=1, forgetting=share) for share in (1.0, 0.98)]
    errors = [0.0, 0.0]
    for i, (x, y) in enumerate(waves(400, seed=2)):
        changed = 40.0 - y
        for m, model in enumerate(models):
            if i >= 250:
                errors[m] += (model.predict_one(x) - changed) ** 2 / 150 / 12.5
            model.learn_one(x, changed)
    assert errors[1] < 0.25
    assert errors[1] < 0.4 * errors[0]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("n", [0, 5, 10, 33])
def test_a_restart_changes_no_bit(name, n):
    """Taught the same examples, a fresh one with the state becomes what the other is."""
    model = taught(waves(n), **OPTIONS[name])
    again = EnsembleGPRegressor(n_features=20, **OPTIONS[name])
    again.load_state(json.loads(json.dumps(model.state())))
    taught(waves(n), again)
    assert predictions(again) == predictions(model)
    rest = list(waves(40, seed=3))
    assert predictions(taught(rest, again)) == predictions(taught(rest, model))
    assert again.state() == model.state()


def test_only_a_seed_that_was_drawn_is_state():
    assert EnsembleGPRegressor(seed=1).state() is None
    one, other = EnsembleGPRegressor(), EnsembleGPRegressor()
    assert one.state() != other.state()


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("n", [0, 4, 30])
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"]
)
def test_a_copy_goes_its_own_way_from_the_same_bits(name, copied, n):
    model = taught(waves(n), **OPTIONS[name])
    twin, before = copied(model), predictions(model)
    rest = list(waves(20, seed=3))
    taught(rest, twin)
    assert predictions(model) == before
    assert predictions(taught(rest, model)) == predictions(twin)


def test_predicting_changes_nothing():
    model, twin = (EnsembleGPRegressor(seed=1) for _ in range(2))
    for x, y in waves(50):
        model.predict_one(x)
        predictions(model, 2)
        model.learn_one(x, y)
        twin.learn_one(x, y)
    before = pickle.dumps(model)
    assert predictions(model) == predictions(twin)
    assert pickle.dumps(model) == before


def test_time_and_order_of_features_do_not_matter():
    pairs = list(waves(60))
    model, twin = taught(pairs, seed=1), EnsembleGPRegressor(n_features=20, seed=1)
    twin.learn_one({"place": "hall", "b": 0.0, "a": 0.0, "later": 0.0}, 20.0)
    model.learn_one({"place": "hall"}, 20.0)
    other = EnsembleGPRegressor(n_features=20, seed=1, kernels=KERNELS)
    mixed = EnsembleGPRegressor(n_features=20, seed=1, kernels=KERNELS)
    for i, (x, y) in enumerate(pairs):
        other.learn_one(x, y)
        # Columns in another order, since others come first.
        mixed.learn_one({"zero": 0.0, **dict(reversed(x.items()))} if i == 0 else x, y)
    for p, q in zip(predictions(other), predictions(mixed), strict=True):
        assert p.mu == pytest.approx(q.mu, abs=1e-8)


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ({"a": 1.0}, None, TypeError, "y must be a number, got None; do not learn events without"),
        ({"a": 1.0}, math.inf, ValueError, "must be finite and at most 1e[+]150 in size, got inf"),
        (
            {"a": 1.0},
            1e160,
            ValueError,
            "must be finite and at most 1e[+]150 in size, got 1e[+]160",
        ),
        ({"a": math.inf}, 1.0, ValueError, "feature 'a' must be finite, got inf"),
        ({"new": math.inf}, 1.0, ValueError, "feature 'new' must be finite, got inf"),
        ({"a": b"loud"}, 1.0, TypeError, "feature 'a' must be a number or a string, got b'loud'"),
    ],
)
@pytest.mark.parametrize("n", [0, 5, 30])
def test_an_example_that_is_refused_leaves_no_trace(x, y, error, message, n):
    model = taught(waves(n), seed=1)
    before = pickle.dumps(model)
    with pytest.raises(error, match=message):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "fast"}, "preset must be 'default' or 'paper', got 'fast'"),
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"forgetting": 0.0}, "forgetting must be above 0 and at most 1, got 0.0"),
        ({"forgetting": 1.1}, "forgetting must be above 0 and at most 1, got 1.1"),
        ({"noise_variance": 0.0}, "noise_variance must be positive and finite, got"),
        ({"n_initial": 1}, "n_initial must be a whole number of at least 2, got 1"),
        ({"kernels": []}, "kernels must name at least one kernel, got none"),
    ],
)
def test_arguments_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        EnsembleGPRegressor(**options)


@pytest.mark.parametrize("name", OPTIONS)
def test_memory_is_flat(name):
    model = taught(waves(128), **OPTIONS[name])
    size = len(pickle.dumps(model))
    taught(waves(320, seed=1), model)
    assert len(pickle.dumps(model)) <= 1.02 * size + 2 * 64 * 7 * 40 * 8


def test_river_evaluates_it():
    scored = evaluate.progressive_val_score(
        list(waves(200)), EnsembleGPRegressor(seed=1), metrics.R2()
    )
    assert scored.get() > 0.6
