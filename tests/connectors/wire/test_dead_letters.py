"""What could not be used lies in a dead letter as it came, and can be sent again."""

import re
from dataclasses import replace
from typing import get_args

import pytest
from msgspec.structs import replace as replace_record

from connectors.topics import Outgoing, Record
from connectors.wire.codec import encode
from connectors.wire.outbound import Letter, Outbound, is_dropped, letter_of, resend
from streamgp.interactive import Answer, Event, Rejected
from streamgp.interactive.messages import Fault

NOW = 1_700_000_000.0
outbox = Outbound("/streamgp/rooms", keyed=True)
for_all = Outbound("/streamgp/rooms", keyed=False)
HEADERS = [
    ("trace", b"\xff\x00"),
    ("trace", b""),
    ("ce_type", b"streamgp.event.v9"),
    ("dlq.hint", b"theirs"),
]
bad = Record(
    topic="events", partition=3, offset=17, key=b"\xff", value=b"{\x00", headers=HEADERS, at=NOW
)


def malformed(**changes):
    fields = {"subject": "events:3:17", "fault": "malformed", "reason": "why", "at": NOW + 0.25}
    return Rejected(**{**fields, **changes})


def lying(out, offset=5):
    """Return a record that was written, as it lies there."""
    return Record(
        topic=out.topic, partition=out.partition, offset=offset, key=out.key, value=out.value,
        headers=out.headers, at=NOW + 1,
    )  # fmt: skip


def test_a_dead_letter_is_the_original_with_headers_that_say_why():
    dead = outbox.dead_letter(malformed(), bad, 3)
    assert (dead.topic, dead.partition) == ("dead-letters", 3)
    assert (dead.key, dead.value) == (bad.key, bad.value)
    assert dead.headers == [
        *HEADERS,
        ("dlq.topic", b"events"),
        ("dlq.partition", b"3"),
        ("dlq.offset", b"17"),
        ("dlq.stage", b"decode"),
        ("dlq.error", b"why"),
        ("dlq.at", b"2023-11-14T22:13:20.250000Z"),
    ]


def test_a_dead_letter_can_be_read_and_sent_again_as_it_was():
    dead = lying(outbox.dead_letter(malformed(), bad, 3))
    assert letter_of(dead) == Letter(
        cause=replace_record(bad, at=NOW + 0.25), name="events", stage="decode", error="why",
        at=NOW + 0.25,
    )  # fmt: skip
    assert resend(dead) == Outgoing(
        topic="events", partition=None, key=bad.key, value=bad.value, headers=HEADERS
    )


def test_a_dead_letter_names_its_topic_as_the_broker_does_and_its_role_beside():
    theirs = replace_record(bad, headers=[*HEADERS, ("dlq.role", b"state")])
    of_rooms = Outbound("/streamgp/rooms", keyed=True, names={"events": "rooms.events"})
    dead = of_rooms.dead_letter(malformed(), theirs, 3)
    assert dead.headers[len(HEADERS) :][:4] == [
        ("dlq.topic", b"rooms.events"),
        ("dlq.role", b"events"),
        ("dlq.partition", b"3"),
        ("dlq.offset", b"17"),
    ]
    letter = letter_of(lying(dead))
    assert (letter.cause.topic, letter.name) == ("events", "rooms.events")
    assert resend(lying(dead)).topic == "events"
    assert list(resend(lying(dead)).headers) == HEADERS


def test_a_topic_that_has_the_name_of_another_role_is_read_by_its_role():
    crossed = Outbound("/streamgp/rooms", keyed=True, names={"events": "answers"})
    letter = letter_of(lying(crossed.dead_letter(malformed(), bad, 3)))
    assert (letter.cause.topic, letter.name) == ("events", "answers")


