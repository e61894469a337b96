"""Questions whose answers come late: which count, and over restarts."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.interactive import (
    Answer,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelRequest,
    event_store,
)
from streamgp.interactive.event_store import MOST_PENDING
from streamgp.query import (
    AlwaysChallenge,
    NeverChallenge,
    RateBudget,
    RecentEventsAsk,
    SkepticalAsk,
)
from tests.helpers.laws import examples


def learner(pending=True, challenge=None, **options):
    return SkepticalClassifier(
        GPClassifier(max_points=20), SkepticalAsk(c=2.0, pending=pending),
        challenge or NeverChallenge(), warm_up=10, seed=1, **options,
    )  # fmt: skip


def send(loop, name, u, now=None):
    at = float(len(name)) if now is None else now
    return loop.on_event(Event(event_id=name, x={"u": u}, occurred_at=at), at)


def answer(name, y, now=9.0, **options):
    return Answer(
        answer_id=f"{name}!{now}", event_id=name, request_id=f"{name}/label", y=y,
        answered_at=now, **options,
    )  # fmt: skip


def score(loop, u=0.5):
    """Score of a new event near the first one, which changes nothing."""
    data = loop.snapshot()
    [prediction, *_] = send(InteractiveLoop.restore(data, learner()), "probe", u, 50.0)
    return prediction.decision.score


def test_an_open_question_counts_until_it_ends():
    for ended in ("answer", "decline", "cancel", "expire", "horizon"):
        loop = InteractiveLoop(learner(), expires_after_s=10.0, answer_horizon_s=30.0)
        alone = score(loop)
        send(loop, "a", 0.5)
        assert score(loop) < alone
        if ended == "answer":
            loop.on_answer(answer("a", "home"), 9.0)
        elif ended == "decline":
            loop.on_answer(answer("a", None, declined=True), 9.0)
        elif ended == "cancel":
            loop.on_cancel("a/label", 9.0)
        else:
            loop.on_time(12.0 if ended == "expire" else 99.0)
        assert loop._memory.pending() == ()
        assert (score(loop) == alone) == (ended != "answer")


def test_a_contested_label_is_pending_until_it_is_learned():
    loop = InteractiveLoop(learner(challenge=AlwaysChallenge()))
    for name, u in (("a", 0.0), ("b", 5.0)):
        loop.on_event(Event(event_id=name, x={"u": u}, occurred_at=0.0, y=name), 0.0)
    for i in range(30):
        if len(send(loop, f"c{i}", 0.1 * i, 1.0)) > 1:
            break
    [target] = [question.target for question in loop._memory.pending()]
    [challenge] = loop.on_answer(answer(f"c{i}", "b"), 9.0)
    assert [question.target for question in loop._memory.pending()] == [target]
    again = InteractiveLoop.restore(loop.snapshot(), learner(challenge=AlwaysChallenge()))
    assert [question.target for question in again._memory.pending()] == [target]
    upheld = Answer(
        answer_id="2", event_id=f"c{i}", request_id=challenge.request_id, y="b", answered_at=9.0
    )
    loop.on_answer(upheld, 9.0)
    assert loop._memory.pending() == ()
    # A question about a learned label asks nothing of what is not known.
    assert loop.on_answer(answer(f"c{i}", "a", 10.0), 10.0)[0].fault == "ended"


def test_a_failing_input_leaves_pending_what_was():
    loop = InteractiveLoop(learner())
    send(loop, "a", 0.5)
    before = loop._memory.pending()
    loop.model.settle_one = None  # as if it had failed
    assert loop.on_answer(answer("a", "home"), 9.0)[0].fault == "failed"
    assert loop._memory.pending() == before


def test_only_the_latest_ones_count():
    loop = InteractiveLoop(learner())
    n = MOST_PENDING + 5
    for i in range(n):
        event = Event(event_id=f"e{i}", x={"u": float(i)}, occurred_at=0.0)
        loop._moderator.ask(loop._memory.add(event), asking(), 0.0)
    found = loop._memory.pending()
    # The latest 100 are e5, e6, ...; e31 is the 32nd event.
    assert [question.x["u"] for question in found] == list(range(31, n))


def test_what_counts_is_what_a_look_at_all_conversations_finds(monkeypatch):
    monkeypatch.setattr(event_store, "MOST_PENDING", 9)
    monkeypatch.setattr(event_store, "_BLOCK", 4)
    monkeypatch.setattr(event_store, "_LEAST_TIDIED", 5)

    def looked_up(memory):
        records = [record for record in memory if record.pending is not None]
        first = 0 if len(records) < 9 else -(-records[-9].serial // 4) * 4
        return [(r.event.event_id, r.pending) for r in records if r.serial >= first]

    rng, counts = random.Random(5), set()
    loop = InteractiveLoop(
        learner(challenge=AlwaysChallenge()), expires_after_s=60.0, answer_horizon_s=90.0
    )
    for i in range(300):
        now, one = float(i), f"e{rng.randrange(max(0, i - 20), i + 1)}"
        loop.on_event(Event(event_id=f"e{i}", x={"u": rng.gauss(0.0, 9.0)}, occurred_at=now), now)
        if rng.random() < 0.1:
            loop.reject_last(ValueError("too long"), "encode")
        if (chance := rng.random()) < 0.15:
            loop.on_answer(answer(one, rng.choice(["home", "work"]), now), now)
        elif chance < 0.3:
            loop.on_cancel(f"{one}/label", now)
        elif chance < 0.4:
            loop.on_time(now)
        if rng.random() < 0.1:
            loop.reject_last(ValueError("too long"), "encode")
        found = loop._memory.pending()
        expected = looked_up(loop._memory)
        assert [question.target for question in found] == [target for _, target in expected]
        assert [question.x for question in found] == [
            loop._memory[event_id].event.x for event_id, _ in expected
        ]
        n_counting = sum(record.pending is not None for record in loop._memory)
        counts.add((n_counting, len(found)))
    assert counts >= {(1, 1), (7, 7)}
    assert any(n_counting > n_found for n_counting, n_found in counts)


def test_a_total_budget_hears_the_same_scores_as_a_budget_of_its_own():
    asked = []
    for own, total in ((RateBudget(0.2), None), (None, RateBudget(0.2))):
        loops, rng = KeyedLoops(learner(budget=own), total_budget=total), random.Random(7)
        for i in range(300):
            x = {"u": rng.gauss(0.0, 1.0), "v": rng.gauss(0.0, 1.0)}
            event = Event(event_id=f"e{i}", key="ann", x=x, occurred_at=float(i))
            for message in loops.on_event(event, float(i)):
                if isinstance(message, LabelRequest):
                    asked.append((total is None, message.event_id))
                    if rng.random() < 0.5:
                        given = answer(message.event_id, x["u"] < x["v"], float(i), key="ann")
                        loops.on_answer(given, float(i))
    own_asked = [name for is_own, name in asked if is_own]
    assert own_asked == [name for is_own, name in asked if not is_own]
    assert len(own_asked) > 20


def asking():
    return SkepticalAsk().decide({}, 0.5)


def played(n, delays, restarts, seed, *, pending=True, reservoir=None):
    """All messages of two keys; answers in any order, or never."""

    def make():
        return learner(pending, reservoir=reservoir)

    loops, waiting, said = KeyedLoops(make(), expires_after_s=20.0), [], []
    rng = random.Random(seed)
    for i in range(n):
        x = {"u": rng.gauss(0.0, 1.0), "v": rng.gauss(0.0, 1.0)}
        key = rng.choice("ab")
        found = loops.on_time(float(i))
        while waiting and waiting[0][0] <= i:
            late = waiting.pop(0)[1]
            found += loops.on_answer(late, late.answered_at)
        event = Event(event_id=str(i), key=key, x=x, occurred_at=float(i))
        found += loops.on_event(event, float(i))
        for message in found:
            if isinstance(message, LabelRequest):
                fate, y = rng.random(), "near" if math.hypot(*message.x.values()) < 1.0 else "far"
                if fate < 0.2:
                    continue
                at = float(i + rng.choice(delays))
                given = Answer(
                    answer_id=f"a{message.event_id}", event_id=message.event_id, key=message.key,
                    request_id=message.request_id, y=None if fate < 0.3 else y,
                    declined=fate < 0.3, answered_at=at,
                )  # fmt: skip
                if at == i:
                    found += loops.on_answer(given, at)
                else:
                    waiting.append((at, given))
                    waiting.sort(key=lambda each: (each[0], each[1].answer_id))
        said.append(found)
        if i in restarts:
            loops = KeyedLoops.restore(loops.snapshot(), make())
    return said


@examples(6)
@given(
    st.sets(st.integers(0, 79), max_size=3), st.integers(0, 99),
    st.sampled_from([None, RecentEventsAsk(every=7)]),
)  # fmt: skip
def test_a_restart_changes_nothing(restarts, seed, reservoir):
    delays = (1, 5, 15)
    messages = played(80, delays, (), seed, reservoir=reservoir)
    assert played(80, delays, restarts, seed, reservoir=reservoir) == messages


def test_fewer_questions_where_answers_come_late_and_the_same_where_at_once():
    def asked(messages):
        return sum(isinstance(one, LabelRequest) for found in messages for one in found)

    assert asked(played(80, (10,), (), 3)) < asked(played(80, (10,), (), 3, pending=False))


@pytest.mark.parametrize("seed", [1, 2])
def test_answers_at_once_make_a_loop_that_does_without(seed):
    loops = [InteractiveLoop(learner(pending)) for pending in (True, False)]
    rng = random.Random(seed)
    for i in range(60):
        u = rng.gauss(0.0, 1.0)
        said = [send(loop, f"e{i}", u, float(i)) for loop in loops]
        assert said[0] == said[1]
        if len(said[0]) > 1:
            given = answer(f"e{i}", "low" if u < 0.0 else "high", float(i))
            assert loops[0].on_answer(given, float(i)) == loops[1].on_answer(given, float(i))
    # The segments and the head too: what has ended says nothing of what it stood for.
    first, second = (loop.parts() for loop in loops)
    first["head"].pop("fingerprint"), second["head"].pop("fingerprint")
    assert first == second
