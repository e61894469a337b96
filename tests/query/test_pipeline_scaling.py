"""Transformers of a River pipeline: what freezes after the warm-up, and what runs on."""

import collections
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import (
    anomaly,
    base,
    compose,
    feature_extraction,
    feature_selection,
    preprocessing,
    stats,
    utils,
)

from streamgp import GPClassifier, GPRegressor, SkepticalClassifier, SkepticalRegressor
from streamgp.query import pipeline_scaling
from streamgp.query.example_store import ClassExampleStore
from streamgp.query.pipeline_scaling import PipelineScaling, RunningScaling, scaling_of
from streamgp.scaling import NoScaling
from tests.helpers.scalings import rows, watched


class Counting(base.Transformer):
    """Counts what it learns; its transform says how much that was."""

    def __init__(self):
        self.learned = []

    def learn_one(self, x):
        self.learned.append(dict(x))

    def transform_one(self, x):
        return {**x, "learned": len(self.learned)}


class CountingLabels(base.SupervisedTransformer):
    """The same for labels."""

    def __init__(self):
        self.learned = []

    def learn_one(self, x, y):
        self.learned.append((dict(x), y))

    def transform_one(self, x):
        return {**x, "labels": len(self.learned)}


def test_transformers_see_every_event_of_the_warm_up_once():
    scaling = PipelineScaling([Counting(), Counting()], 5)
    xs = rows(9)
    seen = []
    for x in xs:
        for _ in range(3):
            scaling.transform(x)
        scaling.observe(x)
        scaling.learn(x, "p")
        seen.append(scaling.transform({})["learned"])
    assert seen == [1, 2, 2, 4, 5, 5, 5, 5, 5]
    first, second = scaling._live
    assert first.learned == xs[:5]
    # The second one learns from the output of the first one, once that has learned the event.
    assert second.learned == [{**x, "learned": i + 1} for i, x in enumerate(xs[:5])]


def test_transformers_are_renewed_when_the_events_have_doubled_and_at_the_end():
    changed = watched(PipelineScaling([preprocessing.StandardScaler()], 21), rows(40))
    assert [i + 1 for i, renewed in enumerate(changed) if renewed] == [1, 2, 4, 8, 16, 21]


def test_supervised_transformers_learn_with_the_labels_of_the_warm_up():
    scaling = PipelineScaling([CountingLabels(), Counting()], 5)
    xs = rows(9)
    seen = []
    for i, x in enumerate(xs):
        scaling.observe(x)
        if i % 2:
            scaling.learn(x, f"y{i}")
        seen.append(scaling.transform({})["labels"])
    # A label is in use from the next renewal on; after the warm-up none is learned.
    assert seen == [0, 0, 0, 1, 2, 2, 2, 2, 2]
    assert [y for _, y in scaling._live[0].learned] == ["y1", "y3"]


class Fussy(base.Transformer):
    """Records half of an event before it raises."""

    def __init__(self):
        self.total = 0.0

    def learn_one(self, x):
        for value in x.values():
            if value == "bad":
                raise ValueError("bad value")
            self.total += value

    def transform_one(self, x):  # noqa: ARG002
        return {"total": self.total}


def test_a_transformer_that_raises_has_noted_nothing():
    scaling = PipelineScaling([Counting(), Fussy()], 8)
    watched(scaling, rows(3))
    before = pickle.dumps(scaling)
    with pytest.raises(ValueError, match="bad value"):
        scaling.observe({"a": 1.0, "b": "bad"})
    assert pickle.dumps(scaling) == before


def supervised():
    return feature_selection.SelectKBest(similarity=stats.PearsonCorr(), k=1)


PIPELINES = {
    "StandardScaler": lambda: [preprocessing.StandardScaler()],
    "MinMaxScaler": lambda: [preprocessing.MinMaxScaler()],
    "OneHotEncoder": lambda: [preprocessing.OneHotEncoder()],
    "two steps": lambda: [preprocessing.StandardScaler(), preprocessing.MaxAbsScaler()],
    "a union": lambda: [
        compose.Select("a") + (compose.Select("b") | preprocessing.StandardScaler())
    ],
    "polynomials": lambda: [feature_extraction.PolynomialExtender(degree=2)],
    "supervised": lambda: [preprocessing.StandardScaler(), supervised()],
}


