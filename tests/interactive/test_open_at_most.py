"""A limit of open questions: which are replaced, not asked, or taken back."""

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.base import Decision
from streamgp.budgets import AtMost
from streamgp.interactive import (
    Answer,
    Cancel,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelRequest,
    Prediction,
)
from streamgp.query import NeverChallenge, SkepticalAsk
from tests.helpers.laws import examples
from tests.interactive.scripted import ScriptedLearner


class Scored(ScriptedLearner):
    """Asks above .5 about what is worth `value`; what is near a label is worth nothing any more."""

    def query_one(self, x, **_):
        if "broken" in x and self.n_learned:
            raise ValueError("cannot be used any more")
        near = any(abs(known["value"] - x["value"]) < 0.05 for known, _ in self.held.values())
        return Decision.of(0.0 if near else x["value"], 0.5, "Scored")


def send(loop, name, value, **x):
    now = float(len(name))
    return loop.on_event(Event(event_id=name, x={"value": value, **x}, occurred_at=now), now)


def answered(loop, name):
    answer = Answer(
        answer_id=f"{name}!", event_id=name, request_id=f"{name}/label", y="a", answered_at=9.0
    )
    return loop.on_answer(answer, 9.0)


def test_a_more_useful_question_replaces_the_least_useful_one():
    loop = InteractiveLoop(Scored(), open_at_most=2)
    for name, value in (("a", 0.7), ("b", 0.6)):
        send(loop, name, value)
    prediction, cancel, request = send(loop, "c", 0.8)
    assert prediction.decision.ask
    assert (cancel.request_id, request.request_id) == ("b/label", "c/label")
    assert cancel.why == "replaced by a more useful question, about event 'c'"
    assert loop.open_requests() == ["a/label", "c/label"]
    assert ("note_unanswered", 1.0) in loop.model.calls


def test_a_question_that_is_less_useful_than_all_is_not_asked():
    loop = InteractiveLoop(Scored(), open_at_most=1)
    send(loop, "a", 0.7)
    [prediction] = send(loop, "b", 0.7)
    assert (prediction.decision.ask, prediction.decision.budget) == (False, "open_at_most")
    assert loop.open_requests() == ["a/label"]


def test_of_equally_useless_ones_the_first_is_replaced():
    loop = InteractiveLoop(Scored(), open_at_most=2)
    for name in "ab":
        send(loop, name, 0.6)
    assert send(loop, "c", 0.7)[1].request_id == "a/label"


def test_a_challenge_counts_and_is_not_replaced():
    loop = InteractiveLoop(Scored(contests=True, proba={"b": 1.0}), open_at_most=1)
    send(loop, "a", 0.6)
    answered(loop, "a")
    assert loop.open_requests() == ["a/challenge/1"]
    [prediction] = send(loop, "b", 0.9)
    assert prediction.decision.budget == "open_at_most"


@pytest.mark.parametrize(("most", "n_requests"), [(2, 1), (3, 1), (4, 2), (5, 2)])
def test_challenges_that_are_never_answered_leave_half_of_the_limit_to_requests(most, n_requests):
    loop = InteractiveLoop(Scored(contests=True, proba={"b": 1.0}), open_at_most=most)
    for n in range(3 * most):
        send(loop, f"a{n}", 0.6)
        answered(loop, f"a{n}")
    challenges = loop.open_requests()
    assert challenges == [f"a{n}/challenge/1" for n in range(3 * most)]
    for n in range(n_requests):
        assert send(loop, f"b{n}", 0.6)[-1].request_id == f"b{n}/label"
    [prediction] = send(loop, "c", 0.6)
    assert prediction.decision.budget == "open_at_most"
    _, cancel, request = send(loop, "d", 0.7)  # in place of a request, not of a challenge
    assert (cancel.request_id, request.request_id) == ("b0/label", "d/label")
    assert loop.open_requests()[: 3 * most] == challenges


def test_a_challenge_of_a_label_that_was_not_asked_for_leaves_room():
    loop = InteractiveLoop(Scored(contests=True, proba={"b": 1.0}), open_at_most=1)
    for name in "ab":
        send(loop, name, 0.1)
        unasked = Answer(answer_id=f"{name}!", event_id=name, y="a", answered_at=9.0)
        [challenge] = loop.on_answer(unasked, 9.0)
        assert challenge.request_id == f"{name}/challenge/1"
    assert send(loop, "c", 0.6)[-1].request_id == "c/label"
    [prediction] = send(loop, "d", 0.6)
    assert prediction.decision.budget == "open_at_most"
    _, cancel, request = send(loop, "e", 0.7)  # in place of a request, not of a challenge
    assert (cancel.request_id, request.request_id) == ("c/label", "e/label")


def test_a_question_that_later_labels_made_clear_is_taken_back():
    loop = InteractiveLoop(Scored(), open_at_most=9)
    for name, value in (("a", 0.70), ("b", 0.72), ("c", 0.9)):
        send(loop, name, value)
    _line, cancel = answered(loop, "a")
    assert isinstance(cancel, Cancel)
    assert (cancel.request_id, cancel.why) == (
        "b/label",
        "the answer has become clear by later labels",
    )
    assert loop.open_requests() == ["c/label"]
    # A label that comes with its event makes clear as well.
    event = Event(event_id="d", x={"value": 0.91}, occurred_at=9.0, y="a")
    assert loop.on_event(event, 9.0)[-1].request_id == "c/label"


