"""A limit of questions per time that is used evenly, on what is most doubtful."""

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.base import Decision
from streamgp.budgets import AllOf, AtMost, AtMostPer, PacedBudget, Unlimited
from streamgp.common.budget_account import BudgetAccount
from streamgp.common.fingerprint import described
from streamgp.interactive import Answer, Event, KeyedLoops, LabelRequest
from streamgp.query import AlwaysAsk, NeverAsk, SkepticalAsk
from streamgp.query.budgets import _log_factor
from tests.helpers.laws import examples

DAY = 86400.0


def coin(score, draw):
    return Decision.of(score, draw, "SkepticalAsk")


def play(budget, events):
    """Time and score of each question; `events` are decisions of a strategy with their times."""
    account, asked = BudgetAccount(budget), []
    for decision, now in events:
        decided = account.decided(decision, now)
        assert decided.score == decision.score
        account.note(decided, decided.ask, now)
        if decided.ask:
            asked.append((now, decided.score))
    return asked


def within(times, span):
    return max((sum(0 <= t - start < span for t in times) for start in times), default=0)


@examples(30)
@given(
    st.integers(0, 5),
    st.lists(
        st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.999), st.floats(0.0, 400.0)), max_size=80
    ),
    st.booleans(),
    st.integers(0, 9),
)
def test_no_span_holds_more_than_n_questions_after_those_of_the_start(n, events, forward, at_start):
    """Whatever is doubted when, also where the time goes backwards."""
    if forward:
        events.sort(key=lambda each: each[2])
    budget = PacedBudget(n, 100.0, at_start=at_start)
    asked = play(budget, [(coin(s, d), now) for s, d, now in events])
    assert within([now for now, _ in asked[at_start:]], 100.0) <= n


@examples(30)
@given(
    st.integers(0, 9),
    st.lists(
        st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.999), st.floats(0.0, 60.0)), max_size=60
    ),
)
def test_at_the_start_all_is_asked_that_the_strategy_would_ask(at_start, steps):
    budget, now, n_asked = PacedBudget(2, 100.0, at_start=at_start), 0.0, 0
    for score, draw, passed in steps:
        now += passed
        wish = coin(score, draw)
        decided = budget.turned(wish, now)
        budget.note(decided, decided.ask, now)
        if wish.ask and n_asked < at_start:
            assert decided == wish
        elif n_asked < at_start and draw:
            assert decided.threshold <= draw  # only arrears make it less strict
        n_asked += decided.ask


def test_at_the_start_half_of_the_limit_comes_on_top_where_all_is_doubtful():
    budget = PacedBudget(6, DAY, at_start=10)
    asked = play(budget, [(coin(1.0, 0.01), i * 1.0) for i in range(60)])
    # By hand: all of the start, half of the limit, and the first of those that become due.
    assert [now for now, _ in asked] == [float(i) for i in range(14)]


def test_where_the_strategy_asks_for_little_questions_of_the_start_are_asked_at_the_pace():
    """By hand: six in a day, one in four hours."""
    rng, budget = random.Random(12), PacedBudget(6, DAY, at_start=10)
    events = [(coin(0.0001, rng.random()), i * 120.0) for i in range(1400)]
    hours = [now / 3600.0 for now, _ in play(budget, events)]
    for k, hour in enumerate(hours[:10]):
        assert hour == pytest.approx(4.0 * (k + 1), abs=6.0)


def test_the_first_span_begins_anew_when_the_questions_of_the_start_are_used_up():
    budget = PacedBudget(6, DAY, at_start=2)
    for now in (0.0, 3.0 * DAY):
        budget.note(coin(1.0, 0.01), asked=True, now=now)
    asked = play(budget, [(coin(1.0, 0.01), 3.0 * DAY + i) for i in range(1, 60)])
    # By hand: half of the limit, and the first of those that become due.
    assert len(asked) == 4