@pytest.mark.parametrize("transformers", PIPELINES.values(), ids=PIPELINES.keys())
def test_the_transformers_of_river_freeze(transformers):
    scaling = PipelineScaling(transformers(), 10)
    xs = rows(30)
    for i, x in enumerate(xs[:10]):
        scaling.observe(x)
        scaling.learn(x, i % 2)
    probe = {"a": 0.3, "b": 101.0}
    before = scaling.transform(probe)
    for i, x in enumerate(xs[10:]):
        assert not scaling.observe(x)
        scaling.learn(x, i % 2)
    assert scaling.transform(probe) == before
    assert probe == {"a": 0.3, "b": 101.0}


def test_a_frozen_river_scaler_equals_one_that_saw_the_warm_up():
    scaling, scaler = PipelineScaling([preprocessing.StandardScaler()], 10), None
    scaler = preprocessing.StandardScaler()
    xs = rows(30)
    watched(scaling, xs)
    for x in xs[:10]:
        scaler.learn_one(x)
    assert scaling.transform(xs[20]) == scaler.transform_one(xs[20])


def test_texts_pass_a_pipeline_that_selects_them():
    numbers = compose.Select("a") | preprocessing.StandardScaler()
    scaling = PipelineScaling([compose.Select("place") + numbers], 4)
    watched(scaling, [{"a": a, "place": "hall"} for a in (1.0, 3.0, 1.0, 3.0)])
    assert scaling.transform({"a": 4.0, "place": "bath"}) == {"a": 2.0, "place": "bath"}
    twin = PipelineScaling([compose.Select("place") + numbers], 4)
    twin.load_state(scaling.state())
    assert twin.transform({"a": 4.0, "place": "bath"}) == {"a": 2.0, "place": "bath"}


# --- transformers that run with the stream

SIZE = 3


def window(how=stats.Mean, by=None):
    return feature_extraction.Agg("a", by, utils.Rolling(how, window_size=SIZE))


class Trend(base.Transformer):
    """Difference from the value two events ago; a window of a user's own."""

    def __init__(self):
        self.last = collections.deque(maxlen=3)

    def learn_one(self, x):
        if x["a"] == "bad":
            raise ValueError("bad value")
        self.last.append(x["a"])

    def transform_one(self, x):
        return {**x, "trend": self.last[-1] - self.last[0] if self.last else None}


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(pipeline_scaling, "REMEMBERED", 7)


@pytest.mark.usefixtures("short")
@given(st.lists(st.tuples(st.sampled_from("gh"), st.floats(-1e3, 1e3)), max_size=40))
def test_a_window_is_that_of_the_last_events_of_the_group(pairs):
    grouped = compose.Grouper(window(), by="g")
    scaling = scaling_of([window() + Trend(), compose.Discard("g")], warm_up=4)
    by_group = scaling_of([grouped], warm_up=4)
    for i, (group, value) in enumerate(pairs):
        x = {"a": value, "g": group}
        scaling.observe(x)
        by_group.observe(x)
        made = scaling.transform(scaling.extract(x))
        last = [v for _, v in pairs[: i + 1]][-SIZE:]
        assert made["a_mean"] == pytest.approx(np.mean(last), abs=1e-9)
        assert made["trend"] == last[-1] - last[0]
        # Of the events still remembered: 7 to 13.
        n_known = i + 1 if i < 13 else 7 + (i + 1) % 7
        known = pairs[i + 1 - n_known : i + 1]
        same = [v for g, v in known if g == group][-SIZE:]
        assert by_group.extract(x)["a_mean"] == pytest.approx(np.mean(same), abs=1e-9)


@pytest.mark.usefixtures("short")
def test_what_has_no_window_knows_the_last_events_only():
    scaling = RunningScaling([feature_extraction.Agg("a", None, stats.Count())], NoScaling())
    counts = []
    for x in rows(30):
        scaling.observe(x)
        counts.append(scaling.extract(x)["a_count"])
        assert len(scaling._recent) < 14
    assert counts == [*range(1, 14), *range(7, 14), *range(7, 14), 7, 8, 9]