def test_an_answer_to_a_question_that_was_just_taken_back_is_learned():
    loop = InteractiveLoop(Scored(), open_at_most=1)
    send(loop, "a", 0.6)
    assert isinstance(send(loop, "b", 0.7)[1], Cancel)
    [line] = answered(loop, "a")
    assert (line.event_id, line.origin, line.late) == ("a", "asked", False)
    [again] = answered(loop, "a")
    assert again.fault == "duplicate"


def test_what_cannot_be_scored_any_more_makes_room_first():
    loop = InteractiveLoop(Scored(), open_at_most=2)
    send(loop, "a", 0.9, broken=1)
    loop.on_event(Event(event_id="y", x={"value": 0.1}, occurred_at=1.0, y="a"), 1.0)
    send(loop, "b", 0.6)
    assert send(loop, "c", 0.7)[1].request_id == "a/label"


def test_without_a_limit_nothing_is_taken_back_and_nothing_more_is_saved():
    model = SkepticalClassifier(GPClassifier(), warm_up=5, seed=1)
    bare, limited = InteractiveLoop(model.clone()), InteractiveLoop(model.clone(), open_at_most=99)
    for loop in (bare, limited):
        loop.on_event(Event(event_id="a", x={"value": 1.0}, occurred_at=0.0), 0.0)
    kept = [loop.changes()["head"]["recent"][0] for loop in (bare, limited)]
    requests = [
        next(part for part in plain if isinstance(part, list) and "a/label" in part)
        for plain in kept
    ]
    # Without expiry, deadline and threshold; the last is what stands for the answer.
    assert requests[0] == ["a/label", None, None, None, 1.0]
    assert requests[1][3] is not None
    assert b"open_at_most" not in bare.snapshot()
    assert InteractiveLoop.restore(limited.snapshot(), model.clone()).rules.open_at_most == 99


def learner():
    return SkepticalClassifier(
        GPClassifier(max_points=30), SkepticalAsk(c=3.0), NeverChallenge(), AtMost(60), warm_up=10,
        seed=1,
    )  # fmt: skip


def played(n, most, delay, restarts, seed):
    """All messages of two keys with answers that come late, or never."""
    loops, waiting, said = KeyedLoops(learner(), open_at_most=most), [], []
    rng = random.Random(seed)
    for i in range(n):
        x = {"u": rng.gauss(0.0, 1.0), "v": rng.gauss(0.0, 1.0)}
        key = rng.choice("ab")
        found = []
        while waiting and waiting[0].answered_at <= i:
            answer = waiting.pop(0)
            found += loops.on_answer(answer, answer.answered_at)
        found += loops.on_event(Event(event_id=str(i), key=key, x=x, occurred_at=i), float(i))
        for message in found:
            if isinstance(message, LabelRequest) and rng.random() < 0.5:
                y = "near" if math.hypot(*message.x.values()) < 1.0 else "far"
                answer = Answer(
                    answer_id=f"a{message.event_id}", event_id=message.event_id, key=message.key,
                    request_id=message.request_id, y=y, answered_at=float(i + delay),
                )  # fmt: skip
                waiting.append(answer)
        said.append(found)
        assert all(loop.n_open <= most for loop in loops.loops.values())
        if i in restarts:
            loops = KeyedLoops.restore(loops.snapshot(), learner())
            assert loops.rules.open_at_most == most
    return said


@examples(4)
@given(st.integers(1, 6), st.sets(st.integers(0, 119), max_size=3), st.integers(0, 99))
def test_no_key_has_more_open_questions_and_a_restart_changes_nothing(most, restarts, seed):
    messages = played(120, most, 15, (), seed)
    assert played(120, most, 15, restarts, seed) == messages
    said = [message for found in messages for message in found]
    assert sum(isinstance(message, Prediction) for message in said) == 120
    assume(any(isinstance(message, Cancel) for message in said))  # fails if that is always wrong


def test_parts_and_log_make_the_same_loop():
    loop, log = InteractiveLoop(learner(), open_at_most=3), []
    rng = random.Random(2)
    for i in range(40):
        event = Event(event_id=str(i), x={"u": rng.random()}, occurred_at=float(i))
        loop.on_event(event, float(i))
    again = InteractiveLoop.from_parts(loop.parts(), log, learner(), open_at_most=3)
    assert again.snapshot() == loop.snapshot()
    event = Event(event_id="new", x={"u": 7.0}, occurred_at=50.0)
    assert again.on_event(event, 50.0) == loop.on_event(event, 50.0)


def test_an_input_that_fails_brings_back_what_it_had_replaced():
    loop = InteractiveLoop(learner(), open_at_most=1)
    loop.on_event(Event(event_id="a", x={"u": 1.0}, occurred_at=0.0), 0.0)
    states = []

    def ask(*_):
        states.append(loop._memory["a"].state)
        raise RuntimeError("broken")

    loop._moderator.ask = ask
    loop._decide = lambda event, _: (loop.model.query_one(event.x), loop._memory["a"])
    [rejected] = loop.on_event(Event(event_id="b", x={"u": 9.0}, occurred_at=1.0), 1.0)
    assert states == ["cancelled"]  # the other question, before this one failed
    assert rejected.reason == "RuntimeError: broken"
    assert (rejected.fault, loop.open_requests(), loop.n_open) == ("failed", ["a/label"], 1)
    answer = Answer(answer_id="1", event_id="a", request_id="a/label", y="near", answered_at=2.0)
    assert loop.on_answer(answer, 2.0)[0].origin == "asked"


@pytest.mark.parametrize("make", [InteractiveLoop, KeyedLoops])
def test_a_limit_is_a_whole_number(make):
    with pytest.raises(ValueError, match="open_at_most must be a whole number of at least 1"):
        make(learner(), open_at_most=0)
