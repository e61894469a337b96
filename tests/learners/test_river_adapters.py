"""Many events at once, as data frames."""

import subprocess
import sys

import numpy as np
import pytest

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
    SkepticalRegressor,
)
from streamgp.learners.river_adapters import as_classifier, feature_rows, split
from tests.learners.test_gp_bounded import log_of

pd = pytest.importorskip("pandas")

OPTIONS = [{}, {"max_points": 20}, {"learn_hyperparameters": True}]


def frame(n, seed=0):
    pairs = list(log_of(n, seed))
    X = pd.DataFrame([x for x, _ in pairs], index=[f"row {i}" for i in range(n)])
    return X, pd.Series([y for _, y in pairs], index=X.index)


def test_rows_keep_the_types_of_columns():
    X = pd.DataFrame({"n": [1, 2], "on": [True, False], "a": [0.5, np.nan], "place": ["x", None]})
    first, second = feature_rows(X)
    assert first == {"n": 1, "on": True, "a": 0.5, "place": "x"}
    assert type(second["n"]) is int
    assert second["a"] != second["a"]
    assert feature_rows(pd.DataFrame(index=[0, 1])) == [{}, {}]


def test_columns_of_one_name_are_refused():
    X = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="X has several columns named 'a'; rename all but one"):
        GPClassifier().learn_many(X, ["hall"])


def test_labels_in_a_frame_are_refused():
    X = pd.DataFrame({"a": [1.0]})  # one row, as many as the frame of labels has columns
    with pytest.raises(TypeError, match="y must be a series or a list, got DataFrame; take one co"):
        GPClassifier().learn_many(X, pd.DataFrame({"room": ["hall"]}))


@pytest.mark.parametrize("options", OPTIONS)
def test_probabilities_of_many_are_those_of_one_by_one(options):
    model = GPClassifier(**options)
    X, y = frame(80)
    model.learn_many(X, y)
    probes, _ = frame(40, seed=1)
    found = model.predict_proba_many(probes)
    assert list(found.index) == list(probes.index)
    labels = model.predict_many(probes)
    for (name, row), x in zip(found.iterrows(), feature_rows(probes), strict=True):
        assert row.to_dict() == pytest.approx(model.predict_proba_one(x), abs=1e-9)
        assert labels[name] == model.predict_one(x)


@pytest.mark.parametrize("options", OPTIONS)
def test_learning_many_is_learning_one_by_one(options):
    many, one = GPClassifier(**options), GPClassifier(**options)
    X, y = frame(80)
    for part in (slice(0, 10), slice(10, 79), slice(79, 80)):
        many.learn_many(X[part], y[part])
    for x, label in zip(feature_rows(X), y, strict=True):
        one.learn_one(x, label)
    x, _ = next(log_of(1, seed=1))
    assert many.predict_proba_one(x) == one.predict_proba_one(x)


@pytest.mark.parametrize(
    "make",
    [
        GPClassifier,
        GPRegressor,
        lambda: OnlineForestClassifier(seed=1),
        lambda: ConfidenceBoostingClassifier(n_models=2, seed=1),
    ],
)
def test_labels_come_in_any_sequence_and_one_for_each_row(make):
    X, _ = frame(20)
    y = [n % 2 for n in range(20)]
    models = [make() for _ in range(3)]
    for model, labels in zip(models, (y, np.array(y), pd.Series(y)), strict=True):
        model.learn_many(X, labels)
    assert models[0].predict_many(X).equals(models[2].predict_many(X))
    assert models[1].predict_many(X).equals(models[2].predict_many(X))
    model = make()
    with pytest.raises(ValueError, match="y must have one value for each row of X, got 9 for 20"):
        model.learn_many(X, y[:9])
    assert model.predict_many(X).equals(make().predict_many(X))  # none was learned
    for learn in (lambda: model.learn_many(X.to_numpy(), y), lambda: model.predict_many([X])):
        with pytest.raises(TypeError, match=r"X must be a data frame of pandas, got \w+; pandas"):
            learn()


