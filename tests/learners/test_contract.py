"""What every classifier of the package must do.

A new one adds a line to `LEARNERS` and one to `CHECKED_BY_RIVER`, a regressor to the latter only.

"""

import copy
import math
import pickle
import random
import re
from collections import Counter

import numpy as np
import pytest
from river import checks, forest, linear_model, naive_bayes, preprocessing, tree

from streamgp import (
    ConfidenceBoostingClassifier,
    EnsembleGPClassifier,
    EnsembleGPRegressor,
    GPClassifier,
    GPRegressor,
    OnlineForestClassifier,
    OnlineGradientBoostingClassifier,
    PrivilegedGPClassifier,
    SkepticalClassifier,
    isgp,
)
from streamgp.kernels import Categorical, Linear, Matern52, On, SquaredExponential, White
from streamgp.query.registry import LEARNERS as REGISTERED

COMPOSITE = SquaredExponential({"a": 1.0, "b": 2.0}) + On(["a", "late"], Categorical()) * Linear()

SMALL_FOREST = OnlineForestClassifier(n_models=3, n_tests=5, min_weight=10, seed=1)

LEARNERS = {
    "GPClassifier": lambda: GPClassifier(noise_variance=0.1),
    "GPClassifier with a kernel": lambda: GPClassifier(SquaredExponential(2.0)),
    "GPClassifier with a kernel of many parts": lambda: GPClassifier(COMPOSITE + White(0.1)),
    "GPClassifier of few points": lambda: GPClassifier(noise_variance=0.1, max_points=8),
    "GPClassifier that learns hyperparameters": lambda: GPClassifier(learn_hyperparameters=True),
    "GPClassifier in single precision": lambda: GPClassifier(single_precision=True),
    "GPClassifier of the latest examples": lambda: GPClassifier(window=30),
    "GPClassifier that watches for drifts": lambda: GPClassifier(drift=True),
    "EnsembleGPClassifier": lambda: EnsembleGPClassifier(n_features=20, seed=1),
    "EnsembleGPClassifier with kernels": lambda: EnsembleGPClassifier(
        [SquaredExponential(2.0), Matern52({"a": 1.0, "b": 2.0}), Categorical()],
        n_features=20,
        seed=1,
    ),
    "EnsembleGPClassifier of the paper": lambda: EnsembleGPClassifier(preset="paper", seed=1),
    "EnsembleGPClassifier with a logistic likelihood": lambda: EnsembleGPClassifier(
        n_features=10, likelihood="logistic", seed=1
    ),
    "EnsembleGPClassifier that forgets": lambda: EnsembleGPClassifier(
        n_features=10, forgetting=0.99, seed=1
    ),
    "OnlineForestClassifier": SMALL_FOREST.clone,
    "OnlineGradientBoostingClassifier": lambda: OnlineGradientBoostingClassifier(
        SMALL_FOREST, n_models=3, normalise_weights=True, seed=1
    ),
    "ConfidenceBoostingClassifier": lambda: ConfidenceBoostingClassifier(
        SMALL_FOREST, n_models=3, seed=1
    ),
    "ConfidenceBoostingClassifier of the paper": lambda: ConfidenceBoostingClassifier(
        n_models=2, uncertainty="entropy", preset="paper", seed=1
    ),
    "PrivilegedGPClassifier": lambda: PrivilegedGPClassifier(),
    "PrivilegedGPClassifier of few points": lambda: PrivilegedGPClassifier(max_points=8),
    "PrivilegedGPClassifier of the paper": lambda: PrivilegedGPClassifier(
        COMPOSITE, preset="paper", n_replays=0
    ),
    "isgp": lambda: isgp(seed=1),
    "SkepticalClassifier of privileged noise": lambda: SkepticalClassifier(
        PrivilegedGPClassifier(max_points=20), warm_up=20, seed=1
    ),
    "SkepticalClassifier of an ensemble": lambda: SkepticalClassifier(
        EnsembleGPClassifier(n_features=10, seed=1), warm_up=20, seed=1
    ),
    "SkepticalClassifier of few points": lambda: SkepticalClassifier(
        GPClassifier(max_points=8, learn_hyperparameters=True), warm_up=20, seed=1
    ),
    "SkepticalClassifier that forgets": lambda: SkepticalClassifier(
        GPClassifier(window=30, drift=True), warm_up=20, seed=1
    ),
    "SkepticalClassifier of a pipeline": lambda: SkepticalClassifier(
        preprocessing.StandardScaler() | GPClassifier(), warm_up=20, seed=1
    ),
    "SkepticalClassifier of naive Bayes": lambda: SkepticalClassifier(
        naive_bayes.GaussianNB(), warm_up=20, seed=1
    ),
    "SkepticalClassifier without scaling": lambda: SkepticalClassifier(
        GPClassifier(), warm_up=0, seed=1
    ),
}
# Naive Bayes finds out when it learns, River's scaler when it meets a number of the same name.
TAKES_NO_TEXT = {"SkepticalClassifier of naive Bayes", "SkepticalClassifier of a pipeline"}
TAKES_NO_MISSING_VALUE = {"SkepticalClassifier of a pipeline"}  # River's scaler does not

