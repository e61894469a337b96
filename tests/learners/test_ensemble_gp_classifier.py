import json
import pickle
import random

import numpy as np
import pytest

from streamgp import EnsembleGPClassifier, InteractiveLoop, SkepticalClassifier, datasets
from streamgp.base import Posterior
from streamgp.interactive import Event

OPTIONS = {
    "default": {"seed": 1},
    "logistic": {"likelihood": "logistic", "seed": 1},
    "paper": {"preset": "paper", "seed": 1},
    "forgetting": {"forgetting": 0.95, "seed": 1},
    "no seed": {},
}


def rooms(n, seed=0, names=("hall", "den", "bath")):
    rng = random.Random(seed)
    for i in range(n):
        k = rng.randrange(min(len(names), 2 + i // 15))
        yield {"a": rng.gauss(2.0 * k, 1.0), "b": rng.gauss(-k, 1.0)}, names[k]


def taught(pairs, model=None, **options):
    model = EnsembleGPClassifier(n_features=20, **options) if model is None else model
    for x, y in pairs:
        model.learn_one(x, y)
    return model


def answers(model, n=8):
    return [model.predict_proba_one(x, with_dist=True) for x, _ in rooms(n, seed=9)]


@pytest.mark.parametrize("likelihood", ["regression", "logistic"])
def test_classes_are_learned(likelihood):
    model = taught(rooms(300), likelihood=likelihood, seed=1)
    right = sum(model.predict_one(x) == y for x, y in rooms(300, seed=5))
    assert right > 220  # the classes overlap: the best possible is about 250


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("n", [0, 5, 10, 60])
def test_a_restart_changes_no_bit(name, n):
    model = taught(rooms(n), **OPTIONS[name])
    again = EnsembleGPClassifier(n_features=20, **OPTIONS[name])
    again.load_state(json.loads(json.dumps(model.state())))
    taught(rooms(n), again)
    assert answers(again) == answers(model)
    rest = list(rooms(40, seed=3))
    assert answers(taught(rest, again)) == answers(taught(rest, model))


@pytest.mark.parametrize("name", OPTIONS)
def test_what_it_believes_is_the_mixture_of_its_experts(name):
    for belief in answers(taught(rooms(60), **OPTIONS[name])):
        best = max(belief.mean, key=belief.mean.__getitem__)
        means = np.array([part.mean[best] for part in belief.components])
        variances = np.array([part.variance for part in belief.components])
        mean = means @ belief.weights
        assert belief.mean[best] == pytest.approx(mean)
        assert belief.variance == pytest.approx((variances + (means - mean) ** 2) @ belief.weights)
        assert isinstance(belief, Posterior)
        assert sum(belief.weights) == pytest.approx(1.0)
        assert belief.variance >= 0.0
        assert belief.prior_variance > 0.0


@pytest.mark.parametrize("name", OPTIONS)
def test_probabilities_are_those_of_what_it_believes(name):
    model = taught(rooms(60), **OPTIONS[name])
    for x, _ in rooms(10, seed=9):
        p = model.predict_proba_one(x)
        assert model.predict_proba_one(x, with_dist=True).probabilities() == p
        assert max(p, key=p.__getitem__) == model.predict_one(x)


def test_before_any_label_it_knows_nothing():
    model = EnsembleGPClassifier(seed=1)
    belief = model.predict_proba_one({"a": 1.0}, with_dist=True)
    assert (belief.mean, belief.prior_variance) == ({}, pytest.approx(1.0))
    assert belief.variance == pytest.approx(1.0)
    assert (model.predict_one({"a": 1.0}), model.labels, model.n_learned) == (None, [], 0)


@pytest.mark.parametrize("likelihood", ["regression", "logistic"])
def test_a_class_that_is_known_beforehand_changes_no_bit_of_the_others(likelihood):
    """But for what is fitted to all classes."""
    few, many = (
        EnsembleGPClassifier(n_features=20, likelihood=likelihood, refit=False, seed=1)
        for _ in range(2)
    )
    for y in ("hall", "den", "bath"):
        few._add_label(y)
        many._add_label(y)
    many._add_label("never")
    for model in (few, many):
        taught(rooms(40), model)
    if likelihood == "regression":
        for x, _ in rooms(5, seed=9):
            one = few.predict_proba_one(x, with_dist=True)
            other = many.predict_proba_one(x, with_dist=True)
            for p, q in zip(one.components, other.components, strict=True):
                assert [p.mean[y] for y in few.labels] == [q.mean[y] for y in few.labels]
    else:
        assert np.array_equal(few._core.experts.theta[:3], many._core.experts.theta[:3])


def test_a_class_that_comes_late_is_learned_soon():
    """Of one class alone there is no noise; a fit soon after the second one sees that."""
    rng = random.Random(0)
    model = EnsembleGPClassifier(seed=1)
    for i in range(560):
        k = i >= 500
        model.learn_one({"a": rng.gauss(3.0 * k, 0.5)}, "late" if k else "early")
    assert model.predict_one({"a": 3.0}) == "late"
    assert model.predict_one({"a": 0.0}) == "early"


def test_one_wrong_label_in_a_hundred_is_always_possible():
    model = taught((({"a": float(i % 2)}, i % 2 == 1) for i in range(40)), seed=1)
    noise = model._core.experts.noise_variances
    assert noise.min() >= 0.005 * (1 - 1e-12)


@pytest.mark.parametrize("likelihood", ["regression", "logistic"])
def test_a_refused_example_makes_no_class_known(likelihood):
    model = taught(rooms(20), likelihood=likelihood, seed=1)
    before = pickle.dumps(model)
    for x, y, error in (
        ({"a": float("inf")}, "new", ValueError),
        ({"a": b"loud"}, "new", TypeError),
        ({"a": 1.0}, None, TypeError),
    ):
        with pytest.raises(error):
            model.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_a_likelihood_must_be_known():
    with pytest.raises(ValueError, match="likelihood must be 'regression' or 'logistic', got 'pro"):
        EnsembleGPClassifier(likelihood="probit")


def test_a_conversation_survives_a_restart_bitwise():
    def wrapped():
        learner = EnsembleGPClassifier(n_features=10, seed=3)
        return SkepticalClassifier(learner, warm_up=15, seed=2)

    model = wrapped()
    loop = InteractiveLoop(model)
    events = list(datasets.WiFiRooms().take(40))
    for n, (x, y) in enumerate(events):
        loop.on_event(Event(event_id=str(n), x=x, occurred_at=float(n), y=y), n)
    model.relabel_one("3", 4)
    again = wrapped()
    again.load_state(json.loads(json.dumps(model.state())), model.examples())
    for x, _ in events:
        assert again.predict_proba_one(x) == model.predict_proba_one(x)
    assert again.learner.state() == model.learner.state()
