"""Boosting is Algorithm 1: by hand, against a plain twin, and against the weak learner itself."""

import copy
import json
import math
import pickle
import random

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import (
    base,
    ensemble,
    feature_extraction,
    forest,
    linear_model,
    multiclass,
    naive_bayes,
    optim,
    preprocessing,
    tree,
)

from streamgp import (
    ConfidenceBoostingClassifier,
    GPClassifier,
    InteractiveLoop,
    OnlineForestClassifier,
    OnlineGradientBoostingClassifier,
    SkepticalClassifier,
    datasets,
)
from streamgp.common.uncertainty import UNCERTAINTIES, best_versus_second, normalised_entropy
from streamgp.interactive import Event
from streamgp.learners.boosting import (
    MAX_WEIGHT,
    Clones,
    clones,
    confidence_agreement,
    gradient_agreement,
    member_seed,
)
from streamgp.learners.forest import Forests
from streamgp.query import EqualErrorAsk

BOTH = [OnlineGradientBoostingClassifier, ConfidenceBoostingClassifier]
# A single leaf that predicts the shares of the weights it has learned.
SHARES = tree.HoeffdingTreeClassifier(grace_period=10**6, leaf_prediction="mc")


def rooms(n, seed=0, names=("hall", "den", "bath")):
    rng = random.Random(seed)
    for i in range(n):
        k = rng.randrange(min(len(names), 2 + i // 15))
        yield {"a": rng.gauss(2.0 * k, 1.0), "b": rng.gauss(-k, 1.0)}, names[k]


def taught(model, pairs):
    for x, y in pairs:
        model.learn_one(x, y)
    return model


def answers(model, n=8):
    return [model.predict_proba_one(x) for x, _ in rooms(n, seed=9)]


def small_forest():
    return OnlineForestClassifier(n_models=3, n_tests=5, min_weight=10)


# --- agreements


@pytest.mark.parametrize(
    ("p", "agreement"),
    [([1.0], 0.0), ([1.0, 0.0], 0.5), ([0.0, 1.0], -0.5), ([0.7, 0.2, 0.1], 0.7 - 1.0 / 3.0)],
)
def test_gradient_agreement_is_the_probability_above_a_guess(p, agreement):
    assert gradient_agreement(dict(enumerate(p)), 0) == pytest.approx(agreement)


@pytest.mark.parametrize(
    ("p", "agreement"),
    [
        ([1.0], 1.0),
        ([1.0, 0.0], 1.0),
        ([0.8, 0.2], 0.75),
        ([0.5, 0.5], 0.0),
        ([0.2, 0.8], -0.75),
        ([0.0, 1.0], -1.0),
        ([0.1, 0.2, 0.7], -(1.0 - (2.0 / 7.0) / 2.0)),
        ([0.2, 0.4, 0.4], -0.5),
        ([0.1, 0.3, 0.3, 0.3], -2.0 / 3.0),
    ],
)
def test_confidence_agreement_is_the_confidence_negative_if_wrong(p, agreement):
    found = confidence_agreement(dict(enumerate(p)), 0, best_versus_second)
    assert found == pytest.approx(agreement)


def test_confidence_agreement_takes_any_measure_of_uncertainty():
    p = {"hall": 0.9, "den": 0.1, "bath": 0.0}
    h = -(0.9 * math.log(0.9, 3) + 0.1 * math.log(0.1, 3))
    assert confidence_agreement(p, "hall", normalised_entropy) == pytest.approx(1.0 - h)
    assert confidence_agreement(p, "bath", normalised_entropy) == pytest.approx(-(1.0 - h / 2.0))


@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6).filter(lambda p: sum(p) > 1e-3),
    st.data(),
    st.sampled_from(sorted(UNCERTAINTIES)),
)
def test_agreements_are_between_minus_one_and_one_and_have_the_sign_of_the_prediction(p, data, h):
    p = {i: q / sum(p) for i, q in enumerate(p)}
    y = data.draw(st.sampled_from(range(len(p))))
    assert -1.0 <= gradient_agreement(p, y) <= 1.0
    found = confidence_agreement(p, y, UNCERTAINTIES[h])
    right = max(p, key=p.__getitem__) == y
    assert 0.0 <= found <= 1.0 if right else -1.0 <= found <= 0.0


