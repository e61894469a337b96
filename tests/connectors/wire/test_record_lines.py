import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connectors.topics import ALL_TOPICS, Outgoing
from connectors.wire.codec import encode
from connectors.wire.record_lines import from_line, input_of, to_line
from connectors.wire.state_records import consensus_key, state
from streamgp.interactive.messages import Event, LabelledExample

EVENT = encode(Event(event_id="e1", key="ann", x={"light": 0.5}, occurred_at=3.0))
EXAMPLE = LabelledExample(
    event_id="e1", key="ann", revision=2, sequence=1, x={}, y=1, origin="asked", learned_at=2.0
)
PIECES = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20).map(str.encode),
    st.sampled_from(
        [
            EVENT,
            b"{}",
            b'{"key":"ann"}',
            b'{"record":{}}',
            b'{"record":{"value":{}}}',
            b'{"record":{"bytes":"x","key":{"base64":"_"}}}',
            b'1},"x":{',
            b'{"a":1,\n"b":2}',
            b'"\xff"',
            b"[" * 3000,
            b" \r",
            b"null",
        ]
    ),
)


@given(
    topic=st.sampled_from(ALL_TOPICS),
    key=st.none() | PIECES,
    value=st.none() | PIECES,
    headers=st.lists(st.tuples(st.text(max_size=5), PIECES), max_size=2),
    at=st.floats(0.0, 4e9),
)
@example(topic="events", key=b"ann", value=EVENT, headers=[], at=0.0)
@example(topic="events", key=None, value=b'"\xff"', headers=[("a", b"")], at=0.0)
def test_every_record_comes_back_from_its_line(topic, key, value, headers, at):
    record = Outgoing(topic=topic, key=key, value=value, headers=headers)
    line = to_line(record, at)
    assert b"\n" not in line
    read = from_line(topic, line)
    assert (read.key, read.value, list(read.headers)) == (key, value, headers)
    assert (line == value and read.at is None) or (line != value and read.at == at)


@given(st.sampled_from(ALL_TOPICS), PIECES)
def test_every_line_is_a_record_or_blank(topic, line):
    read = from_line(topic, line)
    if read is None:
        assert not line.strip()


@pytest.mark.parametrize(
    "record",
    [
        Outgoing(topic="events", key=b"ann", value=EVENT),
        Outgoing(topic="events", key=None, value=b'{"x":{}}'),
        Outgoing(topic="consensus", key=consensus_key("ann", "e1", 2), value=encode(EXAMPLE)),
        state("ann", "head", {"n": 1}, 0),
        state("", "configuration", {"fingerprint": "f"}, 0),
    ],
)
def test_a_message_that_tells_its_key_is_its_own_line(record):
    assert to_line(record, at=0.0) == record.value


@pytest.mark.parametrize("value", [b"no JSON at all", b"3", b"[]", b"{", b'{"a":"\xff"}', b"{}\n"])
@pytest.mark.parametrize("key", [None, b"ann"])
def test_what_is_no_object_on_one_line_is_in_an_envelope(key, value):
    line = json.loads(to_line(Outgoing(topic="events", key=key, value=value), at=3.0))
    assert list(line) == ["record"]


def test_a_key_that_the_message_does_not_tell_is_beside_it():
    record = Outgoing(topic="consensus", key=consensus_key("", "e1", 2), value=encode(EXAMPLE))
    said = json.loads(to_line(record, at=1.5))["record"]
    assert said == {"at": 1.5, "key": "\x1fe1\x1f2", "value": json.loads(encode(EXAMPLE))}


def test_a_tombstone_has_a_key_and_no_value():
    line = to_line(Outgoing(topic="state", key=b"ann\x1fhead", value=None), at=1.5)
    assert line == b'{"record":{"at":1.5,"key":"ann\\u001fhead"}}'


@pytest.mark.parametrize(
    ("headers", "is_plain"),
    [
        ([("ce_id", b"ann/e1"), ("ce_type", b"streamgp.event.v1"), ("ce_time", b"now")], True),
        ([("ce_type", b"streamgp.event.v2")], False),
        ([("ce_type", b"streamgp.answer.v1")], False),
        ([("dlq.error", b"why")], False),
    ],
)
def test_headers_are_left_out_if_they_follow_from_the_message(headers, is_plain):
    line = to_line(Outgoing(topic="events", key=b"ann", value=EVENT, headers=headers), at=0.0)
    assert (line == EVENT) == is_plain
    assert from_line("events", line).headers == (() if is_plain else tuple(headers))


def test_the_type_of_a_message_that_does_not_say_it_is_kept():
    headers = [("ce_type", b"streamgp.label.cancel.v1")]
    record = Outgoing(topic="answers", key=None, value=b'{"request_id":"e1"}', headers=headers)
    assert from_line("answers", to_line(record, at=0.0)).headers == tuple(headers)


@pytest.mark.parametrize(
    "line",
    [
        b'{"record":{"key":"ann","value":{},"bytes":"x"}}',
        b'{"record":{"key":"ann"},"more":1}',
        b'{"record":{"key":7}}',
        b'{"record":{"key":{"base64":"%"}}}',
        b'{"record":{"at":1e999}}',
        b'{"record":' + b"[" * 5000,
    ],
)
def test_what_only_looks_like_an_envelope_is_a_record_of_its_bytes(line):
    assert from_line("events", line).value == line


@pytest.mark.parametrize("line", [b"", b" ", b"\t\r"])
def test_a_blank_line_is_nothing(line):
    assert from_line("events", line) is None


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"x":{},"key":"ann"}\r', b"ann"),
        (b'{"x":{},"key":"\\u00e4"}', "ä".encode()),
        (b'{"x":{},"key":null}', None),
        (b'{"x":{},"key":7}', None),
        (b'{"x":{"a":NaN},"key":"ann"}', None),
        (b'["ann"]', None),
        (b"hello", None),
    ],
)
def test_the_key_of_a_line_is_told_by_its_message(line, key):
    read = from_line("events", line)
    assert (read.key, read.value, read.at) == (key, line, None)


@pytest.mark.parametrize(
    ("line", "topic", "key"),
    [
        (b'{"type":"event","key":"ann","x":{}}', "events", b"ann"),
        (b'{"key":"ann","x":{}}', "events", b"ann"),
        (b'{"type":"answer","key":"ann","event_id":"e1","y":1}', "answers", b"ann"),
        (b'{"key":"ann","event_id":"e1","y":1}', "answers", b"ann"),
        (b'{"type":"label.cancel","key":"ann"}', "answers", b"ann"),
        (b'{"x":{}}', "events", None),
        (b'{"key":7,"x":{}}', "events", None),
        ('{"key":"zoë","x":{}}'.encode(), "events", "zoë".encode()),
        (b"hello", "events", None),
        (b"\xff", "events", None),
        (b"[1]", "events", None),
        (b'{"x":' + b"[" * 5000, "events", None),
    ],
)
def test_an_input_goes_where_it_belongs(line, topic, key):
    assert input_of(line) == Outgoing(topic=topic, key=key, value=line)


@pytest.mark.parametrize(
    ("topic", "value"),
    [
        ("events", b'{"x":{}}'),
        ("answers", b'{"request_id":"e1/label","y":"hall"}'),
        ("events", b"no JSON at all"),
        ("events", None),
    ],
)
def test_input_in_an_envelope_is_the_record_that_is_in_it(topic, value):
    record = Outgoing(topic=topic, key=b"ann", value=value, headers=(("a", b"b"),))
    assert input_of(to_line(record, at=3.0)) == record
