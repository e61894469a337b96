from datetime import UTC, datetime
from math import inf, nan
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.wire.cloudevents import EARLIEST, LATEST, headers, posix_seconds, rfc3339, type_of
from connectors.wire.codec import TYPES, DecodeError


@pytest.mark.parametrize("tag", TYPES)
def test_the_headers_of_a_message_tell_its_type(tag):
    found = headers(tag, source=b"/streamgp/rooms", key="ann", name="e1", at=0.0)
    assert type_of(found) == tag
    assert dict(found) == {
        "ce_specversion": b"1.0",
        "ce_type": f"streamgp.{tag}.v1".encode(),
        "ce_source": b"/streamgp/rooms",
        "ce_id": b"ann/e1",
        "ce_time": b"1970-01-01T00:00:00.000000Z",
        "content-type": b"application/json",
    }


def test_headers_without_a_type_announce_none():
    assert type_of([]) is None
    assert type_of([("ce_id", b"1"), ("traceparent", b"\xff")]) is None


def test_of_a_header_given_twice_the_last_counts():
    both = [("ce_type", b"streamgp.event.v1"), ("ce_type", b"streamgp.answer.v1")]
    assert type_of(both) == "answer"


@pytest.mark.parametrize("value", [b"streamgp.event.v0", b"streamgp.event.v10"])
def test_an_unknown_major_version_says_so(value):
    text = f"^ce_type must be streamgp.event.v1, got {value.decode()}, an unknown major version$"
    with pytest.raises(DecodeError, match=text):
        type_of([("ce_type", value)])


@pytest.mark.parametrize(
    "value", [b"streamgp.event.v", b"streamgp.event.v1.0", b"event.v1", b"\xff"]
)
def test_an_unknown_type_is_refused(value):
    with pytest.raises(DecodeError, match=r"^ce_type must be streamgp\..*\.v1, got "):
        type_of([("ce_type", value)])


@given(st.none() | st.text(max_size=8), st.text(max_size=8))
def test_the_id_tells_key_and_name_apart(key, name):
    found = dict(headers("event", source=b"", key=key, name=name, at=0.0))["ce_id"].decode()
    quoted, _, rest = found.partition("/")
    assert (unquote(quoted), rest) == (key or "", name)
    assert quoted.isascii()


@given(st.floats(EARLIEST, LATEST))
def test_a_time_is_the_same_after_it_was_written_to_the_microsecond(at):
    text = rfc3339(at)
    assert len(text) == len("2023-11-14T22:13:20.250000Z")
    # beyond the year 2255 a float is coarser than a microsecond
    assert posix_seconds(text) == pytest.approx(at, rel=1e-15, abs=5.1e-7)
    assert rfc3339(posix_seconds(text)) == text or abs(at) > 2**53 / 1e6


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), timezones=st.just(UTC)))
def test_times_are_written_as_the_standard_library_writes_them(moment):
    whole = moment.replace(microsecond=0)
    assert rfc3339(whole.timestamp()) == whole.isoformat()[:19] + ".000000Z"
    assert posix_seconds(whole.isoformat()) == whole.timestamp()


def test_the_first_and_the_last_second():
    assert rfc3339(EARLIEST) == "0001-01-01T00:00:00.000000Z"
    assert rfc3339(LATEST) == "9999-12-31T23:59:59.000000Z"


@pytest.mark.parametrize("at", [EARLIEST - 1, LATEST + 1, 1e300, -1e305, inf, nan])
def test_no_other_year_can_be_written(at):
    with pytest.raises(ValueError, match=r"^time must be within the years 1 to 9999, got "):
        rfc3339(at)


@pytest.mark.parametrize("text", ["", "yesterday", "2023-11-14T22:13:20", "2023-13-14T22:13:20Z"])
def test_what_tells_no_time_is_refused(text):
    with pytest.raises(ValueError, match=r"isoformat|zone|month"):
        posix_seconds(text)
