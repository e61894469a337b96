import math
import pickle
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.naive_bayes import GaussianNB

from streamgp.base import Posterior
from streamgp.common.counter_rng import uniform
from streamgp.common.normal import MixturePosterior
from streamgp.query import (
    KL,
    AlwaysAsk,
    AlwaysChallenge,
    BestVersusSecond,
    Deterministic,
    Entropy,
    LeastConfidence,
    NeverAsk,
    NeverChallenge,
    PaperAsk,
    PaperChallenge,
    RandomAsk,
    RateBudget,
    SkepticalAsk,
    SkepticalChallenge,
    SkepticalClassifier,
    Variance,
    criteria,
)
from streamgp.query.strategies import ONE_CLASS_RATE

ASK = [
    AlwaysAsk(),
    NeverAsk(),
    RandomAsk(0.3),
    SkepticalAsk(),
    SkepticalAsk(c=3.0),
    SkepticalAsk(c=0.5, at_least=0.3),
    PaperAsk(),
    Entropy(0.4),
    LeastConfidence(0.2),
    BestVersusSecond(0.5),
]
CHALLENGE = [AlwaysChallenge(), NeverChallenge(), SkepticalChallenge(), PaperChallenge()]
RANDOMISED = [RandomAsk(0.3), SkepticalAsk(), SkepticalAsk(c=0.5), PaperAsk()]
ON_PROBABILITIES = [Entropy(0.0), LeastConfidence(0.0), BestVersusSecond(0.0)]

draws = st.floats(0.0, 1.0, exclude_max=True)
posteriors = st.builds(
    lambda mean, variance: Posterior(mean=mean, variance=variance),
    st.dictionaries(st.integers(0, 5), st.floats(-10, 10), max_size=5),
    st.sampled_from([0.0, 1e-300, 1e-12, 0.3, 1.0]),
)
plain = st.lists(st.floats(0.0, 1.0), max_size=5).map(
    lambda w: {i: (v / sum(w) if sum(w) > 0 else 0.0) for i, v in enumerate(w)}
)
beliefs = st.one_of(posteriors, plain)


def check(decision, rule):
    assert decision.ask == (decision.score > decision.threshold)
    assert decision.budget is None
    assert decision.criterion == type(rule).__name__
    assert type(decision.ask) is bool
    assert math.isfinite(decision.score)
    assert math.isfinite(decision.threshold)


@pytest.mark.parametrize("rule", ASK, ids=repr)
@given(beliefs, draws)
def test_a_decision_to_ask_is_consistent_finite_and_repeats(rule, belief, draw):
    decision = rule.decide(belief, draw)
    check(decision, rule)
    assert decision == rule.decide(belief, draw)


@pytest.mark.parametrize("rule", CHALLENGE, ids=repr)
@given(beliefs, st.integers(0, 6), st.floats(0.0, 1.0), draws)
def test_a_decision_to_challenge_is_consistent_finite_and_repeats(rule, belief, y, p, draw):
    decision = rule.decide(belief, y, probability_wrong=p, draw=draw)
    check(decision, rule)
    assert decision == rule.decide(belief, y, probability_wrong=p, draw=draw)


@pytest.mark.parametrize("rule", ASK, ids=repr)
def test_probabilities_in_numpy_numbers_give_the_same_decision(rule):
    p = {"a": 0.7, "b": 0.3}
    q = {y: np.float64(v) for y, v in p.items()}
    decision = rule.decide(q, 0.15)
    check(decision, rule)
    assert decision == rule.decide(p, 0.15)


@pytest.mark.parametrize("rule", RANDOMISED, ids=repr)
@pytest.mark.parametrize(
    "belief",
    [
        {"a": 0.75, "b": 0.25},
        {"a": 0.4, "b": 0.3, "c": 0.3},
        Posterior(mean={"a": 0.8, "b": 0.1}, variance=0.5),
        Posterior(mean={"a": 0.0, "b": 0.0}, variance=1.0),
        {"a": 1.0},
    ],
)
def test_over_many_events_the_share_asked_is_the_score(rule, belief):
    n = 3000
    decisions = [rule.decide(belief, uniform(3, str(i), "ask")) for i in range(n)]
    score = decisions[0].score
    share = sum(d.ask for d in decisions) / n
    assert abs(share - score) <= 4 * math.sqrt(score * (1 - score) / n)
    assert len({d.threshold for d in decisions}) == n


