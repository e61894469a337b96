"""Who is in quarantine, by the label requests read."""

from __future__ import annotations

from connectors.annotation.annotators import QuarantinedAnnotators
from streamgp.interactive import LabelRequest, People
from streamgp.interactive.people import DEFAULT_PEOPLE


def asked(key: str, *excluded: str, request_id: str = "e1/label") -> LabelRequest:
    return LabelRequest(
        request_id=request_id,
        event_id="e1",
        key=key,
        x={},
        reason="SkepticalAsk",
        score=0.3,
        threshold=0.1,
        requested_at=100.0,
        excluded=excluded,
    )


def told(
    *requests: LabelRequest, keyed: bool = True, people: People = DEFAULT_PEOPLE
) -> QuarantinedAnnotators:
    quarantined = QuarantinedAnnotators(people, keyed=keyed)
    for request in requests:
        quarantined.note(request)
    return quarantined


READ = asked("k", "eve"), asked("l", "eve", "bob")


def test_the_newest_label_request_of_a_key_says_who_is_in_quarantine() -> None:
    assert told(*READ).counts() == {"eve": 2, "bob": 1}
    found = told(*READ, asked("k"))
    assert found.counts() == {"eve": 1, "bob": 1}
    assert (found.counts("k"), found.counts("l")) == ({}, {"eve": 1, "bob": 1})
    assert [found.holds("eve", key) for key in ("k", "l", "m")] == [False, True, False]


def test_a_second_question_excludes_others_as_well_and_says_nothing() -> None:
    second = asked("k", "ann", request_id="e1/label/second")
    assert told(*READ, second).counts("k") == {"eve": 1}


def test_with_one_learner_for_all_keys_the_newest_request_of_any_key_counts() -> None:
    found = told(*READ, keyed=False)
    found.forget(None)
    assert found.counts("k") == {"eve": 1, "bob": 1}
    assert found.holds("bob", "another")


def test_a_key_that_is_forgotten_tells_nothing() -> None:
    found = told(*READ)
    found.forget("l")
    assert found.counts() == {"eve": 1}


def test_who_is_trusted_is_never_in_quarantine() -> None:
    found = told(*READ, people=People(trusted=frozenset(["eve"])))
    assert (found.counts(), found.holds("eve", "l")) == ({"bob": 1}, False)
