"""Classifiers that forget on purpose: all but the latest examples, or all at a drift."""

import copy
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, NotPositiveDefiniteError
from streamgp.learners import gp_classifier, gp_tuning
from tests.helpers.forgetful import JumpyWatch


def turning(n, at, seed=0):
    """Two classes on a line that change places at one event."""
    rng = random.Random(seed)
    for i in range(n):
        a = rng.uniform(-2.0, 2.0)
        yield {"a": a}, "pq"[(a > 0.0) != (i >= at)]


def taught(events, model):
    for i, (x, y) in enumerate(events):
        model.learn_one(x, y, event_id=str(i))
    return model


def beliefs(model):
    probes = np.linspace(-3.0, 3.0, 7).tolist()
    return [model.predict_proba_one({"a": a}, with_dist=True) for a in probes]


def n_right(model, events):
    return sum(model.predict_one(x) == y for x, y in events)


# --- a window


@given(st.integers(1, 30), st.integers(0, 60))
def test_a_window_is_the_exact_process_of_the_latest_examples(window, n):
    model = taught(turning(n, 30), GPClassifier(window=window))
    retained = list(model.leave_one_out())
    assert retained == [str(i) for i in range(n - len(retained), n)]
    assert min(n, window - window // 4) <= len(retained) == model.n_learned <= window
    assert model.is_exact == (n <= window)
    exact = GPClassifier()
    exact.know(model.labels)
    for event_id, (x, y) in enumerate(turning(n, 30)):
        if str(event_id) in retained:
            exact.learn_one(x, y)
    assert repr(beliefs(model)) == repr(beliefs(exact))


def test_examples_that_the_window_has_passed_cannot_be_called():
    model = taught(turning(60, 60), GPClassifier(window=20))
    before = repr(beliefs(model))
    for method in (lambda e: model.relabel_one(e, "new"), model.forget_one):
        with pytest.raises(KeyError, match="'3'"):
            method("3")
    assert repr(beliefs(model)) == before
    model.relabel_one("59", "q")
    model.forget_one("58")
    assert "58" not in model.leave_one_out()
    model.learn_one({"a": 0.0}, "p", event_id="3")  # its name is free again


def test_hyperparameters_are_fitted_after_the_window_is_full():
    """Examples ever learned are counted, not those in the window."""
    model = taught(turning(400, 400), GPClassifier(window=20, learn_hyperparameters=True))
    assert model.state()["due"] == 512
    assert model.hyperparameters.noise_variance < 0.5


@pytest.mark.parametrize("window", [0, -1, 2.5, math.nan])
def test_a_window_must_be_a_number_of_examples(window):
    with pytest.raises(ValueError, match="window must be a whole number of at least 1, got"):
        GPClassifier(window=window)


def test_a_window_is_a_bound_of_its_own():
    with pytest.raises(ValueError, match="window is a bound already, got max_points=5 as well"):
        GPClassifier(window=5, max_points=5)
    with pytest.raises(ValueError, match="keeps all examples, got window=5 as well"):
        GPClassifier(window=5, single_precision=True)


# --- drifts

OPTIONS = [{}, {"max_points": 30}, {"window": 200}, {"single_precision": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_after_a_drift_it_knows_what_came_since(options):
    model = taught(turning(700, 500), GPClassifier(drift=True, **options))
    assert model.n_drifts == 1
    assert 100 < model.n_learned < 200
    assert set(model.labels) == {"p", "q"}
    assert all(int(event_id) >= 500 for event_id in model.leave_one_out())
    with pytest.raises(KeyError, match="'499'"):
        model.forget_one("499")
    new = list(turning(300, 0, seed=5))
    assert n_right(model, new) > 280
    if "window" not in options:
        assert n_right(taught(turning(700, 500), GPClassifier(**options)), new) < 150


@pytest.mark.parametrize("seed", range(3))
def test_without_a_drift_it_is_the_classifier_that_does_not_watch(seed):
    events = list(turning(400, 400, seed))
    model, other = (taught(events, GPClassifier(drift=drift)) for drift in (True, False))
    assert (model.n_drifts, other.n_drifts) == (0, 0)
    assert repr(beliefs(model)) == repr(beliefs(other))


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_what_is_learned_after_a_drift_is_learned_bitwise_as_at_first(options):
    events = list(turning(700, 500))
    model = taught(events, GPClassifier(drift=True, **options))
    fresh = GPClassifier(**options)
    fresh.know(model.labels)
    for x, y in events[-model.n_learned :]:
        fresh.learn_one(x, y)
    assert repr(beliefs(model)) == repr(beliefs(fresh))


@given(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from("pqr")), max_size=40))
def test_classes_that_are_known_beforehand_change_no_drift(events):
    models = []
    for known in ("", "rqpx"):
        model = GPClassifier(drift=True)
        model._watch = JumpyWatch()
        model.know(known)
        models.append(taught([({"a": float(a)}, y) for a, y in events], model))
    one, other = models
    assert one.n_drifts == other.n_drifts
    for a, b in zip(beliefs(one), beliefs(other), strict=True):
        assert a.variance == b.variance
        assert a.mean.items() <= b.mean.items()


def test_an_example_that_is_refused_is_no_error_either(monkeypatch):
    monkeypatch.setattr(gp_classifier, "DriftWatch", JumpyWatch)
    model, other = (GPClassifier(noise_variance=0.0, drift=True) for _ in range(2))
    for i in range(40):
        x, y = {"a": float(i % 8)}, "pq"[i // 8 % 2]
        for one in (model, other) if i < 8 else (model,):
            try:
                one.learn_one(x, y)
            except NotPositiveDefiniteError:
                assert i >= 8
    assert model.n_drifts == other.n_drifts
    assert repr(beliefs(model)) == repr(beliefs(other))


def test_hyperparameters_wait_after_a_drift_until_there_is_something_to_fit(monkeypatch):
    monkeypatch.setattr(gp_tuning, "FIRST_FIT", 40)
    model = GPClassifier(drift=True, learn_hyperparameters=True)
    due, n = [], []
    for x, y in turning(700, 260):
        model.learn_one(x, y)
        due.append(model.state()["due"] if model.state() else 40)
        n.append(model.n_learned)
    [drift] = [i for i in range(1, 700) if n[i] < n[i - 1]]
    assert 280 < drift < 320
    fits = [i + 1 for i in range(1, 700) if due[i] > due[i - 1]]
    # The first finds nothing to fit; the others end a few examples after they begin.
    assert fits[0] == 40
    assert 80 < fits[1] < 100
    assert 160 < fits[2] < 200
    assert drift + 40 < fits[3] < drift + 60


def test_a_copy_watches_on_its_own():
    model = taught(turning(500, 500), GPClassifier(drift=True))
    twin = copy.deepcopy(model)
    for x, y in turning(200, 0, seed=2):
        twin.learn_one(x, y)
    assert (model.n_drifts, twin.n_drifts) == (0, 1)
    assert model.clone().n_drifts == 0
