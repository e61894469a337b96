"""Rules that learn from the answers how much confidence to trust."""

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import evaluate, metrics, naive_bayes, tree

from streamgp import (
    GPClassifier,
    GPRegressor,
    SkepticalClassifier,
    SkepticalRegressor,
    datasets,
)
from streamgp.base import Posterior
from streamgp.common.calibration import equal_error_threshold
from streamgp.common.counter_rng import uniform
from streamgp.common.fingerprint import fingerprint
from streamgp.common.uncertainty import uncertainty
from streamgp.interactive import Answer, Event, InteractiveLoop, KeyedLoops, LabelRequest
from streamgp.interactive.teaching import teach
from streamgp.query import AtMost, EqualErrorAsk, EqualErrorRounds, NeverChallenge, SkepticalAsk
from streamgp.query.strategies import ONE_CLASS_RATE

LEARNERS = {
    "GP": lambda: GPClassifier(noise_variance=0.3),
    "naive Bayes": naive_bayes.GaussianNB,
    "tree": lambda: tree.HoeffdingTreeClassifier(grace_period=10),
}
outcomes = st.lists(st.tuples(st.floats(0.5, 1.0), st.booleans()), min_size=1, max_size=20)


def belief(p):
    return {"hall": p, "den": 1.0 - p}


def taught(rule, pairs):
    for p, right in pairs:
        rule.hear(belief(p), "hall" if right else "den")
    return rule


def skeptical(learner=GPClassifier, rule=None, **options):
    rule = EqualErrorAsk(at_least=0.2) if rule is None else rule
    return SkepticalClassifier(learner(), rule, warm_up=20, seed=3, **options)


# --- by rounds


def test_the_first_round_asks_about_everything():
    rule = taught(EqualErrorRounds(), [(0.9, True), (0.6, False)])
    assert rule.threshold == math.inf
    assert rule.decide(belief(1.0), draw=0.5).ask


@given(outcomes, outcomes)
def test_later_rounds_ask_below_the_threshold_of_all_rounds_before(first, second):
    rule = EqualErrorRounds("entropy")
    h = uncertainty("entropy")
    heard = []
    for pairs in (first, second):
        taught(rule, pairs)
        rule.next_round()
        # At 1/2 the first class is the prediction.
        heard += pairs
        sides = [
            [1.0 - h(belief(p)) for p, right in heard if right is side] for side in (True, False)
        ]
        assert rule.threshold == equal_error_threshold(*sides)
        for p in (0.5, 0.6, 0.8, 0.99):
            confidence = 1.0 - h(belief(p))
            if abs(confidence - rule.threshold) > 1e-12:
                assert rule.decide(belief(p), draw=0.0).ask == (confidence < rule.threshold)


def test_what_is_heard_counts_from_the_next_round_on():
    rule = taught(EqualErrorRounds(), [(0.9, True), (0.6, False)])
    rule.next_round()
    before = rule.threshold
    taught(rule, [(0.99, False)] * 5)
    assert rule.threshold == before
    rule.next_round()
    assert rule.threshold > before


def test_rounds_are_for_pools():
    sentence = "query must be a rule for streams, got EqualErrorRounds.*take EqualErrorAsk"
    with pytest.raises(TypeError, match=sentence):
        SkepticalClassifier(GPClassifier(), EqualErrorRounds())


# --- in a stream


def test_at_first_it_asks_below_a_half():
    rule = EqualErrorAsk()
    assert rule.threshold == pytest.approx(0.5, abs=0.01)
    assert rule.decide(belief(0.6), draw=0.99).ask
    assert not rule.decide(belief(0.7), draw=0.99).ask


@given(st.lists(st.tuples(st.integers(0, 16), st.booleans()), max_size=20))
def test_without_forgetting_it_is_the_threshold_by_rounds_with_one_of_each_spread_evenly(seen):
    """Sixteen times each prediction, and one at each of sixteen points."""
    evenly = [(i + 0.5) / 16 for i in range(16)]
    pairs = [(1.0 / (1.0 + i / 16), right) for i, right in seen]
    confidences = [(1.0 - i / 16, right) for i, right in seen]
    sides = [
        [c for c, right in confidences if right is side] * 16 + evenly for side in (True, False)
    ]
    threshold = equal_error_threshold(*sides)
    rule = taught(EqualErrorAsk(forgetting=1.0), pairs)
    for (p, _), (confidence, _) in zip(pairs, confidences, strict=True):
        assert rule.decide(belief(p), draw=0.99).ask == (confidence < threshold)