CHECKED_BY_RIVER = {
    "GPClassifier": GPClassifier(noise_variance=0.1),
    "GPClassifier with a kernel of many parts": GPClassifier(Matern52(2.0) + COMPOSITE),
    "GPClassifier of few points": GPClassifier(noise_variance=0.1, max_points=20),
    "GPClassifier that learns hyperparameters": GPClassifier(learn_hyperparameters=True),
    "GPClassifier of the latest examples": GPClassifier(noise_variance=0.1, window=200),
    "GPClassifier that watches for drifts": GPClassifier(noise_variance=0.1, drift=True),
    "GPRegressor": GPRegressor(noise_variance=0.1),
    "GPRegressor of few points": GPRegressor(max_points=20, learn_hyperparameters=True),
    "EnsembleGPClassifier": EnsembleGPClassifier(n_features=10),
    "EnsembleGPClassifier with a logistic likelihood": EnsembleGPClassifier(
        n_features=10, likelihood="logistic", seed=1
    ),
    "EnsembleGPClassifier of the paper": EnsembleGPClassifier(n_features=10, preset="paper"),
    "EnsembleGPRegressor": EnsembleGPRegressor(n_features=20),
    "EnsembleGPRegressor of the paper": EnsembleGPRegressor(preset="paper", seed=1),
    "EnsembleGPRegressor that forgets": EnsembleGPRegressor(
        [SquaredExponential(1.0), Matern52(2.0)], n_features=20, forgetting=0.99
    ),
    "OnlineForestClassifier": SMALL_FOREST,
    "OnlineGradientBoostingClassifier": OnlineGradientBoostingClassifier(n_models=2, seed=1),
    "ConfidenceBoostingClassifier": ConfidenceBoostingClassifier(n_models=2),
    "ConfidenceBoostingClassifier of Hoeffding trees": ConfidenceBoostingClassifier(
        tree.HoeffdingTreeClassifier(), n_models=2, seed=1
    ),
    "OnlineGradientBoostingClassifier of Mondrian forests": OnlineGradientBoostingClassifier(
        forest.AMFClassifier(n_estimators=2), n_models=2, seed=1
    ),
    "ConfidenceBoostingClassifier of a binary learner": ConfidenceBoostingClassifier(
        preprocessing.StandardScaler() | linear_model.LogisticRegression(), n_models=2, seed=1
    ),
    "PrivilegedGPClassifier": PrivilegedGPClassifier(max_points=20, learn_hyperparameters=False),
    "PrivilegedGPClassifier that learns hyperparameters": PrivilegedGPClassifier(max_points=20),
    "isgp": isgp(seed=1),
    "SkepticalClassifier of naive Bayes": SkepticalClassifier(naive_bayes.GaussianNB(), seed=1),
    "SkepticalClassifier of a binary learner": SkepticalClassifier(
        linear_model.LogisticRegression(), seed=1
    ),
}


