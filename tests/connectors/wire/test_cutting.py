"""An input of any size becomes a dead letter that every broker takes; what was cut is not sent."""

import hashlib

import pytest
from msgspec.structs import replace

from connectors.kafka.client import check_sizes
from connectors.topics import Record
from connectors.wire.outbound import (
    DIGEST,
    TRUNCATED,
    Outbound,
    cut_cause,
    letter_of,
    resend,
    size_of,
)
from streamgp.interactive.messages import Rejected

MIB = 2**20
NOW = 1_700_000_000.0
WHY = Rejected(subject="events:3:17", fault="malformed", reason="\u00e9" * 600, at=NOW)


def record(**changes):
    fields = {"topic": "events", "partition": 3, "offset": 17, "key": b"ann", "value": b"?"}
    return Record(**{**fields, "at": NOW, **changes})


def letter(cause):
    """Return a dead letter as it lies in its topic, once the broker has taken it."""
    out = Outbound("/streamgp/rooms", keyed=True).dead_letter(WHY, cause, 3)
    check_sizes([out])
    return record(topic="dead-letters", key=out.key, value=out.value, headers=out.headers)


def test_an_input_of_16_mib_is_kept_byte_for_byte():
    headers = [("trace", b"\xff"), (TRUNCATED, b"7")]
    largest = record(headers=headers[:1], value=b"x" * (16 * MIB - len(b"ann" + b"trace\xff") - 8))
    assert size_of(largest) == 16 * MIB
    assert cut_cause(largest) == (largest, [])
    found = letter(replace(largest, value=largest.value[22:], headers=headers))
    assert (found.key, found.value) == (b"ann", largest.value[22:])
    assert TRUNCATED not in dict(found.headers)
    assert resend(found).value == found.value
    assert cut_cause(replace(largest, value=largest.value + b"x"))[1][0] == (TRUNCATED, b"16777217")


@pytest.mark.parametrize(
    "made",
    [
        lambda: record(value=b"x" * 20 * MIB),
        lambda: record(key=b"k" * 17 * MIB, value=None),
        lambda: record(headers=[("h", b"v" * 17 * MIB), ("trace", b"7")]),
        lambda: record(headers=[("\U0001f600" * 5 * MIB, b"")]),
        lambda: record(headers=[("h", b"")] * 2 * MIB),
        lambda: record(headers=[("", b"")] * 3 * MIB, value=b"x" * 8 * MIB, key=b"k" * 2 * MIB),
    ],
    ids=["value", "key", "header", "name", "headers", "all"],
)
def test_an_input_of_any_size_becomes_a_letter_that_every_topic_takes(made):
    large = made()
    found = letter(large)
    assert size_of(found) < 3 * MIB + 4096
    assert found.key == large.key[:MIB]
    assert found.value == (None if large.value is None else large.value[:MIB])
    headers = dict(found.headers)
    assert headers[TRUNCATED] == b"%d" % size_of(large)
    if large.value is None:
        assert DIGEST not in headers
    else:
        assert headers[DIGEST] == hashlib.sha256(large.value).hexdigest().encode()
    read = letter_of(found)
    assert (read.cause.topic, read.cause.offset, read.stage) == ("events", 17, "decode")


def test_of_many_headers_those_stay_that_fit():
    found = letter(
        record(value=b"x" * 17 * MIB, headers=[("big", b"v" * 2 * MIB), ("trace", b"7")])
    )
    assert list(found.headers[:1]) == [("trace", b"7")]
    assert "big" not in dict(found.headers)


def test_what_was_cut_is_not_sent_again():
    with pytest.raises(
        ValueError,
        match=r"^dead-letters:3:17 holds only the beginning of an input of 17825796 bytes, more "
        r"than any that could be used$",
    ):
        resend(letter(record(value=b"x" * (17 * MIB + 1))))


def test_an_input_that_only_claims_to_be_cut_is_whole():
    found = letter(record(headers=[(TRUNCATED, b"5")]))
    assert resend(found).value == b"?"