def test_scalers_behind_it_freeze_by_the_features_that_it_makes():
    scaling = scaling_of([window(), preprocessing.StandardScaler()], warm_up=6)
    scaler, xs = preprocessing.StandardScaler(), rows(30)
    for i, x in enumerate(xs):
        scaling.observe(x)
        mean = float(np.mean([past["a"] for past in xs[max(0, i + 1 - SIZE) : i + 1]]))
        if i < 6:
            scaler.learn_one({"a_mean": mean})
        else:
            expected = scaler.transform_one({"a_mean": mean})
            assert scaling.transform(scaling.extract(x)) == pytest.approx(expected, abs=1e-9)


learned = []


class Noting(base.Classifier):
    """Notes what all its copies learn."""

    def learn_one(self, x, y):
        learned.append((x["a_mean"], y))

    def predict_proba_one(self, x):
        share = x.get("a_mean", 0.0) / 10.0
        return {True: share, False: 1.0 - share}


def test_a_late_label_is_learned_with_the_features_of_its_event():
    store = ClassExampleStore(Noting(), RunningScaling([window()], NoScaling()))
    xs = [{"a": value} for value in (1.0, 3.0, 5.0, 7.0)]
    for x in xs:
        store.observe(x)
    learned.clear()
    store.teach(xs[1], True, "e1")
    store.teach(xs[3], False, None)
    assert learned == [(2.0, True), (5.0, False)]
    store.observe({"a": 3.0})
    learned.clear()
    store.relabel("e1", False)
    assert learned == [(2.0, False), (5.0, False)]
    again = ClassExampleStore(Noting(), RunningScaling([window()], NoScaling()))
    learned.clear()
    again.load_state(json.loads(json.dumps(store.state())), store.examples())
    assert learned == [(2.0, False), (5.0, False)]
    assert again.state() == store.state()
    store.forget("e1")
    assert [n.distance for n in store.neighbours({"a": 7.0}, 3)] == [0.0]
    assert len(store.state()["extracted"]) == 1


def test_equal_readings_are_believed_by_what_came_before():
    store = ClassExampleStore(Noting(), RunningScaling([window()], NoScaling()))
    x, believed = {"a": 2.0}, []
    for between in (0.0, 8.0, 14.0):
        store.observe({"a": between})
        store.observe(x)
        believed.append(store.belief(x)[True])
    assert believed == [0.1, 0.4, 0.6]


def test_a_model_with_a_window_goes_on_learning_after_the_warm_up():
    rng = np.random.default_rng(3)
    model = SkepticalClassifier(
        window() | preprocessing.StandardScaler() | GPClassifier(), warm_up=20, seed=1
    )
    n_right = 0
    for i in range(200):
        y = "off" if i // 20 % 2 else "on"
        x = {"a": (y == "on") + 0.3 * rng.normal()}
        predicted, ask = model.predict_one(x)
        n_right += i >= 100 and predicted == y
        if ask:
            model.learn_one(x, y)
    assert n_right >= 85


@pytest.mark.usefixtures("short")
@given(st.sets(st.integers(0, 40)))
def test_a_state_is_the_same_whenever_it_was_saved_before(cuts):
    def build():
        return scaling_of([window(), preprocessing.StandardScaler(), CountingLabels()], 20)

    often, once, saved = build(), build(), []
    for i, x in enumerate(rows(41)):
        for scaling in (often, once):
            scaling.observe(x)
            scaling.learn(scaling.extract(x), i % 2)
        if i in cuts:
            saved.append((often.state(), json.dumps(often.state())))
    assert often.state() == once.state()
    assert all(json.dumps(state) == text for state, text in saved)


@pytest.mark.usefixtures("short")
@given(st.integers(0, 40))
def test_a_restarted_window_goes_on_as_before(n):
    def build():
        return scaling_of([window() + Trend(), preprocessing.StandardScaler()], 5)

    whole, again, xs = build(), build(), rows(45)
    watched(whole, xs[:n])
    again.load_state(json.loads(json.dumps(whole.state())))
    for x in xs[n:]:
        assert again.observe(x) == whole.observe(x)
        assert again.extract(x) == whole.extract(x)
        assert again.transform(again.extract(xs[0])) == whole.transform(whole.extract(xs[0]))
    assert again.state() == whole.state()