def test_every_learner_that_a_configuration_can_name_is_here():
    classifiers = {type(make()).__name__ for make in LEARNERS.values()}
    checked = {type(model).__name__ for model in CHECKED_BY_RIVER.values()}
    paths = [(target, p) for one in REGISTERED.values() for target, p in one.classes.items()]
    for target, path in paths:
        name = path.split(":")[1]
        assert target == "number" or name in classifiers
        assert name in checked


# River plays its checks on every log that suits a model: on the same events with labels of Python
# and of numpy, and on others. By day the first model of each class passes all checks on one log,
# and the others, for which the laws below hold as well, what depends on their settings.
OF_SETTINGS = {"check_learn_one", "check_pickling", "check_clone_same_class", "check_repr"}
# Seconds; tests/learners/test_privileged_gp.py counts the examples that are retained.
LONG = {("PrivilegedGPClassifier", "check_bounded_memory_growth")}


def river_checks():
    classes = set()
    for name, model in CHECKED_BY_RIVER.items():
        is_first = type(model) not in classes
        classes.add(type(model))
        left_out = model._unit_test_skips()
        n_logs = Counter()
        for i, check in enumerate(checks.yield_checks(model)):
            kind = check.__name__
            n_logs[kind] += 1
            is_more = n_logs[kind] > 1 or (not is_first and kind not in OF_SETTINGS)
            marks = pytest.mark.nightly if is_more or (name, kind) in LONG else ()
            if kind not in left_out:
                yield pytest.param(model, check, id=f"{name}-{i}-{kind}", marks=marks)


@pytest.mark.parametrize(("model", "check"), list(river_checks()))
def test_river_accepts_it(model, check):
    check(model.clone())


@pytest.fixture(params=LEARNERS)
def name(request):
    return request.param


def alternating(argument, values):
    """Return a mark for a row of each learner and value: every second one by day."""
    rows = [
        pytest.param(
            name,
            value,
            marks=() if (i + j) % 2 == 0 else pytest.mark.nightly,
            id=f"{name}-{value!r}",
        )
        for i, name in enumerate(LEARNERS)
        for j, value in enumerate(values)
    ]
    return pytest.mark.parametrize(("name", argument), rows)


@pytest.fixture
def learner(name):
    return LEARNERS[name]()


def stream(n, seed=0, labels=("p", "q", "r")):
    """Events whose features come and go."""
    rng = random.Random(seed)
    for i in range(n):
        k = rng.randrange(len(labels))
        x = {"a": rng.gauss(k, 1.0), "b": rng.gauss(-k, 1.0)}
        if i % 5 == 0:
            x["late"] = rng.gauss(0.0, 1.0)
        if i % 7 == 0:
            del x["b"]
        yield x, labels[k]


def teach(learner, pairs):
    for x, y in pairs:
        learner.learn_one(x, y)
    return learner


def answers(learner, n=12, seed=1):
    return [learner.predict_proba_one(x) for x, _ in stream(n, seed)]


def test_it_knows_nothing_before_the_first_label(learner):
    assert learner.predict_proba_one({"a": 1.0}) == {}
    assert learner.predict_proba_one({}) == {}


def test_probabilities_sum_to_one_and_name_every_class_seen(learner):
    seen = set()
    for x, y in stream(60):
        learner.learn_one(x, y)
        seen.add(y)
        for probe in ({"a": 0.1, "b": 1.0}, {"a": 1e6, "b": -1e6}, {}, {"unheard of": 1.0}):
            p = learner.predict_proba_one(probe)
            assert p.keys() == seen
            assert math.isclose(sum(p.values()), 1.0, abs_tol=1e-9)
            assert all(0.0 <= q <= 1.0 for q in p.values())


def test_the_same_examples_give_the_same_bits(learner):
    twin = learner.clone()
    assert answers(teach(learner, stream(40))) == answers(teach(twin, stream(40)))


def test_predicting_changes_nothing(learner):
    twin = learner.clone()
    for x, y in stream(40):
        answers(learner, 2)
        learner.predict_proba_one(x)
        learner.learn_one(x, y)
        twin.learn_one(x, y)
    assert answers(learner) == answers(twin)
    before = pickle.dumps(learner)
    answers(learner)
    assert pickle.dumps(learner) == before


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda m: pickle.loads(pickle.dumps(m))}


@pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.nightly), 30])
@alternating("how", COPIES)
def test_a_copy_goes_its_own_way_from_the_same_bits(learner, how, n):
    copied = COPIES[how]
    teach(learner, stream(n))
    answers(learner)
    twin, untouched = copied(learner), copied(learner)
    before = answers(untouched)
    assert answers(twin) == answers(learner) == before
    assert answers(teach(twin, stream(20, 2))) == answers(teach(learner, stream(20, 2)))
    assert answers(untouched) == before


def test_a_clone_has_learned_nothing_and_shares_nothing(learner):
    fresh = pickle.dumps(learner.clone())
    teach(learner, stream(30))
    clone = learner.clone()
    assert pickle.dumps(clone) == fresh
    assert answers(clone) == [{}] * 12
    before = answers(learner)
    teach(clone, stream(30, 3))
    assert answers(learner) == before


def test_the_order_of_the_features_does_not_matter(learner):
    twin = learner.clone()
    for x, y in stream(40):
        learner.learn_one(x, y)
        twin.learn_one(dict(reversed(x.items())), y)
    for x, _ in stream(12, 1):
        p = learner.predict_proba_one(x)
        # Naive Bayes adds up in the order of the features.
        assert p == pytest.approx(twin.predict_proba_one(dict(reversed(x.items()))), abs=1e-9)


def test_features_are_neither_changed_nor_kept(learner):
    twin = learner.clone()
    for x, y in stream(40):
        mine, before = dict(x), dict(x)
        learner.predict_proba_one(mine)
        learner.learn_one(mine, y)
        assert list(mine.items()) == list(before.items())
        mine["a"] = 1e9
        mine.pop("b", None)
        mine["new"] = 7.0
        twin.learn_one(x, y)
    assert answers(learner) == answers(twin)


def test_what_comes_back_belongs_to_the_caller(learner):
    teach(learner, stream(20))
    before = answers(learner)
    x, _ = next(stream(1))
    for _ in range(2):
        learner.predict_proba_one(x).clear()
        assert learner.predict_proba_one(x)
    assert answers(learner) == before


def test_the_same_dictionary_may_be_used_again_for_the_next_event(learner):
    """A caller that reuses one dictionary must not get an old result."""
    teach(learner, stream(20))
    twin = copy.deepcopy(learner)
    x = {}
    for other, _ in stream(10, 4):
        x.clear()
        x.update(other)
        assert learner.predict_proba_one(x) == twin.predict_proba_one(dict(other))


def test_events_without_any_feature_are_events(learner):
    learner.learn_one({}, "p")
    assert learner.predict_proba_one({}) == {"p": 1.0}
    learner.learn_one({"a": 5.0}, "q")
    assert set(learner.predict_proba_one({"a": 5.0})) == {"p", "q"}
    learner.learn_one({}, "q")
    assert set(learner.predict_proba_one({})) == {"p", "q"}


@alternating("missing", [None, np.float64("nan"), math.nan])
def test_a_missing_value_is_no_value(learner, name, missing):
    if name in TAKES_NO_MISSING_VALUE:
        pytest.skip("the transformer refuses it")
    twin = learner.clone()
    for i, (x, y) in enumerate(stream(40)):
        absent = {k: v for k, v in x.items() if i % 3 != 1 or k == "a"}
        learner.learn_one({k: absent.get(k, missing) for k in x}, y)
        twin.learn_one(absent, y)
    for x, _ in stream(12, 1):
        p = learner.predict_proba_one({**x, "b": missing, "unheard of": missing})
        without = {k: v for k, v in x.items() if k != "b"}
        assert p == pytest.approx(twin.predict_proba_one(without), abs=1e-9)


def test_features_may_have_names_of_any_type(learner):
    for i in range(20):
        learner.learn_one({1: i % 2 + i * 0.01, "1": 0.3 * i, ("t", 2): -0.1 * i}, i % 2)
    p = learner.predict_proba_one({("t", 2): 0.0, 1: 1.0, "1": 0.0})
    assert math.isclose(sum(p.values()), 1.0, abs_tol=1e-9)