def test_over_many_events_the_share_challenged_is_the_contradiction():
    belief = Posterior(mean={"a": 0.5, "b": 0.2}, variance=0.25)
    n = 3000
    rule = PaperChallenge()
    asked = sum(
        rule.decide(belief, "b", probability_wrong=0.0, draw=uniform(0, str(i), "challenge")).ask
        for i in range(n)
    )
    p = NormalDist().cdf(0.6)
    assert abs(asked / n - p) <= 4 * math.sqrt(p * (1 - p) / n)


def test_skeptical_ask_scales_the_doubt_and_stops_at_one():
    belief = Posterior(mean={"a": 1.0}, variance=1.0)
    doubt = 1 - NormalDist().cdf(1.0)
    assert SkepticalAsk().decide(belief, 0.0).score == pytest.approx(doubt)
    assert SkepticalAsk(c=3.0).decide(belief, 0.0).score == pytest.approx(3 * doubt)
    assert SkepticalAsk(c=100.0).decide(belief, 0.0).score == 1.0
    assert not SkepticalAsk(c=0.0).decide(belief, 0.0).ask
    assert SkepticalAsk(c=0.0, at_least=0.1).decide(belief, 0.09).ask
    assert PaperAsk().decide(belief, 0.3).score == pytest.approx(doubt)


@given(beliefs, draws)
def test_the_paper_is_the_skeptical_rule_with_c_one(belief, draw):
    paper, skeptical = PaperAsk().decide(belief, draw), SkepticalAsk(1.0).decide(belief, draw)
    assert (paper.ask, paper.score, paper.threshold) == (
        skeptical.ask,
        skeptical.score,
        skeptical.threshold,
    )


@given(beliefs, draws, st.floats(0.0, 3.0), st.floats(0.0, 1.0))
def test_a_least_probability_of_asking_holds_for_every_belief(belief, draw, c, at_least):
    plain, floored = SkepticalAsk(c).decide(belief, draw), SkepticalAsk(c, at_least)
    decision = floored.decide(belief, draw)
    assert decision.score == max(plain.score, at_least)
    assert decision.ask == (plain.ask or draw < at_least)


@given(draws)
def test_nothing_known_is_always_asked_about(draw):
    """Otherwise a learner that predicts {} would never learn anything."""
    for rule in [SkepticalAsk(), PaperAsk(), *ON_PROBABILITIES, Entropy(99.0), LeastConfidence(1)]:
        assert rule.decide({}, draw).ask
    for rule in [SkepticalAsk(), PaperAsk(), *ON_PROBABILITIES]:
        assert rule.decide(Posterior(mean={}, variance=1.0), draw).ask


@pytest.mark.parametrize("rule", [*ON_PROBABILITIES, SkepticalAsk(), PaperAsk()], ids=repr)
def test_one_known_class_is_asked_about_now_and_then(rule):
    decisions = [rule.decide({"a": 1.0}, draw) for draw in (0.0, 0.0999, 0.1, 0.5, 0.99)]
    assert [d.ask for d in decisions] == [True, True, False, False, False]
    assert {d.score for d in decisions} == {ONE_CLASS_RATE} == {0.1}


@pytest.mark.parametrize("rule", [SkepticalAsk(), PaperAsk()])
def test_a_posterior_needs_no_cold_start_rule(rule):
    """One class known: half of what is far is asked about, nothing beside a stored point."""
    assert rule.decide(Posterior(mean={"a": 0.0}, variance=1.0), 0.3).score == 0.5
    assert rule.decide(Posterior(mean={"a": 1.0}, variance=0.0), 0.0).score == 0.0


@pytest.mark.parametrize("rule", [SkepticalAsk(), PaperAsk()])
def test_an_ensemble_that_knows_one_class_is_asked_now_and_then(rule):
    """It finds nothing far from examples of one class: without this it would never meet another."""
    sure, unsure = (
        MixturePosterior(mean={"a": mean}, variance=0.01, weights=(), components=())
        for mean in (1.0, 0.0)
    )
    assert rule.decide(sure, 0.0).score == ONE_CLASS_RATE
    assert rule.decide(unsure, 0.0).score == 0.5


