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

from streamgp import GPRegressor, NotPositiveDefiniteError
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_regressor import PrequentialSpread


def waves(n, seed=0, offset=20.0, scale=5.0):
    rng = random.Random(seed)
    for _ in range(n):
        a, b = rng.uniform(-3.0, 3.0), rng.gauss(0.0, 1.0)
        yield {"a": a, "b": b}, offset + scale * (math.sin(2.0 * a) + 0.1 * rng.gauss(0.0, 1.0))


def taught(pairs, **options):
    model = GPRegressor(**{"learn_hyperparameters": False, **options})
    for i, (x, y) in enumerate(pairs):
        model.learn_one(x, y, event_id=str(i))
    return model


def predictions(model, n=8):
    return [model.predict_one(x, with_dist=True) for x, _ in waves(n, seed=9)]


def assert_close(one, other, tolerance=1e-9):
    for p, q in zip(predictions(one), predictions(other), strict=True):
        assert (p.mu, p.sigma) == pytest.approx((q.mu, q.sigma), abs=tolerance)


def test_one_example_and_another_place():
    """n = 1: the mean is that target wherever one looks; sigma is in units of y, noise included."""
    model = taught([({"a": 0.0}, 7.0)], kernel=SquaredExponential(), noise_variance=1.0)
    here, there = (model.predict_one({"a": a}, with_dist=True) for a in (0.0, 99.0))
    assert (here.mu, there.mu) == (7.0, 7.0)
    assert (here.sigma, there.sigma) == (math.sqrt(1.5), math.sqrt(2.0))


@given(st.integers(2, 25), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.floats(0.05, 2.0))
def test_it_is_a_dense_solve_of_standardised_targets(n, offset, scale, noise_variance):
    examples = list(waves(n, offset=offset, scale=scale))
    model = taught(examples, kernel=SquaredExponential(1.3), noise_variance=noise_variance)
    X = np.array([[x["a"], x["b"]] for x, _ in examples])
    y = np.array([y for _, y in examples])
    s = y.std()

    def k(A, B):
        return np.exp(-((A[:, None] - B) ** 2).sum(axis=2) / (2 * 1.3**2))

    G = k(X, X) + noise_variance * np.eye(n)
    for x, _ in waves(4, seed=9):
        row = k(np.array([[x["a"], x["b"]]]), X)[0]
        solved = np.linalg.solve(G, np.column_stack([(y - y.mean()) / s, row]))
        found = model.predict_one(x, with_dist=True)
        assert found.mu == model.predict_one(x)
        assert found.mu == pytest.approx(y.mean() + s * (row @ solved[:, 0]), abs=1e-8 * (1 + s))
        sigma = s * math.sqrt(1.0 - row @ solved[:, 1] + noise_variance)
        assert found.sigma == pytest.approx(sigma, rel=1e-8)
    z = (y - y.mean()) / s
    evidence = -0.5 * (
        z @ np.linalg.solve(G, z) + np.linalg.slogdet(G)[1] + n * math.log(2 * math.pi * s * s)
    )
    assert model.log_evidence() == pytest.approx(evidence, rel=1e-7, abs=1e-6)


def test_scikit_learn_agrees():
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    examples = list(waves(40))
    X = np.array([list(x.values()) for x, _ in examples])
    y = np.array([y for _, y in examples])
    second = gaussian_process.GaussianProcessRegressor(
        gaussian_process.kernels.RBF(1.3), alpha=0.2, optimizer=None, normalize_y=True
    ).fit(X, y)
    model = taught(examples, kernel=SquaredExponential(1.3), noise_variance=0.2)
    for x, _ in waves(5, seed=9):
        mean, std = second.predict(np.array([list(x.values())]), return_std=True)
        found = model.predict_one(x, with_dist=True)
        assert found.mu == pytest.approx(mean[0], abs=1e-9)
        assert found.sigma**2 == pytest.approx(std[0] ** 2 + 0.2 * y.var(), abs=1e-9)


