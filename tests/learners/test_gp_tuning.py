"""Classifiers that learn their hyperparameters."""

import copy
import itertools
import json
import math
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import metrics
from scipy import stats

from streamgp import (
    GPClassifier,
    GPRegressor,
    SimulatedAnnotator,
    SkepticalClassifier,
    interactive_val_score,
)
from streamgp.datasets import WiFiRooms
from streamgp.gp.hyperparameters import Hyperparameters, fit_steps
from streamgp.gp.marginal_likelihood import at_once
from streamgp.kernels import Categorical, On, SquaredExponential
from streamgp.learners import gp_core, gp_regressor, gp_tuning
from streamgp.learners.gp_tuning import Tuning
from tests.helpers.forgetful import JumpyWatch


def squares(n, seed=0):
    """Classes on a chessboard whose squares are smaller than the default length scale."""
    rng = random.Random(seed)
    for _ in range(n):
        a, b = rng.uniform(-2.0, 2.0), rng.uniform(-2.0, 2.0)
        yield {"a": a, "b": b}, "pq"[(math.floor(a) + math.floor(b)) % 2]


def taught(n, *, events=True, **options):
    model = GPClassifier(**{"learn_hyperparameters": True, **options})
    for i, (x, y) in enumerate(squares(n)):
        model.learn_one(x, y, event_id=str(i) if events else None)
    return model


def accuracy(model, n=300):
    return sum(model.predict_one(x) == y for x, y in squares(n, seed=1)) / n


def beliefs(model):
    return [model.predict_proba_one(x, with_dist=True) for x, _ in squares(5, seed=2)]


@pytest.mark.parametrize("max_points", [None, 60])
def test_learned_hyperparameters_find_what_given_ones_do_not(max_points):
    given = taught(300, learn_hyperparameters=False, max_points=max_points)
    learned = taught(300, learn_hyperparameters=True, max_points=max_points)
    scale = learned.hyperparameters.kernel.length_scale
    assert scale < 0.7 * given.hyperparameters.kernel.length_scale
    assert accuracy(learned) > accuracy(given) + 0.08


def test_they_are_learned_whenever_the_number_of_examples_has_doubled():
    model, changes, before = GPClassifier(learn_hyperparameters=True), [], None
    for i, (x, y) in enumerate(squares(140)):
        model.learn_one(x, y)
        if model.state() != before:
            before = model.state()
            changes.append((i + 1, before["due"]))
    # A few examples after it began.
    assert [due for _, due in changes] == [64, 128, 256]
    assert all(due < 2 * i < 1.2 * due for i, due in changes)


def test_the_example_with_which_it_starts_over_counts_once():
    class Watch(JumpyWatch):
        def note(self, wrong):
            return self.n_drifts < 6 and super().note(wrong)

    model, changes = GPClassifier(learn_hyperparameters=True, drift=True), {}
    model._watch = Watch()
    for i, (x, y) in enumerate(squares(300)):
        model.learn_one(x, y)
        if (state := model.state()) is not None and model.n_drifts == 6:
            changes.setdefault(state["due"], i + 1)
    assert model.n_drifts == 6
    searches = [(due, n) for due, n in changes.items() if n > min(changes.values())]
    assert len(searches) >= 2
    assert all(due < 2 * n < 1.2 * due for due, n in searches)


def test_an_exact_learner_is_as_if_they_had_been_given():
    model = taught(140)
    these = model.hyperparameters
    other = GPClassifier(these.kernel, these.noise_variance)
    for x, y in squares(140):
        other.learn_one(x, y)
    assert beliefs(model) == beliefs(other)


def test_they_survive_a_restart_bitwise():
    model = taught(70, learn_hyperparameters=True)
    again = GPClassifier(learn_hyperparameters=True)
    again.load_state(json.loads(json.dumps(model.state())))
    for i, (x, y) in enumerate(squares(70)):
        again.learn_one(x, y, event_id=str(i))
    for x, y in squares(80, seed=3):
        assert beliefs(again) == beliefs(model)
        model.learn_one(x, y)
        again.learn_one(x, y)
    assert again.state() == model.state()