# --- weights, by hand


def test_weights_of_gradient_boosting_by_hand():
    """A leaf that knows a twice and b once gives a 2/3; a guess would give it 1/2."""
    model = OnlineGradientBoostingClassifier(SHARES, n_models=2)
    taught(model, [({"x": 0.0}, y) for y in "ab"])
    assert model.mean_weights == [1.0, 1.0]
    model.learn_one({"x": 0.0}, "a")
    w = math.exp(-(2.0 / 3.0 - 1.0 / 2.0))
    assert model.mean_weights == pytest.approx([1.0, (2.0 + w) / 3.0])
    p = (2.0 / 3.0 + (1.0 + w) / (2.0 + w)) / 2.0
    assert model.predict_proba_one({"x": 0.0}) == pytest.approx({"a": p, "b": 1.0 - p})


def test_weights_of_confidence_boosting_by_hand():
    model = ConfidenceBoostingClassifier(SHARES, n_models=3)
    model.learn_one({"x": 0.0}, "a")
    # A single class is predicted with confidence.
    first = [1.0, math.exp(-1.0), math.exp(-2.0)]
    assert model.mean_weights == pytest.approx(first)
    model.learn_one({"x": 0.0}, "b")
    # The first learner has a tie, which is a for sure: no agreement; the second knows b better, and
    # the ratio of what it knows is e^-1.
    second = [1.0, 1.0, math.exp(-(1.0 - math.exp(-1.0)))]
    means = [(a + b) / 2.0 for a, b in zip(first, second, strict=True)]
    assert model.mean_weights == pytest.approx(means)


def test_the_paper_counts_agreements_by_half():
    model = ConfidenceBoostingClassifier(SHARES, n_models=3, preset="paper")
    model.learn_one({"x": 0.0}, "a")
    assert model.mean_weights == pytest.approx([1.0, math.exp(-0.5), math.exp(-1.0)])


def test_normalised_weights_are_divided_by_their_mean():
    plain, normalised = (
        ConfidenceBoostingClassifier(SHARES, n_models=2, normalise_weights=n) for n in (False, True)
    )
    taught(plain, [({"x": 0.0}, "a")])
    taught(normalised, [({"x": 0.0}, "a")])
    # The first one is its own mean: the second learner takes it with weight 1 instead of e^-1.
    tie = {"a": 0.5, "b": 0.5}
    for model in (plain, normalised):
        model.learn_one({"x": 0.0}, "b")
    one = normalised.mean_weights[1]
    assert one == pytest.approx((math.exp(-1.0) + 1.0) / 2.0)
    second = {"a": 1.0 / (1.0 + 1.0 / one), "b": (1.0 / one) / (1.0 + 1.0 / one)}
    expected = {y: (tie[y] + second[y]) / 2.0 for y in tie}
    assert normalised.predict_proba_one({"x": 0.0}) == pytest.approx(expected)


def test_normalised_weights_let_the_last_learner_learn_as_much_as_the_first():
    def last_weight(**options):
        model = OnlineGradientBoostingClassifier(
            tree.HoeffdingTreeClassifier(), n_models=6, **options
        )
        taught(model, rooms(400))
        return model._weak._learners[-1]._root.total_weight

    assert last_weight() < 150.0
    assert last_weight(normalise_weights=True) == pytest.approx(400.0, rel=0.25)


@pytest.mark.parametrize("normalise", [False, True])
def test_no_weight_exceeds_the_cap(normalise):
    model = ConfidenceBoostingClassifier(SHARES, n_models=9, normalise_weights=normalise)
    taught(model, [({"x": 0.0}, "a")] * 1000)
    before = [learner._root.total_weight for learner in model._weak._learners]
    model.learn_one({"x": 0.0}, "b")
    after = [learner._root.total_weight for learner in model._weak._learners]
    gained = [b - a for a, b in zip(before, after, strict=True)]
    assert max(gained) == pytest.approx(MAX_WEIGHT)