def test_a_dead_letter_that_is_refused_again_has_its_headers_once():
    dead = outbox.dead_letter(malformed(), bad, 3)
    # as a tool that knows nothing of them would send it
    again = Record(
        topic="answers", partition=3, offset=99, key=dead.key, value=dead.value,
        headers=dead.headers, at=NOW + 2,
    )  # fmt: skip
    last = outbox.dead_letter(malformed(reason="still", at=NOW + 3), again, 3)
    names = [name for name, _ in last.headers]
    assert [name for name in names if names.count(name) > 1] == ["trace", "trace"]
    letter = letter_of(lying(last))
    assert (letter.cause.topic, letter.cause.offset, letter.error, letter.at) == (
        "answers", 99, "still", NOW + 3
    )  # fmt: skip
    assert list(last.headers[: len(HEADERS)]) == HEADERS


def test_a_null_that_was_refused_is_sent_again_into_its_partition():
    null = Record(topic="consensus", partition=3, offset=8, key=b"a\x1fb", value=None, at=NOW)
    dead = lying(outbox.dead_letter(malformed(), null, 3))
    assert dead.value is None
    assert resend(dead) == Outgoing(
        topic="consensus", partition=3, key=b"a\x1fb", value=None, headers=[]
    )


@pytest.mark.parametrize("fault", get_args(Fault))
def test_the_stage_says_how_far_an_input_came(fault):
    stages = {
        "malformed": "decode",
        "unlearnable": "learn",
        "failed": "learn",
        "quarantined": "quarantine",
    }
    dead = outbox.dead_letter(malformed(fault=fault), bad, 3)
    assert letter_of(lying(dead)).stage == stages.get(fault, "correlate")


def test_what_a_timer_brought_about_is_reported_by_the_message_itself():
    rejected = malformed(subject="e1", key="ann", fault="unlearnable")
    dead = outbox.dead_letter(rejected, None, 3)
    assert (dead.key, dead.value) == (b"ann", encode(rejected))
    assert dict(dead.headers)["ce_type"] == b"streamgp.rejected.v1"
    assert dict(dead.headers)["ce_id"] == b"ann/e1/rejected"
    letter = letter_of(lying(dead))
    assert (letter.cause, letter.name) == (None, "")
    assert (letter.stage, letter.error, letter.at) == ("learn", "why", NOW + 0.25)
    with pytest.raises(ValueError, match=r"^dead-letters:3:5 came of no input that could be sent"):
        resend(lying(dead))
    assert for_all.dead_letter(replace(rejected, key=None), None, 0).key is None


def test_the_error_is_one_line_whatever_the_reason_quotes():
    dead = outbox.dead_letter(malformed(reason="a\nb\x1b[2J\ud800" + "c" * 1000), bad, 3)
    error = dict(dead.headers)["dlq.error"].decode()
    assert re.fullmatch(r"a\\nb\\x1b\[2J\\ud800c+\.\.\.", error)
    assert len(error) == 500


@pytest.mark.parametrize(
    "changed",
    [
        {"dlq.stage": None},
        {"dlq.at": b"yesterday"},
        {"dlq.topic": b"elsewhere"},
        {"dlq.topic": b"rooms.events", "dlq.role": b"state"},
        {"dlq.partition": None},
        {"dlq.offset": b"first"},
        {"dlq.error": b"\xff"},
    ],
)
def test_a_record_with_other_headers_is_no_dead_letter(changed):
    headers = {**dict(outbox.dead_letter(malformed(), bad, 3).headers), **changed}
    record = Record(
        topic="dead-letters", partition=3, offset=5, key=None, value=None, at=NOW,
        headers=[(name, value) for name, value in headers.items() if value is not None],
    )  # fmt: skip
    for function in (letter_of, resend):
        with pytest.raises(ValueError, match=r"^dead-letters:3:5 is no dead letter of streamgp, "):
            function(record)


def test_only_an_answer_that_was_sent_twice_is_dropped():
    answer = Answer(answer_id="a1", event_id="e1", y=1, answered_at=NOW)
    event = Event(event_id="e1", x={}, occurred_at=NOW)
    assert is_dropped(malformed(fault="duplicate"), answer)
    assert not is_dropped(malformed(fault="duplicate"), event)
    assert not any(is_dropped(malformed(fault=f), answer) for f in get_args(Fault) if f[0] != "d")