@alternating("labels", [(False, True), (0, 1, 2), ("p", "q"), (0.5, 1.5)])
def test_labels_keep_their_type(learner, labels):
    teach(learner, stream(30, labels=labels))
    for p in answers(learner):
        assert {(type(y), y) for y in p} == {(type(y), y) for y in labels}


@alternating("kind", [np.bool_, np.int64, np.str_])
def test_numpy_labels_are_labels(learner, kind):
    teach(learner, stream(30, labels=(kind(0), kind(1))))
    assert {kind(y) for y in answers(learner)[0]} == {kind(0), kind(1)}


def test_numpy_features_are_features(learner):
    twin = learner.clone()
    for x, y in stream(30):
        learner.learn_one({k: np.float64(v) for k, v in x.items()}, y)
        twin.learn_one(x, y)
    assert answers(learner) == answers(twin)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("n_before", [0, 2])
def test_what_is_no_dict_of_features_is_refused_in_these_words(name, n_before):
    pandas = pytest.importorskip("pandas")
    model = LEARNERS[name]()
    for i in range(n_before):
        model.learn_one({"a": float(i), "b": 1.0}, i)
    row = pandas.Series({"a": 1.0, "b": 2.0, "late": 1.0})
    others = [
        (None, "NoneType"),
        ([1.0, 2.0], "list"),
        (np.ones(2), "ndarray"),
        (row, "Series; x.to_dict() is one"),
    ]
    for x, found in others:
        words = re.escape(f"x must be a dict of features, got {found}")
        with pytest.raises(TypeError, match=words):
            model.learn_one(x, 1)
        with pytest.raises(TypeError, match=words):
            model.predict_proba_one(x)
    with pytest.raises(TypeError, match=r"y must be a label, got \[1\]; do not learn events"):
        model.learn_one({"a": 1.0, "b": 1.0}, [1])
    if name not in TAKES_NO_TEXT:  # those of River find words of their own
        x = {"a": np.ones(2), "b": 1.0}
        refused = "feature 'a' must be a number or a string, got array"
        with pytest.raises(TypeError, match=refused):
            model.learn_one(x, 1)
        if not isinstance(model, SkepticalClassifier):
            with pytest.raises(TypeError, match=refused):
                model.predict_proba_one(x)


@alternating("missing", [None, math.nan, "pandas.NA"])
def test_a_label_must_not_be_missing(learner, missing):
    y = pytest.importorskip("pandas").NA if missing == "pandas.NA" else missing
    teach(learner, stream(10))
    before = answers(learner)
    words = re.escape(f"y must be a label, got {y!r}; do not learn events without")
    with pytest.raises(TypeError, match=words):
        learner.learn_one({"a": 1.0}, y)
    assert answers(learner) == before


@pytest.mark.parametrize("n", [0, 10, pytest.param(300, marks=pytest.mark.nightly)])
@alternating("value", [math.inf, -math.inf, 10**400])
def test_infinity_is_refused_by_name_and_changes_nothing(learner, value, n):
    teach(learner, stream(n))
    before = pickle.dumps(learner)
    for x in ({"a": value, "b": 1.0}, {"a": 1.0, "b": 1.0, "unheard of": value}):
        with pytest.raises(ValueError, match=r"feature '(a|unheard of)' must be finite, got"):
            learner.learn_one(x, "p")
    assert pickle.dumps(learner) == before


@pytest.mark.parametrize("n", [0, 10, pytest.param(300, marks=pytest.mark.nightly)])
def test_what_is_neither_number_nor_text_is_refused_and_changes_nothing(learner, name, n):
    if name in TAKES_NO_TEXT:
        pytest.skip("says so later")
    teach(learner, stream(n))
    before = pickle.dumps(learner)
    for x in ({"a": b"loud", "b": 1.0}, {"a": 1.0, "b": 1.0, "unheard of": b"loud"}):
        with pytest.raises(TypeError):
            learner.learn_one(x, "p")
        assert pickle.dumps(learner) == before
        if isinstance(learner, SkepticalClassifier):
            with pytest.raises(TypeError):
                learner.observe_one(x)
            assert pickle.dumps(learner) == before
        else:
            with pytest.raises(
                TypeError, match=r"feature '.*' must be a number or a string, got b'l"
            ):
                learner.predict_proba_one(x)