def test_at_the_start_no_more_than_the_limit_is_made_up_for_at_once():
    """After four days 25 are due; by hand, as many are asked as make up for six."""
    budget, score = PacedBudget(6, DAY, at_start=100), 1e-4
    assert play(budget, [(coin(score, 0.99), i * 60.0) for i in range(6000)]) == []
    rate = 6 * 60.0 / (0.08 * DAY)
    decided = budget.turned(coin(score, 0.5), 6000 * 60.0)
    assert decided.threshold == pytest.approx(0.5 * score / rate)


def test_strictness_is_one_when_the_questions_of_the_start_are_used_up():
    budget = PacedBudget(6, DAY, at_start=2)
    for now in (0.0, 60.0):
        budget.note(coin(0.02, 0.01), asked=True, now=now)
        assert budget.strictness == 1.0
    budget.note(coin(0.02, 0.5), asked=False, now=DAY / 10.0 + 60.0)
    assert budget.strictness == pytest.approx(math.exp(0.44))


@pytest.mark.parametrize("others", [[], [PacedBudget(1_000_000, 3600.0)]])
def test_without_a_coin_the_first_score_after_the_start_sets_the_scale(others):
    budget = PacedBudget(6, DAY, at_start=2)
    events = [(Decision.of(1e-9, 0.0, "Variance"), now) for now in (0.0, 1.0, 2.0)]
    assert len(play(AllOf(budget, *others), events)) == 3
    assert budget.strictness == pytest.approx(1e9 * math.exp(-4.0 / 6.0))


def by_entropy(threshold, *, at_start=0):
    """Questions about four days of scores below 1."""
    rng, budget = random.Random(4), PacedBudget(30, DAY, at_start=at_start)
    events = [(Decision.of(rng.random(), threshold, "Entropy"), i * 120.0) for i in range(4 * 720)]
    return play(budget, events)


@pytest.mark.parametrize("threshold", [1.0, 2.0, 40.0])
def test_a_threshold_that_cannot_be_a_draw_counts_as_none(threshold):
    assert by_entropy(threshold) == by_entropy(0.0)
    assert len(by_entropy(threshold, at_start=9)) > 0.9 * 30 * 4


@pytest.mark.parametrize("doubt", [0.5, 0.05, 0.005])
def test_questions_keep_to_the_pace_however_doubtful_events_are(doubt):
    rng, budget = random.Random(1), PacedBudget(30, DAY)
    # The first event, before any label, is as doubtful as can be.
    events = [(coin(doubt if i else 1.0, rng.random()), i * 120.0) for i in range(5 * 720)]
    asked = [now for now, _ in play(budget, events)]
    for day in range(1, 5):
        assert sum(day * DAY <= now < (day + 1) * DAY for now in asked) in range(24, 37)


def steady(_):
    return 0.1


def learned(i):
    return 10.0 ** (-i / 720)


def certain(_):
    return 1e-12


def in_bouts(i):
    """An hour of every eleven is doubtful."""
    return 0.5 if i % 330 < 30 else 1e-7


def changing(i):
    """Certain for three days, doubtful for three."""
    return 0.4 if i // 2160 % 2 else 1e-5


@pytest.mark.parametrize(
    ("doubt", "n", "at_start"),
    # By day each doubt once, and each number of questions.
    [
        pytest.param(doubt, n, n * k, marks=() if (i + k) % 3 == j else pytest.mark.nightly)
        for i, doubt in enumerate((steady, learned, certain, in_bouts, changing))
        for j, n in enumerate((5, 30, 100))
        for k in (0, 1)
    ],
)
def test_nine_of_ten_questions_are_used_whatever_is_doubted(doubt, n, at_start):
    rng, n_days = random.Random(9), 12
    # Doubts vary by a factor of e, from event to event.
    events = [
        (coin(doubt(i) * math.exp(rng.uniform(-1.0, 0.0)), rng.random()), i * 120.0)
        for i in range(n_days * 720)
    ]
    times = [now for now, _ in play(PacedBudget(n, DAY, at_start=at_start), events)]
    assert within(times[at_start:], DAY) <= n
    # Questions of the start may be asked, they need not be.
    assert 0.9 * n * n_days <= len(times) <= n * n_days + at_start