class Stubborn(base.Classifier):
    """Predicts a, whatever it learns."""

    def learn_one(self, x, y, w=1.0):
        pass

    def predict_proba_one(self, x):  # noqa: ARG002
        return {"a": 1.0}


@pytest.mark.parametrize(("y", "normalise"), [("a", True), ("b", False)])
def test_weights_of_a_thousand_learners_are_finite(y, normalise):
    """If all agree in full, the last weight would be e^-1000, which is 0, and if none e^1000."""
    model = ConfidenceBoostingClassifier(
        Stubborn(), n_models=1000, normalise_weights=normalise, seed=1
    )
    taught(model, [({"x": 0.0}, y)] * 2)
    assert all(0.0 < weight <= MAX_WEIGHT for weight in model.mean_weights)


# --- the whole algorithm, implemented again


def twin(agreement, weak, pairs, *, share=1.0, normalise=False):
    """Algorithm 1 as it is printed, over weak learners of River."""
    labels, means = [], [0.0] * len(weak)
    for n, (x, y) in enumerate(pairs, 1):
        labels += [] if y in labels else [y]
        w, g = 1.0, 0.0
        for m, f in enumerate(weak):
            means[m] += max(1.0 / n, 0.01) * (w - means[m])
            f.learn_one(x, y, w=min(w / means[m], 10.0) if normalise else w)
            p = f.predict_proba_one(x)
            g += share * agreement([p.get(label, 0.0) for label in labels], labels.index(y))
            w = min(math.exp(-g), 10.0)

    def proba(x):
        said = [f.predict_proba_one(x) for f in weak]
        return {label: sum(p.get(label, 0.0) for p in said) / len(weak) for label in labels}

    return proba


def by_gradient(p, i):
    return p[i] - 1.0 / len(p)


def by_confidence(p, i):
    if len(p) == 1:
        return 1.0
    second, best = sorted(p)[-2:]
    xi = int(p.index(best) != i)
    return (-1) ** xi * (1.0 - second / best / (len(p) - 1) ** xi)


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize(
    ("kind", "agreement"),
    [
        (OnlineGradientBoostingClassifier, by_gradient),
        (ConfidenceBoostingClassifier, by_confidence),
    ],
)
def test_it_is_the_algorithm_as_it_is_printed(kind, agreement, preset, normalise):
    weak = tree.HoeffdingTreeClassifier(grace_period=20)
    model = kind(weak, n_models=4, normalise_weights=normalise, preset=preset, seed=1)
    taught(model, rooms(150))
    share = {"default": 1.0, "paper": 0.5}[preset]
    learners = [weak.clone() for _ in range(4)]
    proba = twin(agreement, learners, rooms(150), share=share, normalise=normalise)
    for x, _ in rooms(40, seed=9):
        assert model.predict_proba_one(x) == pytest.approx(proba(x), abs=1e-12)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "weak", [tree.HoeffdingTreeClassifier(grace_period=20), naive_bayes.GaussianNB()]
)
def test_one_weak_learner_is_that_learner(kind, weak):
    model = taught(kind(weak, n_models=1, seed=1), rooms(80))
    assert answers(model) == answers(taught(weak.clone(), rooms(80)))


@pytest.mark.parametrize("kind", BOTH)
def test_confidence_is_what_the_uncertainty_leaves(kind):
    for name, h in UNCERTAINTIES.items():
        model = taught(kind(SHARES, n_models=2, uncertainty=name), rooms(30))
        p = model.predict_proba_one({})
        assert model.confidence_one({}) == 1.0 - h(p)


# --- weak learners


@given(st.floats(0.0, MAX_WEIGHT), st.integers(0, 2**32))
def test_without_weights_an_example_is_learned_the_weight_up_or_down(w, seed):
    weak = clones(naive_bayes.GaussianNB(), 1, seed)
    weak.meet({"a": 1.0}, "hall")
    weak.learn(0, w)
    (learner,) = weak._learners
    assert learner.class_counts["hall"] in (math.floor(w), math.ceil(w))