def with_texts(pairs):
    """Give events a place that goes with the label, and let numbers be texts now and then."""
    for i, (x, y) in enumerate(pairs):
        x["place"] = str(y) if i % 4 else f"place {i}"
        if i % 6 == 3:
            x["a"] = "broken"
        if i % 5 == 2:
            x["open"] = i % 2 == 0
        yield x, y


def test_texts_of_numpy_are_texts(learner, name):
    if name in TAKES_NO_TEXT:
        pytest.skip("takes no text")
    twin = LEARNERS[name]()
    for x, y in stream(30):
        learner.learn_one(x, y)
        twin.learn_one(x, y)
    x = {"a": "broken", "b": 1.0, "new": "hall"}
    of_numpy = {n: np.str_(v) if isinstance(v, str) else v for n, v in x.items()}
    assert twin.predict_proba_one(of_numpy) == learner.predict_proba_one(x)


@pytest.fixture
def learner_of_texts(learner, name):
    if name in TAKES_NO_TEXT:
        pytest.skip("takes no text")
    return learner


def answers_about_texts(learner):
    return [learner.predict_proba_one(x) for x, _ in with_texts(stream(12, 1))]


def test_texts_are_features(learner_of_texts):
    teach(learner_of_texts, with_texts(stream(90)))
    right = sum(
        learner_of_texts.predict_proba_one({"place": y}).get(y, 0.0) > 1 / 3
        for y in ("p", "q", "r")
    )
    assert right == 3


@pytest.mark.parametrize("n", [30, pytest.param(60, marks=pytest.mark.nightly)])
def test_the_same_texts_give_the_same_bits_in_any_order_of_the_features(learner_of_texts, n):
    twin = learner_of_texts.clone()
    teach(learner_of_texts, with_texts(stream(n)))
    teach(twin, ((dict(reversed(x.items())), y) for x, y in with_texts(stream(n))))
    copied = pickle.loads(pickle.dumps(learner_of_texts))
    expected = answers_about_texts(learner_of_texts)
    assert answers_about_texts(twin) == answers_about_texts(copied) == expected
    rest = list(with_texts(stream(20, 3)))
    assert answers_about_texts(teach(copied, rest)) == answers_about_texts(teach(twin, rest))


def test_a_clone_has_learned_no_text(learner_of_texts):
    fresh = pickle.dumps(learner_of_texts.clone())
    teach(learner_of_texts, with_texts(stream(30)))
    assert pickle.dumps(learner_of_texts.clone()) == fresh


@alternating("missing", [None, math.nan])
def test_a_missing_text_is_no_text(learner_of_texts, missing):
    twin = learner_of_texts.clone()
    for i, (x, y) in enumerate(with_texts(stream(40))):
        absent = {k: v for k, v in x.items() if i % 3 or k != "place"}
        learner_of_texts.learn_one({k: absent.get(k, missing) for k in x}, y)
        twin.learn_one(absent, y)
    assert answers_about_texts(learner_of_texts) == answers_about_texts(twin)


@alternating("labels", [(True, 1), (1, 1.0), (0.0, False), (np.int64(1), True)])
def test_labels_that_are_equal_and_of_different_types_are_refused(learner, labels):
    known, other = labels
    teach(learner, [({"a": 1.0, "b": 2.0}, known), ({"a": 2.0, "b": 1.0}, 2)])
    before = copy.deepcopy(learner.predict_proba_one({"a": 1.5}))
    with pytest.raises(
        ValueError, match=f"of one type, got {other!r} where {re.escape(repr(known))}"
    ):
        learner.learn_one({"a": 2.0, "b": 1.0}, other)
    assert learner.predict_proba_one({"a": 1.5}) == before
    learner.learn_one({"a": 2.0, "b": 1.0}, np.array([known])[0])  # numpy's are the same