@examples(30)
@given(st.integers(1, 40), st.integers(20, 300), st.integers(0, 9))
def test_of_the_first_span_half_may_be_asked_at_once(n, n_events, seed):
    """The rest becomes due evenly: by hand, whatever is doubted."""
    rng = random.Random(seed)
    times = sorted(rng.uniform(0.0, 100.0) for _ in range(n_events))
    asked = play(PacedBudget(n, 100.0), [(coin(1.0, 1e-6), now) for now in times])
    for k, (now, _) in enumerate(asked):
        assert k < 0.5 * n + 0.5 * n * (now - times[0]) / 100.0


def test_half_is_asked_in_a_row_where_all_is_doubtful():
    asked = play(PacedBudget(30, DAY), [(coin(1.0, 0.01), i * 1.0) for i in range(60)])
    # By hand: half, and the first of those that become due one by one.
    assert [now for now, _ in asked] == [float(i) for i in range(16)]


def test_a_quiet_time_is_no_reason_to_ask_about_all_that_is_doubtful_then():
    """By hand: after a question about a doubt of a half `c` is below two, however high it was."""
    rng, budget = random.Random(10), PacedBudget(30, DAY)
    quiet = [(coin(1e-9, rng.random()), i * 240.0) for i in range(20 * 360)]
    play(budget, quiet)
    assert budget.strictness > 1e6
    asked = play(budget, [(coin(0.5, rng.random()), 20 * DAY + i * 240.0) for i in range(15)])
    assert budget.strictness < 2.0
    assert 1 <= len(asked) <= 15


@given(
    st.lists(st.floats(0.0, 1e9), min_size=1, max_size=60),
    st.floats(0.0, 1.0, exclude_min=True),
)
def test_a_factor_asks_about_as_many_as_are_wanted(scores, rate):
    wanted = rate * len(scores)
    log = _log_factor(scores, wanted)
    n_positive = sum(score > 0.0 for score in scores)
    if wanted > n_positive:
        assert log == 600.0
    elif abs(log) < 600.0:
        asked = math.fsum(min(1.0, math.exp(log) * score) for score in scores)
        assert asked == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_strictness_falls_with_each_question_and_rises_with_time_except_at_the_limit(n):
    budget = PacedBudget(n, DAY)
    budget.note(coin(0.5, 0.0), asked=True, now=0.0)
    assert budget.strictness == pytest.approx(2.0 * math.exp(-4.0 / n))
    budget.note(coin(0.0, 0.0), asked=False, now=DAY / 10.0)
    risen = 0.44 if n > 1 else 0.0
    assert budget.strictness == pytest.approx(2.0 * math.exp(risen - 4.0 / n))


def test_what_the_limit_forbids_does_not_pile_up():
    """Otherwise the strictness would rise for ever, and doubt count for nothing in the end."""
    rng, budget = random.Random(8), PacedBudget(30, DAY)
    events = [(coin(0.3, rng.random()), i * 240.0) for i in range(30 * 360)]
    assert len(play(budget, events)) > 0.9 * 30 * 30
    assert budget.strictness < 1.0  # .28 would do


def test_the_more_doubtful_is_asked_about_in_proportion():
    rng = random.Random(2)
    scores = [rng.choice((0.02, 0.2)) for _ in range(20_000)]
    events = [(coin(score, rng.random()), i * 60.0) for i, score in enumerate(scores)]
    asked = [score for _, score in play(PacedBudget(50, DAY), events)]
    assert asked.count(0.2) / asked.count(0.02) == pytest.approx(10.0, rel=0.35)


def test_it_asks_more_than_the_strategy_would_and_less():
    rng = random.Random(3)
    draws = [rng.random() for _ in range(2880)]
    for score in (0.002, 0.8):
        events = [(coin(score, draw), i * 60.0) for i, draw in enumerate(draws)]
        alone = len(play(Unlimited(), events))
        paced = len(play(PacedBudget(30, DAY), events))
        assert (alone < 15) if score == 0.002 else (alone > 1000)
        assert 45 <= paced <= 61


