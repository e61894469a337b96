"""Skeptical learning in three stages: when each ends, and what is asked and doubted in it."""

from __future__ import annotations

import json

import pytest
from river.naive_bayes import GaussianNB

from benchmarks.papers.isgp.three_stage import StagedSkepticalClassifier, online_srf
from streamgp.budgets import AtMost

FAR = {"x1": 1e6, "x2": -1e6}


def staged(theta, **options):
    return StagedSkepticalClassifier(GaussianNB(), theta, seed=1, **options)


def teach(model, n, *, label="a", annotator=None):
    for i in range(n):
        x = {"x1": float(i), "x2": 0.0}
        model.settle_one(x, label, given=label, challenged=False, annotator=annotator)


def test_it_asks_always_and_challenges_never_while_it_trains():
    model = staged(0.999)
    teach(model, 9)
    assert model.stage == "train"
    assert model.query_one({"x1": 1.0, "x2": 0.0}, event_id="e").ask
    assert not model.challenge_one({"x1": 1.0, "x2": 0.0}, "b").ask


@pytest.mark.parametrize(("theta", "n"), [(0.70, 10), (0.72, 11), (0.82, 12), (0.90, 16)])
def test_the_last_stage_begins_when_the_mean_confidence_exceeds_theta(theta, n):
    """With one class the confidence after k labels is k / (k + 1)."""
    model = staged(theta)
    teach(model, n - 1)
    assert model.stage == ("train" if n == 10 else "refine")
    teach(model, 1)
    assert model.stage == "regime"
    assert sum(k / (k + 1) for k in range(n - 10, n)) / 10 > theta


def test_it_stops_asking_after_one_class_however_far_away_the_event():
    """The failure that the paper on skeptical Gaussian processes describes."""
    model = online_srf(theta=0.7, seed=1)
    teach(model, 10)
    assert not model.query_one(FAR, event_id="far").ask
    assert model.confidence_one(FAR) == pytest.approx(10 / 11)
    assert model.query_one(FAR, event_id="far").criterion == "staged, regime"


def test_it_challenges_a_label_when_it_is_more_credible_than_the_annotator():
    model = staged(0.72)
    teach(model, 10)
    x = {"x1": 3.0, "x2": 0.0}
    assert model.challenge_one(x, "b").ask
    agrees = model.challenge_one(x, "a")
    assert (agrees.ask, agrees.budget) == (False, "agreement")
    for kept in range(1, 30):
        model.settle_one(x, "a", given="a", challenged=True, annotator="ann")
        assert model.reliability("ann") == pytest.approx((1 + kept) / (2 + kept))
        assert model.reliability("bob") == 0.5
        trusted = model.confidence_one(x) <= model.reliability("ann")
        assert model.challenge_one(x, "b", annotator="ann").ask != trusted


def test_changed_answers_are_mistakes_and_uncontested_ones_are_nothing():
    model = staged(0.9)
    assert model.reliability() == 0.5
    x = {"x1": 0.0, "x2": 0.0}
    model.settle_one(x, "a", given="b", challenged=True)
    assert model.reliability() == pytest.approx(1 / 3)
    model.settle_one(x, "a", given="a", challenged=True)
    assert model.reliability() == 0.5
    model.settle_one(x, "a", given="a", challenged=False)
    assert model.reliability() == 0.5


def test_before_the_first_label_it_asks_with_no_confidence():
    model = staged(0.9)
    assert model.confidence_one({"x1": 0.0}) == 0.0
    assert model.query_one({"x1": 0.0}, event_id="e").ask


def test_a_budget_refuses_what_a_stage_wants():
    model = staged(0.9, budget=AtMost(0))
    assert model.query_one({"x1": 0.0}, event_id="e").budget == "AtMost"


def test_theta_is_a_share():
    with pytest.raises(ValueError, match="theta must be between 0 and 1, got 2"):
        staged(2)


def test_its_state_is_plain_json_and_names_its_theta_in_the_fingerprint():
    model = staged(0.6)
    teach(model, 12, annotator="ann")
    state = json.loads(json.dumps(model.state()))
    other = staged(0.6)
    other.load_state(state, model.examples())
    assert (other.stage, other.state()) == (model.stage, model.state())
    assert staged(0.6).fingerprint() != staged(0.7).fingerprint()