def test_without_weights_an_example_is_learned_as_often_as_its_weight_on_average():
    weak = clones(naive_bayes.GaussianNB(), 1, 1)
    weak.meet({"a": 1.0}, "hall")
    for _ in range(2000):
        weak.learn(0, 1.3)
    assert weak._learners[0].class_counts["hall"] == pytest.approx(2600, abs=100)


WEAK = {
    "Hoeffding trees": tree.HoeffdingTreeClassifier(grace_period=20),
    "Mondrian forests": forest.AMFClassifier(n_estimators=3),
    "a pipeline": preprocessing.StandardScaler() | tree.HoeffdingTreeClassifier(grace_period=20),
    "online forests": small_forest(),
}


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("weak", WEAK)
def test_classes_are_learned(kind, weak):
    model = taught(kind(WEAK[weak], n_models=4, seed=1), rooms(300))
    right = sum(model.predict_one(x) == y for x, y in rooms(300, seed=5))
    assert right > 220  # the classes overlap: the best possible is about 250


@pytest.mark.parametrize(
    "weak",
    [forest.AMFClassifier(seed=3), preprocessing.StandardScaler() | forest.AMFClassifier()],
)
def test_clones_have_seeds_of_their_own_that_follow_from_one(weak):
    def seeds(seed):
        found = [learner._get_params() for learner in clones(weak, 4, seed)._learners]
        return [p.get("AMFClassifier", p)["seed"] for p in found]

    assert len(set(seeds(1))) == 4
    assert seeds(1) == seeds(1)
    assert not set(seeds(1)) & set(seeds(2))


def test_seeds_are_found_at_any_depth():
    weak = preprocessing.StandardScaler() | OnlineGradientBoostingClassifier(forest.AMFClassifier())
    inner = [p.steps["OnlineGradientBoostingClassifier"] for p in clones(weak, 3, 1)._learners]
    assert len({model.seed for model in inner}) == 3
    assert len({model.model.seed for model in inner}) == 3


@pytest.mark.parametrize(
    "weak",
    [
        (preprocessing.StandardScaler() + feature_extraction.RBFSampler())
        | naive_bayes.GaussianNB(),
        ensemble.StackingClassifier(
            [naive_bayes.GaussianNB(), forest.AMFClassifier()], naive_bayes.GaussianNB()
        ),
        multiclass.OneVsRestClassifier(
            linear_model.LogisticRegression(initializer=optim.initializers.Normal())
        ),
    ],
    ids=["in a union", "in a list", "in an initializer"],
)
def test_one_seed_determines_all_that_is_random_inside(weak):
    def model(seed):
        boosted = ConfidenceBoostingClassifier(weak, n_models=2, seed=seed)
        return taught(boosted, list(rooms(60)))

    assert answers(model(1)) == answers(model(1)) != answers(model(2))


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("kind", BOTH)
def test_forests_in_the_same_arrays_are_clones_with_their_seeds(kind, normalise):
    model = kind(small_forest(), n_models=4, normalise_weights=normalise, seed=7)
    assert isinstance(model._weak, Forests)
    slow = model.clone()
    members = [small_forest().clone({"seed": member_seed(7, m)}) for m in range(4)]
    slow._weak = Clones(members, seed=7)
    taught(model, rooms(120))
    taught(slow, rooms(120))
    assert answers(model, 40) == answers(slow, 40)
    assert model.mean_weights == slow.mean_weights


def test_a_binary_classifier_makes_a_binary_ensemble():
    model = ConfidenceBoostingClassifier(linear_model.LogisticRegression(), n_models=3)
    assert not model._multiclass
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    model.learn_one({"a": 1.0}, True)
    assert model.predict_proba_one({"a": 1.0}).keys() == {False, True}


