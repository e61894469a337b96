"""State on the topics `state` and `consensus`: how it is written, and what is left of it.

Both topics are compacted: of each key the last record counts, and a null takes it away. Keys are
`<entity>\\x1f<name>` for a part of a loop's state, `<entity>\\x1f<event_id>\\x1f<revision>` for a
line of the consensus log; the entity is the key of the events, or nothing where one loop serves
all. What the state means is the business of the loop.

"""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal, TypeAlias

import msgspec

from connectors.records import Outgoing, Record, TopicName
from connectors.wire.codec import MAX_BYTES, DecodeError, decode
from connectors.wire.refusals import one_line
from streamgp.interactive.messages import LabelledExample

SEPARATOR = "\x1f"
"""Stands between the parts of a key; no part holds it."""
CONFIGURATION = "configuration"
"""Name of the one record of a partition that says which configuration works on it."""

_WHOLE_BYTES = 4 * 2**20
_PIECE = 2**19  # characters
_PIECES = "/piece/"
_CUT = "streamgp.pieces"

_Kept: TypeAlias = tuple[int, bytes | None]
"""Offset and value of a record."""


class HistoryError(ValueError):
    """A record that no worker can have written; the text says which one, and what to do."""


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
    cut = [(f"{name}{_PIECES}{n}", piece) for n, piece in enumerate(pieces)]
    return [
        state(entity, part, content, partition)
        for part, content in [*cut, (name, {_CUT: len(pieces)})]
    ]


def _encoded(entity: str, name: str, value: Any) -> bytes:
    data = _encoder.encode(_State(type="state", version=1, key=entity, name=name, value=value))
    # The encoder writes null for what is not finite. Reading it back is the fastest way to see it;
    # what differs for another reason, such as a tuple, is good.
    if b"null" in data and _decoder.decode(data).value != value and not _is_finite(value):
        raise ValueError(f"state {name!r} of {entity!r} must hold finite numbers only")
    return data


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


def _joined(*parts: str) -> bytes:
    key = SEPARATOR.join(parts)
    if key.count(SEPARATOR) != len(parts) - 1:
        raise ValueError(f"no part of a key may hold {SEPARATOR!r}, got {parts!r}")
    return key.encode()


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or isfinite(value)


