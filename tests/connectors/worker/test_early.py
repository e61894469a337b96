"""Answers that came before their event: kept, taken out, taken over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.topics import Record
from connectors.wire.inbound import read
from connectors.worker import early_answers
from connectors.worker.early_answers import PATIENCE_S, EarlyAnswers
from streamgp.interactive.state.snapshot import SnapshotError


def inbound(offset, event_id="e1", key=b"ann", headers=(), pad=""):
    value = b'{"event_id": "%s", "y": "home", "pad": "%s"}' % (event_id.encode(), pad.encode())
    record = Record(
        topic="answers",
        partition=3,
        offset=offset,
        key=key,
        value=value,
        headers=headers,
        at=1.5,
    )
    return record, read(record, keyed=True)


def offsets(found):
    return [each.record.offset for each in found]


def test_what_waits_for_an_event_is_taken_out_in_the_order_of_the_topic():
    answers = EarlyAnswers(3, keyed=True)
    for offset, event_id in [(4, "e1"), (5, "e2"), (7, "e1"), (2, "e1")]:
        assert answers.keep(*inbound(offset, event_id), "ann", 0.0) == []
    assert offsets(answers.take_for("ann", "e1")) == [2, 4, 7]
    assert offsets(answers.take_for("ann", "e1")) == []
    assert offsets(answers.take_for("bob", "e2")) == []
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("now", "expected"), [(PATIENCE_S, []), (PATIENCE_S + 1, [1, 2]), (-PATIENCE_S, [1, 2])]
)
def test_what_has_waited_longer_than_the_patience_is_overdue(now, expected):
    answers = EarlyAnswers(3, keyed=True)
    for offset, since in [(1, 0.5), (2, 0.75), (3, PATIENCE_S)]:
        answers.keep(*inbound(offset), "ann", since)
    overdue = offsets(answers.take_overdue(now))
    assert overdue[:2] == expected
    assert len(answers) == 3 - len(overdue)


def test_nothing_is_overdue_where_nothing_waits():
    answers = EarlyAnswers(3, keyed=True)
    assert not answers.is_overdue(1e9)
    assert answers.take_overdue(1e9) == []


def test_of_too_many_the_oldest_leave_at_once(monkeypatch):
    monkeypatch.setattr(early_answers, "MAX_WAITING", 3)
    answers = EarlyAnswers(3, keyed=True)
    left = [offsets(answers.keep(*inbound(offset), "ann", 0.0)) for offset in range(5)]
    assert left == [[], [], [], [0], [1]]
    assert len(answers) == 3


def test_of_too_many_of_one_key_its_own_oldest_leave_and_none_of_another():
    answers = EarlyAnswers(3, keyed=True, most_of_key=2)
    assert answers.keep(*inbound(0, key=b"bob"), "bob", 0.0) == []
    left = [offsets(answers.keep(*inbound(offset), "ann", 0.0)) for offset in range(1, 6)]
    assert left == [[], [], [1], [2], [3]]
    assert offsets(answers.take_for("bob", "e1")) == [0]
    assert offsets(answers.take_for("ann", "e1")) == [4, 5]


def test_of_too_many_in_all_those_of_the_key_with_the_most_leave(monkeypatch):
    monkeypatch.setattr(early_answers, "MAX_WAITING", 3)
    answers = EarlyAnswers(3, keyed=True)
    answers.keep(*inbound(0, key=b"bob"), "bob", 0.0)
    left = [offsets(answers.keep(*inbound(offset), "ann", 0.0)) for offset in range(1, 5)]
    assert left == [[], [], [1], [2]]
    assert offsets(answers.take_for("bob", "e1")) == [0]


def test_of_too_large_ones_the_oldest_leave_at_once(monkeypatch):
    monkeypatch.setattr(early_answers, "MAX_WAITING_BYTES", 1000)
    answers = EarlyAnswers(3, keyed=True)
    assert answers.keep(*inbound(1, pad="x" * 300), "ann", 0.0) == []
    assert answers.keep(*inbound(2, headers=[("a", b"x" * 400)]), "ann", 0.0) == []
    assert offsets(answers.keep(*inbound(3, pad="x" * 300), "ann", 0.0)) == [1]
    assert offsets(answers.keep(*inbound(4, pad="x" * 1000), "ann", 0.0)) == [2, 3, 4]
    assert len(answers) == 0


bodies = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from(["e1", "e2", "é\u2028"]),
        st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=3)), max_size=2),
        st.floats(0.0, 1e9),
    ),
    unique_by=lambda body: body[0],
    max_size=6,
)


@given(bodies)
def test_what_waits_comes_back_byte_for_byte_in_whatever_order(bodies):
    answers, written, reversed_ = (EarlyAnswers(3, keyed=True) for _ in range(3))
    for offset, event_id, headers, since in bodies:
        answers.keep(*inbound(offset, event_id, headers=headers), "ann", since)
    written.take_over(answers.changes())
    reversed_.take_over(reversed(answers.state()))
    assert (written.changes(), reversed_.changes()) == ([], [])
    assert written.state() == reversed_.state() == answers.state()
    first = answers.take_for("ann", "e1")
    assert written.take_for("ann", "e1") == reversed_.take_for("ann", "e1") == first
    rest = answers.take_overdue(1e12)
    assert written.take_overdue(1e12) == reversed_.take_overdue(1e12) == rest
    assert len(first) + len(rest) == len(bodies)


def test_what_comes_and_goes_between_two_commits_is_never_written():
    answers = EarlyAnswers(3, keyed=True)
    answers.keep(*inbound(1), "ann", 0.0)
    answers.keep(*inbound(2), "ann", 0.0)
    answers.take_for("ann", "e1")
    assert answers.changes() == []
    answers.keep(*inbound(3), "ann", 0.0)
    ((entity, name, value),) = answers.changes()
    assert (entity, name, value["since"]) == ("ann", "early/answers:3:3", 0.0)
    answers.take_for("ann", "e1")
    assert answers.changes() == [("ann", "early/answers:3:3", None)]


def test_a_record_that_is_gone_is_taken_out():
    answers = EarlyAnswers(3, keyed=True)
    answers.keep(*inbound(1), "ann", 0.0)
    answers.keep(*inbound(2), "ann", 0.0)
    answers.changes()
    answers.take_over([("ann", "early/answers:3:1", None), ("ann", "early/answers:3:9", None)])
    assert offsets(answers.take_for("ann", "e1")) == [2]


def test_a_forgotten_annotator_has_said_nothing():
    answers = EarlyAnswers(3, keyed=True)
    for offset, entity in [(1, "ann"), (2, "bob"), (3, "ann")]:
        answers.keep(*inbound(offset, key=entity.encode()), entity, 0.0)
    answers.changes()
    assert answers.forget("ann")
    assert not answers.forget("ann")
    assert [name for _, name, value in answers.changes() if value is None] == [
        "early/answers:3:1",
        "early/answers:3:3",
    ]
    assert offsets(answers.take_overdue(1e9)) == [2]


def test_an_answer_that_can_no_longer_be_read_waits_for_nothing_but_its_end():
    answers = EarlyAnswers(3, keyed=True)
    answers.keep(*inbound(1), "ann", 0.0)
    ((entity, name, value),) = answers.state()
    other = EarlyAnswers(3, keyed=True)
    other.take_over([(entity, name, {**value, "value": "e30="})])  # {}, to a stricter worker
    assert other.take_for("ann", "e1") == []
    (left,) = other.take_overdue(100.0)
    assert left.record.value == b"{}"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("early/answers:4:1", {}, "its name must be early/answers:3:<offset>"),
        ("early/events:3:1", {}, "its name must be early/answers:3:<offset>"),
        ("early/answers:3:1", {}, "'key'"),
        ("early/answers:3:1", [], "list indices must be"),
        (
            "early/answers:3:1",
            {"key": "?", "value": "", "headers": [], "at": 0.0, "since": 0.0},
            "Incorrect padding|Only base64 data|Invalid base64",
        ),
    ],
)
def test_state_that_is_no_answer_is_refused(name, value, reason):
    why = f"^state '{name}' of 'ann' is no answer that waits: .*({reason})"
    with pytest.raises(SnapshotError, match=why):
        EarlyAnswers(3, keyed=True).take_over([("ann", name, value)])


def test_a_null_that_removed_a_record_of_another_program_is_passed_over():
    answers = EarlyAnswers(3, keyed=True)
    answers.take_over([("ann", "early/events:3:1", None), ("ann", "early/answers:3:1", None)])
    assert answers.state() == []
