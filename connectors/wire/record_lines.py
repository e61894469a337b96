"""Records as lines of text, one JSON object each, for files and for pipes.

A line is the message itself, so that people can read it and write one by hand. Its key follows from
the message: the field `key`, on `consensus` and `state` with what else belongs to the key there.
CloudEvents headers are left out, since they follow from the message.

Anything that does not follow from a message has an envelope: `{"record":{"key":...,"value":...}}`,
with the fields `headers` and `at` (POSIX seconds) if they are known. A value that is not JSON is
stored under `bytes`, as text if possible, else as `{"base64":...}`; a tombstone has neither.

"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from connectors.topics import Headers, Outgoing, TopicName
from connectors.wire.codec import MAX_INPUT_BYTES
from connectors.wire.state_records import SEPARATOR

_LEFT_OUT = {"ce_specversion", "ce_type", "ce_source", "ce_id", "ce_time", "content-type"}
_NO_JSON = (msgspec.MsgspecError, ValueError, RecursionError)


class Base64(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are not a text."""

    base64: str


Piece: TypeAlias = str | Base64


class _Body(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    at: float | None = None
    key: Piece | None = None
    headers: list[tuple[str, Piece]] = []
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    bytes: Piece | msgspec.UnsetType = msgspec.UNSET


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    record: _Body


class _Message(msgspec.Struct):
    key: str | None = None


class _Typed(msgspec.Struct):
    type: str


class _Example(msgspec.Struct):
    event_id: str
    key: str | None = None
    revision: int = 0


class _State(msgspec.Struct):
    name: str
    key: str | None = None


class _Head(msgspec.Struct):
    """Fields that tell where an input belongs; the worker checks all others."""

    type: Any = None
    key: Any = None
    x: Any = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Record described by a line.

    Parameters
    ----------
    key, value, headers
        As in `Record`.
    at
        When it was written, POSIX seconds; None if the line does not tell.

    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    at: float | None = None


_envelopes = msgspec.json.Decoder(_Envelope)
_messages = msgspec.json.Decoder(_Message)
_examples = msgspec.json.Decoder(_Example)
_types = msgspec.json.Decoder(_Typed)
_heads = msgspec.json.Decoder(_Head)
_states = msgspec.json.Decoder(_State)
_encoder = msgspec.json.Encoder()


def to_line(record: Outgoing, at: float) -> bytes:
    """Return a record as a line, without its end.

    Parameters
    ----------
    at
        The time of writing, POSIX seconds; it is left out if the line is the message itself.

    Examples
    --------
    >>> to_line(Outgoing(topic="events", key=b"ann", value=b'{"x":{},"key":"ann"}'), at=3.0)
    b'{"x":{},"key":"ann"}'
    >>> to_line(Outgoing(topic="dead-letters", key=b"ann", value=b"hello"), at=3.0)
    b'{"record":{"at":3.0,"key":"ann","bytes":"hello"}}'

    """
    value = record.value
    if value is not None and _is_line(value) and headers_follow(record.headers, value):
        plain = from_line(record.topic, value)
        if plain is not None and (plain.key, plain.value) == (record.key, value):
            return value
    body = _Body(
        at=at,
        key=None if record.key is None else _piece(record.key),
        headers=[(name, _piece(data)) for name, data in record.headers],
    )
    if value is not None:
        body.value = msgspec.Raw(value)
        line = _encoder.encode(_Envelope(body))
        if b"\n" not in value and _is_text(value):
            read = from_line(record.topic, line)
            if read is not None and read.value == value and read.at == at:
                return line
        body.value = msgspec.UNSET
        body.bytes = _piece(value)
    return _encoder.encode(_Envelope(body))


def from_line(topic: TopicName, line: bytes) -> Line | None:
    """Return the record that a line describes, or None if it is blank.

    A line that is not a JSON object is a record of just these bytes.

    Examples
    --------
    >>> from_line("events", b'{"x":{},"key":"ann"}').key, from_line("events", b"hello").value
    (b'ann', b'hello')
    >>> from_line("consensus", b'{"record":{"key":"ann","at":3.0}}')
    Line(key=b'ann', value=None, headers=(), at=3.0)

    """
    if not line or line.isspace():
        return None
    read = _enveloped(line)
    return Line(key=_key(topic, line), value=line) if read is None else read


def input_of(line: bytes) -> Outgoing:
    """Return the event or answer in a line; a worker will refuse what cannot be read.

    Examples
    --------
    >>> record = input_of(b'{"key": "ann", "x": {"light": 0.5}}')
    >>> record.topic, record.key
    ('events', b'ann')
    >>> input_of(b'{"event_id": "e1", "y": "home"}').topic
    'answers'
    >>> record = input_of(b'{"record": {"key": "ann", "value": {"event_id": "e1", "y": "home"}}}')
    >>> record.topic, record.key, record.value
    ('answers', b'ann', b'{"event_id": "e1", "y": "home"}')

    """
    read = _enveloped(line)
    if read is not None:
        return Outgoing(
            topic=_head_of(read.value or b"")[0],
            key=read.key,
            value=read.value,
            headers=read.headers,
        )
    topic, key = _head_of(line)
    return Outgoing(topic=topic, key=key, value=line)


def _head_of(message: bytes) -> tuple[TopicName, bytes | None]:
    """Return where an event or an answer belongs, and the key that it tells."""
    try:
        head = _heads.decode(message)
    except _NO_JSON:  # the worker reports what is wrong
        head = _Head(type="event")
    is_event = head.type == "event" or (head.type is None and head.x is not None)
    key = head.key.encode("utf-8", "replace") if isinstance(head.key, str) else None
    return "events" if is_event else "answers", key


def _enveloped(line: bytes) -> Line | None:
    """Return the record in an envelope, None if the line is none."""
    if b'"record"' in line[:32]:
        # A message may happen to have such a field.
        with suppress(*_NO_JSON):
            return _unwrap(_envelopes.decode(line).record)
    return None


def _unwrap(body: _Body) -> Line:
    has_value, has_bytes = body.value is not msgspec.UNSET, body.bytes is not msgspec.UNSET
    if has_value and has_bytes:
        raise ValueError("a record must have a value or bytes, got both")
    value = None
    if isinstance(body.value, msgspec.Raw):
        value = bytes(body.value)
    elif isinstance(body.bytes, str | Base64):
        value = _data(body.bytes)
    return Line(
        key=None if body.key is None else _data(body.key),
        value=value,
        headers=tuple((name, _data(piece)) for name, piece in body.headers),
        at=body.at,
    )


def _key(topic: TopicName, line: bytes) -> bytes | None:
    """Return the key that follows from a message, None if none does."""
    try:
        if topic == "consensus":
            example = _examples.decode(line)
            parts: Iterable[str] = (example.key or "", example.event_id, str(example.revision))
        elif topic == "state":
            state = _states.decode(line)
            parts = (state.key or "", state.name)
        else:
            key = _messages.decode(line).key
            return None if key is None else key.encode()
    except _NO_JSON:
        return None
    return SEPARATOR.join(parts).encode()


def headers_follow(headers: Headers, value: bytes) -> bool:
    """Return whether headers contain nothing that is not in the message."""
    for name, data in headers:
        if name not in _LEFT_OUT:
            return False
        if name == "ce_type":
            try:
                follows = data == b"streamgp.%s.v1" % _types.decode(value).type.encode()
            except _NO_JSON:
                return False
            if not follows:
                return False
    return True


def _piece(data: bytes) -> Piece:
    with suppress(UnicodeDecodeError):
        text = data.decode()
        # A control character takes six bytes: a dead letter with many of them must stay a line that
        # can be read.
        if len(data) <= MAX_INPUT_BYTES or len(_encoder.encode(text)) <= 2 * len(data):
            return text
    return Base64(base64.b64encode(data).decode())


def _data(piece: Piece) -> bytes:
    if isinstance(piece, str):
        return piece.encode()
    return base64.b64decode(piece.base64, validate=True)


def _is_line(value: bytes) -> bool:
    """Return whether a value is a JSON object on one line, as readers of lines expect it."""
    return b"\n" not in value and _is_text(value) and is_object(value)


def is_object(line: bytes) -> bool:
    """Return whether a line is a JSON object, as every printed one is."""
    try:
        _heads.decode(line)
    except _NO_JSON:
        return False
    return True


def _is_text(data: bytes) -> bool:
    return isinstance(_piece(data), str)