def test_far_from_everything_it_predicts_the_mean_and_the_spread_of_targets():
    examples = list(waves(50))
    model = taught(examples, noise_variance=0.2)
    ys = np.array([y for _, y in examples])
    far = model.predict_one({"a": 1e6, "b": -1e6}, with_dist=True)
    assert far.mu == pytest.approx(ys.mean(), abs=1e-9)
    assert far.sigma == pytest.approx(ys.std() * math.sqrt(1.2))


def test_targets_far_from_zero_lose_no_digits():
    near, far = (taught(waves(40, offset=offset)) for offset in (0.0, 1e9))
    for p, q in zip(predictions(near), predictions(far), strict=True):
        assert q.mu - 1e9 == pytest.approx(p.mu, abs=1e-5)
        assert q.sigma == pytest.approx(p.sigma, rel=1e-6)


@pytest.mark.parametrize("max_points", [None, 40])
def test_a_relabelled_example_is_as_if_it_had_been_learned_so(max_points):
    examples = list(waves(30))
    model = taught(examples, max_points=max_points)
    for i, y in ((0, 3.0), (17, 90.0)):
        model.relabel_one(str(i), y)
        examples[i] = examples[i][0], y
    assert_close(model, taught(examples))
    assert model.log_evidence() == pytest.approx(taught(examples).log_evidence())


@pytest.mark.parametrize("max_points", [None, 40])
def test_a_forgotten_example_leaves_no_trace_in_predictions(max_points):
    examples = list(waves(30))
    model = taught(examples, max_points=max_points)
    for i in (0, 17):
        model.forget_one(str(i))
    assert_close(model, taught([pair for i, pair in enumerate(examples) if i not in (0, 17)]))
    assert model.n_learned == 28


def test_everything_can_be_forgotten():
    model = taught(waves(2))
    model.forget_one("0")
    model.forget_one("1")
    assert model.predict_one({"a": 1.0}) == pytest.approx(0.0, abs=30.0)
    model.learn_one({"a": 1.0}, -4.0)
    assert model.predict_one({"a": 1.0}) == -4.0


def test_beyond_the_bound_it_predicts_about_as_well():
    model, exact = (
        taught(waves(400), max_points=60, noise_variance=0.05),
        taught(waves(400), noise_variance=0.05),
    )
    errors = [
        sum(abs(m.predict_one(x) - y) for x, y in waves(200, seed=5)) / 200 for m in (model, exact)
    ]
    assert not model.is_exact
    assert errors[0] < 1.3 * errors[1]
    assert model.log_evidence() == pytest.approx(exact.log_evidence(), rel=0.5)


@pytest.mark.parametrize("max_points", [None, 60])
def test_learned_hyperparameters_find_how_little_noise_there_is(max_points):
    options = {"max_points": max_points, "noise_variance": 0.5}
    model, given = (
        taught(waves(150), learn_hyperparameters=learn, **options) for learn in (True, False)
    )
    assert model.hyperparameters.noise_variance < 0.1
    errors = [sum(abs(m.predict_one(x) - y) for x, y in waves(200, seed=5)) for m in (model, given)]
    assert errors[0] < 0.6 * errors[1]
    again = GPRegressor(learn_hyperparameters=True, **options)
    again.load_state(json.loads(json.dumps(model.state())))
    for x, y in waves(150):
        again.learn_one(x, y)
    if max_points is None:
        assert predictions(again) == predictions(model)


def test_a_spread_that_is_not_as_expected_is_found_and_survives_a_restart():
    """Targets that scatter ten times less, and then more, than the process is told."""
    model, spread = GPRegressor(noise_variance=0.1), PrequentialSpread()
    for n, (x, y) in enumerate(waves(31), 1):
        if n > 10:
            forecast = model.predict_one(x, with_dist=True)
            raw = forecast.sigma**2 / spread.ratio
            spread.note(n, (y - forecast.mu) ** 2 / raw)
        model.learn_one(x, y)
    assert spread.ratio != 1.0
    assert model.state() == {"progress": {"spread": pytest.approx(spread.state())}}
    again = GPRegressor(noise_variance=0.1)
    again.load_state(json.loads(json.dumps(model.state())))
    for x, y in waves(31):
        again.learn_one(x, y)
    for x, y in waves(40, seed=3):
        assert predictions(again) == predictions(model)
        model.learn_one(x, y)
        again.learn_one(x, y)
    assert again.state() == model.state()