def test_a_learner_with_nothing_to_say_gives_all_classes_the_same():
    weak = Clones([naive_bayes.GaussianNB(), naive_bayes.GaussianNB()], seed=1)
    weak.meet({"a": 0.0}, "hall")
    weak.learn(0, 1.0)
    weak.meet({"a": 1.0}, "den")
    weak.learn(0, 1.0)
    assert weak.learn(1, 0.0) == {"hall": 0.5, "den": 0.5}
    assert weak.probabilities({"a": 0.0})[1].tolist() == [0.5, 0.5]


# --- many at once


@pytest.mark.parametrize(
    "weak", [None, tree.HoeffdingTreeClassifier(grace_period=20), small_forest()]
)
def test_many_at_once_are_one_by_one(weak):
    pairs = list(rooms(60))
    X, y = pd.DataFrame([x for x, _ in pairs]), pd.Series([y for _, y in pairs])
    model = ConfidenceBoostingClassifier(weak, n_models=3, seed=1)
    assert model.predict_proba_many(X).shape == (60, 0)
    assert model.predict_many(X).tolist() == [None] * 60
    one_by_one = taught(model.clone(), pairs)
    model.learn_many(X, y)
    assert answers(model) == answers(one_by_one)
    many = model.predict_proba_many(X)
    assert many.to_dict("records") == [one_by_one.predict_proba_one(x) for x, _ in pairs]
    assert model.predict_many(X).tolist() == [one_by_one.predict_one(x) for x, _ in pairs]
    assert model.predict_proba_many(X[:0]).shape == (0, 3)


def test_more_rows_than_are_predicted_at_a_time_are_predicted(monkeypatch):
    model = taught(ConfidenceBoostingClassifier(small_forest(), n_models=2, seed=1), rooms(60))
    X = pd.DataFrame([x for x, _ in rooms(50, seed=3)], index=range(7, 57))
    whole = model.predict_proba_many(X)
    monkeypatch.setattr("streamgp.learners.boosting._ROWS", 8)
    pd.testing.assert_frame_equal(model.predict_proba_many(X), whole)


def test_weak_learners_that_take_many_at_once_are_asked_so():
    model = ConfidenceBoostingClassifier(linear_model.LogisticRegression(), n_models=2)
    pairs = [(x, y == "hall") for x, y in rooms(40)]
    taught(model, pairs)
    X = pd.DataFrame([x for x, _ in pairs])
    one_by_one = [model.predict_proba_one(x) for x, _ in pairs]
    for row, p in zip(model.predict_proba_many(X).to_dict("records"), one_by_one, strict=True):
        assert row == pytest.approx(p)


def test_a_learner_with_nothing_to_say_says_so_many_times():
    model = OnlineGradientBoostingClassifier(GPClassifier(noise_variance=0.1), n_models=6, seed=1)
    X = pd.DataFrame([x for x, _ in rooms(5)])
    assert model.predict_proba_many(X).shape == (5, 0)
    # Each later one learns the label of the second example or does not.
    taught(model, [({"a": 0.0, "b": 0.0}, "hall"), ({"a": 1.0, "b": 0.0}, "den")])
    one_by_one = [model.predict_proba_one(x) for x, _ in rooms(5)]
    for row, p in zip(model.predict_proba_many(X).to_dict("records"), one_by_one, strict=True):
        assert row == pytest.approx(p, abs=1e-9)


# --- over a restart


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("weak", [None, forest.AMFClassifier(n_estimators=2)])
def test_a_restart_changes_no_bit(kind, seed, weak):
    model = taught(kind(weak, n_models=3, seed=seed), rooms(40))
    again = kind(weak, n_models=3, seed=seed)
    again.load_state(json.loads(json.dumps(model.state())))
    taught(again, rooms(40))
    assert answers(again) == answers(model)
    rest = list(rooms(20, seed=3))
    assert answers(taught(again, rest)) == answers(taught(model, rest))


def test_a_drawn_seed_is_another_one_every_time():
    a, b = (taught(ConfidenceBoostingClassifier(n_models=2), rooms(40)) for _ in range(2))
    assert a.state() != b.state()
    assert ConfidenceBoostingClassifier(seed=1).state() is None


