"""An input that a learner fails on is rejected, and the loop is what it was before, bitwise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.budgets import AtMostPer
from streamgp.interactive import (
    Event,
    Expired,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    Message,
    Rejected,
)
from streamgp.interactive.state.snapshot import Snapshot
from streamgp.query import AlwaysAsk, LeaveOneOutReview, RecentEventsAsk, SkepticalChallenge
from tests.helpers.laws import examples
from tests.interactive.stories import SPANS, Story, told

LABELS = ("a", "b", "c")

N_STEPS = 80


# --- a learner that fails once


@dataclass
class Plan:
    """Which call of which method fails, and with what.

    Parameters
    ----------
    method
        The method.
    call
        Number of the call, from 1; 0 for none. Calls of all clones are counted together.
    error
        What is raised.
    is_late
        Whether the method does its work first, so that the learner has changed already.

    Attributes
    ----------
    has_failed
        Whether the call has been made.
    is_broken
        Whether every call fails, until the test says that none does any more.
    n_calls
        How many calls there were.

    """

    method: str
    call: int
    error: BaseException
    is_late: bool = False
    has_failed: bool = False
    is_broken: bool = False
    n_calls: int = 0

    def note(self, method: str) -> bool:
        """Count a call; return whether it fails."""
        if method != self.method:
            return False
        self.n_calls += 1
        if self.n_calls == self.call:
            self.has_failed = True
        return self.is_broken or self.n_calls == self.call


_PLANS: dict[int, Plan] = {}
"""The plans by number: River clones a learner by the arguments of its constructor."""

METHODS = (
    "observe_one",
    "predict_proba_one",
    "query_one",
    "note_query",
    "note_unanswered",
    "note_outcome",
    "challenge_one",
    "probability_wrong_one",
    "neighbours_one",
    "settle_one",
    "relabel_one",
    "forget_one",
    "review_one",
    "note_review",
    "note_review_unanswered",
    "ask_among_one",
    "note_reservoir",
    "note_reservoir_unanswered",
)
"""What a loop calls because of an input."""
STAGES = {"predict", "ask", "challenge", "learn", "review", "encode"}
_LEARNS = {"settle_one", "relabel_one", "observe_one", "predict_proba_one"}


class Faulty(SkepticalClassifier):
    """Asks, doubts and looks back, and fails as planned."""

    def __init__(self, plan: int) -> None:
        super().__init__(
            GPClassifier(),
            AlwaysAsk(),
            SkepticalChallenge(0.3),
            AtMostPer(3, 8.0),
            warm_up=8,
            review=LeaveOneOutReview(0.2, every=2),
            reservoir=RecentEventsAsk(size=5, every=2),
            seed=3,
        )
        self.plan = plan


def _failing(name: str) -> Callable[..., Any]:
    method = getattr(SkepticalClassifier, name)

    @functools.wraps(method)  # the loop looks at the arguments that a method takes
    def call(self: Faulty, *args: Any, **options: Any) -> Any:
        plan = _PLANS[self.plan]
        if not plan.note(name):
            return method(self, *args, **options)
        if plan.is_late:
            method(self, *args, **options)
        raise plan.error

    return call


for _name in METHODS:
    setattr(Faulty, _name, _failing(_name))


def faulty(plan: Plan | None = None) -> Faulty:
    """Return a learner that fails as planned, or never."""
    number = len(_PLANS)
    _PLANS[number] = Plan("none", 1, RuntimeError()) if plan is None else plan
    return Faulty(number)


@pytest.fixture(autouse=True)
def no_plans():
    yield
    _PLANS.clear()


# --- comparisons


def without_credit(data: bytes) -> bytes:
    """Return the snapshot of a loop without what it may keep about failures of its learner."""
    snapshot = Snapshot.from_bytes(data)
    head = {name: part for name, part in snapshot.body["head"].items() if name != "credit"}
    return replace(snapshot, body={**snapshot.body, "head": head}).to_bytes()


def is_failure(messages: list[Message]) -> bool:
    return any(isinstance(m, Rejected) and m.fault == "failed" for m in messages)


def is_about_time(messages: list[Message], step: tuple[str, Any, float]) -> bool:
    """Return whether time has ended a request before the input failed, or instead of it."""
    return step[0] == "on_time" or any(isinstance(m, Expired) for m in messages)


def check_failure(messages: list[Message], step: tuple[str, Any, float], error: Exception) -> None:
    """Check that an input is rejected as a whole, with the reason."""
    (rejected,) = messages
    assert isinstance(rejected, Rejected)
    method, argument, now = step
    assert rejected.fault == "failed"
    assert rejected.stage in STAGES
    assert type(error).__name__ in rejected.reason
    assert str(error) in rejected.reason
    assert rejected.at == now
    subject = argument if method == "on_cancel" else None
    assert rejected.subject == (
        subject or getattr(argument, "answer_id", None) or argument.event_id
    )


# --- the laws

_ERRORS = [RuntimeError("planned"), ZeroDivisionError("planned"), AssertionError("planned")]
_PLANNED = st.tuples(st.sampled_from(METHODS), st.integers(1, 12), st.integers(0, 3), st.booleans())


def _plan(drawn: tuple[str, int, int, bool]) -> Plan:
    method, call, which, is_late = drawn
    # What a learner refuses with a ValueError while it predicts or learns is no failure of it.
    errors = [*_ERRORS, RuntimeError("again") if method in _LEARNS else ValueError("planned")]
    return Plan(method, call, errors[which], is_late)


@examples(10)
@given(seed=st.integers(0, 10**6), drawn=_PLANNED)
def test_after_a_failure_the_loop_is_what_it_was_before_the_input(seed, drawn):
    plan = _plan(drawn)
    loop, other = (InteractiveLoop(faulty(one), **SPANS) for one in (plan, None))
    story = Story(seed, labels=LABELS)
    messages: list[Message] = []
    lines: list[Message] = []
    for _ in range(N_STEPS):
        step = story.next(messages)
        had_failed = plan.has_failed
        messages = told(loop, step)
        if plan.has_failed and not had_failed and not is_about_time(messages, step):
            check_failure(messages, step, plan.error)
        elif plan.has_failed and not had_failed:
            check_time_moves_on(loop, step[2])
            return  # what a timer ends stays ended, whatever the learner makes of it
        else:
            assert not is_failure(messages)
            assert repr(messages) == repr(told(other, step))
        assert without_credit(loop.snapshot()) == without_credit(other.snapshot())
        lines += [m for m in messages if isinstance(m, LabelledExample)]
    again = InteractiveLoop.from_parts(loop.parts(), lines, faulty(), **SPANS)
    assert again.snapshot() == loop.snapshot()
    assert InteractiveLoop.restore(loop.snapshot(), faulty()).snapshot() == loop.snapshot()


def check_time_moves_on(loop: InteractiveLoop, now: float) -> None:
    """Check that a timer on which the learner failed is not due for ever."""
    loop.on_time(now)
    assert (loop.next_deadline() or now) >= now
    assert InteractiveLoop.restore(loop.snapshot(), faulty()).snapshot() == loop.snapshot()


def _first(key: str, y: str | None = "a") -> Event:
    return Event(event_id="e1", key=key, x={"u": 1.0}, occurred_at=0.0, y=y)


@pytest.mark.parametrize("method", ["observe_one", "predict_proba_one", "query_one", "settle_one"])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("max_keys", [None, 1])
def test_a_new_key_whose_first_event_fails_leaves_nothing_behind(method, is_late, max_keys):
    plan = Plan(method, 1, RuntimeError("planned"), is_late)
    loops, other = (
        KeyedLoops(faulty(one), max_keys=max_keys, keep_changes=True, **SPANS)
        for one in (plan, None)
    )
    (rejected,) = loops.on_event(_first("ann"), 0.0)
    assert isinstance(rejected, Rejected)
    assert (rejected.key, rejected.subject, rejected.fault) == ("ann", "e1", "failed")
    assert (loops.n_keys, loops.knows("ann"), loops.changes()) == (0, False, {})
    assert loops.snapshot() == other.snapshot()
    for key in ("ann", "bob", "ann"):
        assert loops.on_event(_first(key), 0.0) == other.on_event(_first(key), 0.0)
    assert loops.snapshot() == other.snapshot()


@examples(8)
@given(seed=st.integers(0, 10**6), drawn=_PLANNED, max_keys=st.sampled_from([None, 1]))
def test_a_failure_of_one_key_changes_nothing_for_the_others(seed, drawn, max_keys):
    plan = _plan(drawn)
    loops, other = (KeyedLoops(faulty(one), max_keys=max_keys, **SPANS) for one in (plan, None))
    stories = {key: Story(seed, key=key, labels=LABELS) for key in ("ann", "bob")}
    said: dict[str, list[Message]] = {key: [] for key in stories}
    for n in range(N_STEPS):
        key = ("ann", "bob")[n % 3 == 0]
        step = stories[key].next(said[key])
        if step[0] == "on_time":
            continue
        had_failed = plan.has_failed
        said[key] = told(loops, step, key=key)
        if plan.has_failed and not had_failed:
            if is_about_time(said[key], step):
                return  # what a timer ends stays ended
            check_failure(said[key], step, plan.error)
        else:
            assert repr(said[key]) == repr(told(other, step, key=key))
    for key in stories:
        assert without_credit(loop_of(loops, key)) == without_credit(loop_of(other, key))


def loop_of(loops: KeyedLoops, key: str) -> bytes:
    """Return the snapshot of one loop, which is restored first if it was evicted."""
    loops.withdraw(key, "no such event", 1e9)
    return loops.loops[key].snapshot()


def test_one_loop_for_all_keys_is_what_it_was_as_well():
    plan = Plan("settle_one", 3, RuntimeError("planned"), is_late=True)
    loop = KeyedLoops(faulty(plan), keyed=False, **SPANS)
    other = KeyedLoops(faulty(), keyed=False, **SPANS)
    for n in range(6):
        event = Event(
            event_id=f"e{n}", key=f"k{n % 2}", x={"u": float(n)}, occurred_at=float(n), y="a"
        )
        messages = loop.on_event(event, float(n))
        if n == 2:
            assert is_failure(messages)
        else:
            assert messages == other.on_event(event, float(n))
    one, same = (loops.loops[None].snapshot() for loops in (loop, other))
    assert without_credit(one) == without_credit(same)


@pytest.mark.parametrize("method", METHODS[:3])
def test_that_no_memory_is_left_is_not_the_fault_of_a_record(method):
    loops = KeyedLoops(faulty(Plan(method, 1, MemoryError("none left"))), **SPANS)
    with pytest.raises(MemoryError, match="none left"):
        loops.on_event(_first("ann"), 0.0)


def test_neither_is_an_interruption():
    loops = KeyedLoops(faulty(Plan("query_one", 1, KeyboardInterrupt())), **SPANS)
    with pytest.raises(KeyboardInterrupt):
        loops.on_event(_first("ann"), 0.0)


def test_a_learner_that_always_fails_is_tried_now_and_then_and_heals():
    """After some failures in a row one input in ten is tried; all of them are dead letters."""
    plan = Plan("query_one", 0, RuntimeError("planned"))
    loops, other = (KeyedLoops(faulty(one), **SPANS) for one in (plan, None))
    first = _first("ann")
    assert loops.on_event(first, 0.0) == other.on_event(first, 0.0)
    plan.is_broken, n_before = True, plan.n_calls
    inputs = iter(range(10**6))

    def tell(one: KeyedLoops, number: int) -> list[Message]:
        return one.on_event(replace(first, event_id=f"f{number}", occurred_at=1.0), 1.0)

    for _ in range(200):
        number = next(inputs)
        (rejected,) = tell(loops, number)
        assert isinstance(rejected, Rejected)
        assert (rejected.fault, rejected.subject, rejected.key) == ("failed", f"f{number}", "ann")
    assert 10 <= plan.n_calls - n_before <= 50
    plan.is_broken = False
    for _ in range(25):
        number = next(inputs)
        if not is_failure(tell(loops, number)):
            break
    assert without_credit(loops.loops["ann"].snapshot()) != without_credit(
        other.loops["ann"].snapshot()
    )
    messages = tell(other, number)  # what was rejected meanwhile has changed nothing
    for _ in range(20):
        number = next(inputs)
        messages = tell(loops, number)
        assert not is_failure(messages)
        assert messages == tell(other, number)