def test_intervals_of_learned_hyperparameters_hold_where_examples_were_given_up():
    rng = random.Random(0)
    events = []
    for _ in range(600):
        x = {name: rng.gauss(0.0, 1.0) for name in "abcd"}
        events.append((x, math.sin(3.0 * x["a"]) + x["b"] * x["c"] + 0.01 * rng.gauss(0.0, 1.0)))
    model = taught(events[:400], max_points=60, learn_hyperparameters=True)
    inside = [
        abs(y - forecast.mu) < 1.96 * forecast.sigma
        for x, y in events[400:]
        for forecast in (model.predict_one(x, with_dist=True),)
    ]
    assert 0.9 <= sum(inside) / 200 <= 0.98


@given(st.lists(st.floats(0.0, 1e6), max_size=60))
def test_a_single_surprise_counts_no_more_than_a_bounded_part(surprises):
    spread = PrequentialSpread()
    for n, surprise in enumerate(surprises, 1):
        before = spread.ratio
        spread.note(n, surprise)
        assert max(0.25, 0.9 * before) <= spread.ratio <= 3.2 * before
        after = spread.state()
        spread.note(n, 1e9)  # an example learned once more
        assert spread.state() == after


def test_an_example_that_is_refused_leaves_no_trace():
    model = taught([({"a": 1.0}, 1.0), ({"a": 3.0}, 2.0)], noise_variance=1e-16)
    for pair, error, message in (
        (({"a": 1.0, "b": 0.0}, 5.0), NotPositiveDefiniteError, "raise noise_variance"),
        (({"a": 2.0}, math.nan), ValueError, "y must be finite and at most .*, got nan"),
        (
            ({"a": 2.0}, 1e155),
            ValueError,
            r"must be finite and at most 1e\+150 in size, got 1e\+155",
        ),
        (({"a": 2.0}, 10**400), ValueError, "y must be finite and at most .*, got 1000"),
        (({"a": 2.0}, np.ones(2)), TypeError, "y must be a number, got array"),
        (({"a": 2.0}, None), TypeError, "y must be a number, got None; do not learn events"),
        (({"a": 2.0}, "high"), TypeError, "y must be a number, got 'high'"),
    ):
        before = pickle.dumps(model)
        with pytest.raises(error, match=message):
            model.learn_one(*pair, event_id="new")
        with pytest.raises((KeyError, TypeError, ValueError)):
            model.relabel_one("new", pair[1])
        assert pickle.dumps(model) == before


@pytest.mark.parametrize("method", ["relabel_one", "forget_one"])
@pytest.mark.parametrize("n", [0, 5])
def test_an_event_that_was_not_learned_is_a_key_error(method, n):
    model = taught(waves(n))
    with pytest.raises(KeyError, match="stranger"):
        getattr(model, method)("stranger", *([1.0] if method == "relabel_one" else []))


def test_predicting_changes_nothing_and_copies_go_their_own_way():
    model = taught(waves(20))
    before = pickle.dumps(model)
    predictions(model)
    assert pickle.dumps(model) == before
    twin = copy.deepcopy(model)
    for x, y in waves(5, seed=3):
        twin.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_before_anything_is_learned_it_is_the_prior():
    found = GPRegressor(noise_variance=3.0).predict_one({"a": 1.0}, with_dist=True)
    assert (found.mu, found.sigma) == (0.0, 2.0)
    assert GPRegressor().log_evidence() == 0.0


def test_river_evaluates_it():
    scored = evaluate.progressive_val_score(
        list(waves(150)), GPRegressor(noise_variance=0.05), metrics.R2()
    )
    assert scored.get() > 0.6


@pytest.mark.parametrize(("max_points", "retains"), [(None, True), (5, False)])
def test_all_examples_are_retained_unless_their_number_is_bounded(max_points, retains):
    assert GPRegressor(max_points=max_points).retains_all is retains
