"""Old numbers looked through by leaving each example out."""

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import linear_model

from streamgp import EnsembleGPRegressor, GPRegressor, SkepticalRegressor
from streamgp.common.running_stats import Moments, Quartiles
from streamgp.query import AtMostPer, LeaveOneOutReview, NeverChallenge
from streamgp.query.criteria import answer_expected, probability_outlier
from tests.helpers.laws import examples

ALL = LeaveOneOutReview(threshold=0.0, every=1)
LEARNERS = {
    "GP": lambda: GPRegressor(learn_hyperparameters=False),
    "tuned": GPRegressor,
    "bounded": lambda: GPRegressor(max_points=15, learn_hyperparameters=False),
    "tuned and bounded": lambda: GPRegressor(max_points=40),
}


def taught(n, seed=0, review=ALL, model="GP", warm_up=0):
    """A regressor taught `n` numbers, one in six of them far off, and who gave them."""
    rng = random.Random(seed)
    regressor = SkepticalRegressor(LEARNERS[model](), warm_up=warm_up, review=review, seed=1)
    annotators = {}
    for i in range(n):
        x = {"a": rng.uniform(-3.0, 3.0), "b": rng.uniform(-3.0, 3.0)}
        y = 20.0 + 10.0 * math.sin(x["a"]) + 3.0 * x["b"] + rng.choice([0, 0, 0, 0, 0, 50.0])
        annotators[f"e{i}"] = rng.choice(["ann", "bob", None])
        regressor.observe_one(x)
        regressor.settle_one(
            x, y, given=y, challenged=False, annotator=annotators[f"e{i}"], event_id=f"e{i}"
        )
    return regressor, annotators


def by_learning_without(regressor, annotators, stds):
    """The most doubtful number, found by teaching a fresh learner all examples but one."""
    examples, transform = regressor.examples(), regressor._store.scaling.transform
    spread = Quartiles([example.y for example in examples])
    usual = spread.scale if spread.n >= 8 else math.inf
    most = (-1.0, None, None, None)
    for left_out in examples:
        event_id, y = left_out.event_id, left_out.y
        if event_id not in annotators:
            continue
        learner, targets = LEARNERS["GP"](), Moments()
        for example in examples:
            if example is not left_out:
                learner.learn_one(transform(example.x), example.y)
                targets.add(example.y)
        forecast = learner.predict_one(transform(left_out.x), with_dist=True)
        who = annotators[event_id]
        expected = answer_expected(
            forecast, targets, regressor.scatter(who), stds.get(event_id), usual
        )
        p = probability_outlier(expected, targets, y, regressor.error_rate(who))
        most = max(most, (p, event_id, forecast.mu, forecast.sigma), key=lambda found: found[0])
    return most


@examples(25)
@given(st.integers(0, 10**6), st.integers(2, 25), st.sampled_from([0, 10]))
def test_the_most_doubtful_number_is_the_one_found_by_learning_without_each(seed, n, warm_up):
    regressor, annotators = taught(n, seed, warm_up=warm_up)
    rng = random.Random(seed)
    for event_id in rng.sample(sorted(annotators), n // 4):
        del annotators[event_id]
    stds = {event_id: rng.uniform(0.1, 60.0) for event_id in rng.sample(sorted(annotators), n // 4)}
    p, event_id, mu, sigma = by_learning_without(regressor, annotators, stds)
    doubt = regressor.review_one(annotators, now=0.0, stds=stds)
    assert doubt.event_id == event_id
    assert (doubt.suggested, doubt.std) == (pytest.approx(mu), pytest.approx(sigma))
    assert doubt.probability_wrong == pytest.approx(p, abs=1e-6)
    assert doubt.decision.score == doubt.probability_wrong


def test_a_look_changes_nothing():
    regressor, annotators = taught(20)
    before = regressor.state()
    first = regressor.review_one(annotators, now=0.0)
    assert regressor.review_one(annotators, now=0.0) == first
    assert regressor.state() == before
    assert regressor.review_due


def test_a_number_said_to_be_inexact_is_doubted_less():
    regressor, annotators = taught(20)
    doubt = regressor.review_one(annotators, now=0.0)
    less = regressor.review_one(
        {doubt.event_id: annotators[doubt.event_id]}, now=0.0, stds={doubt.event_id: 60.0}
    )
    assert less.probability_wrong < doubt.probability_wrong


def test_the_only_number_of_all_is_not_doubted():
    regressor, annotators = taught(1)
    assert regressor.review_one(annotators, now=0.0) is None


@pytest.mark.parametrize("model", LEARNERS)
def test_looks_and_their_budget_survive_a_restart(model):
    review = LeaveOneOutReview(0.0, every=3, budget=AtMostPer(1, 60.0))
    regressor, annotators = taught(70, review=review, model=model, warm_up=20)
    regressor.relabel_one("e60", 7.5)
    regressor.note_review(regressor.review_one(annotators, now=0.0), now=0.0)
    again, _ = taught(0, review=review, model=model, warm_up=20)
    again.load_state(json.loads(json.dumps(regressor.state())), regressor.examples())
    assert again.state() == regressor.state()
    assert not again.review_due
    for now in (30.0, 90.0):
        one, other = (each.review_one(annotators, now=now) for each in (regressor, again))
        assert one == other


def test_a_learner_that_can_leave_an_example_out_has_a_review_unless_it_is_turned_off():
    learner = GPRegressor()
    default, never = SkepticalRegressor(learner, seed=1), taught(5, review=None)[0]
    assert default.review == "auto"
    assert "review" in default.state()
    assert "review" not in never.state()
    assert never.review_one({"e0": None}, now=0.0) is None
    for other, challenge in (
        (linear_model.LinearRegression(), None),
        (EnsembleGPRegressor(n_features=5, seed=1), None),
        (learner, NeverChallenge()),
    ):
        model = SkepticalRegressor(other, challenge=challenge, seed=1)
        assert "review" not in model.state()
        assert not model.review_due


def test_a_state_from_before_numbers_were_reviewed_is_continued():
    before, _ = taught(20, review=None)
    now, _ = taught(0, review="auto")
    assert now.fingerprint() == before.fingerprint()
    now.load_state(json.loads(json.dumps(before.state())), before.examples())
    assert now.review_due
    assert now.review_one(dict.fromkeys(["e1", "e2"]), now=0.0) is not None
    assert taught(0)[0].fingerprint() != before.fingerprint()


@pytest.mark.parametrize(
    "model", [linear_model.LinearRegression(), EnsembleGPRegressor(n_features=5, seed=1)]
)
def test_a_learner_that_cannot_leave_an_example_out_has_no_review(model):
    with pytest.raises(TypeError, match="review needs a learner with leave_one_out, which"):
        SkepticalRegressor(model, review=ALL, seed=1)
