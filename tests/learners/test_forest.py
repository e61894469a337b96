import math
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

from streamgp import OnlineForestClassifier
from streamgp.datasets import GaussianClasses

SMALL = {"n_models": 5, "n_tests": 10, "min_weight": 8}


def stream(n, seed=0):
    """Numbers, truth values and texts that come and go; a class more every thirty events."""
    rng = random.Random(seed)
    for i in range(n):
        k = rng.randrange(min(2 + i // 30, 5))
        x = {"a": rng.gauss(k, 0.5), "b": rng.random() < k / 4, "place": f"room {k % 3}"}
        if i % 4 == 1:
            del x["a"]
        if i % 6 == 2:
            x["place"] = rng.choice([None, "hall", 7.5])
        if i > 40:
            x["late"] = float(k == 2)
        yield x, f"class {k}"


def taught(model, n=200, seed=0):
    for x, y in stream(n, seed):
        model.learn_one(x, y)
    return model


def answers(model, n=30):
    return [model.predict_proba_one(x) for x, _ in stream(n, 9)]


# --- what it learns


def test_it_learns_classes_that_lie_apart():
    model, right = OnlineForestClassifier(seed=1), 0
    for i, (x, y) in enumerate(GaussianClasses(250, std=1.0, seed=1)):
        right += i >= 1000 and model.predict_one(x) == y
        model.learn_one(x, y)
    assert right / 500 > 0.95


def test_it_learns_what_no_feature_says_alone():
    model, rng = OnlineForestClassifier(seed=1), random.Random(0)
    for _ in range(2000):
        x = {"a": rng.uniform(-1, 1), "b": rng.uniform(-1, 1)}
        model.learn_one(x, x["a"] * x["b"] > 0)
    for a in (-0.5, 0.5):
        for b in (-0.5, 0.5):
            assert model.predict_proba_one({"a": a, "b": b})[a * b > 0] > 0.9


@pytest.mark.parametrize("values", [("red", "green"), (True, False), (3, 7.5), (None, 1.0)])
def test_one_feature_of_any_kind_tells_classes_apart(values):
    model = OnlineForestClassifier(**SMALL, seed=1)
    for i in range(200):
        model.learn_one({"what": values[i % 2], "noise": i % 7}, i % 2)
    for y, value in enumerate(values):
        assert model.predict_proba_one({"what": value, "noise": 3})[y] > 0.9


def test_a_text_never_seen_is_no_text_that_was():
    model = OnlineForestClassifier(**SMALL, seed=1)
    for i in range(300):
        model.learn_one({"place": ("hall", "bath", "attic")[i % 3]}, i % 3 == 0)
    assert model.predict_proba_one({"place": "hall"})[True] > 0.9
    assert model.predict_proba_one({"place": "cellar"})[True] < 0.5


def test_a_class_that_comes_late_is_learned():
    model = taught(OnlineForestClassifier(**SMALL, seed=1), 600)
    assert sorted(model.labels) == [f"class {k}" for k in range(5)]
    assert model.predict_one({"a": 4.0, "b": True, "place": "room 1", "late": 0.0}) == "class 4"


# --- weights


def test_an_example_of_weight_0_changes_nothing():
    model = taught(OnlineForestClassifier(**SMALL, seed=1))
    before = pickle.dumps(model)
    model.learn_one({"new": 1.0, "a": 2.0}, "never seen", w=0.0)
    model.learn_one({"a": 2.0}, "class 1", w=0)
    assert pickle.dumps(model) == before


def test_an_example_of_weight_2_counts_as_two():
    """In trees of one leaf the weight of a class is a sum of Poisson variables."""
    n = 2000
    twice, once = (OnlineForestClassifier(n_models=n, max_nodes=1, seed=s) for s in (1, 2))
    for _ in range(5):
        twice.learn_one({}, "p", w=2.0)
        twice.learn_one({}, "q", w=1.0)
        for y in "ppq":
            once.learn_one({}, y)
    a, b = (model.predict_proba_one({})["p"] for model in (twice, once))
    assert a == pytest.approx(b, abs=0.015)
    assert a == pytest.approx(2 / 3, abs=0.025)


def test_heavier_examples_let_trees_grow_faster():
    light, heavy = (OnlineForestClassifier(**SMALL, seed=1) for _ in range(2))
    for x, y in stream(200):
        light.learn_one(x, y, w=0.2)
        heavy.learn_one(x, y, w=3.0)
    assert sum(heavy.n_nodes) > 3 * sum(light.n_nodes)


@pytest.mark.parametrize("w", [-1.0, math.inf, math.nan, 2e5])
def test_weights_out_of_range_are_refused_and_change_nothing(w):
    model = taught(OnlineForestClassifier(**SMALL, seed=1), 20)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"w must be between 0 and 1e\+05, got "):
        model.learn_one({"a": 1.0}, "p", w=w)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("w", ["heavy", None, np.ones(2), np.array(1.0)])
def test_weights_that_are_no_numbers_are_refused(w):
    with pytest.raises(TypeError, match=r"w must be between 0 and 1e\+05, got "):
        OnlineForestClassifier(**SMALL, seed=1).learn_one({"a": 1.0}, "p", w=w)


# --- many at once


def test_a_frame_is_its_rows():
    pd = pytest.importorskip("pandas")
    rows = list(stream(150))
    for x, _ in rows:
        x.setdefault("a", math.nan)
        x.setdefault("late", None)
    X = pd.DataFrame([x for x, _ in rows])
    y = pd.Series([y for _, y in rows])
    w = pd.Series([0.0, 1.0, 2.5] * 50)
    one, many = (OnlineForestClassifier(**SMALL, seed=1) for _ in range(2))
    for (x, label), weight in zip(rows, w, strict=True):
        one.learn_one(x, label, w=weight)
    many.learn_many(X, y, w=w)
    proba = many.predict_proba_many(X)
    assert proba.to_dict("records") == [one.predict_proba_one(x) for x, _ in rows]
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x, _ in rows]
    assert many.n_learned == one.n_learned == 100


