"""What became of a challenge follows from the messages, however the annotator said it."""

from __future__ import annotations

from typing import Any

import pytest

from streamgp.base import Neighbour
from streamgp.common.annotator_error import ErrorRate
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Expired,
    LabelledExample,
    Rejected,
)
from streamgp.report.run import N_POINTS, Outcomes
from tests.helpers import messages as made


def challenge(event_id: str = "e", **changes: Any) -> Challenge:
    about = {"given": "hall", "suggested": "den", "probability_wrong": 0.9, "annotator": "ann"}
    return made.challenge(event_id, 10.0, **about | changes)


def answer(y: str | None, answer_id: str = "a", **changes: Any) -> Answer:
    values: dict[str, Any] = {
        "answer_id": answer_id,
        "request_id": "e/challenge/1",
        "event_id": "e",
        "y": y,
        "declined": y is None,
        "annotator": "ann",
        "answered_at": 20.0,
    }
    return Answer(**{**values, **changes})


def learned(y: str | None, event_id: str = "e", **changes: Any) -> LabelledExample:
    values: dict[str, Any] = {
        "event_id": event_id,
        "sequence": 1,
        "x": {},
        "y": y,
        "origin": "asked",
        "annotator": "ann",
        "learned_at": 20.0,
    }
    return LabelledExample(**{**values, **changes})


EXPIRED = Expired(request_id="e/challenge/1", event_id="e", at=15.0)
CANCELLED = Cancel(request_id="e/challenge/1", why="moved away", at=15.0)
LATE = Rejected(subject="a", fault="late", reason="too late", at=99.0)


@pytest.mark.parametrize(
    ("told", "outcome", "y", "late"),
    [
        ([], "open", None, False),
        ([answer("hall")], "upheld", "hall", False),
        ([answer("den")], "revised", "den", False),
        ([answer("attic")], "revised", "attic", False),
        ([answer(None)], "declined", None, False),
        ([EXPIRED], "expired", None, False),
        ([CANCELLED], "cancelled", None, False),
        ([EXPIRED, learned("hall")], "expired", None, False),
        ([EXPIRED, answer("den")], "revised", "den", True),
        ([EXPIRED, answer("hall")], "upheld", "hall", True),
        ([EXPIRED, answer("den"), LATE], "expired", None, False),
        ([answer("den"), answer("den"), LATE], "open", None, False),
        ([answer("den"), answer("hall", "b"), LATE], "upheld", "hall", False),
        # the answer that gave the label is superseded, so the challenge is not named
        ([answer("den", request_id=None), learned("den")], "revised", "den", False),
        ([answer("hall", request_id=None), learned("hall")], "upheld", "hall", False),
        ([learned(None, origin="withdrawn")], "declined", None, False),
        # a line from before the challenge says nothing about it
        ([learned("den", learned_at=5.0)], "open", None, False),
    ],
)
def test_outcome_is_what_was_said_at_the_end(
    told: list[Any], outcome: str, y: str | None, late: bool
) -> None:
    outcomes = Outcomes()
    for message in [challenge(), *told]:
        outcomes.add(message)
    (contested,) = outcomes.challenges()
    assert (contested.outcome, contested.y, contested.late) == (outcome, y, late)
    assert outcomes.counts() == {outcome: 1}


def test_answer_that_the_learner_could_not_take_was_heard() -> None:
    outcomes = Outcomes()
    unlearnable = Rejected(subject="a", fault="unlearnable", reason="x is empty", at=20.0)
    duplicate = Rejected(subject="a", fault="duplicate", reason="seen before", at=21.0)
    for message in (challenge(), answer("den"), unlearnable, duplicate):
        outcomes.add(message)
    assert outcomes.counts() == {"revised": 1}


def test_keys_are_told_apart() -> None:
    outcomes = Outcomes()
    for message in (
        challenge(key="a"),
        challenge(key="b"),
        answer("den", key="b"),
        Rejected(subject="a", key="a", fault="late", reason="too late", at=99.0),
    ):
        outcomes.add(message)
    assert [c.outcome for c in outcomes.challenges()] == ["open", "revised"]


def test_examples_are_those_shown_to_the_annotator() -> None:
    outcomes = Outcomes()
    near = Neighbour(event_id="e0", x={"light": 1.0}, y="den", distance=0.5)
    outcomes.add(challenge(neighbours=(near,)))
    ((example,),) = [c.examples for c in outcomes.challenges()]
    assert (example.event_id, example.y, example.distance) == ("e0", "den", 0.5)


def test_all_challenges_are_counted_and_the_first_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamgp.report.run.N_SHOWN", 2)
    outcomes = Outcomes()
    for n in range(5):
        outcomes.add(challenge(f"e{n}"))
    for n in range(5):
        outcomes.add(answer("den", f"a{n}", request_id=f"e{n}/challenge/1", event_id=f"e{n}"))
    assert outcomes.n_challenges == 5
    assert [c.event_id for c in outcomes.challenges()] == ["e0", "e1"]
    assert outcomes.counts() == {"revised": 5}


def test_estimate_is_that_of_the_learner_and_counts_for_the_one_who_was_contradicted() -> None:
    outcomes = Outcomes()
    outcomes.add(challenge(annotator="bea"))
    outcomes.add(learned("hall", "e1", probability_wrong=0.25))
    outcomes.add(learned("den", annotator="chief", probability_wrong=1.0))
    outcomes.add(learned("hall", "e1", revision=1, origin="revised"))
    ann, bea = outcomes.estimates(9)
    rate = ErrorRate()
    rate.note(0.25)
    assert (ann.name, ann.n_answers, ann.estimate) == ("ann", [0, 1], [0.2, rate.estimate])
    assert (bea.name, bea.estimate[-1]) == ("bea", 2 / 6)


def test_estimates_of_those_who_answered_most_are_kept_in_few_points() -> None:
    outcomes = Outcomes()
    rate = ErrorRate()
    n = 3 * N_POINTS + 1
    for i in range(n):
        outcomes.add(learned("hall", f"e{i}", probability_wrong=i % 7 / 7))
        rate.note(i % 7 / 7)
    outcomes.add(learned("hall", "last", annotator="bea", probability_wrong=0.0))
    (most,) = outcomes.estimates(1)
    assert (most.name, most.n_answers[0], most.n_answers[-1]) == ("ann", 0, n)
    assert most.estimate[-1] == rate.estimate
    assert N_POINTS / 2 <= len(most.n_answers) <= N_POINTS + 1
    steps = [b - a for a, b in zip(most.n_answers, most.n_answers[1:-1], strict=False)]
    assert set(steps) == {4}
    assert outcomes.estimates(1)[0].n_answers == most.n_answers