@pytest.mark.parametrize("weak", [small_forest(), tree.HoeffdingTreeClassifier(grace_period=10)])
def test_behind_a_conversation_it_survives_a_restart(weak):
    def wrapped():
        learner = ConfidenceBoostingClassifier(weak, n_models=3)
        return SkepticalClassifier(learner, EqualErrorAsk(), warm_up=15, seed=2)

    model = wrapped()
    loop = InteractiveLoop(model)
    events = list(datasets.WiFiRooms().take(60))
    for n, (x, y) in enumerate(events):
        loop.on_event(Event(event_id=str(n), x=x, occurred_at=float(n), y=y), n)
    model.relabel_one("3", 4)
    again = wrapped()
    again.load_state(json.loads(json.dumps(model.state())), model.examples())
    for x, _ in events:
        assert again.predict_proba_one(x) == model.predict_proba_one(x)
        assert again.query_one(x, event_id="new") == model.query_one(x, event_id="new")


@pytest.mark.parametrize("weak", [None, tree.HoeffdingTreeClassifier()])
def test_a_refused_example_leaves_a_skeptical_learner_as_it_was(weak):
    model = SkepticalClassifier(
        ConfidenceBoostingClassifier(weak, n_models=3, seed=1), warm_up=0, seed=1
    )
    taught(model, rooms(30))
    before = answers(model)
    with pytest.raises((TypeError, ValueError)):
        model.learn_one({"a": b"loud", "b": 1.0}, "hall")
    assert answers(model) == before
    twin = SkepticalClassifier(model.model.clone(), warm_up=0, seed=1)
    taught(twin, rooms(30))
    assert answers(taught(model, rooms(10, 3))) == answers(taught(twin, rooms(10, 3)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_of_clones_goes_its_own_way(copied):
    model = taught(ConfidenceBoostingClassifier(WEAK["a pipeline"], n_models=2, seed=1), rooms(30))
    twin, before = copied(model), answers(model)
    taught(twin, rooms(20, 2))
    assert answers(model) == before != answers(twin)


# --- what is refused


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_models": 0}, ValueError, "n_models must be a whole number of at least 1, got 0"),
        ({"n_models": 1.5}, ValueError, "n_models must be a whole number of at least 1, got 1.5"),
        ({"preset": "best"}, ValueError, "preset must be 'default' or 'paper', got 'best'"),
        ({"uncertainty": "gini"}, ValueError, "uncertainty must be 'bvsb' or 'entropy', got 'gini"),
        (
            {"model": linear_model.LinearRegression()},
            TypeError,
            "model must be a River classifier that is not an active learner itself, or a pipeline",
        ),
        (
            {"model": SkepticalClassifier(naive_bayes.GaussianNB())},
            TypeError,
            "model must be a River classifier that is not an active learner itself",
        ),
        (
            {"model": multiclass.OneVsOneClassifier(linear_model.LogisticRegression())},
            TypeError,
            "model must predict probabilities, which OneVsOneClassifier does not",
        ),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_arguments_are_checked(kind, options, error, message):
    with pytest.raises(error, match=message):
        kind(**options)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("weak", [linear_model.LogisticRegression, linear_model.SoftmaxRegression])
def test_probabilities_that_are_no_numbers_are_refused(kind, weak):
    """By them every weight would be lost, of later weak learners and of later examples."""
    model = taught(kind(weak(), n_models=2, seed=1), [({"a": 0.5}, False), ({"a": 1.5}, True)])
    refused = "weak learners must make finite probabilities of the features, got {.*nan"
    with pytest.raises(ValueError, match=refused):
        model.predict_proba_one({"a": math.nan})
    with pytest.raises(ValueError, match=refused):
        model.predict_proba_many(pd.DataFrame({"a": [0.5, math.nan]}))
    with pytest.raises(ValueError, match=refused):
        model.learn_one({"a": math.nan}, True)