@given(outcomes, st.floats(0.5, 1.0), st.floats(0.0, 1.0, exclude_max=True))
def test_a_confident_prediction_is_asked_about_with_the_least_probability(pairs, p, draw):
    rule = taught(EqualErrorAsk(at_least=0.3), [*pairs, (0.9, True), (0.6, False)])
    decision = rule.decide(belief(p), draw)
    below = 1.0 - uncertainty("bvsb")(belief(p)) < rule.threshold
    assert decision.ask == (below or draw < 0.3)
    assert decision.ask == (decision.score > decision.threshold)
    if decision.ask and not below:
        assert (decision.score, decision.threshold) == (0.3, draw)


def test_with_no_least_probability_confident_predictions_are_never_asked_about():
    rule = taught(EqualErrorAsk(at_least=0.0), [(0.9, True), (0.6, False)])
    assert not rule.decide(belief(0.95), draw=0.0).ask


def test_with_fewer_than_two_classes_it_asks_as_the_other_rules_do_and_learns_nothing():
    rule = EqualErrorAsk()
    assert rule.decide({}, draw=0.99).ask
    assert rule.decide(Posterior(mean={}, variance=1.0), draw=0.99).ask
    decision = rule.decide({"hall": 1.0}, draw=0.05)
    assert (decision.score, decision.threshold) == (ONE_CLASS_RATE, 0.05)
    rule.hear({"hall": 1.0}, "den")
    rule.hear({}, "den")
    assert rule.state() == EqualErrorAsk().state()


def test_a_posterior_is_as_confident_as_its_probabilities():
    posterior = Posterior(mean={"hall": 0.6, "den": 0.2, "attic": -0.1}, variance=0.3)
    one, other = EqualErrorAsk(), EqualErrorAsk()
    one.hear(posterior, "den")
    other.hear(posterior.probabilities(), "den")
    assert one.state() == other.state()


def test_it_follows_a_learner_that_becomes_overconfident():
    rule = taught(EqualErrorAsk(), [(0.95, True), (0.6, False)] * 50)
    before = rule.threshold
    taught(rule, [(0.999, True), (0.97, False)] * 200)
    assert before < 1.0 - uncertainty("bvsb")(belief(0.97)) < rule.threshold


def test_each_kind_forgets_by_its_own_number():
    """Mistakes are not forgotten because there are few of them."""
    rule = taught(EqualErrorAsk(forgetting=0.9), [(0.6, False)] + [(0.9, True)] * 200)
    assert rule.threshold < 1.0 - uncertainty("bvsb")(belief(0.9))
    assert sum(wrong for _, _, wrong in rule.state()["counts"]) == pytest.approx(1.9)


@pytest.mark.parametrize("forgetting", [0.0, -0.1, 1.01, math.nan])
def test_forgetting_is_a_share(forgetting):
    with pytest.raises(ValueError, match="forgetting must be above 0 and at most 1, got"):
        EqualErrorAsk(forgetting=forgetting)


def test_other_arguments_are_checked_too():
    with pytest.raises(ValueError, match="at_least must be between 0 and 1, got 2"):
        EqualErrorAsk(at_least=2)
    for kind in (EqualErrorAsk, EqualErrorRounds):
        with pytest.raises(ValueError, match="uncertainty must be 'bvsb' or 'entropy'"):
            kind("margin")


@pytest.mark.parametrize("rule", [EqualErrorAsk(), EqualErrorRounds()])
def test_it_is_refused_for_numbers_in_words(rule):
    with pytest.raises(TypeError, match=r"got EqualError.*one for classes; take Variance"):
        SkepticalRegressor(GPRegressor(), rule)


# --- around a learner


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_it_hears_what_was_believed_before_and_learned_at_the_end(learner):
    """A twin that is told everything by hand decides the same."""
    model, twin = skeptical(learner), EqualErrorAsk(at_least=0.2)
    rng = random.Random(0)
    n_asked = 0
    for n in range(150):
        y = rng.randrange(3)
        x = {"a": rng.gauss(2 * y, 1.2), "b": rng.gauss(-y, 1.0)}
        model.observe_one(x)
        decision = model.query_one(x, event_id=str(n))
        seen = model._store.belief(x)
        assert decision == twin.decide(seen, uniform(3, str(n), "ask"))
        if decision.ask:
            n_asked += 1
            twin.hear(seen, y)
            model.settle_one(x, y, given=y, challenged=False, event_id=str(n))
    assert model.state()["query"] == twin.state()
    assert 10 < n_asked < 150


def test_the_rule_given_is_a_template():
    rule = EqualErrorAsk()
    one, other = (SkepticalClassifier(GPClassifier(), rule, seed=1) for _ in range(2))
    for n in range(30):
        one.learn_one({"a": float(n % 2)}, n % 3)
    assert one.query is rule
    assert rule.state() == other.state()["query"] == one.clone().state()["query"]
    assert rule.state() == EqualErrorAsk().state() != one.state()["query"]