def test_a_forest_takes_one_weight_for_each_row():
    X, y = frame(20)
    with pytest.raises(ValueError, match="w must have one value for each row of X, got 2 for 20"):
        OnlineForestClassifier(seed=1).learn_many(X, y, w=[1.0, 2.0])


def test_before_anything_is_learned_nothing_is_known():
    X, _ = frame(3)
    assert GPClassifier().predict_proba_many(X).shape == (3, 0)
    assert GPClassifier().predict_many(X).tolist() == [None] * 3
    assert GPRegressor().predict_many(X).tolist() == [0.0] * 3
    model = GPClassifier()
    model.know(["p", "q"])
    assert model.predict_proba_many(X).to_numpy().tolist() == [[0.5, 0.5]] * 3
    assert model.predict_proba_many(X[:0]).shape == (0, 2)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_regressor_predicts_many_as_one_by_one(options):
    model = GPRegressor(**options)
    X, _ = frame(80)
    model.learn_many(X, X["a"] ** 2)
    probes, _ = frame(40, seed=1)
    found = model.predict_many(probes)
    assert list(found.index) == list(probes.index)
    expected = [model.predict_one(x) for x in feature_rows(probes)]
    assert found.tolist() == pytest.approx(expected, abs=1e-9)
    assert model.predict_many(probes[:0]).tolist() == []


def test_pandas_is_not_imported_for_one_by_one():
    code = """
import sys
from streamgp import (
    ConfidenceBoostingClassifier,
    GPClassifier,
    GPRegressor,
    OnlineForestClassifier,
)
for model, y in ((GPClassifier(), "p"), (GPRegressor(), 1.0)):
    model.learn_one({"a": 1.0}, y)
    model.predict_one({"a": 1.0})
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_estimators_inside_are_written_out():
    learner = GPClassifier(noise_variance=0.25)
    for model in (SkepticalClassifier(learner), ConfidenceBoostingClassifier(learner)):
        inside = repr(learner).replace("\n", "\n  ")
        assert f"(\n  model={inside}\n" in repr(model)
        assert repr(model.clone()) == repr(model)
    forest = ConfidenceBoostingClassifier(OnlineForestClassifier(n_models=3, seed=1))
    text = repr(SkepticalClassifier(forest))
    assert "\n      n_models=3\n" in text
    assert (
        repr(SkepticalRegressor(GPRegressor(noise_variance=0.25))).count("noise_variance=0.25") == 1
    )


@pytest.mark.parametrize(("model", "got"), [(GPClassifier, "the class GPClassifier"), (3, "int")])
def test_what_is_no_classifier_is_named(model, got):
    with pytest.raises(TypeError, match=f"model must be a River classifier .*, got {got}$"):
        split(model, as_classifier)
    with pytest.raises(TypeError, match=f"model must be a River regressor .*, got {got}$"):
        SkepticalRegressor(model)


@pytest.mark.parametrize(
    "kind",
    [
        ConfidenceBoostingClassifier,
        EnsembleGPClassifier,
        EnsembleGPRegressor,
        GPClassifier,
        GPRegressor,
        OnlineForestClassifier,
        OnlineGradientBoostingClassifier,
        PrivilegedGPClassifier,
    ],
)
def test_a_subclass_may_have_other_arguments(kind):
    class Named(kind):
        def __init__(self, name):
            super().__init__()
            self.name = name

    ours, theirs = Named("mine").clone(), kind()
    assert ours.name == "mine"
    for model in (ours, theirs):
        for x, y in [(0.0, 1.0), (1.0, 2.0), (0.1, 1.0), (0.9, 2.0)]:
            model.learn_one({"x": x}, y)
    assert ours.predict_one({"x": 0.2}) is not None
    if getattr(kind(), "seed", 0) is not None:  # else each draws a seed of its own
        assert ours.predict_one({"x": 0.2}) == theirs.predict_one({"x": 0.2})
