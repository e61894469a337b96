from dataclasses import replace

import pytest

from connectors.topics import Record
from connectors.wire.cloudevents import rfc3339, type_of
from connectors.wire.codec import TYPES, decode
from connectors.wire.inbound import read
from connectors.wire.outbound import Outbound
from streamgp.base import Decision
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    LabelledExample,
    LabelRequest,
    Prediction,
    Rejected,
)

NOW = 1_700_000_000.0
request = {"request_id": "e1/label", "event_id": "e1", "key": "a/b", "x": {}, "reason": "r"}
request |= {"score": 0.3, "threshold": 0.1, "requested_at": NOW}
doubt = {"given": 1, "suggested": 2, "probability_wrong": 0.9}
decision = Decision.of(0.3, 0.1, "SkepticalAsk")
PLACES = [
    (Event(event_id="e1", key="a/b", x={}, occurred_at=NOW), "events", "e1"),
    (Answer(answer_id="a1", event_id="e1", key="a/b", y=1, answered_at=NOW), "answers", "a1"),
    (
        Prediction(
            event_id="e1", key="a/b", y=None, proba={}, decision=decision, n_learned=0, at=NOW
        ),
        "predictions",
        "e1/prediction",
    ),
    (LabelRequest(**request), "requests", "e1/label"),
    (Challenge(**{**request, "request_id": "e1/challenge/1"}, **doubt), "requests", None),
    (Cancel(request_id="e1/label", key="a/b", why="", at=NOW), "requests", "e1/label/cancel"),
    (
        Expired(request_id="e1/label", event_id="e1", key="a/b", at=NOW),
        "requests",
        "e1/label/expired",
    ),
    (
        LabelledExample(
            event_id="e1", key="a/b", revision=1, sequence=7, x={}, y=1, origin="asked",
            learned_at=NOW,
        ),
        "consensus",
        "e1/consensus/7",
    ),
]  # fmt: skip
outbox = Outbound("/streamgp/rooms", keyed=True)
for_all = Outbound("/streamgp/rooms", keyed=False)


@pytest.mark.parametrize(("message", "topic", "name"), PLACES)
def test_a_message_becomes_a_record_of_its_topic(message, topic, name):
    record = outbox.message(message, 2)
    assert (record.topic, record.partition) == (topic, 2)
    assert record.key == (b"a/b\x1fe1\x1f1" if topic == "consensus" else b"a/b")
    assert decode(record.value) == message
    headers = dict(record.headers)
    assert headers["ce_id"].decode() == f"a%2Fb/{name or message.request_id}"
    assert headers["ce_time"].decode() == rfc3339(NOW)
    assert headers["ce_source"] == b"/streamgp/rooms"
    assert TYPES[type_of(record.headers)] is type(message)


@pytest.mark.parametrize(("message", "topic", "name"), PLACES)
def test_where_one_loop_serves_all_the_first_part_of_a_key_is_empty(message, topic, name):
    if topic == "consensus":
        assert for_all.message(message, 0).key == b"\x1fe1\x1f1"
        assert for_all.message(replace(message, key=None), 0).key == b"\x1fe1\x1f1"
    else:
        assert for_all.message(message, 0).key == b"a/b"
        assert for_all.message(replace(message, key=None), 0).key is None
    headers = dict(for_all.message(replace(message, key=None), 0).headers)
    assert headers["ce_id"].decode() == f"/{name or message.request_id}"


@pytest.mark.parametrize(("message", "topic", "name"), PLACES[:2])
def test_an_input_that_was_sent_is_read_as_it_was(message, topic, name):  # noqa: ARG001
    out = outbox.message(message, None)
    assert out.partition is None
    came = Record(
        topic=out.topic, partition=0, offset=0, key=out.key, value=out.value, headers=out.headers,
        at=NOW,
    )  # fmt: skip
    assert read(came, keyed=True) == message


def test_where_each_key_has_a_loop_a_message_needs_a_key():
    with pytest.raises(ValueError, match=r"^message must have a key, got Event"):
        outbox.message(Event(event_id="e1", x={}, occurred_at=NOW), None)


def test_rejected_has_no_topic_of_its_own():
    rejected = Rejected(subject="e1", fault="late", reason="r", at=NOW)
    with pytest.raises(TypeError, match=r"^message must be one of Event, .*, got Rejected$"):
        outbox.message(rejected, 0)


def test_an_event_id_cannot_forge_the_key_of_another_line():
    line = LabelledExample(
        event_id="e\x1f0", key="ann", sequence=1, x={}, y=1, origin="asked", learned_at=NOW
    )
    with pytest.raises(ValueError, match=r"^no part of a key may hold '\\x1f', got "):
        outbox.message(line, 0)
