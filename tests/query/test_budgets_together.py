"""Budgets with every criterion, several at once, given back, and over restarts."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, GPRegressor, SkepticalClassifier, SkepticalRegressor
from streamgp.base import Decision
from streamgp.budgets import AllOf, AtMost, AtMostPer, PacedBudget, RateBudget, Unlimited
from streamgp.common.fingerprint import fingerprint
from streamgp.interactive import (
    Answer,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelRequest,
    Prediction,
    SnapshotError,
)
from streamgp.query import (
    AlwaysAsk,
    BestVersusSecond,
    Entropy,
    LeastConfidence,
    NeverAsk,
    PaperAsk,
    RandomAsk,
    SkepticalAsk,
)
from tests.helpers.laws import examples

WISH = Decision.of(1.0, 0.0, "AlwaysAsk")
# Rules that want to ask about everything: the budget alone decides how often.
EAGER = [AlwaysAsk(), Entropy(0.0), LeastConfidence(0.0), BestVersusSecond(0.0), RandomAsk(1.0)]
OTHERS = [SkepticalAsk(), SkepticalAsk(c=5.0), PaperAsk(), Entropy(0.4), RandomAsk(0.5), NeverAsk()]


def classifier(query, budget):
    return SkepticalClassifier(GPClassifier(), query, budget=budget, warm_up=20, seed=1)


def regressor(query, budget):
    return SkepticalRegressor(GPRegressor(), query, budget=budget, warm_up=20, seed=1)


def log(n, seed=1):
    rng = random.Random(seed)
    for i in range(n):
        a, b = rng.gauss(0.0, 1.0), rng.gauss(0.0, 1.0)
        yield i, {"a": a, "b": b}, a + b + rng.gauss(0.0, 1.0)


def share_asked(model, n, numbers):
    n_asked = 0
    for i, x, y in log(n):
        model.observe_one(x)
        decision = model.query_one(x, event_id=str(i), now=float(i))
        model.note_query(decision, asked=decision.ask, now=float(i))
        if decision.ask:
            n_asked += 1
            if n_asked <= 60:  # a learner that goes on learning changes nothing here but the time
                label = y if numbers else ("up" if y > 0.0 else "down")
                model.settle_one(x, label, given=label, challenged=False, event_id=str(i))
    return n_asked / n


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("rule", EAGER, ids=repr)
def test_a_rate_is_kept_with_every_rule_that_wants_to_ask(rule, rate):
    """Also while one class is known, of which rules on probabilities ask a tenth."""
    share = share_asked(classifier(rule, RateBudget(rate)), 600, numbers=False)
    assert share == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize("rate", [0.05, 0.4])
@pytest.mark.parametrize("rule", [AlwaysAsk(), RandomAsk(1.0)], ids=repr)
def test_a_rate_is_kept_for_numbers(rule, rate):
    share = share_asked(regressor(rule, RateBudget(rate)), 600, numbers=True)
    assert share == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize("rule", OTHERS, ids=repr)
def test_a_rate_is_never_exceeded_whatever_the_rule(rule):
    assert share_asked(classifier(rule, RateBudget(0.1)), 600, numbers=False) <= 0.11


times = st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=60).map(sorted)


@given(times, st.integers(0, 4), st.integers(1, 6), st.floats(5.0, 300.0), st.floats(5.0, 300.0))
def test_all_of_several_budgets_hold(moments, n, m, span, other):
    budget = AllOf(AtMostPer(n, span), AtMostPer(m, other))
    asked = []
    for now in moments:
        ask = budget.allows(WISH, now)
        budget.note(WISH, ask, now)
        asked += [now] * ask
    for limit, length in ((n, span), (m, other)):
        assert all(sum(t <= at < t + length for at in asked) <= limit for t in asked)


def test_what_one_refuses_another_does_not_spend():
    budget = AllOf(AtMost(1), AtMostPer(0, 60.0))
    assert not budget.allows(WISH, 0.0)
    assert budget.refused_by(WISH, 0.0) == "AtMostPer"
    budget.note(WISH, False, 0.0)
    assert budget.budgets[0].allows(WISH, 1.0)


def test_a_decision_names_the_budget_that_refused_within_others():
    model = classifier(AlwaysAsk(), AllOf(AtMost(9), AllOf(Unlimited(), AtMost(0))))
    assert model.query_one({"a": 1.0}, event_id="e").budget == "AtMost"


@pytest.mark.parametrize(
    ("budgets", "error"),
    [((), ValueError), ((AtMost,), TypeError), ((3,), TypeError), ((None,), TypeError)],
)
def test_all_of_nothing_or_of_anything_but_budgets_is_refused(budgets, error):
    with pytest.raises(error, match=r"AllOf needs|each of budgets must be a budget"):
        AllOf(*budgets)


@given(times, st.integers(1, 4), st.floats(5.0, 200.0), st.randoms(use_true_random=False))
def test_answered_questions_never_exceed_the_limit_of_a_span(moments, n, span, rng):
    """Given back with the time of asking: exactly the brute count of those that still count."""
    budget, asked = AtMostPer(n, span, gives_back=True), []
    for now in moments:
        brute = sum(now - span < at < now + span for at in asked) < n
        assert budget.allows(WISH, now) == brute
        budget.note(WISH, brute, now)
        asked += [now] * brute
        if asked and rng.random() < 0.4:
            back = rng.choice(asked)
            asked.remove(back)
            budget.refund(now, asked_at=back)


@given(times, st.integers(1, 4), st.floats(5.0, 200.0), st.randoms(use_true_random=False))
def test_without_the_time_of_asking_no_more_is_given_back_than_counts(moments, n, span, rng):
    budget, asked = AtMostPer(n, span, gives_back=True), []
    for now in moments:
        ask = budget.allows(WISH, now)
        budget.note(WISH, ask, now)
        asked += [now] * ask
        counting = [at for at in asked if at > now - span]
        if counting and rng.random() < 0.4:
            asked.remove(rng.choice(counting))
            budget.refund(now)
    assert all(sum(t <= at < t + span for at in asked) <= n for t in asked)


@pytest.mark.parametrize("kind", [AtMost, lambda n, **o: AtMostPer(n, 100.0, **o)])
@pytest.mark.parametrize("gives_back", [True, False])
def test_whether_questions_are_given_back_can_be_chosen(kind, gives_back):
    budget = kind(1, gives_back=gives_back)
    budget.note(WISH, True, 0.0)
    budget.refund(1.0)
    assert budget.allows(WISH, 2.0) == gives_back
    assert ("gives_back" in repr(budget)) == (
        gives_back == isinstance(budget, AtMostPer)
    )  # only what is not the default


def test_a_rate_that_gives_nothing_back_counts_every_question():
    shares = []
    for gives_back in (True, False):
        budget, n_asked = RateBudget(0.2, gives_back=gives_back), 0
        for now in range(500):
            ask = budget.allows(WISH, now)
            budget.note(WISH, ask, now)
            n_asked += ask
            if ask:
                budget.refund(now)
        shares.append(n_asked / 500)
    assert shares[0] > 0.9
    assert shares[1] == pytest.approx(0.2, abs=0.01)


BUDGETS = [
    AtMost(3),
    AtMostPer(3, 50.0, gives_back=True),
    RateBudget(0.3),
    AllOf(RateBudget(0.3), AtMostPer(3, 50.0), AtMost(20)),
    PacedBudget(6, 30.0),
    AllOf(PacedBudget(6, 30.0), RateBudget(0.3)),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@examples(12)
@given(data=st.data())
def test_a_budget_goes_on_over_a_restart_as_if_there_had_been_none(budget, data):
    import copy

    one, other = copy.deepcopy(budget), copy.deepcopy(budget)
    for now in range(80):
        score = data.draw(st.sampled_from([0.1, 0.5, 0.9]))
        wish = Decision.of(score, 0.0, "Entropy")
        ask = one.allows(wish, now)
        assert other.allows(wish, now) == ask
        for each in (one, other):
            each.note(wish, ask, now)
        if ask and now % 3 == 0:
            one.refund(now)
            other.refund(now)
        if now % 7 == 0:
            fresh = copy.deepcopy(budget)
            fresh.load_state(json.loads(json.dumps(other.state())))
            other = fresh


def test_a_state_may_be_loaded_more_than_once():
    budget, other = RateBudget(0.5), RateBudget(0.5)
    for now in range(5):
        budget.note(WISH, True, now)
    for _ in range(2):
        other.load_state(budget.state())
    assert other.state() == budget.state()


def test_options_that_came_later_leave_fingerprints_as_they_were():
    assert fingerprint(AtMost(3)) == fingerprint(AtMost(3, gives_back=True))
    assert fingerprint(AtMost(3)) != fingerprint(AtMost(3, gives_back=False))
    # as they were before the option was there
    assert fingerprint(AtMost(3)) == "9effdb1937fd5d8c"
    assert fingerprint(AtMostPer(5, 3600.0)) == "fc0b296e00f7b82c"
    assert fingerprint(RateBudget(0.1, seed=1)) == "85f46554291ff123"


# --- in the loop, and for all keys together


def event(n, key=None):
    return Event(event_id=str(n), key=key, x={"a": float(n)}, occurred_at=float(n))


def test_the_loop_tells_when_the_question_was_asked_that_nobody_answered():
    """The second question is given back and not the first, so the limit ends when it did."""
    model = classifier(AlwaysAsk(), AtMostPer(2, 100.0, gives_back=True))
    loop = InteractiveLoop(model)
    for n in (0, 50):
        assert isinstance(loop.on_event(event(n), float(n))[-1], LabelRequest)
    answer = Answer(
        answer_id="a", event_id="50", request_id="50/label", declined=True, answered_at=55.0
    )
    loop.on_answer(answer, 55.0)
    asked = [loop.on_event(event(n), float(n))[0].decision.ask for n in (60, 70, 101, 120, 161)]
    assert asked == [True, False, True, False, True]


def keyed(total=None, **options):
    model = classifier(AlwaysAsk(), AtMostPer(2, 10.0))
    return KeyedLoops(model, total_budget=total, **options)


def asked_by_key(loops, ticks, keys="abc"):
    found = []
    for n in ticks:
        for key in keys:
            prediction = loops.on_event(event(n, key), now=float(n))[0]
            assert isinstance(prediction, Prediction)
            found.append((n, key, prediction.decision.ask, prediction.decision.budget))
    return found


def test_a_hard_limit_for_each_key_and_for_all_of_them_together():
    found = asked_by_key(keyed(AtMostPer(4, 10.0)), range(10))
    for key in "abc":
        assert sum(ask for _, k, ask, _ in found if k == key) <= 2
    assert sum(ask for *_, ask, _ in found) == 4
    assert {budget for *_, budget in found} == {None, "AtMostPer", "total AtMostPer"}


def test_without_a_total_budget_every_key_has_its_own():
    found = asked_by_key(keyed(), range(10))
    assert sum(ask for *_, ask, _ in found) == 6


@pytest.mark.parametrize("max_keys", [None, 1])
def test_the_total_budget_survives_snapshots_and_stores(max_keys):
    total = AllOf(AtMostPer(4, 10.0), RateBudget(0.3))
    whole = asked_by_key(keyed(total, max_keys=max_keys), range(40))
    loops, found = keyed(total, max_keys=max_keys), []
    for n in range(40):
        store = loops._cache._store
        loops = KeyedLoops.restore(
            loops.snapshot(), loops.model, max_keys=max_keys, total_budget=total,
            store=None if max_keys is None else store,
        )  # fmt: skip
        found += asked_by_key(loops, [n])
    assert found == whole


def test_the_total_budget_is_published_and_taken_over():
    loops = keyed(AtMost(3), keep_changes=True)
    asked_by_key(loops, [0])
    assert loops.has_changed
    changes = loops.changes()
    assert changes[None] == {"budget": {"spent": 3}}
    assert not loops.has_changed
    assert loops.changes() == {}
    other = keyed(AtMost(3), keep_changes=True)
    other.take_over_budget(changes[None]["budget"])
    assert not any(ask for *_, ask, _ in asked_by_key(other, [1]))
    with pytest.raises(SnapshotError, match="there is no total budget"):
        keyed().take_over_budget({"spent": 3})


def test_an_unanswered_question_is_given_back_to_the_total_budget():
    loops = keyed(AtMost(1))
    [(_, _, ask, _)] = asked_by_key(loops, [0], "a")
    assert ask
    assert asked_by_key(loops, [1], "b")[0][3] == "total AtMost"
    loops.on_cancel("0/label", 2.0, key="a")
    assert asked_by_key(loops, [3], "b")[0][2]


def test_another_total_budget_is_another_configuration():
    data = keyed(AtMost(3)).snapshot()
    with pytest.raises(SnapshotError, match="another configuration"):
        KeyedLoops.restore(data, keyed().model, total_budget=AtMost(4))
    with pytest.raises(SnapshotError, match="another configuration"):
        KeyedLoops.restore(data, keyed().model)


@pytest.mark.parametrize("wrong", [3, AtMost])
def test_an_invalid_total_budget_is_refused(wrong):
    with pytest.raises(TypeError, match=r"total_budget must be of streamgp.budgets"):
        keyed(wrong)
