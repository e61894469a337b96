"""Limits of what a loop learns of: what is beyond them is rejected, and nothing else is."""

import warnings

import pytest

from streamgp import isgp
from streamgp.interactive import (
    Answer,
    Event,
    InteractiveLoop,
    LabelledExample,
    People,
    Rejected,
    event_store,
)
from streamgp.interactive.quarantine import Quarantine
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import SkepticalClassifier
from streamgp.query.strategies import AlwaysAsk, NeverAsk, NeverChallenge


def loop_with(*, warm_up=0, **limits):
    model = SkepticalClassifier(
        GPClassifier(), query=AlwaysAsk(), challenge=NeverChallenge(), warm_up=warm_up, seed=1
    )
    return InteractiveLoop(model, people=People(**limits))


def event(n, y=None, x=None):
    return Event(event_id=f"e{n}", x={"a": float(n)} if x is None else x, occurred_at=float(n), y=y)


def answer(n, y="hall", *, by="ann", answer_id=None, **fields):
    return Answer(
        answer_id=answer_id or f"a{n}",
        event_id=f"e{n}",
        y=y,
        declined=y is None,
        annotator=by,
        answered_at=float(n),
        **fields,
    )


def outcome(messages):
    """Return the fault and reason of what was rejected, else the label that was learned."""
    last = messages[-1]
    if isinstance(last, Rejected):
        return last.fault, last.reason
    return last.y if isinstance(last, LabelledExample) else None


def too_many(n, what, most, name):
    return (
        "excessive",
        f"this would be {n} {what}, expected at most {most}; raise {name} if they are meant",
    )


def test_one_label_too_many_is_rejected_and_a_known_one_is_learned():
    loop = loop_with(max_labels=2)
    for n, y in enumerate(["hall", "den", "hall"]):
        assert outcome(loop.on_event(event(n, y), float(n))) == y
    before = loop.snapshot()
    refused = too_many(3, "different labels", 2, "max_labels")
    assert outcome(loop.on_event(event(3, "spa"), 3.0)) == refused
    assert loop.snapshot() == before
    loop.on_event(event(4), 4.0)
    assert outcome(loop.on_answer(answer(4, "spa"), 4.0)) == refused
    assert outcome(loop.on_answer(answer(4, "den", answer_id="b"), 4.0)) == "den"


@pytest.mark.parametrize("warm_up", [0, 3])
def test_an_event_with_too_many_features_is_rejected(warm_up):
    loop = loop_with(max_features=3, warm_up=warm_up)
    many = {f"f{i}": 1.0 for i in range(4)}
    assert outcome(loop.on_event(event(1, "hall", many), 1.0)) == too_many(
        4, "names of features", 3, "max_features"
    )
    assert (
        outcome(loop.on_event(event(1, "hall", {"f0": 1.0, "f1": 1.0, "f2": 1.0}), 1.0)) == "hall"
    )


def test_names_of_features_that_scaling_keeps_count_together():
    loop = loop_with(max_features=3, warm_up=2)
    for n in range(3):
        assert (
            outcome(loop.on_event(event(n, "hall", {f"f{n}": 1.0, "f0": 0.5}), float(n))) == "hall"
        )
    before = loop.snapshot()
    refused = too_many(4, "names of features", 3, "max_features")
    assert outcome(loop.on_event(event(3, "hall", {"other": 1.0}), 3.0)) == refused
    assert loop.snapshot() == before
    assert outcome(loop.on_event(event(3, "hall", {"f1": 1.0}), 3.0)) == "hall"


def test_an_answer_with_too_many_privileged_features_is_rejected():
    loop = loop_with(max_features=3)
    loop.on_event(event(1), 1.0)
    before = loop.snapshot()
    many = {f"f{i}": 1.0 for i in range(4)}
    refused = too_many(4, "names of privileged features", 3, "max_features")
    assert outcome(loop.on_answer(answer(1, privileged=many), 1.0)) == refused
    assert loop.snapshot() == before
    del many["f0"]
    assert outcome(loop.on_answer(answer(1, answer_id="b", privileged=many), 1.0)) == "hall"


def test_one_annotator_too_many_is_rejected_and_a_known_one_is_accepted():
    loop = loop_with(max_annotators=2)
    for n in range(1, 6):
        loop.on_event(event(n), float(n))
    assert outcome(loop.on_answer(answer(1, by="ann"), 1.0)) == "hall"
    assert outcome(loop.on_answer(answer(2, by="bob"), 2.0)) == "hall"
    refused = too_many(3, "annotators", 2, "max_annotators")
    assert outcome(loop.on_answer(answer(3, by="cy"), 3.0)) == refused
    assert outcome(loop.on_answer(answer(3, by="bob"), 3.0)) == "hall"
    assert outcome(loop.on_answer(answer(4, by=None), 4.0)) == "hall"