def test_a_frame_can_be_asked_about_before_the_first_label():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 8])
    model = OnlineForestClassifier()
    assert model.predict_proba_many(X).shape == (2, 0)
    assert model.predict_many(X).tolist() == [None, None]


# --- several over the same examples


def test_forests_over_the_same_examples_are_those_that_learn_them_alone():
    pd = pytest.importorskip("pandas")
    model = OnlineForestClassifier(**SMALL, seed=4)
    seeds = [4, 7, 2**32 - 1]
    together = model.forests(seeds)
    alone = [model.clone({"seed": seed}) for seed in seeds]
    rng = random.Random(0)
    for x, y in stream(200):
        together.meet(x, y)
        for m in (2, 0, 1):
            w = rng.expovariate(1.0)
            alone[m].learn_one(x, y, w=w)
            assert together.learn(m, w) == alone[m].predict_proba_one(x)
    xs = [x for x, _ in stream(30, 9)]
    P = together.probabilities_many(pd.DataFrame(xs))
    assert P.shape == (30, 3, 5)
    for x, p in zip(xs, P, strict=True):
        assert together.probabilities(x).tolist() == p.tolist()
        assert p.tolist() == [list(one.predict_proba_one(x).values()) for one in alone]
    assert together.n_learned == [200, 200, 200]


def test_what_cannot_be_met_changes_nothing():
    forests = OnlineForestClassifier(**SMALL).forests([1, 2])
    forests.meet({"a": 1.0}, "p")
    before = pickle.dumps(forests)
    with pytest.raises(ValueError, match="feature 'late' must be finite, got inf"):
        forests.meet({"a": 1.0, "early": 2.0, "late": math.inf}, "q")
    with pytest.raises(TypeError, match="y must be a label, got None"):
        forests.meet({"a": 1.0, "early": 2.0}, None)
    assert pickle.dumps(forests) == before


# --- restarts


def test_a_seed_that_was_drawn_makes_the_forest_again():
    model = taught(OnlineForestClassifier(**SMALL))
    again = OnlineForestClassifier(**SMALL)
    again.load_state(model.state())
    assert answers(taught(again)) == answers(model)
    assert answers(taught(OnlineForestClassifier(**SMALL))) != answers(model)
    given = OnlineForestClassifier(**SMALL, seed=1)
    given.load_state(model.state())
    assert given.state() == model.state()  # another one than it was given
    assert answers(taught(given)) == answers(model)


def test_a_seed_that_was_given_is_no_state():
    model = OnlineForestClassifier(**SMALL, seed=1)
    assert model.state() is None
    model.load_state(None)
    assert answers(taught(model)) == answers(taught(OnlineForestClassifier(**SMALL, seed=1)))


def test_every_example_is_retained_as_far_as_its_wrapper_is_concerned():
    model = OnlineForestClassifier(seed=1)
    assert model.retains_all
    assert not model.is_exact


# --- arguments


@pytest.mark.parametrize(
    ("argument", "value", "least"),
    [
        ("n_models", 0, 1),
        ("n_tests", 0, 1),
        ("n_tests", 2.5, 1),
        ("min_weight", 1, 2),
        ("max_nodes", 0, 1),
    ],
)
def test_arguments_out_of_range_are_refused(argument, value, least):
    with pytest.raises(
        ValueError, match=rf"{argument} must be a whole number of at least {least}, got {value}"
    ):
        OnlineForestClassifier(**{argument: value})


def test_trees_stop_at_max_nodes():
    model = taught(OnlineForestClassifier(**{**SMALL, "max_nodes": 8}, seed=1), 600)
    assert model.n_nodes == [7] * 5


def test_importing_a_forest_does_not_import_numba():
    code = """
import sys
from streamgp import OnlineForestClassifier
OnlineForestClassifier()
print("numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
