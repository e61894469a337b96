"""The journal of calls that change a model, and inputs that are undone after they were taken."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.naive_bayes import GaussianNB
from river.preprocessing import StandardScaler

from streamgp import GPClassifier, GPRegressor, SkepticalClassifier, SkepticalRegressor, isgp
from streamgp.interactive import (
    Answer,
    Cancel,
    Event,
    Expired,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    Prediction,
    Rejected,
    consensus_writer,
    learner,
    moderator,
    rollback,
)
from streamgp.interactive.consensus_log import HeldLines
from streamgp.interactive.rollback import FULL_CREDIT, REBUILD, SAVE_EVERY, CallJournal
from streamgp.query import AlwaysAsk, NeverAsk, RecentEventsAsk
from streamgp.query.skeptical_base import Skeptical
from tests.interactive.scripted import ScriptedLearner, ScriptedTalk


def event(number, key=None, y=None):
    x = {"u": float(number % 7), "v": float(number % 3)}
    return Event(event_id=f"e{number}", key=key, x=x, occurred_at=float(number), y=y)


def taught(n=40):
    """Return a loop that has learned a label with every other event."""
    loop = InteractiveLoop(isgp(seed=1), expires_after_s=30.0)
    for number in range(n):
        loop.on_event(event(number, y="ab"[number % 2] if number % 2 else None), float(number))
    return loop


class Rule:
    """A budget that has no state to save."""

    def allows(self, decision, now):
        return decision.score >= 0.0 and now >= 0.0

    def note(self, decision, asked, now):
        """Forget it."""

    def refund(self, now):
        """Forget it."""


@pytest.mark.parametrize("n_calls", [0, 1, SAVE_EVERY - 1, SAVE_EVERY, 3 * SAVE_EVERY + 5])
def test_a_model_is_brought_back_to_where_the_input_began(n_calls):
    model, twin = isgp(seed=1), isgp(seed=1)
    journal = CallJournal(model)
    for number in range(n_calls):
        journal.begin()
        journal.call(model.observe_one, {"u": float(number)})
        twin.observe_one({"u": float(number)})
    journal.begin()
    for number in range(7):
        journal.call(model.observe_one, {"u": 1e6 * number})
    journal.roll_back()
    assert model.state() == twin.state()


@pytest.mark.parametrize("n_calls", [1, SAVE_EVERY // 2 - 1, SAVE_EVERY // 2, SAVE_EVERY])
def test_a_model_is_saved_early_if_that_is_soon_due(n_calls):
    model = isgp(seed=1)
    journal = CallJournal(model)
    journal.begin()
    for number in range(n_calls):
        journal.call(model.observe_one, {"u": float(number)})
    state = model.state()
    journal.save_early(state)
    is_saved = n_calls >= SAVE_EVERY // 2
    assert (journal.saved.read_state() == state) is is_saved
    journal.begin()
    journal.call(model.observe_one, {"u": 1e6})
    journal.roll_back()
    assert model.state() == state


def test_a_state_that_is_published_is_not_computed_again_to_be_saved(monkeypatch):
    loop, n_computed = taught(0), 0
    state = loop.model.state

    def counted():
        nonlocal n_computed
        n_computed += 1
        return state()

    monkeypatch.setattr(loop.model, "state", counted)
    for number in range(5 * SAVE_EVERY):
        loop.on_event(event(number), float(number))
        if number % (SAVE_EVERY // 3) == 0:
            loop.changes()
    n_published = -(-5 * SAVE_EVERY // (SAVE_EVERY // 3))
    assert n_computed == 1 + n_published


def test_a_large_state_is_saved_less_often_and_brought_back_all_the_same(monkeypatch):
    model, twin = (
        SkepticalClassifier(StandardScaler() | GPClassifier(), warm_up=200, seed=1)
        for _ in range(2)
    )
    journal, n_saved = CallJournal(model), 0
    state = model.state

    def counted():
        nonlocal n_saved
        n_saved += 1
        return state()

    monkeypatch.setattr(model, "state", counted)
    for number in range(600):
        journal.begin()
        x = {f"feature {i}": float(number % (i + 2)) for i in range(50)}
        journal.call(model.observe_one, x)
        twin.observe_one(x)
    assert 2 <= n_saved < 600 // SAVE_EVERY
    journal.begin()
    journal.call(model.observe_one, {"u": 1e6})
    journal.roll_back()
    assert state() == twin.state()


class Counting(Rule):
    """A budget with a state that JSON could not hold, and a number of numpy in it."""

    def __init__(self):
        self.last, self.n = -math.inf, np.int64(0)

    def note(self, decision, asked, now):  # noqa: ARG002
        self.n += 1

    def state(self):
        return {"last": self.last, "n": self.n}

    def load_state(self, state):
        self.last, self.n = state["last"], state["n"]


@pytest.mark.parametrize("seed", [1, 2**100], ids=["", "a seed of more than 64 bits"])
def test_a_model_comes_back_whatever_numbers_its_state_holds(seed):
    budget = Counting() if seed == 1 else None
    model = SkepticalClassifier(GPClassifier(), budget=budget, seed=seed)
    journal = CallJournal(model)
    journal.begin()
    journal.call(model.observe_one, {"u": 1.0})
    journal.call(model.note_query, model.query_one({"u": 1.0}), asked=False, now=1.0)
    before = model.state()
    journal.begin()
    journal.call(model.observe_one, {"u": 2.0})
    journal.roll_back()
    assert model.state() == before
    assert model.state()["seed"] == seed


def test_what_is_refused_is_not_repeated():
    model = isgp(seed=1)
    journal = CallJournal(model)
    journal.begin()
    with pytest.raises(ValueError, match="must be finite"):
        journal.call(model.observe_one, {"u": float("inf")})
    journal.roll_back()
    assert model.state()["n_events"] == 0
    assert journal.credit == FULL_CREDIT


def test_whoever_holds_the_model_holds_it_after_a_rollback():
    loop = taught()
    model = loop.model
    before = loop.snapshot()
    loop.on_event(event(100, y="b"), 100.0)
    loop.reject_last(ValueError("too long"), "encode")
    assert loop.model is model
    assert model.n_learned == 20
    assert loop.snapshot() != before  # a rebuild costs credit, for which it is asked below
    for number in range(200, 200 + REBUILD):
        loop.on_event(event(number), float(number))
    assert "credit" not in loop.parts()["head"]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["p", "q", None])), max_size=12),
    st.integers(0, 12),
)
def test_lines_of_the_log_are_held_as_before_an_input_that_is_undone(lines, n):
    held, n_about = HeldLines(), Counter()

    def add(part):
        for event_id, y in part:
            held.sequence += 1
            held.add(
                LabelledExample(
                    event_id=event_id, revision=n_about[event_id], sequence=held.sequence, x={},
                    y=y, origin="withdrawn" if y is None else "revised", learned_at=0.0,
                )
            )  # fmt: skip
            n_about[event_id] += 1

    add(lines[:n])
    before, sequence = list(held), held.sequence
    held.begin()
    add(lines[n:])
    held.undo()
    assert (list(held), held.sequence) == (before, sequence)


def test_an_input_can_be_undone_once_and_no_earlier_one():
    loop = taught()
    loop.on_event(event(100), 100.0)
    [rejected] = loop.reject_last(ValueError("too long"), "encode")
    assert (rejected.subject, rejected.fault, rejected.stage) == ("e100", "failed", "encode")
    assert loop.reject_last(ValueError("again"), "encode") is None
    unknown = Answer(answer_id="a", event_id="unknown", y="a", answered_at=1.0)
    for number, change_nothing in enumerate(
        (
            lambda: loop.on_event(event(100), 101.0),  # a duplicate
            lambda: loop.on_answer(unknown, 101.0),
            lambda: loop.on_cancel("unknown/label", 101.0),
            lambda: loop.withdraw("unknown", 101.0),
            lambda: loop.on_time(0.0),
        ),
        start=100,
    ):
        loop.on_event(event(number), 100.0)
        change_nothing()
        assert loop.reject_last(ValueError("again"), "encode") is None
        assert loop.knows(f"e{number}")


def test_an_event_that_is_asked_about_in_a_review_written_late_can_be_undone():
    model = SkepticalClassifier(
        GPClassifier(), query=NeverAsk(), reservoir=RecentEventsAsk("rand", every=1, size=1), seed=1
    )
    loop = InteractiveLoop(model, answer_horizon_s=100.0)
    loop.on_event(event(0), 0.0, written_at=50.0)
    before = loop.parts()["head"]
    _, request = loop.on_event(event(1), 1.0, written_at=50.0)
    assert request.event_id == "e1"
    [rejected] = loop.reject_last(ValueError("too long"), "encode")
    assert rejected.subject == "e1"
    assert loop.parts()["head"] == {**before, "credit": FULL_CREDIT - REBUILD}


def test_a_key_whose_only_event_is_undone_was_never_there():
    loops = KeyedLoops(isgp(seed=1), keep_changes=True)
    loops.on_event(event(1, key="ann"), 1.0)
    before = loops.snapshot()
    loops.on_event(event(1, key="bob"), 1.0)
    [rejected] = loops.reject_last(ValueError("too long"), "encode")
    assert rejected.key == "bob"
    assert (loops.n_keys, loops.knows("bob"), list(loops.changes())) == (1, False, ["ann"])
    assert loops.snapshot() == before
    assert loops.reject_last(ValueError("again")) is None


@pytest.mark.parametrize("seed", [1, None])
def test_a_later_key_is_brought_back_to_its_own_first_events(seed):
    loops, seeds = KeyedLoops(isgp(seed=seed)), set()
    for key in ("ann", "bob", "cal"):
        for number in range(5):
            loops.on_event(event(number, key, y="ab"[number % 2]), float(number))
        model = loops.loops[key].model
        before = model.state(), model.examples()
        loops.on_event(event(100, key, y="c"), 100.0)
        loops.reject_last(ValueError("too long"), "encode")
        assert (model.state(), model.examples()) == before
        seeds.add(before[0]["seed"])
    assert len(seeds) == (3 if seed is None else 1)


def test_a_model_that_cannot_be_saved_goes_on_as_the_failure_left_it(monkeypatch):
    model = SkepticalClassifier(GPClassifier(), budget=Rule(), seed=1)
    loop = InteractiveLoop(model)

    def query_one(*_, **__):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(model, "query_one", query_one)
        [rejected] = loop.on_event(event(1), 1.0)
    assert (rejected.fault, rejected.stage) == ("failed", "ask")
    assert not loop.knows("e1")
    [prediction, *_] = loop.on_event(event(1), 1.0)
    assert isinstance(prediction, Prediction)


@pytest.mark.parametrize(("y", "is_taken"), [(1e100, True), (-1.1e100, False), (10**101, False)])
def test_labels_that_are_numbers_have_a_range(y, is_taken):
    loop = InteractiveLoop(SkepticalRegressor(GPRegressor(), seed=1))
    messages = loop.on_event(event(1, y=y), 1.0)
    assert isinstance(messages[-1], LabelledExample) == is_taken
    if not is_taken:
        assert messages[0].reason.startswith("a label must be at most 1e+100 in size, got ")


@pytest.mark.parametrize("n_failures", [1, 9, 10, 11, 15])
def test_a_loop_made_of_what_was_published_refuses_the_same_inputs(monkeypatch, n_failures):
    def query_one(*_, **__):
        raise RuntimeError("broken")

    loop = InteractiveLoop(isgp(seed=1), expires_after_s=30.0)
    loop.on_event(event(0), 0.0)
    parts = loop.changes()
    with monkeypatch.context() as patch:
        patch.setattr(loop.model, "query_one", query_one)
        for number in range(1, 1 + n_failures):
            [rejected] = loop.on_event(event(number), float(number))
            assert (rejected.stage is None) == (number > 10 and number != 12)
            parts |= loop.changes()
    again = InteractiveLoop.from_parts(parts, [], isgp(seed=1), expires_after_s=30.0)
    for number in range(100, 130):
        told = [one.on_event(event(number), float(number)) for one in (loop, again)]
        assert told[0] == told[1]


def test_a_request_is_cancelled_though_no_more_inputs_are_tried(monkeypatch):
    def query_one(*_, **__):
        raise RuntimeError("broken")

    loop = InteractiveLoop(isgp(seed=1))
    loop.on_event(event(0), 0.0)
    monkeypatch.setattr(loop.model, "query_one", query_one)
    for number in range(1, 14):
        [rejected] = loop.on_event(event(number), float(number))
    assert rejected.reason.startswith("not tried")
    assert [type(m) for m in loop.on_cancel("e0/label", 14.0)] == [Cancel]


@pytest.mark.parametrize("error", [ValueError("refused"), RuntimeError("broken")])
def test_a_contested_label_that_cannot_be_learned_when_time_is_up_is_not_kept(error):
    def settle_one(*_, **__):
        raise error

    learner = ScriptedLearner(contests=True, proba={"b": 1.0})
    conversation = ScriptedTalk(learner, expires_after_s=10.0)
    conversation.event("e")
    conversation.answer("e", "a", "label")
    learner.settle_one = settle_one
    assert [type(m) for m in conversation.loop.on_time(99.0)] == [Expired, Rejected]
    assert conversation.state("e") == "refused"
    del learner.settle_one
    learner.contests = False
    [line] = conversation.answer("e", "b", at=99.0)
    assert (line.y, line.origin) == ("b", "volunteered")


def test_a_question_whose_end_the_model_cannot_bear_ends_and_may_still_be_answered():
    def note_unanswered(_now):
        raise RuntimeError("broken")

    talk = ScriptedTalk(ScriptedLearner(), expires_after_s=10.0)
    talk.event("e")
    talk.learner.note_unanswered = note_unanswered
    expired, rejected = talk.loop.on_time(11.0)
    assert isinstance(expired, Expired)
    assert (rejected.fault, rejected.reason) == ("failed", "RuntimeError: broken")
    assert (talk.loop.on_time(12.0), talk.state("e")) == ([], "expired")
    [example] = talk.answer("e", "a", "label", at=13.0)
    assert example.late


def test_every_function_that_names_a_stage_is_there():
    methods = vars(SkepticalClassifier) | vars(Skeptical)
    loop = vars(consensus_writer.Consensus) | vars(learner) | vars(moderator)
    loop |= vars(moderator.Moderator)
    assert set(rollback._STAGES) <= methods.keys() | loop.keys()


def test_what_was_published_is_not_undone():
    loop = taught()
    loop.on_event(event(100), 100.0)
    loop.changes()
    assert loop.reject_last(ValueError("too long"), "encode") is None
    assert loop.knows("e100")


def test_a_malformed_event_undoes_no_earlier_one_where_one_loop_serves_all():
    loop = KeyedLoops(isgp(seed=1), keyed=False, keep_changes=True)
    loop.on_event(event(1, key="ann"), 1.0)
    [rejected] = loop.on_event(replace(event(2), x={("u", 1): 0.5}), 2.0)
    assert rejected.fault == "malformed"
    assert loop.reject_last(ValueError("too long"), "encode") is None
    assert loop.knows("ann", "e1")


def test_an_example_that_a_rebuild_cannot_bear_is_passed_over():
    """Without that no later event of the key could be predicted any more."""
    loop = InteractiveLoop(SkepticalClassifier(Brittle(), AlwaysAsk(), warm_up=8, seed=1))
    for number in range(40):
        x = {"u": 10.0 if number == 0 else 0.01 * number}
        one = Event(event_id=f"e{number}", x=x, occurred_at=float(number), y="ab"[number % 2])
        assert isinstance(loop.on_event(one, float(number))[0], Prediction)


class Brittle(GaussianNB):
    """Fails over features that are far from the others."""

    def learn_one(self, x, y):
        if abs(x["u"]) > 2.0:
            raise RuntimeError("too far")
        super().learn_one(x, y)
