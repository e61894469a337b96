"""What comes with an answer reaches the learner, and is there again after any restart."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import naive_bayes, preprocessing

from streamgp import (
    GPClassifier,
    GPRegressor,
    PrivilegedGPClassifier,
    SkepticalClassifier,
    SkepticalRegressor,
)
from streamgp.interactive import (
    Answer,
    Challenge,
    Event,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    Rejected,
    examples_in,
)
from streamgp.interactive.state.serialize import plain_examples
from streamgp.interactive.state.snapshot import Snapshot
from streamgp.interactive.teaching import teach
from streamgp.learners import privileged_core
from streamgp.query import AlwaysAsk, NeverChallenge, SkepticalChallenge
from tests.helpers.laws import examples, in_turns
from tests.interactive.stories import CUTS, SPANS, Story, played_with_cuts, told
from tests.interactive.topics import StateChangelog

MODELS = {
    "all points": lambda: PrivilegedGPClassifier(max_points=None),
    "few points": lambda: PrivilegedGPClassifier(max_points=6, learn_hyperparameters=False),
    "few points, learned hyperparameters": lambda: PrivilegedGPClassifier(max_points=6),
    "pipeline": lambda: preprocessing.MinMaxScaler() | PrivilegedGPClassifier(n_replays=1),
}
UNUSABLE = [{"why": [1]}, {"why": {"b": None}}, {"seconds": 1e200}]


@pytest.fixture(autouse=True)
def early(monkeypatch):
    """Hyperparameters, and scales of privileged features, from few examples on."""
    monkeypatch.setattr(privileged_core, "FIRST_FIT", 6)
    monkeypatch.setattr(privileged_core, "_LEAST_OTHERS", 2)
    monkeypatch.setattr(privileged_core, "WARM_UP", 10)


def skeptical(learner):
    return SkepticalClassifier(learner(), AlwaysAsk(), SkepticalChallenge(0.4), warm_up=20, seed=3)


class PrivilegedStory(Story):
    """A story in which answers take time, and say how sure they are, or not, or nonsense."""

    def event(self):
        # A scaler of River's takes no features that come and go.
        event = super().event()
        return replace(event, x={"u": event.x.get("u", 0.0), "v": event.x.get("v", 0.0)})

    def answer(self):
        rng, answer = self.rng, super().answer()
        known = {"response_s": rng.expovariate(1.0), "confidence": rng.choice([0.25, 0.5, 1, True])}
        if rng.random() < 0.2:
            known["device"] = rng.choice(["phone", "watch"])
        if rng.random() < 0.2:
            known["confidence"] = None
        given = rng.choice([known] * 8 + [None, {}, rng.choice(UNUSABLE)])
        return replace(answer, privileged=given)


def lines_of(messages):
    return [message for message in messages if isinstance(message, LabelledExample)]


@in_turns("learner", MODELS, 0)
@examples(1)
@given(seed=st.integers(0, 10**6), every=CUTS)
def test_cutting_by_snapshot_and_restore_changes_no_message(learner, seed, every):
    story = PrivilegedStory(seed)
    loop, _ = played_with_cuts(lambda: skeptical(learner), story, every, n=80)
    assert sum(e.privileged is not None for e in loop.model.examples()) > 5


@in_turns("learner", MODELS, 1)
@examples(1)
@given(seed=st.integers(0, 10**6))
def test_what_was_published_last_makes_the_loop_again(learner, seed):
    story = PrivilegedStory(seed)
    StateChangelog(lambda: skeptical(learner), seed, story=story).steps_and_cut(80)


@in_turns("learner", MODELS, 0)
@examples(1)
@given(seed=st.integers(0, 10**6))
def test_the_log_says_what_the_learner_holds(learner, seed):
    loop, story = InteractiveLoop(skeptical(learner), **SPANS), PrivilegedStory(seed)
    messages, lines = [], []
    for _ in range(80):
        messages = told(loop, story.next(messages))
        lines += lines_of(messages)
    held = loop.model.examples()
    assert sorted(map(repr, examples_in(lines))) == sorted(map(repr, held))
    rebuilt = skeptical(learner)
    assert not [one.refusal for one in teach(rebuilt, lines) if one.refusal]
    assert rebuilt.examples() == examples_in(lines)


# --- one answer after the other


def asked(learner, n=30):
    """A loop that has learned who lives on which side, and an event about which it asks."""
    loop = InteractiveLoop(
        SkepticalClassifier(learner, AlwaysAsk(), SkepticalChallenge(0.1), warm_up=0, seed=1)
    )
    rng = random.Random(1)
    for i in range(n):
        light = rng.uniform(-1.5, 1.5)
        loop.on_event(event(f"e{i}", light), float(i))
        loop.on_answer(answer(f"e{i}", "right" if light > 0.0 else "left"), float(i))
    loop.on_event(event("e", 1.0), 100.0)
    return loop


def event(name, light):
    return Event(event_id=name, x={"light": light}, occurred_at=0.0)


def answer(name, y, *, answer_id=None, privileged=None, **fields):
    return Answer(
        answer_id=answer_id or f"a{name}",
        event_id=name,
        y=y,
        answered_at=100.0,
        privileged=privileged,
        **fields,
    )


def held(loop, name="e"):
    return next((e for e in loop.model.examples() if e.event_id == name), None)


def fixed():
    return PrivilegedGPClassifier(learn_hyperparameters=False)


def test_a_learned_answer_takes_what_came_with_it_along():
    loop = asked(fixed())
    [line] = loop.on_answer(answer("e", "right", privileged={"s": 2.0}), 101.0)
    assert line.privileged == held(loop).privileged == {"s": 2.0}


def test_a_second_answer_has_what_came_with_it_or_else_with_the_first():
    for second, expected in [({"s": 9.0}, {"s": 9.0}), (None, {"s": 2.0}), ({}, {})]:
        for y in ("left", "right"):
            loop = asked(fixed())
            [challenge] = loop.on_answer(answer("e", "left", privileged={"s": 2.0}), 101.0)
            assert isinstance(challenge, Challenge)
            final = answer("e", y, answer_id="b", privileged=second)
            [line] = loop.on_answer(final, 102.0)
            assert line.privileged == held(loop).privileged == expected


def test_a_corrected_label_has_what_came_with_it_or_else_with_the_old_one():
    for second, expected in [({"s": 9.0}, {"s": 9.0}), (None, {"s": 2.0}), ({}, {})]:
        loop = asked(fixed())
        loop.on_answer(answer("e", "right", privileged={"s": 2.0}), 101.0)
        final = answer("e", "left", answer_id="b", privileged=second, supersedes="ae")
        [line] = loop.on_answer(final, 102.0)
        assert (line.origin, line.y) == ("revised", "left")
        assert line.privileged == held(loop).privileged == expected
        fresh = SkepticalClassifier(
            fixed(), AlwaysAsk(), SkepticalChallenge(0.1), warm_up=0, seed=1
        )
        fresh.load_state(loop.model.state(), loop.model.examples())
        x = {"light": 0.2}
        assert fresh.predict_proba_one(x) == loop.model.predict_proba_one(x)


def test_what_was_taken_back_leaves_nothing_to_the_next_answer():
    loop = asked(fixed())
    loop.on_answer(answer("e", "right", privileged={"s": 2.0}), 101.0)
    back = answer("e", None, answer_id="b", declined=True, supersedes="ae")
    [line] = loop.on_answer(back, 102.0)
    assert (line.y, line.privileged, held(loop)) == (None, None, None)
    [line] = loop.on_answer(answer("e", "right", answer_id="c", supersedes="b"), 103.0)
    assert line.privileged is held(loop).privileged is None


@pytest.mark.parametrize("privileged", UNUSABLE)
@pytest.mark.parametrize("y", ["right", "left"])
def test_what_the_learner_cannot_use_is_told_and_the_answer_can_be_given_again(privileged, y):
    loop = asked(fixed())
    before = loop.model.examples()
    [rejected] = loop.on_answer(answer("e", y, privileged=privileged), 101.0)
    assert isinstance(rejected, Rejected)
    assert (rejected.subject, rejected.fault) == ("ae", "unlearnable")
    assert f"privileged feature {next(iter(privileged))!r} must be" in rejected.reason
    assert loop.model.examples() == before
    again = InteractiveLoop.restore(
        loop.snapshot(),
        SkepticalClassifier(fixed(), AlwaysAsk(), SkepticalChallenge(0.1), warm_up=0, seed=1),
    )
    for one in (loop, again):
        better = answer("e", "right", answer_id="b", privileged={"s": 1.0}, supersedes="ae")
        [line] = one.on_answer(better, 102.0)
        assert (line.y, line.privileged) == ("right", {"s": 1.0})


@pytest.mark.parametrize("privileged", UNUSABLE)
def test_a_correction_that_the_learner_cannot_use_changes_nothing(privileged):
    loop = asked(fixed())
    loop.on_answer(answer("e", "right", privileged={"s": 2.0}), 101.0)
    before = loop.snapshot()
    final = answer("e", "left", answer_id="b", privileged=privileged, supersedes="ae")
    [rejected] = loop.on_answer(final, 102.0)
    assert rejected.fault == "unlearnable"
    assert held(loop).y == "right"
    assert held(loop).privileged == {"s": 2.0}
    assert (
        Snapshot.from_bytes(before).body["examples"]
        == Snapshot.from_bytes(loop.snapshot()).body["examples"]
    )


def test_predictions_do_not_depend_on_what_came_with_the_answer_to_them():
    """What is predicted of an event is said before any request, and again afterwards."""
    one, other = asked(fixed()), asked(fixed())
    [_, request] = one.on_event(event("f", 0.1), 101.0)
    assert isinstance(request, LabelRequest)
    other.on_event(event("f", 0.1), 101.0)
    x = {"light": 0.1}
    assert one.model.predict_proba_one(x) == other.model.predict_proba_one(x)
    assert one.model.predict_one(x, privileged={"s": 1.0}) == other.model.predict_one(x)


def test_a_learner_that_takes_no_privileged_features_says_and_keeps_what_it_did_without_them():
    for learner in (GPClassifier(), naive_bayes.GaussianNB()):
        loops = [asked(learner, 10) for _ in range(2)]
        said = []
        for loop, privileged in zip(loops, ({"s": [1, {"t": None}]}, None), strict=True):
            messages = loop.on_answer(answer("e", "left", privileged=privileged), 101.0)
            messages += loop.on_time(200.0)
            said.append([replace(m, privileged=None) for m in lines_of(messages)] or messages)
        assert repr(said[0]) == repr(said[1])
        assert loops[0].model.examples() == loops[1].model.examples()
        bodies = [Snapshot.from_bytes(loop.snapshot()).body for loop in loops]
        assert bodies[0]["examples"] == bodies[1]["examples"]


def test_examples_without_privileged_features_are_written_as_they_were_before_there_were_any():
    loop = asked(fixed())
    before = loop.model.examples()
    assert set(plain_examples(before)[0]) == {"answers", "ids", "labels", "names"}
    loop.on_answer(answer("e", "right", privileged={"s": 2.0}), 101.0)
    body, _ = plain_examples(loop.model.examples())
    assert body["privileged"] == [None] * len(before) + [{"s": 2.0}]


def test_learners_hear_of_them_as_far_as_they_take_them():
    classifier = SkepticalClassifier(fixed(), AlwaysAsk(), NeverChallenge(), warm_up=0, seed=1)
    regressor = SkepticalRegressor(GPRegressor(), seed=1)
    for loop, ys in ((InteractiveLoop(classifier), "pq"), (InteractiveLoop(regressor), (1.0, 2.0))):
        for n, y in enumerate(ys):
            loop.on_event(event(f"e{n}", float(n)), 0.0)
            [line] = loop.on_answer(answer(f"e{n}", y, privileged={"s": 1.0 + n}), 1.0)
            assert line.privileged == {"s": 1.0 + n}
    assert [e.privileged for e in classifier.examples()] == [{"s": 1.0}, {"s": 2.0}]
    assert [e.privileged for e in regressor.examples()] == [None, None]