def test_a_strategy_that_would_ask_about_everything_is_given_a_coin():
    """Scores may be of any scale: here variances of around a million."""
    rng = random.Random(4)
    events = [
        (Decision.of(1e6 * rng.choice((1.0, 4.0)), 0.0, "Variance"), i * 60.0) for i in range(7200)
    ]
    asked = [score for _, score in play(PacedBudget(100, DAY), events)]
    assert 450 <= len(asked) <= 500
    assert asked.count(4e6) / asked.count(1e6) == pytest.approx(4.0, rel=0.35)


def test_a_strategy_that_never_asks_is_not_made_to():
    wish = NeverAsk().decide({}, 0.5)
    assert play(PacedBudget(30, DAY), [(wish, i * 3600.0) for i in range(300)]) == []


def test_what_is_refused_at_the_limit_names_the_budget_and_nothing_is_given_back():
    budget = PacedBudget(1, DAY)
    for now in (0.0, 1.0):
        decision = budget.turned(coin(1.0, 0.0001), now)
        budget.note(decision, decision.ask, now)
    assert (decision.ask, decision.budget) == (False, "PacedBudget")
    assert budget.left(1.0) == (0, 1, DAY)
    budget.refund(2.0)
    assert budget.left(2.0).left == 0
    assert not budget.allows(coin(1.0, 0.0001), 2.0)


def test_a_question_of_the_start_is_not_given_back():
    budget = PacedBudget(1, DAY, at_start=2)
    assert budget.left(0.0) == (3, 3, DAY)
    budget.note(coin(1.0, 0.5), asked=True, now=0.0)
    budget.refund(1.0)
    assert budget.left(1.0) == (2, 3, DAY)
    budget.note(coin(1.0, 0.5), asked=True, now=2.0)
    assert budget.left(2.0) == (1, 1, DAY)


def test_of_several_the_least_strictness_decides_and_others_refuse():
    rng = random.Random(5)
    events = [(coin(0.1, rng.random()), i * 60.0) for i in range(1440)]
    several = AllOf(PacedBudget(40, DAY), AllOf(PacedBudget(1, 3600.0)), AtMost(20))
    times = [now for now, _ in play(several, events)]
    assert within(times, 3600.0) == 1
    assert len(times) == 20
    assert not AllOf(AtMost(3), AtMostPer(1, 60.0)).turns


@pytest.mark.parametrize("at_start", [0, 15])
@pytest.mark.parametrize("query", [SkepticalAsk(c=0.01), SkepticalAsk(), AlwaysAsk()], ids=repr)
def test_keys_have_their_limits_with_late_answers_and_over_restarts(query, at_start):
    """Every key uses its questions, and a run that is restarted asks the same ones."""

    def learner():
        budget = PacedBudget(20, 200.0, seed=1, at_start=at_start)
        model = GPClassifier(max_points=50)
        return SkepticalClassifier(model, query, budget=budget, warm_up=20, seed=1)

    def run(restarts):
        loops, waiting, asked = KeyedLoops(learner()), [], {"a": [], "b": []}
        rng = random.Random(6)
        for i in range(500):
            x = {"u": rng.gauss(0.0, 1.0), "v": rng.gauss(0.0, 1.0)}
            key = rng.choice("ab")
            while waiting and waiting[0][0] <= i:
                at, answer = waiting.pop(0)
                loops.on_answer(answer, float(at))
            event = Event(event_id=str(i), key=key, x=x, occurred_at=float(i))
            for message in loops.on_event(event, float(i)):
                if isinstance(message, LabelRequest):
                    asked[key].append(i)
                    answer = Answer(
                        answer_id=f"a{i}",
                        event_id=str(i),
                        key=key,
                        request_id=message.request_id,
                        y="near" if math.hypot(*x.values()) < 1.0 else "far",
                        answered_at=float(i + 30),
                    )
                    waiting.append((i + 30, answer))
            if i in restarts:
                loops = KeyedLoops.restore(loops.snapshot(), learner())
        return asked

    asked = run(())
    for times in asked.values():
        assert within(times[at_start:], 200.0) <= 20
        # 50 by their pace, 60 by the limit
        assert 40 <= len(times) <= 60 + at_start
    assert run((7, 133, 134, 401)) == asked