def test_scores_on_probabilities_are_their_criteria():
    p = {"a": 0.6, "b": 0.3, "c": 0.1}
    for rule, criterion in [
        (Entropy(0.8), criteria.entropy),
        (LeastConfidence(0.8), criteria.least_confidence),
        (BestVersusSecond(0.8), criteria.best_versus_second),
    ]:
        decision = rule.decide(p, 0.0)
        assert decision.score == criterion(p)
        assert decision.threshold == 0.8
        as_posterior = rule.decide(Posterior(mean={"a": 6.0, "b": 3.0, "c": 1.0}, variance=1), 0.0)
        assert as_posterior.score == pytest.approx(decision.score)


def test_always_and_never():
    p = {"a": 0.5, "b": 0.5}
    for decision, ask in [
        (AlwaysAsk().decide(p, 0.9), True),
        (NeverAsk().decide(p, 0.0), False),
        (AlwaysChallenge().decide(p, "b", probability_wrong=0.0, draw=0.9), True),
        (AlwaysChallenge().decide(p, "a", probability_wrong=1.0, draw=0.0), False),
        (AlwaysChallenge().decide({}, "a", probability_wrong=1.0, draw=0.0), False),
        (NeverChallenge().decide(p, "b", probability_wrong=1.0, draw=0.0), False),
    ]:
        assert decision.ask is ask


def test_always_challenge_contests_a_new_class():
    belief = Posterior(mean={"a": 0.1}, variance=1.0)
    assert AlwaysChallenge().decide(belief, "new", probability_wrong=0.0, draw=0.0).ask


def test_a_label_is_challenged_when_it_is_wrong_with_more_than_the_threshold():
    rule = SkepticalChallenge(0.25)
    for p, ask in [(0.25, False), (0.2501, True), (0.0, False), (1.0, True)]:
        decision = rule.decide({}, "a", probability_wrong=p, draw=0.0)
        assert decision.ask is ask
        assert (decision.score, decision.threshold) == (p, 0.25)


def test_an_agreement_is_never_challenged_by_the_paper():
    belief = Posterior(mean={"a": 0.01, "b": 0.0}, variance=1.0)
    assert not PaperChallenge().decide(belief, "a", probability_wrong=1.0, draw=0.0).ask


@pytest.mark.parametrize("rule", [*ASK, *CHALLENGE], ids=repr)
def test_a_rule_is_a_value(rule):
    assert rule == pickle.loads(pickle.dumps(rule))
    assert hash(rule) == hash(pickle.loads(pickle.dumps(rule)))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SkepticalAsk(-0.1), "c must be non-negative and finite, got -0.1"),
        (lambda: SkepticalAsk(math.inf), "c must be non-negative and finite, got inf"),
        (lambda: SkepticalAsk(math.nan), "c must be non-negative and finite, got nan"),
        (lambda: SkepticalAsk(at_least=-0.1), "at_least must be between 0 and 1, got -0.1"),
        (lambda: SkepticalAsk(at_least=1.1), "at_least must be between 0 and 1, got 1.1"),
        (lambda: SkepticalAsk(at_least=math.nan), "at_least must be between 0 and 1, got nan"),
        (lambda: SkepticalChallenge(1.1), "threshold must be between 0 and 1, got 1.1"),
        (lambda: RandomAsk(-0.1), "rate must be between 0 and 1, got -0.1"),
        (lambda: RandomAsk(math.nan), "rate must be between 0 and 1, got nan"),
        (lambda: Entropy(-1.0), "threshold must be non-negative and finite, got -1.0"),
        (lambda: LeastConfidence(2), "threshold must be between 0 and 1, got 2"),
        (lambda: BestVersusSecond(-0.5), "threshold must be between 0 and 1, got -0.5"),
    ],
)
def test_impossible_parameters_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    "rule", [Entropy, LeastConfidence, BestVersusSecond, Variance, KL, Deterministic]
)
def test_without_a_threshold_scores_only_rank(rule):
    assert rule() == rule(threshold=0.0)


def test_probabilities_that_only_rank_keep_the_rate_of_a_budget():
    model = SkepticalClassifier(GaussianNB(), BestVersusSecond(), budget=RateBudget(0.2), seed=1)
    asked = sum(model.predict_one({"a": float(i % 7)})[1] for i in range(200))
    assert asked == pytest.approx(40, abs=2)
