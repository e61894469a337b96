"""One record becomes one input, or is rejected in words; nothing that it holds raises."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.topics import Record
from connectors.wire import explain
from connectors.wire.cloudevents import EARLIEST, LATEST
from connectors.wire.codec import MAX_INPUT_BYTES, encode
from connectors.wire.explain import misspelt_fields
from connectors.wire.inbound import (
    MAX_AHEAD_S,
    MAX_NAME,
    RetractionRequest,
    TakenBack,
    read,
    retraction_key,
)
from connectors.wire.outbound import Outbound
from connectors.wire.record_lines import input_of
from streamgp.interactive import Answer, Cancel, Event, Rejected

NOW = 1_700_000_000.0


def record(value, topic="events", key=b"ann", headers=(), at=NOW):
    if isinstance(value, dict):
        value = json.dumps(value).encode("utf-8", "surrogatepass")
    return Record(topic=topic, partition=3, offset=17, key=key, value=value, headers=headers, at=at)


def event(**changes):
    return {"type": "event", "version": 1, "event_id": "e1", "x": {"a": 1}, **changes}


def answer(**changes):
    return {"type": "answer", "version": 1, "answer_id": "a1", "event_id": "e1", "y": 1, **changes}


def said(*args, keyed=True, **kwargs):
    return read(record(*args, **kwargs), keyed=keyed)


def refused(*args, **kwargs):
    """Return the reason, everything else about the rejection being as it must."""
    message = said(*args, **kwargs)
    assert isinstance(message, Rejected)
    assert message.fault == "malformed"
    assert message.subject == f"{kwargs.get('topic', 'events')}:3:17"
    assert encode(message)
    return message.reason


# --- what may be meant


@pytest.mark.parametrize(
    ("value", "end"),
    [
        ({"kee": "ann", "x": {"a": 1}}, "; unknown field 'kee', did you mean 'key'?"),
        ({"key": "ann", "event_id": "e1", "Y": 1}, "; unknown field 'Y', did you mean 'y'?"),
        (
            {"key": "ann", "event": "e1", "y": 1, "room": 3},
            "; unknown field 'event', did you mean 'event_id'?; an event has x, an answer has "
            "request_id or event_id",
        ),
        ({"key": "ann", "room": 3}, "; an event has x, an answer has request_id or event_id"),
        ({"type": "evnt", "x": {}}, 'answer, label.cancel, got "evnt"'),
        ({"x": {"a": []}, "room": 3, "key": "ann"}, "got []"),
    ],
)
def test_a_refused_line_is_told_which_field_may_be_misspelt(value, end):
    """As `streamgp send -` sends it: what has no x counts as an answer."""
    line = json.dumps(value).encode()
    sent = input_of(line)
    assert refused(line, topic=sent.topic, key=sent.key).endswith(end)


@given(st.binary() | st.dictionaries(st.text(), st.none() | st.text()).map(json.dumps))
def test_whatever_a_refused_message_holds_it_is_told_something(value):
    data = value.encode() if isinstance(value, str) else value
    assert len(misspelt_fields(data, [Event, Answer])) < 500


def test_a_name_of_megabytes_is_compared_with_no_field(monkeypatch):
    """It would stop a worker for seconds."""
    compared = []
    monkeypatch.setattr(explain, "get_close_matches", lambda name, *_, **__: compared.append(name))
    misspelt_fields(json.dumps({"k" * 10**6: 1, "kee": 2}).encode(), [Event])
    assert compared == ["kee"]


# --- complete records


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("events", Event(event_id="e1", key="ann", x={"a": 1, 2: 0.5}, occurred_at=NOW, y=1.0)),
        ("answers", Answer(answer_id="a1", event_id="e1", key="ann", y=True, answered_at=NOW)),
        ("answers", Cancel(request_id="e1/label", key="ann", why="gone", at=NOW)),
    ],
)
def test_a_complete_input_is_read_as_it_was_written(topic, message):
    found = read(record(encode(message), topic), keyed=True)
    assert found == message


@pytest.mark.parametrize("header", [[], [("ce_type", b"streamgp.event.v1")], [("other", b"\xff")]])
def test_headers_may_be_missing_and_others_are_ignored(header):
    assert said(event(), headers=header).event_id == "e1"


# --- terse records


def test_an_event_needs_no_more_than_its_features():
    assert said({"x": {"a": 1}}) == Event(
        event_id="events:3:17", key="ann", x={"a": 1}, occurred_at=NOW
    )


def test_an_answer_needs_no_more_than_its_request_and_a_label():
    assert said({"request_id": "t/7/challenge/1", "y": "b"}, topic="answers") == Answer(
        answer_id="answers:3:17",
        request_id="t/7/challenge/1",
        event_id="t/7",
        key="ann",
        y="b",
        answered_at=NOW,
    )


def test_a_volunteered_answer_names_its_event():
    found = said({"event_id": "e1", "y": "b"}, topic="answers")
    assert (found.event_id, found.request_id, found.answer_id) == ("e1", None, "answers:3:17")


def test_a_cancellation_says_so_in_its_type_or_in_its_header():
    body = {"request_id": "e1/label", "why": "gone"}
    expected = Cancel(request_id="e1/label", key="ann", why="gone", at=NOW)
    assert said({"type": "label.cancel", **body}, topic="answers") == expected
    header = [("ce_type", b"streamgp.label.cancel.v1")]
    assert said(body, topic="answers", headers=header) == expected


def test_what_a_terse_input_does_say_counts():
    assert said({"version": 1, "x": {}, "occurred_at": 5.0, "event_id": "e"}).occurred_at == 5.0


# --- refused records


BAD_BYTES = [
    (b"", "message must be JSON, got nothing"),
    (b"\xef\xbb\xbf{}", "message must be JSON, got a byte order mark before it"),
    (b"hello", "message must be JSON, got malformed text: Expecting value"),
    (
        b'\x00\x00\x00\x00\x01{"x":{}}',
        "message must be JSON in UTF-8, got a zero byte at position 0",
    ),
    (
        b"\x00\x00\x00\x00\x01\x02\x02a\xf0?",  # Avro
        "message must be JSON in UTF-8, got a zero byte at position 0, as serializers of a schema",
    ),
    (
        '{"x":{}}'.encode("utf-16-le"),
        "message must be JSON in UTF-8, got a zero byte at position 1",
    ),
    (b'{"x":{"a":1}', "message must be JSON, got malformed text: "),
    (b'{"x":{"a":1}} x', "message must be JSON, got malformed text: "),
    (b'{"x":{"\xff":1}}', "message must be UTF-8, got the byte 0xff at position 7"),
    (b'{"x":{"a":"\\ud800"}}', "message must be JSON, got malformed text: "),
    (b"[1]", r"message must be a JSON object, got \[1\]"),
    (b"null", "message must be a JSON object, got null"),
    (b'{"x":{"a":NaN}}', "message must hold finite numbers, got NaN"),
    (b'{"x":{"a":-Infinity}}', "message must hold finite numbers, got -Infinity"),
    (b'{"x":{"a":1e999}}', r"event: x\['a'\] must be finite, got a number beyond 1.8e308"),
    (b'{"x":{"a":9223372036854775808}}', r"event: x\['a'\] must be int <= 9223372036854775807"),
    (b'{"x":{},"z":' + b"[" * 32 + b"]" * 32 + b"}", "message must not nest deeper than 32"),
    (b"[" * 100_000, "message must not nest deeper than 32, got more"),
    (b" " * (MAX_INPUT_BYTES + 1), "message must have at most 1048576 bytes, got 1048577"),
]
BAD_EVENTS = [
    ({}, "event: field 'x' is missing"),
    ({"x": None}, "event: x must be object or array, got null"),
    ({"x": {"a": [1]}}, r"event: x\['a'\] must be bool or int or float or str or null, got \[1\]"),
    ({"x": {}, "type": None}, "type must be one of event, answer, label.cancel, got null"),
    ({"x": {}, "type": "evnt"}, 'type must be one of event, answer, label.cancel, got "evnt"'),
    ({"x": {}, "type": "prediction"}, 'type must be one of event, .*, got "prediction"'),
    (answer(), "type must be event on the topic events, got answer"),
    (event(version=2), "event: version must be 1, got 2, an unknown major version"),
    ({"x": {}, "version": 2}, "event: version must be 1, got 2, an unknown major version"),
    ({"version": 3, "hello": 1}, "event: version must be 1, got 3, an unknown major version"),
    ({"x": {}, "version": 1.5}, "event: version must be 1, got 1.5"),
    ({"x": {}, "version": None}, "event: version must be 1, got null"),
    (event(version="1"), 'event: version must be 1, got "1"'),
    (event(event_id=None), "event: event_id must be str, got null"),
    (event(event_id=7), "event: event_id must be str, got 7"),
    (event(event_id=""), "event: event_id must have at least one character, got none"),
    (event(event_id="a\x1fb"), r"event: event_id must have no control characters, got 'a\\x1fb'"),
    (event(event_id="a\x85"), r"event: event_id must have no control characters, got 'a\\x85'"),
    (event(event_id="e" * 1025), "event: event_id must have at most 1024 characters, got 1025: 'e"),
    (event(x={"n" * 1025: 1.0}), "event: a name in x must have at most 1024 characters, got 1025"),
    (event(x=[["n" * 1025, 1.0]]), "event: a name in x must have at most 1024 characters"),
    (event(y="l" * 1025), "event: y must have at most 1024 characters, got 1025"),
    (event(y="\x1b[2J"), r"event: y must have no control characters, got '\\x1b\[2J'"),
    (event(truth="a\nb"), r"event: truth must have no control characters, got 'a\\nb'"),
    (event(y=[1]), r"event: y must be bool or .*, got \[1\]"),
    (event(key="bob"), "event: key must be that of the record, 'ann', got 'bob'"),
    (event(key=""), "event: key must be that of the record, 'ann', got ''"),
    (event(key=7), "event: key must be str or null, got 7"),
    (event(occurred_at="now"), 'event: occurred_at must be POSIX seconds, got "now"'),
    (event(occurred_at=None), "event: occurred_at must be POSIX seconds, got null"),
    (
        event(occurred_at=1000 * NOW),
        "event: occurred_at must be POSIX seconds within the years 1 to 9999, got 1700000000000.0",
    ),
    (event(occurred_at=EARLIEST - 1), "event: occurred_at must be POSIX seconds within the years"),
    (
        event(occurred_at=NOW + MAX_AHEAD_S + 1),
        "event: occurred_at must be at most a day after its record was written, 1700000000.0, got ",
    ),
]
BAD_ANSWERS = [
    ({"y": 1}, "answer: field 'event_id' is missing, and no request tells it, got request_id None"),
    ({"y": 1, "request_id": "e1"}, "answer: field 'event_id' is missing, and no request tells it"),
    ({"y": 1, "request_id": "/label"}, "answer: event_id must have at least one character"),
    ({"y": 1, "event_id": None}, "answer: event_id must be str, got null"),
    ({"event_id": "e1"}, "answer: an answer has a label or is declined, got y=None and declined="),
    (answer(declined=True), "answer: an answer has a label or is declined, got y=1 and declined="),
    (answer(answer_id="\t"), r"answer: answer_id must have no control characters, got '\\t'"),
    (answer(request_id="\x00/label"), "answer: request_id must have no control characters"),
    (answer(supersedes="a\x1f"), "answer: supersedes must have no control characters"),
    (answer(annotator="a" * 1025), "answer: annotator must have at most 1024 characters"),
    (answer(event_id="e" * 1025), "answer: event_id must have at most 1024 characters"),
    (answer(answered_at=1e15), "answer: answered_at must be POSIX seconds within the years 1 to"),
    (answer(answered_at=2 * NOW), "answer: answered_at must be at most a day after its record was"),
    (answer(privileged={"n" * 1025: 1}), "answer: a name in privileged must have at most 1024"),
    (answer(privileged={"a": 2**64}), r"answer: privileged\['a'\] must fit into 64 bits, got 184"),
    (event(), "type must be answer or label.cancel on the topic answers, got event"),
    ({"type": "label.cancel", "request_id": "r"}, "label.cancel: field 'why' is missing"),
    (
        {"type": "label.cancel", "request_id": "r", "why": "", "at": -1e12},
        "label.cancel: at must be POSIX seconds within the years 1 to 9999, got -1000000000000.0",
    ),
]


@pytest.mark.parametrize(("value", "reason"), [*BAD_BYTES, *BAD_EVENTS])
def test_a_bad_event_is_refused_in_a_sentence(value, reason):
    assert re.match(reason, refused(value))


@pytest.mark.parametrize(("value", "reason"), BAD_ANSWERS)
def test_a_bad_answer_is_refused_in_a_sentence(value, reason):
    assert re.match(reason, refused(value, topic="answers"))


@pytest.mark.parametrize("value", [value for value, _ in BAD_BYTES])
def test_bad_bytes_are_refused_among_answers_too(value):
    assert refused(value, topic="answers")


@pytest.mark.parametrize(
    ("topic", "header", "reason"),
    [
        (
            "events",
            b"streamgp.event.v2",
            "ce_type must be streamgp.event.v1, got streamgp.event.v2, an unknown major version",
        ),
        ("events", b"streamgp.event", "ce_type must be streamgp.<type>.v1, got streamgp.event"),
        ("events", b"com.acme.read", "ce_type must be streamgp.<type>.v1, got com.acme.read"),
        ("events", b"", "ce_type must be streamgp.<type>.v1, got "),
        ("events", b"\xff\n", "ce_type must be streamgp.<type>.v1, got \ufffd\\n"),
        ("events", b"streamgp.answer.v1", "type must be event on the topic events, got answer"),
        (
            "answers",
            b"streamgp.prediction.v1",
            "type must be answer or label.cancel on the topic answers, got prediction",
        ),
        (
            "answers",
            b"streamgp.label.cancel.v1",
            "answer: type must be label.cancel, as ce_type says, got answer",
        ),
    ],
)
def test_the_type_announced_must_be_that_of_the_message(topic, header, reason):
    value = event() if topic == "events" else answer()
    assert refused(value, topic=topic, headers=[("ce_type", header)]) == reason


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (
            None,
            "key is missing, expected 1 to 1024 characters that say whose event or answer it is",
        ),
        (b"", "key is missing, expected 1 to 1024 characters that say whose event or answer it is"),
        (b"a\xffb", "key must be UTF-8, got the byte 0xff at position 1"),
        (b"\xed\xa0\x80", "key must be UTF-8, got the byte 0xed at position 0"),
        (b"ann\x1fe1", r"key must have no control characters, got 'ann\x1fe1'"),
        (b"\x7f", r"key must have no control characters, got '\x7f'"),
        (b"k" * 1025, "key must have at most 1024 characters, got 1025: '" + "k" * 40 + "'..."),
    ],
)
@pytest.mark.parametrize("topic", ["events", "answers"])
def test_a_bad_key_is_refused(topic, key, reason):
    value = event() if topic == "events" else answer()
    assert refused(value, topic=topic, key=key) == reason


def test_a_rejection_has_the_key_if_that_can_be_read():
    assert said(b"hello").key == "ann"
    assert said(b"hello", key=b"\xff").key is None


@pytest.mark.parametrize("at", [1e300, -1e300])
def test_the_time_of_a_rejection_can_always_be_written(at):
    message = said({"x": {}}, at=at)
    assert message.reason.startswith("event: occurred_at must be POSIX seconds within the years")
    assert EARLIEST <= message.at <= LATEST


# --- odd records that are accepted


@pytest.mark.parametrize(
    "body",
    [
        event(key=None, event_id="\u00a0\u200b\U0001f600", y="", truth=""),
        event(event_id="e" * MAX_NAME, y="l" * MAX_NAME),
        event(occurred_at=NOW + MAX_AHEAD_S),
        event(occurred_at=EARLIEST),
        event(x={"": "\x00"}),
        event(x=[[1, 2], [{"float": 1.5}, True]]),
        event(y=1.5, colour={"deep": [1, None]}),
    ],
)
def test_odd_but_good(body):
    assert isinstance(said(body), Event)


@pytest.mark.parametrize(("ahead", "counted"), [(-1e6, -1e6), (60.0, 60.0), (86_400.0, 60.0)])
def test_an_answer_was_given_at_most_a_minute_after_its_record_was_written(ahead, counted):
    message = said(answer(answered_at=NOW + ahead), topic="answers")
    assert message.answered_at == NOW + counted


def test_keys_and_ids_may_be_any_text():
    key = "Zoë / 7 %\u2028"
    assert said(event(key=key), key=key.encode()).key == key


# --- one loop for all


def test_without_keys_a_record_needs_none_and_the_key_in_the_message_counts():
    for key in (None, b""):
        assert said(event(key="bob"), key=key, keyed=False).key == "bob"
        assert said(event(), key=key, keyed=False).key is None
    assert said(event(), key=b"ann", keyed=False).key == "ann"


def test_without_keys_a_key_must_still_be_good_and_the_same_in_both_places():
    assert refused(event(), key=b"\x00", keyed=False).startswith("key must have no control")
    assert refused(event(key="bob"), keyed=False).startswith("event: key must be that of the rec")
    assert refused(event(key=""), key=None, keyed=False).startswith("event: key must have at leas")
    assert refused(event(key="\n"), key=None, keyed=False).startswith("event: key must have no co")


# --- nulls


@pytest.mark.parametrize("topic", ["events", "answers"])
@pytest.mark.parametrize("key", [b"ann", None, b"\xff"])
def test_a_null_among_inputs_is_nothing(topic, key):
    assert read(record(None, topic, key), keyed=True) is None


@pytest.mark.parametrize("key", [b"ann\x1fe1\x1f0", b"ann", None])
def test_lines_of_the_consensus_log_are_nothing(key):
    assert read(record(b"anything", "consensus", key), keyed=True) is None


def test_a_null_of_a_worker_is_no_request():
    out = Outbound("/streamgp/rooms", keyed=True).erase(b"ann\x1fe1\x1f0", 3)
    assert (out.topic, out.partition, out.value) == ("consensus", 3, None)
    theirs = record(None, "consensus", out.key, headers=out.headers)
    assert read(theirs, keyed=True) is None
    assert read(record(None, "consensus", out.key), keyed=True).event_id == "e1"


@pytest.mark.parametrize(
    ("keyed", "key", "expected"),
    [
        (True, b"ann\x1fe1\x1f2", TakenBack(key="ann", event_id="e1", revision=2)),
        (True, b"ann", TakenBack(key="ann")),
        (False, b"\x1fe1\x1f0", TakenBack(key=None, event_id="e1", revision=0)),
        (False, b"", TakenBack(key=None)),
    ],
)
def test_a_null_in_the_consensus_log_takes_back(keyed, key, expected):
    assert said(None, topic="consensus", key=key, keyed=keyed) == expected


KEY_OF_A_NULL = (
    r"key of a null must be <key>\x1f<event_id>\x1f<revision>, to withdraw an example, or <key>, "
    "to forget all of it, got "
)


@pytest.mark.parametrize(
    ("keyed", "key", "reason"),
    [
        (True, None, f"{KEY_OF_A_NULL}none"),
        (True, b"ann\x1fhead", rf"{KEY_OF_A_NULL}b'ann\x1fhead'"),
        (True, b"a\x1fb\x1f0\x1fd", rf"{KEY_OF_A_NULL}b'a\x1fb\x1f0\x1fd'"),
        (True, b"ann\x1fe1\x1f01", "revision in the key of a null must be a number, got '01'"),
        (True, b"ann\x1fe1\x1f-1", "revision in the key of a null must be a number, got '-1'"),
        (
            True,
            "ann\x1fe1\x1f١".encode(),
            "revision in the key of a null must be a number, got '١'",
        ),
        (True, b"ann\x1fe1\x1f" + b"9" * 5000, "revision in the key of a null must be a number, "),
        (True, b"ann\x1f\x1f0", "event_id in the key of a null must have at least one character"),
        (True, b"ann\x1fe\n\x1f0", "event_id in the key of a null must have no control characters"),
        (True, b"\x1fe1\x1f0", "key must have at least one character, got none"),
        (True, b"", "key must have at least one character, got none"),
        (True, b"\xff", "key must be UTF-8, got the byte 0xff at position 0"),
        (True, b"a\n", r"key must have no control characters, got 'a\n'"),
        (False, b"ann", "key of a null must name no key where one loop serves all, got 'ann'"),
        (False, b"ann\x1fe1\x1f0", "key of a null must name no key where one loop serves all, got"),
    ],
)
def test_any_other_null_in_the_consensus_log_is_refused(keyed, key, reason):
    assert refused(None, topic="consensus", key=key, keyed=keyed).startswith(reason)


@pytest.mark.parametrize(("keyed", "entity"), [(True, "ann"), (False, "")])
@pytest.mark.parametrize("since", [None, 0.0, 1_700_000_000.123456, -60.25])
@pytest.mark.parametrize("undo", [False, True])
def test_a_request_to_take_labels_back_is_read_as_it_was_written(keyed, entity, since, undo):
    key = retraction_key(entity, "Ann Lee/2", 7, since=since, undo=undo)
    asked = said(None, topic="consensus", key=key, keyed=keyed)
    assert asked == RetractionRequest(
        key=entity or None, annotator="Ann Lee/2", since=since, undo=undo
    )


@pytest.mark.parametrize("since", [1e-5, -1e-5, 0.1 + 0.2, 1764.0, 253402300799.999, 1e16])
def test_a_time_in_a_request_keeps_all_its_digits(since):
    key = retraction_key("k", "bob", 7, since=since)
    asked = said(None, topic="consensus", key=key, keyed=True)
    assert asked == RetractionRequest(key="k", annotator="bob", since=since)


@pytest.mark.parametrize(
    ("keyed", "key", "reason"),
    [
        (True, b"ann\x1fretract\x1f\x1f\x1f7", "annotator in the key of a null must have at least"),
        (True, b"\x1fretract\x1fbob\x1f\x1f7", "key must have at least one character, got none"),
        (
            True,
            b"ann\x1fretract\x1fbob\x1fnan\x1f7",
            "time in the key of a null must be POSIX seconds, got 'nan'",
        ),
        (False, b"ann\x1fretract\x1fbob\x1f\x1f7", "key of a null must name no key where one loop"),
        (True, b"ann\x1fretain\x1fbob\x1f\x1f7", r"key of a null must be <key>\x1f<event_id>"),
    ],
)
def test_an_invalid_request_to_take_labels_back_is_refused(keyed, key, reason):
    assert refused(None, topic="consensus", key=key, keyed=keyed).startswith(reason)


def test_other_topics_are_no_input():
    with pytest.raises(ValueError, match="topic must be events, answers or consensus, got 'state'"):
        read(record(b"{}", "state"), keyed=True)