@pytest.mark.parametrize("max_points", [None, 40])
def test_a_copy_of_one_that_searches_goes_on_with_the_same_bits(max_points):
    """Whatever the search has come to: the fit, a trial or the process with the result."""
    model = GPClassifier(learn_hyperparameters=True, max_points=max_points)
    copies = []
    for i, (x, y) in enumerate(squares(90)):
        if 31 < i < 90 and i % 3 == 0:
            copies.append(copy.deepcopy(model) if i % 2 else pickle.loads(pickle.dumps(model)))
        for one in (model, *copies):
            one.learn_one(x, y)
    assert {repr(one.state()) for one in copies} == {repr(model.state())}
    assert {repr(beliefs(one)) for one in copies} == {repr(beliefs(model))}


@pytest.mark.parametrize("n", [33, 36, 39, 66, 70, 75])
@pytest.mark.parametrize("change", ["nothing", "relabel"])
def test_a_restart_in_the_middle_of_a_search_repeats_it(n, change):
    """Nothing of a search is saved: it begins with the same example."""
    model, again = (GPClassifier(learn_hyperparameters=True) for _ in range(2))
    events = list(squares(140))
    for i, (x, y) in enumerate(events[:n]):
        model.learn_one(x, y, event_id=str(i))
    if change == "relabel":
        model.relabel_one("3", "p")
        events[3] = events[3][0], "p"
    again.load_state(json.loads(json.dumps(model.state())))
    for i, (x, y) in enumerate(events[:n]):
        again.learn_one(x, y, event_id=str(i))
    for x, y in events[n:]:
        assert beliefs(again) == beliefs(model)
        model.learn_one(x, y)
        again.learn_one(x, y)
    assert again.state() == model.state()


def test_the_same_examples_lead_to_the_same_bits():
    one, other = (taught(300, learn_hyperparameters=True) for _ in range(2))
    assert one.state() == other.state()
    assert one.state()["vector"] is not None
    assert beliefs(one) == beliefs(other)


def begun(tuner, prior, score):
    """A search among the examples noted."""
    assert tuner.begin(prior, 2, 2, standardise=lambda Y: Y, score=score)
    return tuner.search


def searched(tuner, prior, score):
    """What a search goes on with."""
    search = begun(tuner, prior, score)
    assert search.advance() is not None
    return search.taken


def nearest(means, _, Y):
    return -np.square(means - Y).sum(axis=1)


@given(
    st.sampled_from([None, 20]),
    st.lists(st.tuples(st.floats(0.0, 5e3), st.booleans()), min_size=1, max_size=5),
)
def test_a_search_cut_anywhere_ends_bitwise_where_one_does_that_runs_through(max_points, cuts):
    """Also if copied meanwhile, and if examples come."""
    prior = Hyperparameters(kernel=SquaredExponential(), noise_variance=0.5)
    tuner = Tuning(max_points=max_points)
    examples = list(squares(60))
    for i, (x, y) in enumerate(examples[:40]):
        tuner.note(i, np.array([x["a"], x["b"]]), np.array([y == "p", y == "q"], dtype=float))
    expected = searched(tuner, prior, nearest)
    search = begun(tuner, prior, nearest)
    for i, (work, copied) in enumerate(itertools.cycle(cuts)):
        if search.advance(work) is not None:
            break
        tuner.note(40 + i, np.zeros(2), np.ones(2))
        if copied and i < 3:
            search = pickle.loads(pickle.dumps(search))
    assert expected is not None
    assert search.taken.tolist() == expected.tolist()


def test_what_is_found_is_the_fit():
    prior = Hyperparameters(kernel=SquaredExponential(), noise_variance=0.5)
    tuner, examples = Tuning(), list(squares(64))
    X = np.array([[x["a"], x["b"]] for x, _ in examples])
    Y = np.array([[y == "p", y == "q"] for _, y in examples], dtype=float)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        tuner.note(i, x, y)
    found = searched(tuner, prior, lambda means, *_: np.zeros(len(means)))
    assert found is not None
    expected = at_once(fit_steps(prior, prior, X, Y))
    assert found.tolist() == expected.vector.tolist()


