"""CloudEvents 1.0 in binary mode: what the headers of a record say about the message in it.

    ce_specversion  1.0
    ce_type         streamgp.<type of the message>.v<major version>
    ce_source       /streamgp/<group of workers, or program>
    ce_id           <key, percent-encoded>/<id of the message>: the same again for a repeated run
    ce_time         the message's own time, RFC 3339, UTC
    content-type    application/json

The headers repeat parts of the message, so that a reader can route and filter without decoding. In
input only `ce_type` is considered, and only if it is there.

"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from urllib.parse import quote

from connectors.topics import Headers, UndecodableName
from connectors.wire.codec import TYPES, DecodeError

EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_799.0
"""First and last second that RFC 3339 can express: in the year 1, and in the year 9999."""

_SPEC = ("ce_specversion", b"1.0")
_CONTENT = ("content-type", b"application/json")
_TYPE = {tag: ("ce_type", f"streamgp.{tag}.v1".encode()) for tag in TYPES}
_TAG = {value: tag for tag, (_, value) in _TYPE.items()}
_NOT_UTF8 = "names of headers must be UTF-8, got {:.80}"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def headers(
    tag: str, *, source: bytes, key: str | None, name: str, at: float
) -> list[tuple[str, bytes]]:
    """Return the headers of a record that holds a message.

    Parameters
    ----------
    tag
        Type of the message, as on the wire.
    source
        The writer, for example `/streamgp/rooms`.
    name
        Id of the message, unique among those of its key.
    at
        Its time, POSIX seconds.

    Examples
    --------
    >>> fields = headers("event", source=b"/streamgp/send", key="a/b", name="e1", at=1.5)
    >>> [value.decode() for _, value in fields[:4]]
    ['1.0', 'streamgp.event.v1', '/streamgp/send', 'a%2Fb/e1']
    >>> fields[4:]
    [('ce_time', b'1970-01-01T00:00:01.500000Z'), ('content-type', b'application/json')]

    """
    ident = f"{'' if key is None else _quoted(key)}/{name}"
    return [
        _SPEC,
        _TYPE[tag],
        ("ce_source", source),
        ("ce_id", ident.encode()),
        ("ce_time", _rfc3339(at)),
        _CONTENT,
    ]


class HeaderError(DecodeError):
    """Headers that cannot be read, whatever the value of their record."""


def type_of(headers: Headers) -> str | None:
    """Return the type of message that the headers announce, None if they announce none.

    Raises
    ------
    DecodeError
        If it is not a type of ours, or of another major version, or the name of a header is not
        UTF-8.

    Examples
    --------
    >>> type_of([("ce_type", b"streamgp.label.request.v1")])
    'label.request'
    >>> type_of([("ce_type", b"streamgp.event.v2")])
    Traceback (most recent call last):
    connectors.wire.codec.DecodeError: ce_type must be streamgp.event.v1, got streamgp.event.v2, ...

    """
    found = None
    for name, value in headers:
        if name == "ce_type":
            found = _TAG.get(value)
            if found is None:
                raise DecodeError(_flaw(value))
        elif isinstance(name, UndecodableName):
            raise HeaderError(_NOT_UTF8.format(name))
    return found


def check_header_names(headers: Headers) -> None:
    """Refuse headers whose names are not UTF-8.

    Raises
    ------
    HeaderError
        If there is one.

    """
    for name, _ in headers:
        if isinstance(name, UndecodableName):
            raise HeaderError(_NOT_UTF8.format(name))


@lru_cache(maxsize=1 << 14)
def _quoted(key: str) -> str:
    return quote(key, safe="")


def rfc3339(at: float) -> str:
    """Return a time as text, to the microsecond.

    Parameters
    ----------
    at
        POSIX seconds, from `EARLIEST` to `LATEST`.

    Raises
    ------
    ValueError
        If it is earlier or later.

    Examples
    --------
    >>> rfc3339(1_700_000_000.25), rfc3339(-1e-6)
    ('2023-11-14T22:13:20.250000Z', '1969-12-31T23:59:59.999999Z')

    """
    return _rfc3339(at).decode()


def _rfc3339(at: float) -> bytes:
    if not EARLIEST <= at <= LATEST:
        raise ValueError(f"time must be within the years 1 to 9999, got {at!r} POSIX seconds")
    # Rounded if the number is exact; a float does not have 17 digits.
    second, microsecond = divmod(round(at * 1e6), 1_000_000)
    return b"%b.%06dZ" % (_second(second), microsecond)


@lru_cache(maxsize=1 << 14)
def _second(second: int) -> bytes:
    return (_EPOCH + timedelta(seconds=second)).isoformat()[:19].encode()


def posix_seconds(text: str) -> float:
    """Return the time given by a text in RFC 3339, in POSIX seconds; the inverse of `rfc3339`.

    Raises
    ------
    ValueError
        If it is not such a time, or has no time zone.

    Examples
    --------
    >>> posix_seconds("2023-11-14T22:13:20.250000Z"), posix_seconds("1970-01-01T01:00:00+01:00")
    (1700000000.25, 0.0)

    """
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"time must have a zone, got {text!r}")
    return (at - _EPOCH) / timedelta(microseconds=1) / 1e6


def _flaw(value: bytes) -> str:
    text = value.decode(errors="replace")
    tag, _, version = text.removeprefix("streamgp.").rpartition(".v")
    if tag not in TYPES:
        return f"ce_type must be streamgp.<type>.v1, got {text:.80}"
    unknown = ", an unknown major version" if version.isdecimal() else ""
    return f"ce_type must be streamgp.{tag}.v1, got {text:.80}{unknown}"
