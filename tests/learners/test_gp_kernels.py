"""The classifier with every kernel, and with features that are texts."""

import math
import pickle
import random

import numpy as np
import pytest

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.kernels import Categorical, On, SquaredExponential
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE
from tests.helpers.kernel_cases import CASES, obvious

PLACES = ("hall", "bath", "attic")


def log_of(n=25, seed=0):
    """Events whose features come and go, and whose numbers are texts now and then."""
    rng = random.Random(seed)
    for i in range(n):
        k = rng.randrange(3)
        x = {"a": rng.gauss(k, 1.0), "open": rng.random() < 0.3}
        if i % 3:
            x["place"] = rng.choice(PLACES)
        if i > 4 and i % 2:
            x["mixed"] = rng.gauss(0.0, 1.0) if i % 4 == 1 else PLACES[k]
        if i > 9:
            x["b"] = rng.gauss(0.0, 1.0)
        yield x, "pqr"[k]


def taught(examples, **options):
    model = GPClassifier(**options)
    for i, (x, y) in enumerate(examples):
        model.learn_one(x, y, event_id=str(i))
    return model


def beliefs(model, seed=9):
    return [model.predict_proba_one(x, with_dist=True) for x, _ in log_of(8, seed)]


@pytest.mark.parametrize("name", CASES)
def test_the_posterior_equals_a_dense_solve(name):
    case, examples = CASES[name], list(log_of())
    model = taught(examples, kernel=case.kernel, noise_variance=0.3)
    seen = [x for x, _ in examples]
    Y = np.array([[float(y == label) for label in model.labels] for _, y in examples])
    for probe, _ in log_of(14, seed=9):
        K = obvious(case, [*seen, probe])
        solved = np.linalg.solve(K[:-1, :-1] + 0.3 * np.eye(len(seen)), K[:-1, -1])
        belief = model.predict_proba_one(probe, with_dist=True)
        assert list(belief.mean.values()) == pytest.approx((Y.T @ solved).tolist(), abs=1e-9)
        assert belief.variance == pytest.approx(K[-1, -1] - K[-1, :-1] @ solved, abs=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_before_the_first_label_the_variance_is_the_prior_at_the_event(name):
    case = CASES[name]
    for x, _ in log_of(5):
        prior = GPClassifier(case.kernel).predict_proba_one(x, with_dist=True)
        assert prior.mean == {}
        assert prior.variance == pytest.approx(case.of(x, x, True), rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_forgotten_example_is_as_if_it_had_never_been_learned(name):
    examples = list(log_of())
    model = taught(examples, kernel=CASES[name].kernel)
    for i in (3, 20, 0):
        model.forget_one(str(i))
    twin = taught(
        [pair for i, pair in enumerate(examples) if i not in (0, 3, 20)], kernel=CASES[name].kernel
    )
    for a, b in zip(beliefs(model), beliefs(twin), strict=True):
        assert a.mean == pytest.approx({y: b.mean[y] for y in a.mean}, abs=1e-9)
        assert a.variance == pytest.approx(b.variance, abs=1e-9)


def test_texts_alone_tell_classes_apart():
    model = GPClassifier(noise_variance=0.1)
    for i in range(30):
        model.learn_one({"place": PLACES[i % 3], "noise": PLACES[i % 2]}, "pqr"[i % 3])
    for place, y in zip(PLACES, "pqr", strict=True):
        assert model.predict_one({"place": place, "noise": "hall"}) == y
    known = model.predict_proba_one({"place": "hall", "noise": "hall"}, with_dist=True)
    new = model.predict_proba_one({"place": "cellar", "noise": "hall"}, with_dist=True)
    assert known.variance < 0.2 < 0.5 < new.variance


def test_a_text_counts_as_one_feature_in_the_default_length_scale():
    """One of d: two points that differ in it are exp(-1 / (0.9² d)) alike."""
    model = GPClassifier(noise_variance=1.0)
    x = {"light": 0.5, "place": "hall"}
    model.learn_one(x, "p")
    alike = math.exp(-1.0 / (2.0 * LENGTH_SCALE_PER_ROOT_FEATURE**2))
    belief = model.predict_proba_one({**x, "place": "bath"}, with_dist=True)
    assert belief.mean["p"] == pytest.approx(alike / 2.0)


def test_a_new_text_costs_no_new_solve():
    """Predicting and learning it use the same coordinates; nothing is stored twice."""
    model = taught(log_of())
    columns, gp = model._core.columns, model._core.gp
    x = {"a": 1.0, "open": True, "place": "cellar", "b": 0.3}
    model.predict_proba_one(x)
    model.learn_one(x, "p")
    assert model._core.columns is columns
    assert model._core.gp is gp


def test_a_number_that_becomes_a_text_keeps_what_was_learned_of_it():
    model = taught([({"a": -1.0}, "p"), ({"a": 1.0}, "q")], noise_variance=0.1)
    before = model.predict_proba_one({"a": 0.9}, with_dist=True)
    model.learn_one({"a": "broken"}, "r")
    after = model.predict_proba_one({"a": 0.9}, with_dist=True)
    assert model.predict_one({"a": "broken"}) == "r"
    assert model.predict_one({"a": 0.9}) == "q"
    assert after.mean["q"] == pytest.approx(before.mean["q"], abs=0.2)


def test_an_example_that_is_refused_takes_its_text_column_back():
    kernel = SquaredExponential({"a": 1.0}) * On(["a"], Categorical(0.5))
    model = taught([({"a": 1.0}, "p"), ({"a": -1.0}, "q")], kernel=kernel, noise_variance=1e-16)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="raise noise_variance"):
        model.learn_one({"a": 1.0, "place": None, "c": 0.0}, "q")
    assert pickle.dumps(model) == before
    model.learn_one({"a": 1.0, "place": "hall"}, "q")
    assert model.n_learned == 3


def test_numbers_far_away_keep_their_distances_when_texts_come_late():
    """Raw numbers such as times: measured from the first example, with and without texts."""
    near = [({"t": float(i)}, "pq"[i > 4]) for i in range(10)]
    far = [({"t": x["t"] + 1e9}, y) for x, y in near]
    models = [taught(examples, kernel=SquaredExponential(2.0)) for examples in (near, far)]
    for model, offset in zip(models, (0.0, 1e9), strict=True):
        model.learn_one({"t": 3.0 + offset, "place": "hall"}, "q")
    one, other = (
        model.predict_proba_one({"t": 2.5 + offset, "place": "hall"}, with_dist=True)
        for model, offset in zip(models, (0.0, 1e9), strict=True)
    )
    assert one.mean == pytest.approx(other.mean, abs=1e-9)
    assert one.variance == pytest.approx(other.variance, abs=1e-9)


def test_the_wrapper_scales_numbers_and_hands_texts_on():
    model = SkepticalClassifier(GPClassifier(), warm_up=20, seed=1)
    for i in range(40):
        x = {"t": 1000.0 + i % 7, "place": PLACES[i % 3], "open": i % 2 == 0}
        model.observe_one(x)
        model.settle_one(x, "pqr"[i % 3], given="pqr"[i % 3], challenged=False, event_id=f"e{i}")
    x = {"t": 1003.0, "place": "bath", "open": False}
    assert max(model.predict_proba_one(x).items(), key=lambda pair: pair[1])[0] == "q"
    near = model.neighbours_one(x, 3)
    assert [neighbour.x["place"] for neighbour in near] == ["bath"] * 3
    assert near[0].distance == 0.0
