r"""State on the topics `state` and `consensus`: what one record says, and how it is written.

Both topics are compacted: of each key the last record counts, and a null takes it away. Keys are
`<entity>\x1f<name>` for a part of a loop's state, `<entity>\x1f<event_id>\x1f<revision>` for a
line of the consensus log; the entity is the key of the events, or nothing where one loop serves
all. What the state means is the business of the loop; what the records of a partition come to is
told in `history`.

"""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

import msgspec

from connectors.records import Outgoing
from connectors.wire.codec import MAX_BYTES, DecodeError, decode
from streamgp.interactive.messages import LabelledExample

SEPARATOR = "\x1f"
"""Stands between the parts of a key; no part holds it."""
CONFIGURATION = "configuration"
"""Name of the one record of a partition that says which configuration works on it, and who."""
EARLY = "early/"
"""Begins the name of an answer that waits for its event; where it lies follows."""
ERASED_BY = "erased-by"
"""Header of a null on `consensus` that a worker has written; any other one asks for something."""
PIECES = "/piece/"
"""Stands in the name of a piece of a part, before its number."""
CUT = "streamgp.pieces"
"""Stands in the value of a part that was cut, beside the number of its pieces."""

_WHOLE_BYTES = 4 * 2**20
_PIECE = 2**19  # characters


class _State(msgspec.Struct, kw_only=True):
    type: Literal["state"]
    version: int
    key: str
    name: str
    value: Any


_decoder = msgspec.json.Decoder(_State)


def _refuse(value: object) -> None:
    raise TypeError(f"state must be plain JSON values, got {value!r:.60}")


_encoder = msgspec.json.Encoder(enc_hook=_refuse)


# --- keys


def consensus_key(entity: str, event_id: str, revision: int) -> bytes:
    r"""Return the record key of a line of the consensus log.

    Examples
    --------
    >>> consensus_key("ann", "e1", 0)
    b'ann\x1fe1\x1f0'

    """
    return _joined(entity, event_id, str(revision))


def split_key(key: bytes) -> tuple[str, ...]:
    r"""Return the parts of a record key: entity and name, or entity, event and revision.

    Raises
    ------
    ValueError
        If it is not UTF-8.

    Examples
    --------
    >>> split_key(b"ann\x1fe1\x1f0"), split_key(b"\x1fconfiguration"), split_key(b"ann")
    (('ann', 'e1', '0'), ('', 'configuration'), ('ann',))

    """
    return tuple(key.decode().split(SEPARATOR))


def parts_of(key: bytes | None) -> tuple[str, ...]:
    r"""Return the parts of any record key, as `split_key` does; none if it is not UTF-8.

    Examples
    --------
    >>> parts_of(b"\xff"), parts_of(None)
    ((), ('',))

    """
    try:
        return split_key(key or b"")
    except UnicodeDecodeError:
        return ()


def _joined(*parts: str) -> bytes:
    key = SEPARATOR.join(parts)
    if key.count(SEPARATOR) != len(parts) - 1:
        raise ValueError(f"no part of a key may hold {SEPARATOR!r}, got {parts!r}")
    return key.encode()


# --- what is written


def state(entity: str, name: str, value: Any | None, partition: int) -> Outgoing:
    r"""Return the record that says how a part of a loop's state is now.

    Parameters
    ----------
    entity
        Whose state, or nothing where one loop serves all.
    name
        Which part of it.
    value
        Plain JSON values, text keys only; None: it is gone.
    partition
        That of the events.

    Raises
    ------
    ValueError
        If a number is not finite, the value is too large, or a name holds a separator.
    TypeError
        If the value holds what is no plain JSON value.

    Examples
    --------
    >>> record = state("ann", "head", {"n": 3}, partition=2)
    >>> record.key, record.value
    (b'ann\x1fhead', b'{"type":"state","version":1,"key":"ann","name":"head","value":{"n":3}}')

    """
    key = _joined(entity, name)
    data = None if value is None else _encoded(entity, name, value)
    if data is not None and len(data) > MAX_BYTES:
        raise ValueError(
            f"state {name!r} of {entity!r} must have at most {MAX_BYTES} bytes, got {len(data)}"
        )
    return Outgoing(topic="state", partition=partition, key=key, value=data)


def states(entity: str, name: str, value: Any | None, partition: int) -> list[Outgoing]:
    r"""Return the records that say how a part of a loop's state is now, however large it is.

    What is too large for one record is cut into pieces, parts of their own that are called
    `<name>/piece/<number>`; the record of the part itself comes last and says how many they are.

    Examples
    --------
    >>> records = states("ann", "head", {"names": "x" * 5_000_000}, partition=2)
    >>> [record.key for record in records[-2:]]
    [b'ann\x1fhead/piece/9', b'ann\x1fhead']

    """
    if value is None:
        return [state(entity, name, None, partition)]
    data = _encoded(entity, name, value)
    if len(data) <= _WHOLE_BYTES:
        return [Outgoing(topic="state", partition=partition, key=_joined(entity, name), value=data)]
    text = _encoder.encode(value).decode()
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    cut = [(f"{name}{PIECES}{n}", piece) for n, piece in enumerate(pieces)]
    return [
        state(entity, part, content, partition)
        for part, content in [*cut, (name, {CUT: len(pieces)})]
    ]


def _encoded(entity: str, name: str, value: Any) -> bytes:
    data = _encoder.encode(_State(type="state", version=1, key=entity, name=name, value=value))
    # The encoder writes null for what is not finite. Reading it back is the fastest way to see it;
    # what differs for another reason, such as a tuple, is good.
    if b"null" in data and _decoder.decode(data).value != value and not _is_finite(value):
        raise ValueError(f"state {name!r} of {entity!r} must hold finite numbers only")
    return data


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or isfinite(value)


# --- what is read


def value_of(entity: str, name: str, data: bytes) -> Any:
    """Return what a record says of a part of a loop's state; the inverse of `state`.

    Raises
    ------
    DecodeError
        If no worker can have written it.

    """
    try:
        found = _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DecodeError(str(error)) from None
    if found.version != 1:
        raise DecodeError(f"version must be 1, got {found.version}")
    if (found.key, found.name) != (entity, name):
        raise DecodeError(
            f"it must be about {entity!r}, {name!r}, got {found.key!r}, {found.name!r}"
        )
    return found.value


def line_of(key: bytes | None, data: bytes) -> LabelledExample:
    r"""Return the line of the consensus log that a record holds.

    Raises
    ------
    DecodeError
        If no worker can have written it.

    Examples
    --------
    >>> line_of(b"ann", b"note to self")
    Traceback (most recent call last):
    connectors.wire.codec.DecodeError: its key must not be b'ann', expected that of a line, ...

    """
    parts = parts_of(key)
    if len(parts) != 3:
        raise DecodeError(
            f"its key must not be {key!r:.80}, expected that of a line, "
            r"<key>\x1f<event_id>\x1f<revision>"
        )
    example = decode(data)
    if not isinstance(example, LabelledExample):
        raise DecodeError(f"it must hold a labelled example, got {type(example).__name__}")
    entity = parts[0]
    theirs = _joined(entity, example.event_id, str(example.revision))
    if theirs != key or (entity and example.key != entity):
        raise DecodeError(f"its key must be {theirs!r:.80}, got {key!r:.80}")
    return example
