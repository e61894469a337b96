"""Who may supersede, withdraw, uphold and decline what: owners, supervisors, and ids of answers."""

import itertools
from dataclasses import replace

import pytest

from streamgp.interactive import (
    Answer,
    Challenge,
    Event,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    People,
    Rejected,
)
from tests.interactive.scripted import SavedLearner

ANN, BOB, EVE = "ann", "bob", "eve"


def event(y=None):
    return Event(event_id="e", x={"f": 0.0}, occurred_at=0.0, y=y)


def answer(y, by, *, request=None, supersedes=None, answer_id=None, at=2.0):
    return Answer(
        answer_id=answer_id or f"{by}/{request}/{supersedes}/{y}",
        event_id="e",
        request_id=request and f"e/{request}",
        y=y,
        declined=y is None,
        annotator=by,
        answered_at=at,
        supersedes=supersedes,
    )


FIRST = answer("a", ANN, request="label", answer_id="first", at=1.0)


def loop_after_ann(*, contests=False, people=None, y=None):
    """Return a loop in which ann has answered the label request of e, or the event brought y."""
    learner = SavedLearner(proba={"b": 0.6, "a": 0.4}, contests=contests)
    loop = InteractiveLoop(learner, **({} if people is None else {"people": people}))
    loop.on_event(event(y), 0.0)
    if y is None:
        messages = loop.on_answer(FIRST, 1.0)
        assert isinstance(messages[-1], Challenge if contests else LabelledExample)
    learner.contests = False
    return loop


def faults(messages):
    return [message.fault for message in messages if isinstance(message, Rejected)]


# What an attacker may try on a label that was learned, and on one that was contested.
ON_LEARNED = [
    {"y": "b", "supersedes": "first"},
    {"y": "a", "supersedes": "first"},
    {"y": None, "supersedes": "first"},
]
ON_CONTESTED = [
    {"y": "a", "request": "challenge/1"},
    {"y": "b", "request": "challenge/1"},
    {"y": None, "request": "challenge/1"},
    {"y": "a"},
    {"y": "b"},
    {"y": None},
    *ON_LEARNED,
]
ATTEMPTS = [
    *((False, attempt) for attempt in ON_LEARNED),
    *((True, attempt) for attempt in ON_CONTESTED),
]


@pytest.mark.parametrize(("contests", "attempt"), ATTEMPTS)
@pytest.mark.parametrize("by", [BOB, None])
def test_no_other_annotator_changes_confirms_or_declines_an_answer(contests, attempt, by):
    loop, untouched = (loop_after_ann(contests=contests) for _ in range(2))
    [refused] = loop.on_answer(answer(by=by, **attempt), 2.0)
    assert refused.fault == "unauthorised"
    assert refused.reason == (
        "the answer that stands for event 'e' is that of 'ann', and "
        f"{'an answer without an annotator' if by is None else repr(by)} may not change, confirm "
        "or decline it; leave it to 'ann' or a supervisor"
    )
    assert loop.parts() == untouched.parts()


@pytest.mark.parametrize(("contests", "attempt"), ATTEMPTS)
@pytest.mark.parametrize(
    ("by", "people"),
    [
        (ANN, People()),
        (EVE, People(supervisors=frozenset([EVE]))),
        (BOB, People(owners=False)),
        (None, People(owners=False)),
    ],
)
def test_the_owner_and_supervisors_may(contests, attempt, by, people):
    loop = loop_after_ann(contests=contests, people=people)
    assert faults(loop.on_answer(answer(by=by, **attempt), 2.0)) == []


@pytest.mark.parametrize("y", ["b", None])
def test_what_was_taken_back_or_overruled_belongs_to_the_annotator_who_did_it(y):
    loop = loop_after_ann(people=People(supervisors=frozenset([EVE])))
    loop.on_answer(answer(y, EVE, supersedes="first", answer_id="second"), 2.0)
    assert faults(loop.on_answer(answer("c", ANN, supersedes="second", at=3.0), 3.0)) == [
        "unauthorised"
    ]
    assert faults(loop.on_answer(answer("c", EVE, supersedes="second", at=3.0), 3.0)) == []


