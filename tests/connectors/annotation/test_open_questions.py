"""Open questions in their order: what a walk over all of them would find."""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from connectors.annotation import open_questions
from connectors.annotation.open_questions import (
    N_SERVED,
    OpenQuestions,
    Order,
    Question,
    rank_of,
)
from streamgp.interactive.messages import ASKED_AGAIN, Challenge, LabelRequest, Request
from tests.helpers.laws import examples

KEYS = (None, "ann", "bob")
TIMES = st.sampled_from([0.0, 1.0, 2.0, 3.0])
EVENTS = st.tuples(st.sampled_from(KEYS), st.sampled_from("abcd"))


ANNOTATORS = (None, "ann", "eve")


def request(
    key: str | None,
    event_id: str,
    at: float,
    *,
    is_challenge: bool = False,
    score: float = 1.0,
    name: str | None = None,
) -> Request:
    fields: dict[str, Any] = {
        "event_id": event_id,
        "key": key,
        "x": {},
        "reason": "",
        "score": score,
        "threshold": 0.0,
        "requested_at": at,
    }
    if not is_challenge:
        excluded = () if name is None else (name,)
        return LabelRequest(request_id=f"{event_id}/label", excluded=excluded, **fields)
    told = {"given": "hall", "suggested": "den", "probability_wrong": 0.9, "annotator": name}
    return Challenge(request_id=f"{event_id}/challenge/1", **fields, **told)


def test_challenges_come_first_then_the_oldest_then_keys_and_ids_in_their_order() -> None:
    ordered = [
        request("bob", "b", 8.0, is_challenge=True),
        request("ann", "a", 9.0, is_challenge=True),
        request("bob", "b", 1.0),
        request(None, "b", 2.0),
        request("ann", "a", 2.0),
        request("ann", "b", 2.0),
        request("bob", "a", 2.0),
    ]
    for mixed in itertools.islice(itertools.permutations(ordered), 0, None, 500):
        assert sorted(mixed, key=rank_of) == ordered


def may_answer(asked: Request, annotator: str | None) -> bool:
    if isinstance(asked, LabelRequest):
        return annotator not in asked.excluded
    return asked.annotator in (None, annotator)


class Twins(RuleBasedStateMachine):
    """Open questions compared with a dictionary that is walked each time; the clock may jump."""

    order: Order = "oldest"

    def __init__(self) -> None:
        super().__init__()
        self.questions = OpenQuestions(may_answer=may_answer, order=self.order)
        self.predicted: dict[Any, str] = {}
        self.served: list[str | None] = []
        self.plain: dict[tuple[Any, str], tuple[Request, float]] = {}
        self.over: set[tuple[Any, str]] = set()
        self.now = -inf

    @rule(
        event=EVENTS,
        at=TIMES,
        until=TIMES | st.just(inf),
        is_challenge=st.booleans(),
        score=st.sampled_from([0.25, 0.5, 1.0]),
        name=st.sampled_from(ANNOTATORS),
    )
    def ask(self, event: Any, at: float, until: float, is_challenge: bool, **more: Any) -> None:
        asked = request(*event, at, is_challenge=is_challenge, **more)
        self.questions.ask(Question(request=asked), at=at, until=until)
        if (asked.key, asked.request_id) not in self.over:
            self.plain[asked.key, asked.request_id] = asked, until

    @rule(event=EVENTS, is_challenge=st.booleans())
    def end(self, event: Any, is_challenge: bool) -> None:
        ended = request(*event, 0.0, is_challenge=is_challenge)
        self.questions.end(ended.key, ended.request_id, at=9.0)
        self.over.add((ended.key, ended.request_id))
        self.plain.pop((ended.key, ended.request_id), None)

    @rule(event=EVENTS, label=st.sampled_from("xyz"))
    def predict(self, event: Any, label: str) -> None:
        self.questions.note_prediction(event, label)
        self.predicted[event] = label

    @rule(event=EVENTS)
    def answer(self, event: Any) -> None:
        """Answer a label request that is open."""
        asked, _ = self.plain.pop((event[0], f"{event[1]}/label"), (None, 0.0))
        if asked is not None:
            self.questions.note_answer(event, asked.request_id, "bob", at=9.0)
            self.questions.remove(event, asked.request_id)
            self.served.append(self.predicted.get(event))
            self.over.add((asked.key, asked.request_id))  # bob's answer to it counts

    @rule(event=EVENTS, is_challenge=st.booleans())
    def remove(self, event: Any, is_challenge: bool) -> None:
        removed = request(*event, 0.0, is_challenge=is_challenge)
        self.questions.remove(event, removed.request_id)
        self.plain.pop((removed.key, removed.request_id), None)

    @rule(key=st.sampled_from(KEYS))
    def forget(self, key: str | None) -> None:
        self.questions.forget(key, 9.0)
        self.over = {name for name in self.over if name[0] != key}
        self.plain = {name: one for name, one in self.plain.items() if name[0] != key}
        self.predicted = {event: y for event, y in self.predicted.items() if event[0] != key}

    @rule(now=TIMES | st.sampled_from([-inf, inf, 0.5, 2.5]))
    def time_is(self, now: float) -> None:
        self.now = now

    def in_order(self, asked: list[Request]) -> list[Request]:
        """Sort label requests, one after the other."""
        if self.order != "useful":
            return sorted(asked, key=rank_of, reverse=self.order == "newest")
        counts = Counter(self.served[-N_SERVED:])
        found: list[Request] = []

        def value(one: Request) -> tuple[float, Any]:
            label = self.predicted.get((one.key, one.event_id))
            return -one.score / (1 + counts[label]), rank_of(one)

        while len(found) < len(asked):
            found.append(min((one for one in asked if one not in found), key=value))
            counts[self.predicted.get((found[-1].key, found[-1].event_id))] += 1
        return found

    @invariant()
    def every_key_has_what_a_walk_finds(self) -> None:
        for only_key, annotator in itertools.product(KEYS, ANNOTATORS):
            open_now = [
                asked
                for asked, until in self.plain.values()
                if until >= self.now
                and only_key in (None, asked.key)
                and (annotator is None or may_answer(asked, annotator))
            ]
            challenges = [each for each in open_now if isinstance(each, Challenge)]
            labels = [each for each in open_now if not isinstance(each, Challenge)]
            walked = sorted(challenges, key=rank_of) + self.in_order(labels)
            place = self.now, only_key, annotator
            assert [each.request for each in all_of(self.questions, *place)] == walked
            assert self.questions.count(*place) == len(walked)
            oldest = min((each.requested_at for each in walked), default=inf)
            assert self.questions.oldest_at(*place) == oldest
        assert len(list(self.questions)) == len(self.plain)


