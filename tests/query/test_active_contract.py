"""River's evaluators and ensembles; its checks are in `tests/learners/test_contract.py`."""

import copy
import pickle

import pytest
from river import (
    bandit,
    drift,
    ensemble,
    evaluate,
    metrics,
    model_selection,
    naive_bayes,
    preprocessing,
)

from streamgp import SkepticalClassifier, isgp
from streamgp.datasets import WiFiRooms
from streamgp.query import BestVersusSecond, RateBudget

MODELS = {
    "isgp": lambda: isgp(seed=1),
    "isgp, paper": lambda: isgp("paper", seed=1),
    "naive Bayes": lambda: SkepticalClassifier(
        naive_bayes.GaussianNB(), BestVersusSecond(0.0), budget=RateBudget(0.3, seed=1), seed=1
    ),
}


def events(n=160):
    """Events of two rooms in turn: is it the first?"""
    rows = list(WiFiRooms())
    one, two = [x for x, y in rows if y == rows[0][1]], [x for x, y in rows if y != rows[0][1]]
    return [xy for a, b in zip(one, two, strict=False) for xy in ((a, True), (b, False))][:n]


def by_hand(model, events, delay=0):
    """Play a stream as River's contract says; return labels, probabilities and questions."""
    found, waiting = [], []

    def answer():
        x, y, ask = waiting.pop(0)
        if ask:
            model.learn_one(x, y)

    for x, y in events:
        if len(waiting) >= max(delay, 1):
            answer()
        label, ask = model.predict_one(x)
        found.append((y, label, model.predict_proba_one(x).copy(), ask))
        waiting.append((x, y, ask))
    while waiting:
        answer()
    return found


def scored(metric, found):
    for y, label, proba, _ in found:
        if metric.requires_labels and label is not None:
            metric.update(y, label)
        elif not metric.requires_labels and proba:
            metric.update(y, proba)
    return metric.get()


# --- River's evaluators


@pytest.mark.parametrize("delay", [None, 7])
@pytest.mark.parametrize("metric", [metrics.Accuracy, metrics.ROCAUC, metrics.LogLoss])
@pytest.mark.parametrize("name", MODELS)
def test_every_metric_sees_what_the_contract_says(name, metric, delay):
    model, twin = MODELS[name](), MODELS[name]()
    score = evaluate.progressive_val_score(events(), model, metric(), delay=delay)
    found = by_hand(twin, events(), delay=delay or 0)
    assert score.get() == pytest.approx(scored(metric(), found), abs=1e-12)
    assert model.examples() == twin.examples()
    assert model.state() == twin.state()
    assert 0 < model.n_learned == sum(ask for *_, ask in found)


def test_metrics_of_labels_and_of_probabilities_can_be_joined():
    joined = evaluate.progressive_val_score(
        events(), isgp(seed=1), metrics.Accuracy() + metrics.LogLoss()
    )
    alone = [
        evaluate.progressive_val_score(events(), isgp(seed=1), kind())
        for kind in (metrics.Accuracy, metrics.LogLoss)
    ]
    assert joined.get() == [metric.get() for metric in alone]


def test_the_iterator_counts_every_label_used():
    model = isgp(seed=1)
    steps = evaluate.iter_progressive_val_score(events(), model, metrics.ROCAUC(), step=40)
    assert [step["Samples used"] for step in steps][-1] == model.n_learned > 0


def test_it_may_be_the_end_of_a_pipeline():
    model = preprocessing.StandardScaler() | isgp(seed=1)
    metric = evaluate.progressive_val_score(events(), model, metrics.ROCAUC())
    assert metric.get() > 0.9
    assert model["SkepticalClassifier"]._n_events == len(events())


# --- others of River's, which take the probabilities as they are


WRAPPED = {
    "voting": lambda model: ensemble.VotingClassifier([model, naive_bayes.GaussianNB()]),
    "bagging": lambda model: ensemble.BaggingClassifier(model, n_models=2, seed=1),
    "retraining": lambda model: drift.DriftRetrainingClassifier(model),
    "bandit": lambda model: model_selection.BanditClassifier(
        [model, model.clone({"seed": 2})],
        metric=metrics.LogLoss(),
        policy=bandit.EpsilonGreedy(epsilon=0.5, seed=1),
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_probabilities_that_are_not_unpacked_count_nothing(name):
    def played(times):
        model, found = WRAPPED[name](isgp(seed=1)), []
        ask = model.predict_one if name == "voting" else model.predict_proba_one
        for x, y in events(40):
            told = [ask(x) for _ in range(times)]
            found.append(told[-1])
            model.learn_one(x, y)
        return found

    assert played(1) == played(3)
    assert played(1)[-1] not in (None, {})


# --- the dictionary itself


def test_unpacking_counts_an_event_once_however_often_it_is_done():
    model = isgp(seed=1)
    proba = model.predict_proba_one({"a": 1.0})
    assert model._n_events == 0
    first, second = ([*pair] for pair in (unpacked(proba), unpacked(proba)))
    assert first == second == [{}, True]
    assert model._n_events == 1


def unpacked(proba):
    known, ask = proba
    return known, ask


def test_two_classes_are_listed_by_everything_but_a_pair():
    model = isgp(seed=1)
    for x, y in events(10):
        model.learn_one(x, y)
    seen = model._n_events
    proba = model.predict_proba_one(events(1)[0][0])
    assert isinstance(proba, dict)
    assert list(proba) == [*proba] == [k for k in proba] == [True, False]  # noqa: C416
    assert set(proba) == proba.keys() == {True, False}
    first, *rest = proba
    assert [first, *rest] == [True, False]
    assert max(proba, key=proba.get) is max(proba.items(), key=lambda kv: kv[1])[0] is True
    assert model._n_events == seen


def test_copies_are_plain_and_keep_no_model():
    model = isgp(seed=1)
    model.learn_one({"a": 1.0}, "p")
    proba = model.predict_proba_one({"a": 1.0})
    for made in (
        copy.copy(proba),
        copy.deepcopy(proba),
        pickle.loads(pickle.dumps(proba)),
        proba.copy(),
        dict(proba),
        proba | {},
    ):
        assert type(made) is dict
        assert made == proba == {"p": 1.0}


def test_labels_are_counted_for_the_annotator_who_gave_them():
    model, xys = isgp(seed=1), events(120)
    for n, (x, y) in enumerate(xys):
        model.predict_one(x)
        liar = n % 3 == 0
        model.learn_one(x, y, y != liar, annotator="eve" if liar else "ann")
    assert [model.annotator_judge().n_answers(name) for name in ("ann", "eve", None)] == [80, 40, 0]
    assert model.error_rate("ann") < 0.1 < 0.5 < model.error_rate("eve")