def test_a_window_that_raises_has_noted_nothing():
    scaling = RunningScaling([window() + Trend()], NoScaling())
    watched(scaling, rows(5))
    before = scaling.state(), scaling.extract({"a": 1.0})
    with pytest.raises((ValueError, TypeError)):
        scaling.observe({"a": "bad"})
    assert (scaling.state(), scaling.extract({"a": 1.0})) == before
    scaling.observe({"a": 2.0})
    assert scaling.extract({"a": 2.0})["trend"] == 2.0 - rows(5)[3]["a"]


def test_what_a_window_does_not_know_yet_is_missing():
    largest = feature_extraction.Agg("a", None, stats.Max())
    scaling = RunningScaling([largest], NoScaling())
    assert scaling.extract({"a": 1.0}) == {}
    scaling.observe({"a": 1.0})
    assert scaling.extract({"a": 0.5}) == {"a_max": 1.0}


def test_the_last_value_goes_on_being_imputed():
    scaling = scaling_of([preprocessing.PreviousImputer()], warm_up=2)
    watched(scaling, [{"a": value} for value in (1.0, 2.0, 3.0, 4.0)])
    assert scaling.transform(scaling.extract({"a": None})) == {"a": 4.0}


@pytest.mark.parametrize(
    "transformers",
    [
        [preprocessing.StandardScaler(), window()],
        [window() + preprocessing.StandardScaler()],
        [compose.Select("a") + (compose.Select("b") | preprocessing.StandardScaler()), window()],
    ],
    ids=["in front", "beside", "nested"],
)
def test_what_freezes_must_be_behind_a_window(transformers):
    expected = (
        r"StandardScaler is frozen after the warm-up and Agg is not, so that StandardScaler cannot "
        r"be in front of it or beside it; put StandardScaler behind it in the pipeline"
    )
    with pytest.raises(ValueError, match=expected):
        scaling_of(transformers, warm_up=10)


@pytest.mark.parametrize(
    ("make", "learner"),
    [(SkepticalClassifier, GPClassifier()), (SkepticalRegressor, GPRegressor())],
)
def test_a_step_that_transforms_nothing_is_refused_before_the_first_event(make, learner):
    """An anomaly filter belongs in front of the whole, where River's pipeline knows what to do."""
    quantile = anomaly.QuantileFilter(anomaly.HalfSpaceTrees(seed=1), q=0.95)
    with pytest.raises(
        TypeError, match=r"a pipeline of transformers .* step QuantileFilter; put it"
    ):
        make(quantile | learner.clone())
    model = quantile.clone() | make(learner, seed=1)
    model.learn_one({"a": 1.0}, 1)
    assert model["QuantileFilter"].anomaly_detector.counter == 1
    assert model[-1].n_learned == 1


def test_a_window_needs_no_warm_up_and_what_is_behind_it_does():
    scaling_of([compose.Select("a"), window()], warm_up=0)
    with pytest.raises(ValueError, match="warm_up must be at least 1 for StandardScaler"):
        scaling_of([window(), preprocessing.StandardScaler()], warm_up=0)


def hour_of(x):
    x["hour"] = x.pop("t") % 24.0
    return x


@pytest.mark.parametrize("runs_on", [False, True])
def test_a_transformer_that_changes_what_it_is_given_changes_a_copy(runs_on):
    transformers = [compose.FuncTransformer(hour_of), preprocessing.StandardScaler()]
    if runs_on:
        transformers.insert(0, preprocessing.PreviousImputer())
    model = SkepticalClassifier(compose.Pipeline(*transformers, GPClassifier()), warm_up=10, seed=1)
    for n in range(30):
        x = {"t": float(n), "a": n % 3}
        model.predict_one(x)
        model.learn_one(x, n % 24 > 11)
        assert x == {"t": float(n), "a": n % 3}
    again = model.clone()
    again.load_state(json.loads(json.dumps(model.state())), model.examples())
    assert again.predict_proba_one(x) == model.predict_proba_one(x)
    assert model.examples()[-1].x == x
