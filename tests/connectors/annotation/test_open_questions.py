"""Open questions in their order: what a walk over all of them would find."""

from __future__ import annotations

import sys
from math import inf
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from connectors.annotation.open_questions import OpenQuestions, Question, rank_of
from streamgp.interactive.messages import Challenge, LabelRequest, Request

KEYS = (None, "ann", "bob")
TIMES = st.sampled_from([0.0, 1.0, 2.0, 3.0])
EVENTS = st.tuples(st.sampled_from(KEYS), st.sampled_from("abcd"))


def request(key: str | None, event_id: str, at: float, *, is_challenge: bool = False) -> Request:
    fields: dict[str, Any] = {
        "event_id": event_id,
        "key": key,
        "x": {},
        "reason": "",
        "score": 1.0,
        "threshold": 0.0,
        "requested_at": at,
    }
    if not is_challenge:
        return LabelRequest(request_id=f"{event_id}/label", **fields)
    told = {"given": "hall", "suggested": "den", "probability_wrong": 0.9, "annotator": None}
    return Challenge(request_id=f"{event_id}/challenge/1", **fields, **told)


class Twins(RuleBasedStateMachine):
    """Open questions beside a dictionary of them, which is walked each time; the clock goes
    where it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = OpenQuestions()
        self.plain: dict[tuple[Any, str], tuple[Request, float]] = {}
        self.over: set[tuple[Any, str]] = set()
        self.now = -inf

    @rule(event=EVENTS, at=TIMES, until=TIMES | st.just(inf), is_challenge=st.booleans())
    def ask(self, event: Any, at: float, until: float, is_challenge: bool) -> None:
        asked = request(*event, at, is_challenge=is_challenge)
        self.questions.ask(Question(request=asked), at=at, until=until)
        if (asked.key, asked.request_id) not in self.over:
            self.plain[asked.key, asked.request_id] = asked, until

    @rule(event=EVENTS, is_challenge=st.booleans())
    def end(self, event: Any, is_challenge: bool) -> None:
        ended = request(*event, 0.0, is_challenge=is_challenge)
        self.questions.end(ended.key, ended.request_id, at=9.0)
        self.over.add((ended.key, ended.request_id))
        self.plain.pop((ended.key, ended.request_id), None)

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

    @rule(now=TIMES | st.sampled_from([-inf, inf, 0.5, 2.5]))
    def time_is(self, now: float) -> None:
        self.now = now

    @invariant()
    def every_key_has_what_a_walk_finds(self) -> None:
        for only_key in KEYS:
            walked = sorted(
                (
                    asked
                    for asked, until in self.plain.values()
                    if until >= self.now and only_key in (None, asked.key)
                ),
                key=rank_of,
            )
            found = [each.request for each in self.questions.in_order(self.now, only_key)]
            assert found == walked
            assert self.questions.count(self.now, only_key) == len(walked)
            oldest = min((each.requested_at for each in walked), default=inf)
            assert self.questions.oldest_at(self.now, only_key) == oldest
        assert len(list(self.questions)) == len(self.plain)


TestTwins = Twins.TestCase
TestTwins.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_question_costs_what_is_handed_out() -> None:
    """Not what lies there: calls of Python functions, counted, at 50 questions and at 5000."""

    def n_calls(n: int) -> int:
        questions = OpenQuestions()
        for i in range(n):
            asked = request("ann", f"e{i}", float(i))
            questions.ask(Question(request=asked), at=float(i), until=float(i))
        list(questions.in_order(n // 2))  # half of them are too late by now
        calls = 0

        def count(_frame: Any, event: str, _arg: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            next(questions.in_order(n // 2 + 1.0, "ann"))
            questions.count(n // 2 + 1.0)
            questions.oldest_at(n // 2 + 1.0)
        finally:
            sys.setprofile(None)
        return calls

    assert n_calls(5000) <= n_calls(50) + 10