class History:
    r"""What the topics `state` and `consensus` hold of one partition, the last record of each key.

    Bytes are kept and decoded when asked for. A record that no worker can have written is told of
    then, if no later one has replaced it: whoever wrote it can take it away with a null.

    Examples
    --------
    >>> history = History()
    >>> for offset, value in enumerate([{"n": 1}, {"n": 2}]):
    ...     out = state("ann", "head", value, partition=2)
    ...     history.take(
    ...         Record(
    ...             topic="state", partition=2, offset=offset, key=out.key, value=out.value, at=0.0
    ...         )
    ...     )
    >>> history.entities(), history.parts("ann"), history.lines("ann")
    (['ann'], {'head': {'n': 2}}, [])

    """

    # _partition  the one of the first record
    # _parts      of each entity the parts by name; a value of None is kept, it must be merged
    # _lines      of each entity the lines by record key; nulls are not kept
    # _strays     by topic and key the offset of a record that belongs to nobody, if it is the last

    def __init__(self) -> None:
        self._partition: int | None = None
        self._parts: dict[str, dict[str, _Kept]] = {}
        self._lines: dict[str, dict[bytes, _Kept]] = {}
        self._strays: dict[tuple[TopicName, bytes | None], int] = {}

    def take(self, record: Record) -> None:
        """Take the next record of either topic.

        Raises
        ------
        ValueError
            If it is of another topic, or of another partition than the first.

        """
        if record.topic not in ("state", "consensus"):
            raise ValueError(f"topic must be state or consensus, got {record.topic!r}")
        if self._partition is None:
            self._partition = record.partition
        elif self._partition != record.partition:
            raise ValueError(
                f"partition must be {self._partition} as that of the first record, "
                f"got {record.partition}"
            )
        kept = record.offset, record.value
        match record.topic, _parts(record.key):
            case "state", (entity, name):
                self._parts.setdefault(entity, {})[name] = kept
            case "consensus", (entity, _, _):
                self._take_line(entity, record.key or b"", kept)
            case _ if record.value is None:
                self._strays.pop((record.topic, record.key), None)
            case _:
                self._strays[record.topic, record.key] = record.offset

    def _take_line(self, entity: str, key: bytes, kept: _Kept) -> None:
        lines = self._lines.setdefault(entity, {})
        if kept[1] is None:
            lines.pop(key, None)
        else:
            lines[key] = kept

    def entities(self) -> list[str]:
        """Return all whose state or lines were spoken of, also of those who are gone since.

        Raises
        ------
        HistoryError
            If a record is there that belongs to nobody.

        """
        for (topic, key), offset in self._strays.items():
            raise self._error(topic, offset, f"its key must not be {key!r:.80}")
        found = dict.fromkeys([*self._parts, *self._lines])
        if not self._lines.get("") and not self._named(""):
            found.pop("", None)
        return list(found)

    def parts(self, entity: str) -> dict[str, Any | None]:
        """Return the parts of a loop's state by name; None for one that is gone.

        Raises
        ------
        HistoryError
            If a record cannot be read.

        """
        return {
            name: self._whole(entity, name, kept)
            for name, kept in self._named(entity).items()
            if _PIECES not in name
        }

    def names(self, entity: str) -> list[str]:
        """Return the names of all records about a loop's state, also of pieces of parts."""
        return list(self._named(entity))

    def lines(self, entity: str) -> list[LabelledExample]:
        """Return the lines of the consensus log, in the order of learning.

        Raises
        ------
        HistoryError
            If a record cannot be read.

        """
        lines = self._lines.get(entity, {})
        examples = [self._example(entity, key, kept) for key, kept in lines.items()]
        return sorted(examples, key=lambda example: example.sequence)

    def consensus_keys(self, entity: str) -> list[bytes]:
        """Return the record keys of these lines."""
        return list(self._lines.get(entity, {}))

    @property
    def configuration(self) -> dict[str, Any] | None:
        """The configuration that works on the partition; None if no worker ever did.

        Raises
        ------
        HistoryError
            If the record cannot be read.

        """
        kept = self._parts.get("", {}).get(CONFIGURATION)
        value = None if kept is None else self._value("", CONFIGURATION, kept)
        if kept is None or value is None or isinstance(value, dict):
            return value
        raise self._error("state", kept[0], f"it must hold an object, got {value!r:.80}")

    def _named(self, entity: str) -> dict[str, _Kept]:
        parts = self._parts.get(entity, {})
        if entity:
            return parts
        return {name: kept for name, kept in parts.items() if name != CONFIGURATION}

    def _whole(self, entity: str, name: str, kept: _Kept) -> Any | None:
        value = self._value(entity, name, kept)
        if not (isinstance(value, dict) and value.keys() == {_CUT}):
            return value
        named = self._named(entity)
        names = [f"{name}{_PIECES}{n}" for n in range(value[_CUT])]
        texts = [str(self._value(entity, one, named[one])) for one in names if one in named]
        if len(texts) != len(names):
            raise self._error("state", kept[0], f"it must have {len(names)} pieces")
        try:
            return msgspec.json.decode("".join(texts))
        except msgspec.MsgspecError as error:
            raise self._error("state", kept[0], f"its pieces do not fit: {error}") from None

    def _value(self, entity: str, name: str, kept: _Kept) -> Any | None:
        offset, data = kept
        if data is None:
            return None
        try:
            found = _decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise self._error("state", offset, str(error)) from None
        if found.version != 1:
            raise self._error("state", offset, f"version must be 1, got {found.version}")
        if (found.key, found.name) != (entity, name):
            flaw = f"it must be about {entity!r}, {name!r}, got {found.key!r}, {found.name!r}"
            raise self._error("state", offset, flaw)
        return found.value

    def _example(self, entity: str, key: bytes, kept: _Kept) -> LabelledExample:
        offset, data = kept
        try:
            example = decode(data or b"")
        except DecodeError as error:
            raise self._error("consensus", offset, str(error)) from None
        if not isinstance(example, LabelledExample):
            flaw = f"it must hold a labelled example, got {type(example).__name__}"
            raise self._error("consensus", offset, flaw)
        theirs = _joined(entity, example.event_id, str(example.revision))
        if theirs != key or (entity and example.key != entity):
            flaw = f"its key must be {theirs!r:.80}, got {key!r:.80}"
            raise self._error("consensus", offset, flaw)
        return example

    def _error(self, topic: TopicName, offset: int, flaw: str) -> HistoryError:
        return HistoryError(
            one_line(
                f"{topic}:{self._partition}:{offset} is nothing that this streamgp writes: {flaw}; "
                "use the streamgp that wrote it, or write a null with its key and start again"
            )
        )


def _parts(key: bytes | None) -> tuple[str, ...]:
    try:
        return split_key(key or b"")
    except UnicodeDecodeError:
        return ()
