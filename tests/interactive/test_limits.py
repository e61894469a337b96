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
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import SkepticalClassifier
from streamgp.query.strategies import AlwaysAsk, NeverChallenge


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


def test_one_annotator_too_many_is_rejected_and_a_known_one_is_heard():
    loop = loop_with(max_annotators=2)
    for n in range(1, 6):
        loop.on_event(event(n), float(n))
    assert outcome(loop.on_answer(answer(1, by="ann"), 1.0)) == "hall"
    assert outcome(loop.on_answer(answer(2, by="bob"), 2.0)) == "hall"
    refused = too_many(3, "annotators", 2, "max_annotators")
    assert outcome(loop.on_answer(answer(3, by="cy"), 3.0)) == refused
    assert outcome(loop.on_answer(answer(3, by="bob"), 3.0)) == "hall"
    assert outcome(loop.on_answer(answer(4, by=None), 4.0)) == "hall"


def test_one_correction_too_many_is_rejected():
    loop = loop_with(max_corrections=2)
    loop.on_event(event(1), 1.0)
    labels = ["hall", "den", "spa", "hall"]
    for n, y in enumerate(labels):
        supersedes = f"c{n - 1}" if n else None
        given = outcome(loop.on_answer(answer(1, y, answer_id=f"c{n}", supersedes=supersedes), 1.0))
        assert given == (y if n < 3 else too_many(3, "corrections", 2, "max_corrections"))


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
        "for which an event can be answered"
    ]