@pytest.mark.parametrize("learner", [GPClassifier, GPRegressor])
@pytest.mark.parametrize("value", ["leave_one_out", None, 2])
def test_learning_them_is_true_or_false(learner, value):
    with pytest.raises(
        TypeError, match=rf"learn_hyperparameters must be True or False, got {value!r}$"
    ):
        learner(learn_hyperparameters=value)


def test_forgetting_and_learning_again_does_not_fit_again():
    model = taught(50)
    for _ in range(5):
        model.forget_one("49")
        model.learn_one({"a": 0.0, "b": 0.0}, "p", event_id="49")
    assert model.state()["due"] == 64


def test_what_was_relabelled_or_forgotten_is_fitted_no_more():
    model, other = taught(31), taught(30)
    model.relabel_one("3", "p")
    other.relabel_one("3", "p")
    model.forget_one("30")
    for m in (model, other):
        for i in range(20):
            m.learn_one({"a": 0.1 * i, "b": 0.0}, "pq"[i % 2])
    assert model.state() == other.state()
    assert model.state()["due"] == 64


def test_hyperparameters_that_predict_worse_are_not_taken():
    """A score that prefers what was given."""
    prior = Hyperparameters(kernel=SquaredExponential(), noise_variance=0.5)
    tuner = Tuning()
    for i, (x, y) in enumerate(squares(64)):
        tuner.note(i, np.array([x["a"], x["b"]]), np.array([y == "p", y == "q"], dtype=float))

    def search(score):
        return searched(tuner, prior, score)

    best = []

    def equal(_, variances, __):
        best.append(variances[0])
        return np.zeros(len(variances))

    found = search(equal)
    assert best[0] == pytest.approx(1.5)  # kernel and noise, as given
    assert found is not None  # of equals, the newest
    assert search(lambda _, variances, __: -np.round(abs(variances[:1] - 1.5), 9)) is None


@pytest.mark.parametrize(
    ("max_points", "n_better", "n_worse", "are_taken"),
    [
        (None, 8, 8, True),  # nothing is given up: of equals, the newest
        (64, 8, 8, True),
        (63, 8, 8, False),
        (63, 16, 12, False),  # 4 better, with a standard error of the square root of 28
        (63, 17, 11, True),
    ],
)
def test_where_points_are_given_up_they_must_be_better_than_by_chance(
    max_points, n_better, n_worse, are_taken
):
    prior = Hyperparameters(kernel=SquaredExponential(), noise_variance=0.5)
    tuner, tried = Tuning(max_points=max_points), []
    for i, (x, y) in enumerate(squares(64)):
        tuner.note(i, np.array([x["a"], x["b"]]), np.array([y == "p", y == "q"], dtype=float))

    def score(means, *_):
        tried.append(means)
        scores = np.zeros(len(means))
        if len(tried) > 1:  # those given are tried first
            scores[:n_better], scores[n_better : n_better + n_worse] = 1.0, -1.0
        return scores

    assert (searched(tuner, prior, score) is not None) == are_taken


