import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.base import Decision, QuestionsLeft
from streamgp.query.budgets import AtMost, AtMostPer, RateBudget, Unlimited

WISH = Decision.of(1.0, 0.0, "AlwaysAsk")
BUDGETS = [Unlimited(), AtMost(3), AtMostPer(2, 10.0), RateBudget(0.2)]


def wish(score):
    return Decision.of(score, -1.0, "test")


def play(budget, events):
    """Ask whenever allowed; the times asked at."""
    asked_at = []
    for decision, now in events:
        asked = decision.ask and budget.allows(decision, now)
        budget.note(decision, asked, now)
        if asked:
            asked_at.append(now)
    return asked_at


def test_no_limit_allows_everything():
    assert len(play(Unlimited(), [(WISH, float(i)) for i in range(100)])) == 100


@given(st.integers(0, 10), st.lists(st.sampled_from(["ask", "refund"]), max_size=60))
def test_no_more_than_n_questions_are_open_or_answered(n, series):
    budget, asked, returned = AtMost(n), 0, 0
    for i, what in enumerate(series):
        if what == "refund":
            if asked > returned:
                budget.refund(float(i))
                returned += 1
            continue
        allowed = budget.allows(WISH, float(i))
        assert allowed == (asked - returned < n)
        budget.note(WISH, allowed, float(i))
        asked += allowed
        assert asked - returned <= n


def test_a_refund_of_nothing_gives_nothing():
    budget = AtMost(1)
    budget.refund(0.0)
    assert len(play(budget, [(WISH, 0.0)] * 5)) == 1
    for asked_at in (None, 0.0):
        budget = AtMostPer(1, 60.0, gives_back=True)
        budget.refund(1.0, asked_at)
        assert len(play(budget, [(WISH, 1.0)] * 5)) == 1


def within(times, span):
    """Largest number of times within any span, its end excluded."""
    return max((sum(0 <= t - start < span for t in times) for start in times), default=0)


@given(
    st.integers(0, 4),
    st.floats(0.5, 30.0),
    st.lists(st.floats(0.0, 100.0), max_size=60),
    st.booleans(),
)
def test_no_span_holds_more_than_n_questions(n, span_s, times, forward):
    """Also where the time goes backwards between events, as it does in real logs."""
    times = sorted(times) if forward else times
    asked_at = play(AtMostPer(n, span_s), [(WISH, t) for t in times])
    assert within(asked_at, span_s) <= n


def test_a_span_shorter_than_the_rounding_of_time_holds_no_more_either():
    budget, now = AtMostPer(2, 1e-9), 1.7e9
    assert now + 1e-9 == now
    assert len(play(budget, [(WISH, now)] * 5)) == 2
    assert budget.left(now) == QuestionsLeft(0, 2, 1e-9)


def test_a_span_that_is_over_allows_as_many_again():
    events = [(WISH, float(t)) for t in range(30)]
    assert play(AtMostPer(2, 10.0), events) == [0, 1, 10, 11, 20, 21]


def test_time_that_goes_backwards_forgets_no_recent_question():
    budget = AtMostPer(2, span_s=60.0)
    assert play(budget, [(WISH, t) for t in (100.0, 0.0, 61.0, 99.0)]) == [100.0, 0.0, 61.0]


def test_an_unanswered_question_has_interrupted_all_the_same():
    budget = AtMostPer(1, span_s=60.0)
    budget.note(WISH, True, 0.0)
    budget.refund(1.0)
    assert not budget.allows(WISH, 2.0)


def test_no_question_at_all():
    assert play(AtMost(0), [(WISH, 0.0)] * 3) == []
    assert play(AtMostPer(0, 1.0), [(WISH, float(i)) for i in range(3)]) == []
    assert play(RateBudget(0.0), [(WISH, float(i)) for i in range(200)]) == []


def shrinking(rng, n):
    return np.exp(-np.linspace(0, 60, n)) * rng.uniform(0.5, 1.0, n)


SCORES = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) ** 2,
    "shrinking by 26 orders of magnitude": shrinking,
    "growing by 26 orders of magnitude": lambda rng, n: shrinking(rng, n)[::-1],
    "all equal": lambda rng, n: np.full(n, 0.5),  # noqa: ARG005
    "two values": lambda rng, n: rng.integers(2, size=n).astype(float),
    "in blocks": lambda rng, n: np.repeat(rng.uniform(size=n // 50), 50),
}


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2, 0.4])
def test_the_realised_rate_follows_the_rate(rate, scores):
    n = 2000
    values = scores(np.random.default_rng(0), n)
    asked = play(RateBudget(rate), [(wish(s), float(i)) for i, s in enumerate(values.tolist())])
    assert abs(len(asked) / n - rate) < 0.01
    halves = sum(t < n / 2 for t in asked)
    assert abs(halves / (n / 2) - rate) < 0.02


