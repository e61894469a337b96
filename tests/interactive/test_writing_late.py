"""Requests that are written later than their causes: the annotator has as much time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamgp import isgp
from streamgp.interactive import (
    Challenge,
    Event,
    Expired,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    LabelRequest,
)
from streamgp.query import RecentEventsAsk
from tests.helpers.messages import answer_to, label_request
from tests.interactive.scripted import ScriptedLearner
from tests.interactive.stories import MIXED, Story, told

EXPIRES_S, HORIZON_S = 60.0, 100.0


REQUEST = label_request("e1")


def event(name="e1", at=0.0, **more):
    return Event(event_id=name, x={"light": 0.5}, occurred_at=at, **more)


def loop_of(horizon_s=None, **learner):
    return InteractiveLoop(
        ScriptedLearner(**learner), expires_after_s=EXPIRES_S, answer_horizon_s=horizon_s
    )


def test_a_label_request_expires_so_long_after_it_was_written():
    loop = loop_of()
    _, request = loop.on_event(event(), 0.0, written_at=1000.0)
    assert (request.requested_at, request.expires_at) == (0.0, 1060.0)
    assert loop.on_time(1060.0) == []
    [expired] = loop.on_time(1060.1)
    assert isinstance(expired, Expired)


def test_a_challenge_of_an_answer_that_was_read_late_waits_for_its_annotator():
    loop = loop_of(contests=True, proba={"hall": 1.0})
    _, request = loop.on_event(event(), 0.0)
    [challenge] = loop.on_answer(answer_to(request, "den", 50.0), 50.0, written_at=187.0)
    assert isinstance(challenge, Challenge)
    assert challenge.expires_at == 247.0
    assert loop.on_time(200.0) == []
    [line] = loop.on_answer(answer_to(challenge, "hall", 240.0, answer_id="a2"), 240.0)
    assert (line.y, line.origin, line.late) == ("hall", "revised", False)


def test_a_review_and_a_look_back_wait_as_long():
    loop = loop_of(asks=False, doubts=lambda event_id: event_id == "e1")
    *_, challenge = loop.on_event(event(y="hall"), 0.0, written_at=500.0)
    assert isinstance(challenge, Challenge)
    assert challenge.expires_at == 560.0
    loop = loop_of(asks=False, asks_back=True, reservoir=RecentEventsAsk(size=5))
    _, request = loop.on_event(event(), 0.0, written_at=500.0)
    assert isinstance(request, LabelRequest)
    assert request.expires_at == 560.0


def test_an_input_from_a_clock_that_is_ahead_has_its_own_time():
    _, request = loop_of().on_event(event(at=100.0), 100.0, written_at=40.0)
    assert request.expires_at == 160.0


def test_an_event_is_remembered_as_much_longer_as_its_question_was_late():
    loop = loop_of(HORIZON_S)
    _, request = loop.on_event(event(), 0.0, written_at=1000.0)
    loop.on_event(event("e2", at=950.0), 950.0)
    assert loop.on_time(1000.0) == []
    assert loop.next_deadline() == 1010.0  # that of the other question
    [line] = loop.on_answer(answer_to(request, "hall", 1050.0), 1050.0)
    assert isinstance(line, LabelledExample)
    assert loop.knows("e1")
    loop.on_time(1100.0)
    assert loop.knows("e1")
    loop.on_time(1100.1)
    assert not loop.knows("e1")


def test_an_event_without_a_question_is_forgotten_in_its_time():
    loop = loop_of(HORIZON_S, asks=False)
    loop.on_event(event(), 0.0, written_at=1000.0)
    assert loop.next_deadline() == 100.0


def test_a_later_question_that_is_less_late_shortens_nothing():
    loop = loop_of(HORIZON_S, contests=True, proba={"hall": 1.0})
    _, request = loop.on_event(event(), 0.0, written_at=1000.0)
    [challenge] = loop.on_answer(answer_to(request, "den", 1001.0), 1001.0, written_at=1001.5)
    assert challenge.expires_at == 1061.5
    assert loop.on_time(1061.0) == []
    loop.on_time(1062.0)
    assert loop.knows("e1")


def test_of_events_with_one_horizon_the_first_is_forgotten_first_whatever_was_late():
    def play(cut):
        loop = InteractiveLoop(isgp(seed=1), expires_after_s=500.0, answer_horizon_s=HORIZON_S)
        loop.on_event(event("e1", at=0.0), 0.0, written_at=50.0)
        # Elsewhere: about one like the first, whose question is open, it would not ask.
        loop.on_event(replace(event("e2", at=50.0), x={"light": 9.0}), 50.0, written_at=50.0)
        if cut:
            loop = InteractiveLoop.restore(loop.snapshot(), isgp(seed=1))
        return loop.on_time(1000.0)

    assert [message.event_id for message in play(cut=False)] == ["e1", "e2"]
    assert play(cut=False) == play(cut=True)


@pytest.mark.parametrize("keyed", [True, False])
def test_loops_of_keys_pass_it_on(keyed):
    loops = KeyedLoops(isgp(seed=1), keyed=keyed, expires_after_s=EXPIRES_S)
    _, request = loops.on_event(event(key="ann"), 0.0, written_at=1000.0)
    assert request.expires_at == 1060.0
    loops.on_answer(answer_to(request, "hall", 10.0), 10.0, written_at=1000.0)
    assert loops.on_event(event("e2", key="ann"), 20.0, written_at=1000.0)[0].n_learned == 1


@pytest.mark.parametrize("method", ["on_event", "on_answer"])
def test_what_is_no_time_is_refused(method):
    subject = event() if method == "on_event" else answer_to(REQUEST, "hall", 0.0)
    with pytest.raises(ValueError, match=r"^written_at must be a finite number of seconds or None"):
        getattr(loop_of(), method)(subject, 0.0, written_at=float("nan"))


def hand_over(loop, step, by_s):
    """Hand over one input whose messages are written `by_s` seconds after its time."""
    method, argument, now = step
    if method not in ("on_event", "on_answer"):
        return told(loop, step)
    return getattr(loop, method)(argument, now, written_at=now + by_s)


def without_expiry(messages):
    return [
        replace(m, expires_at=None) if isinstance(m, LabelRequest | Challenge) else m
        for m in messages
    ]


@pytest.mark.parametrize("seed", range(4))
def test_decisions_are_the_same_whenever_they_are_written(seed):
    """As long as no question ends for the lack of an answer."""
    story, spans = Story(seed, labels=MIXED), {"expires_after_s": 1e6, "answer_horizon_s": 1e7}
    prompt, tardy = (InteractiveLoop(isgp(seed=1), **spans) for _ in range(2))
    messages = []
    for n in range(120):
        step = story.next(messages)
        messages = told(prompt, step)
        assert without_expiry(hand_over(tardy, step, float(n % 7))) == without_expiry(messages)


@pytest.mark.parametrize("seed", range(4))
def test_a_restart_changes_nothing_where_questions_are_late(seed):
    spans = {"expires_after_s": 5.0, "answer_horizon_s": 40.0}
    whole = InteractiveLoop(isgp(seed=1), **spans)
    cut = InteractiveLoop(isgp(seed=1), **spans)
    pieces = InteractiveLoop(isgp(seed=1), **spans)
    parts, lines, story, messages = {}, [], Story(seed, labels=MIXED), []
    for n in range(150):
        step, by_s = story.next(messages), 11.0 * (n % 5)
        messages = hand_over(whole, step, by_s)
        assert repr(hand_over(cut, step, by_s)) == repr(messages)  # it may hold NaN
        assert repr(hand_over(pieces, step, by_s)) == repr(messages)
        assert cut.next_deadline() == pieces.next_deadline() == whole.next_deadline()
        lines += [m for m in messages if isinstance(m, LabelledExample)]
        parts |= pieces.changes()
        if n % 10 == 9:
            cut = InteractiveLoop.restore(cut.snapshot(), isgp(seed=1))
            parts = {name: value for name, value in parts.items() if value is not None}
            pieces = InteractiveLoop.from_parts(parts, lines, isgp(seed=1), **spans)
    assert cut.snapshot() == whole.snapshot()


def test_what_was_never_late_is_stored_as_before():
    spans = {"expires_after_s": EXPIRES_S, "answer_horizon_s": HORIZON_S}
    prompt, timely = (InteractiveLoop(isgp(seed=1), **spans) for _ in range(2))
    prompt.on_event(event(), 0.0)
    timely.on_event(event(), 0.0, written_at=0.0)
    assert prompt.snapshot() == timely.snapshot()
    assert len(prompt.changes()["head"]["recent"][0]) == 13