def test_a_noise_in_single_precision_stays_large_enough():
    model = GPClassifier(learn_hyperparameters=True, single_precision=True)
    for i in range(90):
        # Nine stretches, which a function can follow without noise.
        model.learn_one({"a": i / 10.0}, "pq"[i // 10 % 2])
    assert model.state()["vector"] is not None
    assert model.hyperparameters.noise_variance >= 1e-3


@pytest.mark.parametrize("noise_variance", [1e-16, 0.5])
@pytest.mark.parametrize("max_points", [None, 20])
def test_examples_without_features_and_equal_ones_do_not_stop_it(noise_variance, max_points):
    model = GPClassifier(
        noise_variance=0.5, max_points=max_points, learn_hyperparameters=True
    ) if noise_variance == 0.5 else GPClassifier(
        SquaredExponential(0.1), noise_variance, max_points, learn_hyperparameters=True
    )  # fmt: skip
    for i in range(70):
        x = {"a": float(i)} if noise_variance < 0.5 else {}
        model.learn_one(x, "pq"[i % 2])
    # A bounded process hardly without noise goes on with the retained examples only.
    assert model.n_learned == 70 or (max_points and noise_variance < 0.5)
    assert math.isclose(sum(model.predict_proba_one({}).values()), 1.0)


def test_texts_and_truth_values_have_a_part_in_it():
    kernel = On(["place"], Categorical()) * SquaredExponential() + On(
        ["open"], SquaredExponential()
    )
    for max_points in (None, 30):
        model = GPClassifier(kernel, 0.5, max_points, learn_hyperparameters=True)
        rng = random.Random(0)
        for i in range(200):
            x = {"place": rng.choice(["hall", "bath", "attic"]), "a": rng.gauss(0.0, 1.0)}
            if i > 20:
                x["open"] = rng.random() < 0.5
            model.learn_one(x, x["place"] if x.get("open") else "none", event_id=str(i))
        assert model.predict_one({"place": "hall", "open": True, "a": 0.0}) == "hall"
        assert not np.array_equal(model.hyperparameters.kernel.theta, kernel.theta)


def test_scaling_that_is_renewed_keeps_what_was_learned(monkeypatch):
    monkeypatch.setattr(gp_tuning, "FIRST_FIT", 8)
    model = SkepticalClassifier(GPClassifier(learn_hyperparameters=True), warm_up=32, seed=1)
    known = []
    for i, (x, y) in enumerate(squares(32)):
        model.observe_one(x)
        model.settle_one(x, y, given=y, challenged=False, event_id=str(i))
        known.append(copy.deepcopy(model.learner.state()))
    due = [8 if state is None else state["due"] for state in known]
    assert due == sorted(due)
    assert due[:7] == [8] * 7
    assert due[-1] == 32  # also after the last event, with which all are learned again


def test_where_classes_come_one_after_another_what_was_given_stays():
    model, waiting = GPClassifier(learn_hyperparameters=True), []
    for i, (x, y) in enumerate(sorted(squares(130), key=lambda pair: pair[1])):
        model.learn_one(x, y)
        if i + 1 in (31, 32, 64, 128):
            waiting.append(model.state())
    assert waiting == [None, *({"due": due, "vector": None} for due in (64, 128, 256))]
    assert model.hyperparameters.noise_variance == 0.5


def test_what_was_learned_stays_until_classes_alternate_again():
    model = taught(82, learn_hyperparameters=True)
    found = model.state()["vector"]
    assert found is not None
    for x, _ in squares(64, seed=5):
        model.learn_one(x, "r")
    assert model.state() == {"due": 256, "vector": found}


def test_waiting_survives_a_restart_bitwise():
    events = sorted(squares(40), key=lambda pair: pair[1]) + list(squares(140, seed=4))
    model, again = (GPClassifier(learn_hyperparameters=True) for _ in range(2))
    for x, y in events[:40]:
        model.learn_one(x, y)
    again.load_state(json.loads(json.dumps(model.state())))
    for x, y in events[:40]:
        again.learn_one(x, y)
    for x, y in events[40:]:
        assert beliefs(again) == beliefs(model)
        model.learn_one(x, y)
        again.learn_one(x, y)
    assert again.state() == model.state()
    assert model.state()["vector"] is not None


def test_a_conversation_over_rooms_one_after_another_does_not_go_silent():
    """A fit to one room made everything alike: no question after the 40th, .25 right."""
    events = list(WiFiRooms())[::4]
    results = []
    for learn in (False, True):
        model = SkepticalClassifier(GPClassifier(learn_hyperparameters=learn), warm_up=100, seed=1)
        annotator = SimulatedAnnotator(error_rate=0.2, classes=[1, 2, 3, 4], seed=1)
        result = interactive_val_score(events, model, metrics.Accuracy(), annotator=annotator)
        results.append((result.metric.get(), result.n_asked))
    assert results[1] == results[0]
    assert results[0][0] > 0.7


def test_there_is_no_noise_to_learn_if_there_is_none():
    with pytest.raises(ValueError, match="noise_variance must be positive to be learned"):
        GPClassifier(noise_variance=0.0, learn_hyperparameters=True)


def test_what_was_found_is_tried_with_as_many_points_as_the_learner_has():
    """As a bounded learner with it would have predicted, event after event."""
    prior = Hyperparameters(kernel=SquaredExponential(), noise_variance=0.5)
    tuner, model = Tuning(max_points=7), GPClassifier(prior.kernel, max_points=7)
    model.know("pq")
    expected = []
    for i, (x, y) in enumerate(squares(40)):
        belief = model.predict_proba_one(x, with_dist=True)
        expected.append([belief.mean["p"], belief.mean["q"], belief.variance + 0.5])
        model.learn_one(x, y)
        tuner.note(i, np.array([x["a"], x["b"]]), np.array([y == "p", y == "q"], dtype=float))
    tried = []

    def score(means, variances, _):
        tried.append(np.column_stack([means, variances]))
        return np.zeros(len(means))

    searched(tuner, prior, score)
    np.testing.assert_allclose(tried[0], expected, atol=1e-12)


# --- what happens while a bounded process takes hyperparameters over


def learned_on(model, examples, name, until=None):
    """How many examples the model has learned until it takes over what its search has found."""
    for i, (x, y) in enumerate(examples):
        model.learn_one(x, y, event_id=f"{name} {i}")
        if until is not None and until(model._core._tuning.search):
            return i + 1
    return len(examples)


def has_ended(search):
    return search is not None and search.adoption is not None


def takes_over(monkeypatch, **options):
    """A bounded learner whose search has just ended, and one that has only begun it."""
    model, twin = (
        GPClassifier(learn_hyperparameters=True, max_points=80, **options) for _ in range(2)
    )
    first, later = list(squares(127)), list(squares(40, seed=7))
    n = learned_on(model, first, "first") and learned_on(model, later, "later", has_ended)
    assert n < 40
    learned_on(twin, first, "first")
    with monkeypatch.context() as patched:
        patched.setattr(gp_core, "WORK", 0.0)
        learned_on(twin, later[:n], "later")
    return model, twin


@pytest.mark.parametrize("change", ["relabel", "forget"])
def test_a_change_meanwhile_leaves_nothing_of_what_was_taken_over(monkeypatch, change):
    """As if the search had only begun: it begins once more."""
    model, twin = takes_over(monkeypatch)
    monkeypatch.setattr(gp_core, "WORK", 0.0)
    for one in (model, twin):
        learned_on(one, list(squares(2, seed=8)), "late")
    assert model._core._tuning.search.adoption.succession is not None
    monkeypatch.undo()
    event = next(iter(model.leave_one_out()))
    for one in (model, twin):
        one.relabel_one(event, "q") if change == "relabel" else one.forget_one(event)
        learned_on(one, list(squares(90, seed=9)), "last")
    assert model.state() == twin.state()
    assert beliefs(model) == beliefs(twin)


def test_columns_and_classes_that_come_meanwhile_are_taken_over(monkeypatch):
    """At once or by and by: the hyperparameters count from the same example on."""
    kernel = SquaredExponential({"a": 2.0, "b": 8.0, "c": 1.0})
    model, _ = takes_over(monkeypatch, kernel=kernel)
    before, later = model.hyperparameters, list(squares(55, seed=8))
    later[2:] = [
        ({**x, "c": x["b"]}, "r" if i % 3 == 0 else y) for i, (x, y) in enumerate(later[2:])
    ]
    found = []
    for work in (0.0, 4000.0):
        monkeypatch.setattr(gp_core, "WORK", work)
        one = copy.deepcopy(model)
        found.append((learned_on(one, later, "late", lambda search: search is None), one))
    (n, slow), (few, quick) = found
    assert few < 3 < n < len(later)
    monkeypatch.undo()
    for x, y in later[few:n]:
        quick.learn_one(x, y)
    assert slow.hyperparameters == quick.hyperparameters != before
    assert beliefs(slow) == beliefs(quick)
    assert set(slow.predict_proba_one({"c": 1.0})) == {"p", "q", "r"}


def test_numbers_are_scored_by_their_log_density_but_for_a_constant():
    rng = np.random.default_rng(3)
    means, Y, variances = rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), rng.exponential(size=9)
    densities = stats.norm.logpdf(Y, means, np.sqrt(variances)[:, None]).sum(axis=1)
    found = gp_regressor._log_density(means, variances, Y)
    assert found == pytest.approx(densities + math.log(2.0 * math.pi))