@pytest.mark.parametrize("at_start", [0, 20, 200])
def test_a_state_is_plain_json_and_brings_back_all(at_start):
    rng, one = random.Random(7), PacedBudget(5, 100.0, at_start=at_start)
    play(one, [(coin(0.3, rng.random()), float(i)) for i in range(150)])
    other = PacedBudget(5, 100.0, at_start=at_start)
    other.load_state(json.loads(json.dumps(one.state())))
    rest = [(coin(0.3, rng.random()), float(i)) for i in range(150, 300)]
    assert play(one, rest) == play(other, rest)
    assert one.state() == other.state()


def test_a_state_of_before_scores_were_kept_is_read():
    """Its limit goes on, and no first span begins again."""
    budget = PacedBudget(4, 100.0)
    old = {"first": 0.0, "log": -0.5, "at": 80.0, "n": 40, "limit": {"asked_at": [70.0, 80.0]}}
    budget.load_state(old)
    assert budget.strictness == pytest.approx(math.exp(-0.5))
    asked = play(budget, [(coin(1.0, 1e-6), 81.0 + i) for i in range(10)])
    assert [now for now, _ in asked] == [81.0, 82.0]
    never = PacedBudget(4, 100.0)
    never.load_state({"first": None, "log": 0.0, "at": None, "n": 0, "limit": {"asked_at": []}})
    assert never.state() == PacedBudget(4, 100.0).state()


def test_a_budget_that_has_begun_gets_no_questions_of_the_start():
    begun, new = PacedBudget(4, 100.0), PacedBudget(4, 100.0)
    begun.note(coin(0.0, 0.5), asked=False, now=0.0)
    assert "extra" not in begun.state()
    for before, left in ((begun, 4), (new, 4 + 9)):
        budget = PacedBudget(4, 100.0, at_start=9)
        budget.load_state(before.state())
        assert budget.left(1.0).left == left


def test_questions_of_the_start_are_at_most_those_of_the_setting():
    before, budget = PacedBudget(4, 100.0, at_start=9), PacedBudget(4, 100.0, at_start=3)
    before.note(coin(1.0, 0.5), asked=True, now=0.0)
    budget.load_state(before.state())
    assert budget.left(1.0) == (4 + 3, 4 + 3, 100.0)


def test_a_budget_without_questions_of_the_start_is_described_as_before_they_existed():
    """So a running deployment goes on: its fingerprint is the same."""
    assert described(PacedBudget(4, 100.0)) == {
        "class": "streamgp.query.budgets.PacedBudget", "n": 4, "span_s": 100, "seed": 0,
    }  # fmt: skip
    assert described(PacedBudget(4, 100.0, at_start=9))["at_start"] == 9


@examples(30)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.999), st.floats(0.0, 60.0)), max_size=60
    ),
    st.integers(0, 60),
    st.integers(0, 9),
)
def test_a_restart_anywhere_changes_no_decision(steps, cut, at_start):
    now, events = 0.0, []
    for score, draw, passed in steps:
        now += passed
        events.append((coin(score, draw), now))
    whole, one, other = (PacedBudget(5, 100.0, at_start=at_start) for _ in range(3))
    expected = play(whole, events)
    first = play(one, events[:cut])
    other.load_state(json.loads(json.dumps(one.state())))
    assert first + play(other, events[cut:]) == expected
    assert other.state() == whole.state()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PacedBudget(-1, 1.0), "n must be a whole number of at least 0, got -1"),
        (lambda: PacedBudget(1, 0.0), "span_s must be positive and finite, got 0.0"),
        (
            lambda: PacedBudget(1, 1.0, at_start=-1),
            "at_start must be a whole number of at least 0, got -1",
        ),
    ],
)
def test_settings_are_checked(build, message):
    with pytest.raises(ValueError, match=message):
        build()