def test_what_no_annotator_said_is_open_to_all():
    loop = loop_after_ann(y="a")
    assert faults(loop.on_answer(answer("b", BOB, supersedes="e"), 2.0)) == []


def test_a_label_request_is_open_to_all_and_so_is_an_event_without_a_label():
    loop = InteractiveLoop(SavedLearner())
    loop.on_event(event(), 0.0)
    assert faults(loop.on_answer(answer(None, ANN, request="label", at=1.0), 1.0)) == []
    assert faults(loop.on_answer(answer("b", BOB), 2.0)) == []


@pytest.mark.parametrize("by", [BOB, None])
def test_an_id_that_another_annotator_used_before_takes_no_answer_away(by):
    loop = InteractiveLoop(SavedLearner())
    loop.on_event(event(), 0.0)
    stolen = replace(FIRST, annotator=by, y=None, declined=True)
    assert loop.on_answer(stolen, 0.5) == []
    volunteered = replace(FIRST, request_id=None)
    [line] = loop.on_answer(volunteered, 1.0)
    assert (line.y, line.annotator) == ("a", ANN)
    assert faults(loop.on_answer(volunteered, 1.0)) == ["duplicate"]
    assert faults(loop.on_answer(stolen, 1.0)) == ["duplicate"]


def plays():
    """Return pairs of what is said first and after a restart, over owners and annotators."""
    firsts = [
        [],
        [answer(None, ANN, supersedes="first", answer_id="gone")],
        [answer("b", EVE, supersedes="first", answer_id="over")],
        [answer("a", None, supersedes="first", answer_id="anon")],
    ]
    seconds = [
        answer(y, by, supersedes=old, at=4.0)
        for y in ("c", None)
        for by in (ANN, BOB, EVE, None)
        for old in ("first", "gone", "over", "anon")
    ]
    return list(itertools.product(firsts, seconds))


@pytest.mark.parametrize("owners", [True, False])
def test_a_restart_forgets_no_owner(owners):
    people = People(owners=owners, supervisors=frozenset([EVE]))
    for first, second in plays():
        loop = loop_after_ann(people=people)
        for each in first:
            loop.on_answer(each, 2.0)
        loop.withdraw("e", 3.0)
        again = InteractiveLoop.restore(loop.snapshot(), SavedLearner())
        assert again.snapshot() == loop.snapshot()
        assert again.people == people
        repeated = replace(FIRST, answered_at=4.0)
        assert again.on_answer(repeated, 4.0) == loop.on_answer(repeated, 4.0)
        assert again.on_answer(second, 4.0) == loop.on_answer(second, 4.0)


def test_the_loops_of_all_keys_have_the_same_rules_before_and_after_a_restart():
    people = People(supervisors=frozenset([EVE]))
    loops = KeyedLoops(SavedLearner(), people=people)
    assert KeyedLoops.restore(loops.snapshot(), SavedLearner()).rules.people == people
    first = replace(FIRST, key="k")
    loops.on_event(replace(event(), key="k"), 0.0)
    loops.on_answer(first, 1.0)
    for by, expected in ((BOB, ["unauthorised"]), (EVE, [])):
        correction = replace(answer("b", by, supersedes="first"), key="k")
        assert faults(loops.on_answer(correction, 2.0)) == expected


def test_one_annotator_leaves_no_trace_of_owners_in_the_state():
    loop = loop_after_ann()
    [plain] = loop.parts()["head"]["recent"]
    assert len(plain) == 13  # the fields that a conversation has had from the beginning


def test_rules_are_what_their_state_says():
    rules = People(
        owners=False, supervisors=frozenset(["eve"]), quarantine=False, trusted=frozenset(["ann"])
    )
    assert People.of(rules.state()) == rules
    assert People().state() == {}
    for supervisors in (["eve"], iter(["eve"])):
        assert People(supervisors=supervisors) == People(supervisors=frozenset(["eve"]))