def all_of(questions: OpenQuestions, *place: Any) -> Iterator[Question]:
    """Yield the questions that can be answered, in order."""
    return itertools.chain(questions.challenges(*place), questions.label_requests(*place))


class NewestTwins(Twins):
    """The same, the newest first."""

    order = "newest"


class UsefulTwins(Twins):
    """The same, spread over what was predicted."""

    order = "useful"


TestTwins, TestNewest, TestUseful = Twins.TestCase, NewestTwins.TestCase, UsefulTwins.TestCase
TestTwins.settings = TestNewest.settings = TestUseful.settings = settings(
    examples(25), stateful_step_count=25
)


@pytest.mark.parametrize("order", ["useful", "newest", "oldest"])
@pytest.mark.parametrize("annotator", ["ann", "eve"])
def test_a_question_costs_what_is_handed_out(order: Order, annotator: str) -> None:
    """The number of function calls does not grow with the questions: 50 and 5000 of them.

    Annotator eve is excluded from most of them.
    """

    def n_calls(n: int) -> int:
        questions = OpenQuestions(may_answer=may_answer, order=order)
        for i in range(n):
            of_eve: dict[str, Any] = {"name": "eve"} if i % 10 else {}
            asked = request("ann", f"e{i}", float(i), score=float(i % 7), **of_eve)
            questions.note_prediction(("ann", f"e{i}"), "xyz"[i % 3])
            questions.ask(Question(request=asked), at=float(i), until=float(i))
        list(all_of(questions, n // 2))  # half of them are too late by now
        calls = 0

        def count(_frame: Any, event: str, _arg: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            next(all_of(questions, n // 2 + 1.0, "ann", annotator))
            questions.count(n // 2 + 1.0, None, annotator)
            questions.oldest_at(n // 2 + 1.0, None, annotator)
        finally:
            sys.setprofile(None)
        return calls

    assert n_calls(5000) <= n_calls(50) + 10


def test_a_question_that_is_asked_again_keeps_its_place() -> None:
    questions = OpenQuestions(may_answer=may_answer, order="useful")
    for n, score in enumerate((0.9, 0.5, 0.1)):
        questions.ask(Question(request=request("k", f"e{n}", 1.0, score=score)), at=1.0)
    questions.note_answer(("k", "e2"), "e2/label", "eve", at=2.0)
    questions.remove(("k", "e2"), "e2/label")
    for n in range(3):
        again = request("k", f"e{n}", 3.0, score=0.0, name="eve")
        assert isinstance(again, LabelRequest)
        questions.ask(Question(request=replace(again, reason=ASKED_AGAIN)), at=3.0)
    found = [each.request.event_id for each in questions.label_requests(4.0, None, "ann")]
    assert found == ["e2", "e0", "e1"]


def test_the_first_of_many_who_answer_one_question_is_known_at_no_cost() -> None:
    questions, n = OpenQuestions(), 30_000
    start = time.process_time()
    first = {questions.note_answer(("k", "e"), "e/label", f"n{i}", at=1.0) for i in range(n)}
    assert time.process_time() - start < 2.0  # 0.05 s; a look at all names for each takes seven
    assert first == {"n0"}


def test_forgotten_keys_take_no_time_for_each_event_of_the_others() -> None:
    questions, n = OpenQuestions(order="useful"), 10_000
    for i in range(n):
        questions.note_prediction((f"k{i}", "e"), "x")
        questions.ask(Question(request=request(f"k{i}", "e", 1.0)), at=1.0)
        questions.end(f"k{i}", "f/label", at=1.0)
    start = time.process_time()
    for i in range(n - 1):
        questions.forget(f"k{i}", 2.0)
    assert time.process_time() - start < 2.0  # 0.2 s; a look at all events for each takes five
    assert [question.request.key for question in questions] == [f"k{n - 1}"]


def test_a_key_takes_what_was_settled_with_it_up_to_a_time_and_leaves_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_questions, "MAX_PAST", 3)
    questions = OpenQuestions()
    questions.end("ann", "e/label", at=1.0, why="settled")
    for i in range(20):
        questions.end("bob", f"f{i}/label", at=2.0)
        questions.forget("bob", 2.0)
    assert questions.why_ended("ann", "e/label") == "settled"
    questions.end("bob", "g/label", at=2.0, why="early")
    questions.end("bob", "h/label", at=3.0, why="late")
    questions.forget("bob", 2.0)
    assert questions.why_ended("bob", "g/label") is None
    assert questions.why_ended("bob", "h/label") == "late"