def test_the_highest_scores_are_asked_about():
    values = np.random.default_rng(0).uniform(size=2000)
    asked = play(RateBudget(0.1), [(wish(s), i) for i, s in enumerate(values.tolist())])
    assert values[asked].mean() > 0.85


def test_a_rate_of_one_asks_about_everything():
    values = np.random.default_rng(0).uniform(size=300).tolist()
    assert len(play(RateBudget(1.0), [(wish(s), i) for i, s in enumerate(values)])) == 300


def test_unanswered_questions_are_made_up_for():
    budget, answered = RateBudget(0.2), 0
    values = np.random.default_rng(0).uniform(size=2000).tolist()
    for i, s in enumerate(values):
        asked = budget.allows(wish(s), i)
        budget.note(wish(s), asked, i)
        if asked and i % 2:
            budget.refund(i)
        elif asked:
            answered += 1
    assert abs(answered / 2000 - 0.2) < 0.01


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 100)), max_size=20))
def test_asking_whether_is_not_asking(budget, events):
    one, other = copy.deepcopy(budget), copy.deepcopy(budget)
    for score, now in events:
        before = pickle.dumps(one)
        answers = {one.allows(wish(score), now) for _ in range(3)}
        assert pickle.dumps(one) == before
        assert answers == {other.allows(wish(score), now)}
        one.note(wish(score), answers == {True}, now)
        other.note(wish(score), answers == {True}, now)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_a_copy_goes_on_alike(budget):
    events = [(wish(((i * 37) % 100) / 100), float(i)) for i in range(60)]
    one = copy.deepcopy(budget)
    play(one, events[:30])
    twin = pickle.loads(pickle.dumps(one))
    assert play(one, events[30:]) == play(twin, events[30:])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: AtMost(-1), "n must be a whole number of at least 0, got -1"),
        (lambda: AtMost(1.5), "n must be a whole number of at least 0, got 1.5"),
        (lambda: AtMostPer(-1, 1.0), "n must be a whole number of at least 0, got -1"),
        (lambda: AtMostPer(1, 0.0), "span_s must be positive and finite, got 0.0"),
        (lambda: AtMostPer(1, math.inf), "span_s must be positive and finite, got inf"),
        (lambda: AtMostPer(1, math.nan), "span_s must be positive and finite, got nan"),
        (lambda: RateBudget(1.1), "rate must be between 0 and 1, got 1.1"),
        (lambda: RateBudget(math.nan), "rate must be between 0 and 1, got nan"),
        (lambda: RateBudget(0.1, window=0), "window must be a whole number of at least 1, got 0"),
        (lambda: RateBudget(0.1, horizon=0), "horizon must be a whole number of at least 1, got 0"),
    ],
)
def test_impossible_parameters_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_whole_numbers_may_be_floats():
    assert repr(AtMost(3.0)) == "AtMost(3)"
    assert repr(AtMostPer(3.0, 60)) == "AtMostPer(3, 60)"
    assert repr(RateBudget(0.1, window=20.0)) == "RateBudget(0.1, window=20, horizon=8)"
    assert repr(Unlimited()) == "Unlimited()"


def test_a_budget_is_printed_as_it_is_made():
    for text in (
        "RateBudget(0.1, window=50, horizon=8, seed=3, gives_back=False)",
        "AtMost(3, gives_back=False)",
    ):
        assert repr(eval(text)) == text


def test_a_clock_that_ran_ahead_for_a_while_locks_nothing():
    budget = AtMostPer(2, 3600.0)
    assert play(budget, [(WISH, t) for t in (0.0, 10.0, 4e9, 4e9 + 1)]) == [0.0, 10.0, 4e9, 4e9 + 1]
    assert play(budget, [(WISH, 1e4 * t) for t in range(1, 60)]) == [1e4 * t for t in range(1, 60)]


class Forgetful:
    """A budget that overlooks that questions may end without an answer."""

    def allows(self, decision, now):
        return bool(decision or now)

    def note(self, decision, asked, now):
        pass


@pytest.mark.parametrize(
    ("budget", "lacks"),
    [
        (3, r"3; it lacks allows\(decision, now\), note\(decision, asked, now\), refund\(now\)$"),
        (AtMost, r"it lacks allows\(decision, now\), note\("),
        (Forgetful(), r"it lacks refund\(now\)$"),
    ],
    ids=["a number", "a class", "without refund"],
)
def test_what_lacks_a_method_of_a_budget_is_refused_before_the_first_event(budget, lacks):
    with pytest.raises(
        TypeError, match=r"budget must be a budget, such as AtMost\(100\), .*" + lacks
    ):
        SkepticalClassifier(GPClassifier(), budget=budget)