def test_who_uses_up_the_names_keeps_no_supervisor_from_taking_the_labels_back():
    loop = loop_with(max_annotators=2, supervisors=frozenset(["eve"]), trusted=frozenset(["tom"]))
    for n in range(1, 5):
        loop.on_event(event(n), float(n))
    for n in (1, 2, 3):
        loop.on_answer(answer(n, "lie", by=f"mal {n}"), float(n))
    refused = too_many(3, "annotators", 2, "max_annotators")
    assert outcome(loop.on_answer(answer(3, by="cy", answer_id="b"), 3.0)) == refused
    undone = loop.on_answer(answer(1, None, by="eve", answer_id="undo", supersedes="a1"), 3.0)
    assert not [each for each in undone if isinstance(each, Rejected)]
    assert (
        outcome(loop.on_answer(answer(2, by="eve", answer_id="c", supersedes="a2"), 3.0)) == "hall"
    )
    assert outcome(loop.on_answer(answer(4, by="tom"), 4.0)) == "hall"


def test_one_correction_too_many_is_rejected():
    loop = loop_with(max_corrections=2)
    loop.on_event(event(1), 1.0)
    labels = ["hall", "den", "spa", "hall"]
    for n, y in enumerate(labels):
        supersedes = f"c{n - 1}" if n else None
        given = outcome(loop.on_answer(answer(1, y, answer_id=f"c{n}", supersedes=supersedes), 1.0))
        assert given == (y if n < 3 else too_many(3, "corrections", 2, "max_corrections"))


def changed_often(loop):
    """Let an annotator use up all corrections of an event; return what was learned."""
    lines = []
    for n in range(1 + loop.people.max_corrections):
        before = f"c{n - 1}" if n else None
        given = answer(1, f"lie {n}", by="mal", answer_id=f"c{n}", supersedes=before)
        messages = loop.on_answer(given, 1.0)
        lines += [each for each in messages if isinstance(each, LabelledExample)]
    assert lines[-1].y == f"lie {loop.people.max_corrections}"
    return lines


def test_a_supervisor_can_correct_a_label_however_often_it_was_changed():
    loop = loop_with(max_corrections=2, supervisors=frozenset(["eve"]))
    loop.on_event(event(1), 1.0)
    changed_often(loop)
    refused, before = too_many(3, "corrections", 2, "max_corrections"), "c2"
    for n in range(4):
        given = answer(1, f"true {n}", by="eve", answer_id=f"e{n}", supersedes=before)
        assert outcome(loop.on_answer(given, 2.0)) == (f"true {n}" if n < 3 else refused)
        before = given.answer_id


def test_a_second_question_can_be_answered_however_often_the_label_was_changed():
    loop = loop_with(max_corrections=2, overlap=1.0)
    loop.on_event(event(1), 1.0)
    changed_often(loop)
    second = answer(1, "hall", by="bob", answer_id="s1", request_id="e1/label/second")
    [line] = loop.on_answer(second, 2.0)
    assert line.origin == "aggregated"
    refused = too_many(3, "corrections", 2, "max_corrections")
    for n, y in enumerate(["den", "spa", "hall"]):
        given = answer(1, y, by="bob", answer_id=f"s{n + 2}", supersedes=f"s{n + 1}")
        found = loop.on_answer(given, 3.0)
        assert found[0].origin == "aggregated" if n < 2 else outcome(found) == refused


def test_answers_of_annotators_in_quarantine_do_not_count_as_corrections():
    loop = loop_with(max_corrections=2)
    loop.on_event(event(1), 1.0)
    lines = changed_often(loop)
    loop.retract("mal", lines, 2.0)
    refused = too_many(3, "corrections", 2, "max_corrections")
    label = answer(1, by="bob", answer_id="b1")
    assert outcome(loop.on_answer(label, 3.0)) == refused
    loop._moderator.quarantine = Quarantine(names=("mal",))
    assert outcome(loop.on_answer(label, 3.0)) == "hall"


def test_limits_must_be_positive():
    with pytest.raises(ValueError, match="max_labels must be a whole number of at least 1, got 0"):
        People(max_labels=0)