def test_labels_that_nobody_asked_for_count_for_nothing():
    model = skeptical()
    for n in range(20):
        x = {"a": float(n % 4)}
        model.settle_one(x, n % 2, given=n % 2, challenged=False, asked=False)
    assert model.state()["query"] == EqualErrorAsk().state()


def answer(request, y):
    return Answer(
        answer_id=f"{request.event_id}!",
        request_id=request.request_id,
        event_id=request.event_id,
        y=y,
        answered_at=request.requested_at,
    )


def test_in_a_loop_it_hears_of_answers_and_not_of_labels_that_come_along():
    model = skeptical(rule=EqualErrorAsk())
    loop, counted = InteractiveLoop(model), []
    for n in range(40):
        y = n % 2 if n % 3 == 0 else None
        event = Event(event_id=str(n), x={"a": 1.0 * (n % 2)}, occurred_at=n, y=y)
        for message in loop.on_event(event, n):
            if isinstance(message, LabelRequest):
                loop.on_answer(answer(message, n % 2), n)
        counted.append(model.state()["query"])
        if y is not None and n:
            assert counted[-1] == counted[-2]
    assert counted[-1] != counted[0]


def test_every_key_has_a_threshold_of_its_own():
    loops = KeyedLoops(skeptical(rule=EqualErrorAsk()))
    for n in range(60):
        event = Event(event_id=str(n), key="ab"[n % 2], x={"a": n % 5}, occurred_at=n)
        for message in loops.on_event(event, n):
            if isinstance(message, LabelRequest):
                y = n % 5 > 2 if event.key == "a" else n % 7 > 3
                reply = answer(message, y)
                loops.on_answer(Answer(**{**fields(reply), "key": event.key}), n)
    states = [loops.loops[key].model.state()["query"] for key in "ab"]
    assert states[0] != states[1]


def fields(answer):
    return {name: getattr(answer, name) for name in answer.__slots__}


def test_it_plays_under_rivers_evaluator():
    model = SkepticalClassifier(GPClassifier(), EqualErrorAsk(), seed=1)
    metric = evaluate.progressive_val_score(
        datasets.WiFiRooms().take(800), model, metrics.Accuracy()
    )
    assert metric.get() > 0.9
    assert 30 < model.n_learned < 300


def test_a_budget_may_refuse_what_it_wants():
    model = skeptical(rule=EqualErrorAsk(), budget=AtMost(0))
    model.observe_one({"a": 1.0})
    assert model.query_one({"a": 1.0}).budget == "AtMost"


def test_rules_that_do_not_learn_leave_states_and_names_as_they_were():
    plain = SkepticalClassifier(GPClassifier(), SkepticalAsk(), seed=1)
    assert "query" not in plain.state()
    assert fingerprint(EqualErrorAsk()) == fingerprint(EqualErrorAsk(at_least=0.1))
    assert fingerprint(EqualErrorAsk()) != fingerprint(EqualErrorAsk(at_least=0.2))
    learned = taught(EqualErrorAsk(), [(0.9, True), (0.6, False)])
    assert fingerprint(learned) == fingerprint(EqualErrorAsk())


def test_a_rule_that_learns_and_cannot_be_saved_is_named():
    class Forgetful(EqualErrorAsk):
        state = None

    model = SkepticalClassifier(GPClassifier(), Forgetful(), seed=1)
    with pytest.raises(TypeError, match="Forgetful cannot be saved; give it the methods state"):
        model.state()


def test_another_learner_hears_the_asked_labels_of_a_log():
    loop, lines = InteractiveLoop(skeptical(rule=EqualErrorAsk())), []
    rng = random.Random(1)
    for n in range(60):
        y = rng.randrange(2)
        came_along = y if n % 4 == 0 else None
        event = Event(event_id=str(n), x={"a": rng.gauss(y, 1.0)}, occurred_at=n, y=came_along)
        for message in loop.on_event(event, n):
            if isinstance(message, LabelRequest):
                lines += loop.on_answer(answer(message, y), n)
            elif came_along is not None:
                lines.append(message)
    log = [line for line in lines if hasattr(line, "origin")]
    other = SkepticalClassifier(
        naive_bayes.GaussianNB(), EqualErrorAsk(), NeverChallenge(), warm_up=0, seed=1
    )
    volunteers = [line for line in log if line.origin == "volunteered"]
    assert volunteers
    list(teach(other, volunteers))
    assert other.state()["query"] == EqualErrorAsk().state()
    again = SkepticalClassifier(naive_bayes.GaussianNB(), EqualErrorAsk(), warm_up=0, seed=1)
    list(teach(again, log))
    heard = json.loads(json.dumps(again.state()))["query"]
    assert heard == again.state()["query"] != EqualErrorAsk().state()
