"""What is left of a budget, against the loop that spends it."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.annotation import question_budget
from connectors.annotation.question_budget import QuestionBudget
from streamgp.base import Budget, CountingBudget, QuestionsLeft
from streamgp.budgets import AllOf, AtMost, AtMostPer, PacedBudget, RateBudget, Unlimited
from streamgp.interactive import Answer, Cancel, Event, KeyedLoops, LabelRequest
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import SkepticalClassifier
from streamgp.query.strategies import AlwaysAsk, NeverChallenge

BUDGETS: tuple[CountingBudget, ...] = (
    AtMost(4),
    AtMost(4, gives_back=False),
    AtMostPer(3, span_s=5.0),
    AtMostPer(3, span_s=5.0, gives_back=True),
    AllOf(AtMost(5), AtMostPer(2, span_s=4.0)),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["event", "event", "label", "decline", "wait"]), st.sampled_from("ab")
    ),
    max_size=25,
)


@pytest.mark.parametrize("of_key", BUDGETS, ids=repr)
@pytest.mark.parametrize("total", [None, AtMost(6)], ids=repr)
@given(steps=STEPS, data=st.data())
def test_a_question_is_left_exactly_where_the_worker_would_ask(
    of_key: CountingBudget, total: Any, steps: list[tuple[str, str]], data: Any
) -> None:
    """Whatever is read first, requests or answers."""
    model = SkepticalClassifier(
        GPClassifier(), query=AlwaysAsk(), challenge=NeverChallenge(), budget=of_key, warm_up=0
    )
    loops = KeyedLoops(model, total_budget=total, expires_after_s=7.0)
    now, n = 0.0, 0
    asked: dict[str, list[LabelRequest]] = {"a": [], "b": []}
    topics: list[list[Any]] = [[], []]

    def put(messages: Any) -> bool:
        found = [one for one in messages if isinstance(one, LabelRequest)]
        for one in found:
            asked[str(one.key)].append(one)
        topics[0].extend(messages)
        return bool(found)

    def left(key: str) -> QuestionsLeft | None:
        budget = QuestionBudget(of_key, total)
        streams = [list(stream) for stream in topics]
        while any(streams):
            stream = data.draw(st.sampled_from([one for one in streams if one]))
            budget.take(stream.pop(0))
        return budget.left(key, now)

    for step, key in steps:
        now += 1.0
        put(loops.on_time(now))
        if step == "event":
            n += 1
            before = left(key)
            event = Event(event_id=f"e{n}", key=key, x={"a": float(n)}, occurred_at=now)
            is_asked = put(loops.on_event(event, now))
            assert before is not None
            assert is_asked == (before.left > 0)
        elif step in ("label", "decline") and asked[key]:
            request = asked[key].pop(0)
            answer = Answer(
                answer_id=f"{request.request_id}/1",
                request_id=request.request_id,
                event_id=request.event_id,
                key=key,
                y="hall" if step == "label" else None,
                declined=step == "decline",
                annotator="ann",
                answered_at=now,
            )
            topics[1].append(answer)
            put(loops.on_answer(answer, now))


@pytest.mark.parametrize("budget", [Unlimited(), RateBudget(0.1)], ids=repr)
def test_a_budget_that_counts_no_questions_says_nothing(budget: Budget) -> None:
    assert not isinstance(budget, CountingBudget)
    assert QuestionBudget().left(None, 0.0) is None


def asked(key: str, name: str = "e1") -> LabelRequest:
    return LabelRequest(
        request_id=f"{name}/label",
        event_id=name,
        key=key,
        x={},
        reason="",
        score=1.0,
        threshold=0.0,
        requested_at=1.0,
    )


def test_a_request_that_is_read_twice_counts_once_and_a_forgotten_key_begins_anew() -> None:
    budget = QuestionBudget(AtMost(3), AtMost(9))
    budget.take(asked("a"))
    budget.take(asked("a"))
    assert budget.left("a", 2.0) == QuestionsLeft(2, 3)
    assert budget.left("b", 2.0) == QuestionsLeft(3, 3)
    budget.forget("a")
    assert budget.left("a", 2.0) == QuestionsLeft(3, 3)


def test_questions_of_the_start_are_counted_for_each_key_before_those_of_the_day() -> None:
    budget = QuestionBudget(PacedBudget(3, 86400.0, at_start=2))
    found = []
    for n in range(4):
        budget.take(asked("a", f"e{n}"))
        found.append(budget.left("a", 2.0))
    assert found == [(4, 5, 86400.0), (3, 3, 86400.0), (2, 3, 86400.0), (1, 3, 86400.0)]
    assert budget.left("b", 2.0) == (5, 5, 86400.0)


def test_budgets_are_counted_of_the_keys_asked_about_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_budget, "N_KEYS", 2)
    budget = QuestionBudget(AtMost(3), AtMost(9))
    for key, name in [("a", "e1"), ("b", "e1"), ("a", "e2"), ("c", "e1")]:
        budget.take(asked(key, name))
    left = [budget.left(key, 2.0) for key in "abc"]
    assert left == [QuestionsLeft(1, 3), QuestionsLeft(3, 3), QuestionsLeft(2, 3)]


def test_budgets_of_other_keys_are_gone_though_their_requests_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Budget(AtMost):
        """A class of which nothing else makes an instance."""

    monkeypatch.setattr(question_budget, "N_KEYS", 2)
    budget = QuestionBudget(Budget(3))
    requests = [asked(f"key {n}") for n in range(9)]
    for request in (*requests, requests[0]):
        budget.take(request)
    gc.collect()
    assert sum(type(one) is Budget for one in gc.get_objects()) <= 1 + 2
    assert budget.left("key 0", 2.0) == QuestionsLeft(3, 3)
    budget.take(Cancel(request_id="e1/label", why="", at=2.0, key="key 0"))
    budget.take(Cancel(request_id="e1/label", why="", at=2.0, key="key 8"))
    assert [budget.left(f"key {n}", 2.0) for n in (0, 7, 8)] == [
        QuestionsLeft(3, 3), QuestionsLeft(2, 3), QuestionsLeft(3, 3)
    ]  # fmt: skip
