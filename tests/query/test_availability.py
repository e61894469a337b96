"""Questions at hours at which they are answered."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier
from streamgp.base import Decision
from streamgp.budgets import AllOf, AtMost, AvailabilityBudget, PacedBudget
from streamgp.common.budget_account import BudgetAccount
from streamgp.interactive import Answer, Event, InteractiveLoop, KeyedLoops, LabelRequest
from streamgp.query import AlwaysAsk, SkepticalAsk
from streamgp.simulation import AwayAnnotator
from tests.helpers.laws import examples
from tests.helpers.messages import label_request

HOUR, DAY = 3600.0, 86400.0


def coin(score, draw):
    return Decision.of(score, draw, "SkepticalAsk")


def test_the_availability_is_a_ratio_of_beta_means():
    """By hand: all 2/4; the hours 2/3 and 1/4, which is the best of the hours and the worst."""
    budget = AvailabilityBudget()
    budget.note_outcome(asked_at=8 * HOUR, answered=True)
    for asked_at in (3 * HOUR, 3.9 * HOUR):
        budget.note_outcome(asked_at=asked_at, answered=False)
    assert budget.availability(3.5 * HOUR) == pytest.approx((1 / 6) / (2 / 3))
    assert budget.availability(3.5 * HOUR + DAY) == pytest.approx((1 / 4) / (2 / 3))
    assert budget.availability(12 * HOUR) == pytest.approx((1 / 2) / (2 / 3))
    # (1 + 4 · 2/3) / 5 is more than 2/3.
    assert budget.availability(8 * HOUR) == 1.0
    assert budget.availability(3.5 * HOUR + 7 * DAY) == budget.availability(3.5 * HOUR)


@pytest.mark.parametrize(
    ("score", "draw", "asked"), [(0.9, 0.2, True), (0.9, 0.3, False), (0.7, 0.2, False)]
)
def test_the_score_counts_in_proportion_to_the_availability(score, draw, asked):
    """By hand: the availability is 1/4."""
    budget = AvailabilityBudget(exploration=1.0)
    budget.note_outcome(asked_at=8 * HOUR, answered=True)
    for _ in range(2):
        budget.note_outcome(asked_at=3 * HOUR, answered=False)
    assert budget.allows(coin(score, draw), 3 * HOUR) is asked
    assert budget.allows(coin(score, draw), 8 * HOUR)


def test_exploration_is_its_share_of_all_questions():
    """Of four questions one, at night, as soon as that is no more than a quarter of all."""
    budget, explored = AvailabilityBudget(exploration=0.25), []
    for _ in range(4):
        budget.note_outcome(asked_at=3 * HOUR, answered=False)
        budget.note_outcome(asked_at=8 * HOUR, answered=True)
    for _ in range(12):
        explored.append(budget.allows(coin(1.0, 0.0), 3 * HOUR))
        budget.note(coin(1.0, 0.0), True, (3 if explored[-1] else 8) * HOUR)
    assert explored == [n % 4 == 3 for n in range(12)]


OUTCOMES = st.lists(
    st.tuples(
        st.floats(0.0, 1.0), st.floats(0.0, 0.999), st.floats(0.0, 14 * DAY),
        st.sampled_from([True, False, None]),
    ),
    max_size=80,
)  # fmt: skip


@examples(40)
@given(OUTCOMES, st.integers(1, 5))
def test_it_only_refuses_and_keeps_to_the_limit_and_to_its_share_of_exploration(events, n):
    """It never asks more than the same controller in the same state, whatever is answered."""
    available, paced = AvailabilityBudget(), PacedBudget(n, DAY)
    both = BudgetAccount(AllOf(paced, available))
    asked, n_explored = [], 0
    for score, draw, now, answered in events:
        wish = coin(score, draw)
        alone, decided = paced.turned(wish, now), both.decided(wish, now)
        assert alone.ask or not decided.ask
        is_explored = decided.ask and available.availability(now) < 0.5
        both.note(decided, decided.ask, now)
        if decided.ask:
            asked.append(now)
            n_explored += is_explored
            assert n_explored <= 0.1 * len(asked)
            if answered is not None:
                both.note_outcome(asked_at=now, answered=answered)
        elif answered is not None:  # of a question that was asked earlier
            both.note_outcome(asked_at=now, answered=answered)
    assert max((sum(0 <= t - start < DAY for t in asked) for start in asked), default=0) <= n


@examples(20)
@given(OUTCOMES)
def test_where_all_is_answered_it_changes_nothing(events):
    alone = BudgetAccount(PacedBudget(9, DAY))
    both = BudgetAccount(AllOf(PacedBudget(9, DAY), AvailabilityBudget()))
    for score, draw, now, _ in events:
        decided = [budget.decided(coin(score, draw), now) for budget in (alone, both)]
        assert decided[0] == decided[1]
        for budget in (alone, both):
            budget.note(decided[0], decided[0].ask, now)
        if decided[0].ask:
            both.note_outcome(asked_at=now, answered=True)


@examples(20)
@given(OUTCOMES, st.integers(0, 80))
def test_after_a_restart_it_goes_on_bitwise(events, cut):
    def fresh():
        return BudgetAccount(AllOf(PacedBudget(9, DAY), AvailabilityBudget()))

    def play(budget, events):
        said = []
        for score, draw, now, answered in events:
            said.append(budget.decided(coin(score, draw), now))
            budget.note(said[-1], said[-1].ask, now)
            if answered is not None:
                budget.note_outcome(asked_at=now, answered=answered)
        return said

    whole = play(fresh(), events)
    first, second = fresh(), fresh()
    before = play(first, events[:cut])
    second.load_state(json.loads(json.dumps(first.state())))
    assert before + play(second, events[cut:]) == whole


def test_a_share_is_checked():
    with pytest.raises(ValueError, match="exploration"):
        AvailabilityBudget(1.5)


# --- In a loop: what counts as an outcome.


def model(query=None, budget=None):
    query = AlwaysAsk() if query is None else query
    budget = AvailabilityBudget() if budget is None else budget
    return SkepticalClassifier(GPClassifier(), query, budget=budget, warm_up=2, seed=1)


def outcomes(state):
    """Hours of the week that had outcomes, with answered and ended questions."""
    counts = zip(state["answered"], state["ended"], strict=True)
    return {hour: found for hour, found in enumerate(counts) if found != (0, 0)}


def test_what_was_answered_declined_and_expired_counts_at_the_hour_of_asking():
    """Thursday, the first of January 1970, begins with hour 72 of the week."""
    loop = InteractiveLoop(model(), expires_after_s=HOUR)
    for hour, name in enumerate("abcd"):
        now = hour * HOUR + 1.0
        loop.on_time(now)
        loop.on_event(Event(event_id=name, x={"value": float(hour)}, occurred_at=now), now)
        answer = Answer(
            answer_id=name, event_id=name, request_id=f"{name}/label", y="a",
            answered_at=now + 5.0,
        )  # fmt: skip
        if name == "a":
            loop.on_answer(answer, now + 5.0)
        elif name == "b":
            loop.on_answer(replace(answer, y=None, declined=True), now + 5.0)
        elif name == "c":
            loop.on_cancel("c/label", now + 5.0)
    loop.on_time(9 * HOUR)
    expected = {72: (1, 1), 73: (1, 1), 75: (0, 1)}
    assert outcomes(loop.model.state()["budget"]) == expected
    # Late answers and repeats change nothing.
    late = Answer(answer_id="d", event_id="d", request_id="d/label", y="a", answered_at=9 * HOUR)
    for _ in range(2):
        loop.on_answer(late, 9 * HOUR)
    assert outcomes(loop.model.state()["budget"]) == expected


def test_a_budget_of_all_keys_learns_when_any_of_them_is_answered():
    loops = KeyedLoops(
        model(budget=AtMost(99)), total_budget=AvailabilityBudget(), expires_after_s=HOUR
    )
    for key in ("k", "l"):
        loops.on_event(Event(event_id="a", key=key, x={"value": 0.0}, occurred_at=1.0), 1.0)
    loops.on_time(3 * HOUR)
    assert outcomes(loops._shared_budget.state()) == {72: (0, 2)}


def play(loop, events, person, said, waiting):
    """Play events with an annotator; everything the loop says goes into `said`."""
    for event in events:
        now = event.occurred_at
        for at in sorted(at for at in waiting if at <= now):
            said += loop.on_answer(waiting.pop(at), at)
        said += loop.on_time(now)
        messages = loop.on_event(event, now)
        for request in messages:
            if isinstance(request, LabelRequest):
                answer = person.answer(request, "ab"[event.x["value"] > 0], now)
                if answer is not None:
                    waiting[answer.answered_at] = answer
        said += messages


EVENTS = [
    Event(event_id=str(n), x={"value": (n * 0.618) % 2 - 1.0}, occurred_at=n * 900.0)
    for n in range(10 * 96)
]


def by_day(budget):
    """Share of the questions, from the sixth day on, that are asked while the annotator is there;
    and all that the loop said."""
    person = AwayAnnotator(SimulatedAnnotator(seed=1), hours=[(8, 22)])
    loop, said = InteractiveLoop(model(SkepticalAsk(), budget), expires_after_s=600.0), []
    play(loop, EVENTS, person, said, {})
    late = [m.requested_at for m in said if isinstance(m, LabelRequest) if m.requested_at > 5 * DAY]
    return sum(8 <= at % DAY / HOUR < 22 for at in late) / len(late), said


def test_a_loop_asks_by_day_and_goes_on_after_restarts():
    budget = AllOf(PacedBudget(12, DAY), AvailabilityBudget())
    learned, said = by_day(budget)
    assert learned > by_day(PacedBudget(12, DAY))[0] + 0.15

    person = AwayAnnotator(SimulatedAnnotator(seed=1), hours=[(8, 22)])
    loop = InteractiveLoop(model(SkepticalAsk(), budget), expires_after_s=600.0)
    again, waiting = [], {}
    for start in range(0, len(EVENTS), 240):
        play(loop, EVENTS[start : start + 240], person, again, waiting)
        loop = InteractiveLoop.restore(loop.snapshot(), model(SkepticalAsk(), budget))
    assert again == said


# --- The simulated annotator who is away at times.


@pytest.mark.parametrize(
    ("hours", "hour", "expires_after_h", "answered_at_h"),
    [
        ([(7, 9)], 7.0, None, 7.0),
        ([(7, 9)], 9.0, None, 31.0),
        ([(7, 9), (18, 23)], 9.0, None, 18.0),
        ([(22, 6)], 23.0, 0.5, 23.0),
        ([(22, 6)], 5.9, 0.5, 5.9),
        ([(22, 6)], 21.0, 1.0, 22.0),
        ([(22, 6)], 21.0, 0.9, None),
        ([(0, 24)], 13.0, 0.1, 13.0),
    ],
)
def test_an_absent_annotator_answers_on_return_unless_it_is_too_late(
    hours, hour, expires_after_h, answered_at_h
):
    person = AwayAnnotator(SimulatedAnnotator(seed=1), hours)
    now = hour * HOUR
    expires_at = None if expires_after_h is None else now + expires_after_h * HOUR
    request = replace(label_request("a", now), expires_at=expires_at)
    answer = person.answer(request, "a", now)
    found = None if answer is None else answer.answered_at / HOUR
    assert found == (None if answered_at_h is None else pytest.approx(answered_at_h))


@pytest.mark.parametrize("make", [np.array, iter])
def test_spans_of_hours_may_come_as_an_array_or_one_by_one(make):
    person = AwayAnnotator(SimulatedAnnotator(seed=1), make([(7, 9), (18, 23)]))
    answers = [person.answer(label_request(), "a", hour * HOUR) for hour in (6.0, 10.0)]
    assert [answer.answered_at for answer in answers] == [7.0 * HOUR, 18.0 * HOUR]


@pytest.mark.parametrize("hours", [[], [(7, 7)], [(-1, 3)], [(3, 25)], ["7-9"], (7, 9)])
def test_spans_of_hours_are_checked(hours):
    with pytest.raises(ValueError, match="hours must"):
        AwayAnnotator(SimulatedAnnotator(), hours)