def test_limits_survive_a_restart():
    loop = loop_with(max_labels=5, max_early_answers=7)
    model = isgp(seed=1)
    again = InteractiveLoop.restore(
        InteractiveLoop(model, people=loop.people).snapshot(), isgp(seed=1)
    )
    assert again.people == loop.people


def test_a_loop_that_forgets_nothing_warns_once_when_it_has_become_large(monkeypatch):
    monkeypatch.setattr(event_store, "MANY", 2)
    loop = loop_with()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(5):
            loop.on_event(event(n), float(n))
    assert [str(each.message) for each in caught] == [
        "2 events are remembered, and none is ever forgotten; give answer_horizon_s, the seconds "
        "for which an event can be answered (section [loop] of a configuration file)"
    ]


def unasked_loop(most=2, **people):
    """Return a loop that asks nothing, after five events."""
    model = SkepticalClassifier(
        GPClassifier(), query=NeverAsk(), challenge=NeverChallenge(), warm_up=0, seed=1
    )
    loop = InteractiveLoop(model, people=People(max_unasked_per_hour=most, **people))
    for n in range(6):
        loop.on_event(event(n, "hall" if n == 5 else None), float(n))
    return loop


def unasked_excess(most=2):
    what = "labels within an hour that were not asked for"
    return too_many(most + 1, what, most, "max_unasked_per_hour")


@pytest.mark.parametrize("by", ["ann", None])
def test_of_labels_that_were_not_asked_for_so_many_are_learned_within_an_hour(by):
    loop = unasked_loop()
    hour = [3600.0, 3700.0, 7199.0, 100.0, 7200.0]  # the fourth is dated back, and gains nothing
    given = []
    for n, at in enumerate(hour):
        before = loop.snapshot()
        given.append(outcome(loop.on_answer(answer(n, by=by), at)))
        if given[-1] != "hall":
            assert loop.snapshot() == before
    assert given == ["hall", "hall", unasked_excess(), unasked_excess(), "hall"]
    other = answer(2, by="bob", answer_id="b")
    assert outcome(loop.on_answer(other, 7201.0)) == "hall"  # has a limit of their own


def test_what_is_asked_for_or_the_annotators_own_is_not_counted():
    asked = loop_with(max_unasked_per_hour=1)
    for n in range(4):
        asked.on_event(event(n), float(n))
        assert outcome(asked.on_answer(answer(n), float(n))) == "hall"
    loop = unasked_loop(most=1)
    for n, y in enumerate(["hall", "den", "hall"]):
        before = f"c{n - 1}" if n else None
        said = answer(0, y, answer_id=f"c{n}", supersedes=before)
        assert outcome(loop.on_answer(said, 1.0)) == y
    assert outcome(loop.on_answer(answer(1), 2.0)) == unasked_excess(1)
    loop.on_answer(answer(2, None), 2.0)
    assert outcome(loop.on_answer(answer(2, by="bob", answer_id="b"), 2.0)) == "hall"


@pytest.mark.parametrize("y", ["den", None])
def test_to_change_or_take_back_labels_that_came_with_events_counts(y):
    loop = unasked_loop(most=1)
    assert outcome(loop.on_answer(answer(0), 1.0)) == "hall"
    assert outcome(loop.on_answer(answer(5, y, supersedes="e5"), 6.0)) == unasked_excess(1)


@pytest.mark.parametrize("role", ["supervisors", "trusted"])
def test_supervisors_and_trusted_annotators_may_give_any_number(role):
    loop = unasked_loop(most=1, **{role: frozenset(["ann"])})
    assert [outcome(loop.on_answer(answer(n), 5.0)) for n in range(3)] == ["hall"] * 3


def test_labels_that_were_not_asked_for_are_counted_through_restarts_and_failures():
    whole, cut = unasked_loop(), unasked_loop()
    assert "unasked" not in whole.parts()["head"]
    for n in range(4):
        assert cut.on_answer(answer(n), 9.0) == whole.on_answer(answer(n), 9.0)
        cut = InteractiveLoop.restore(cut.snapshot(), unasked_loop().model.clone())
        assert cut.snapshot() == whole.snapshot()
    assert whole.parts()["head"]["unasked"] == {"hour": 0, "counts": [["ann", 2]]}

    failing = unasked_loop()
    before = failing.parts()["head"].get("unasked")
    failing.on_answer(answer(0), 9.0)
    assert failing.reject_last(ValueError("too long"), "encode") is not None
    assert failing.parts()["head"].get("unasked") == before
