r"""State on the topics `state` and `consensus`: contents and format of the records.

Both topics are compacted: the last record of each key counts, and a null deletes it. Keys are
`<entity>\x1f<name>` for a part of a loop's state, `<entity>\x1f<event_id>\x1f<revision>` for a
line of the consensus log; the entity is the key of the events, or empty if one loop serves all.
The meaning of the state is up to the loop; how the records of a partition are combined is described
below.

"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

import msgspec

from connectors.topics import COMPACTED, Outgoing, Record, TopicName
from connectors.wire.codec import MAX_BYTES, DecodeError, decode, encode
from connectors.wire.explain import all_finite, one_line
from streamgp.interactive.keyed import BUDGET
from streamgp.interactive.messages import LabelledExample, Retraction

SEPARATOR = "\x1f"
"""Separates the parts of a key; no part contains it."""
CONFIGURATION = "configuration"
"""Name of the record of a partition that tells which configuration works on it, and who."""
FORGOTTEN = "forgotten"
"""Name of the record of a partition that tells what nulls have taken back."""
OF_PARTITION = (CONFIGURATION, FORGOTTEN, BUDGET)
"""Names of a partition's own records, which belong to no loop; their entity is empty."""
EARLY = "early/"
"""Prefix of the name of an answer that waits for its event; the answer's position follows."""
WINDOWS = "windows/"
"""Prefix of the name of a part of a key's open windows; the key follows, then the part."""
RETRACTED = "retracted/"
"""Prefix of the name of one annotator's retraction; the annotator's name follows."""
UNHEEDED = "unheeded"
"""Name of the record in which an engine tells workers how many nulls a key could not process."""
APART = (EARLY, WINDOWS, RETRACTED, UNHEEDED)
"""Prefixes of names that are not parts of a loop's state."""
ERASED_BY = "erased-by"
"""Header of a null on `consensus` that a worker has written; any other null is a request."""
PIECES = "/piece/"
"""Separates the name of a part from the number of a piece of it."""
N_PIECES = "streamgp.pieces"
"""Name in the value of a part that was cut; it has the number of its pieces as value."""

WHOLE_BYTES = 4 * 2**20
"""The largest part that is written as one record."""
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
_packer = msgspec.msgpack.Encoder(enc_hook=_refuse)
# How a float that is not finite begins in MessagePack. Faster than `in`, which looks at each of
# the many floats.
_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")


# --- keys


def consensus_key(entity: str, event_id: str, revision: int) -> bytes:
    r"""Return the record key of a line of the consensus log.

    Examples
    --------
    >>> consensus_key("ann", "e1", 0)
    b'ann\x1fe1\x1f0'

    """
    return _joined(entity, event_id, str(revision))


def window_name(key: str | None, part: str) -> str:
    """Return the name of the record of a part of a key's open windows.

    Examples
    --------
    >>> window_name("a/b", "head"), window_part("windows/a%2Fb/head"), window_part("windows//17")
    ('windows/a%2Fb/head', ('a/b', 'head'), (None, '17'))

    """
    return f"{WINDOWS}{quote(key or '', safe='')}/{part}"


def window_part(name: str) -> tuple[str | None, str]:
    """Return the key and the part in a name; the inverse of `window_name`."""
    key, _, part = name.removeprefix(WINDOWS).rpartition("/")
    return unquote(key) or None, part


def parts_of(key: bytes | None) -> tuple[str, ...]:
    r"""Return the parts of any record key: entity and name, or entity, event and revision.

    No parts if it is not UTF-8.

    Examples
    --------
    >>> parts_of(b"ann\x1fe1\x1f0"), parts_of(b"\x1fconfiguration"), parts_of(b"ann")
    (('ann', 'e1', '0'), ('', 'configuration'), ('ann',))
    >>> parts_of(b"\xff"), parts_of(None)
    ((), ('',))

    """
    try:
        return tuple((key or b"").decode().split(SEPARATOR))
    except UnicodeDecodeError:
        return ()


def _joined(*parts: str) -> bytes:
    key = SEPARATOR.join(parts)
    if key.count(SEPARATOR) != len(parts) - 1:
        raise ValueError(f"no part of a key may hold {SEPARATOR!r}, got {parts!r}")
    return key.encode()


def is_request(record: Record) -> bool:
    """Return whether a record of `consensus` is a null that no worker has written."""
    return record.value is None and all(name != ERASED_BY for name, _ in record.headers)


# --- writing


def state(entity: str, name: str, value: Any | None, partition: int) -> Outgoing:
    r"""Return the record with the present value of a part of a loop's state.

    Parameters
    ----------
    entity
        Entity of the state, or empty if one loop serves all.
    value
        Plain JSON values, text keys only; None if the part is gone.
    partition
        Partition of the events.

    Raises
    ------
    ValueError
        If a number is not finite, the value is too large, or a name contains a separator.
    TypeError
        If the value contains something that is not a plain JSON value.

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


def records_of_part(entity: str, name: str, value: Any | None, partition: int) -> list[Outgoing]:
    r"""Return the records with the present value of a part of a loop's state, however large it is.

    A value that is too large for one record is cut into pieces, parts of their own named
    `<name>/piece/<number>`; the record of the part itself comes last and tells their number.

    Examples
    --------
    >>> records = records_of_part("ann", "head", {"names": "x" * 5_000_000}, partition=2)
    >>> [record.key for record in records[-2:]]
    [b'ann\x1fhead/piece/9', b'ann\x1fhead']

    """
    if value is None:
        return [state(entity, name, None, partition)]
    data = _encoded(entity, name, value)
    if len(data) <= WHOLE_BYTES:
        return [Outgoing(topic="state", partition=partition, key=_joined(entity, name), value=data)]
    text = _encoder.encode(value).decode()
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    parts = [(f"{name}{PIECES}{n}", piece) for n, piece in enumerate(pieces)]
    return [
        state(entity, part, content, partition)
        for part, content in [*parts, (name, {N_PIECES: len(pieces)})]
    ]


def _encoded(entity: str, name: str, value: Any) -> bytes:
    data = _encoder.encode(_State(type="state", version=1, key=entity, name=name, value=value))
    # The encoder writes null for a number that is not finite.
    if b"null" in data and _may_be_infinite(value) and not all_finite(value):
        raise ValueError(f"state {name!r} of {entity!r} must hold finite numbers only")
    return data


def _may_be_infinite(value: Any) -> bool:
    """Whether a value may hold a float that is not finite.

    MessagePack is written in less time than JSON is read; other bytes in it may happen to be those
    with which such a float begins.
    """
    try:
        packed = _packer.encode(value)
    except OverflowError:  # an integer of more than 64 bits
        return True
    return _NOT_FINITE.search(packed) is not None


# --- reading


def value_of(entity: str, name: str, data: bytes) -> Any:
    """Return the value of a part of a loop's state from a record; the inverse of `state`.

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
    r"""Return the line of the consensus log in a record.

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
    # Not `_joined`: another program may have written an id with a separator.
    theirs = SEPARATOR.join((entity, example.event_id, str(example.revision))).encode()
    if theirs != key or (entity and example.key != entity):
        raise DecodeError(f"its key must be {theirs!r:.80}, got {key!r:.80}")
    return example


class _Retracted(msgspec.Struct):
    annotator: str
    since: float | None
    at: float
    taken: list[dict[str, Any]]
    made: list[tuple[str, int]]


def retraction_name(annotator: str) -> str:
    """Return the name of the record of an annotator's retraction.

    Examples
    --------
    >>> retraction_name("Ann Lee")
    'retracted/Ann%20Lee'

    """
    return f"{RETRACTED}{quote(annotator, safe='')}"


def is_retraction_of(name: str, annotator: str) -> bool:
    """Return whether a record of state is an annotator's retraction, or a piece of it.

    Examples
    --------
    >>> [is_retraction_of(f"retracted/{name}", "ann") for name in ("ann", "ann/12", "anna")]
    [True, True, False]

    """
    own = retraction_name(annotator)
    return name == own or name.startswith(f"{own}/")


def retraction_value(retraction: Retraction) -> dict[str, Any]:
    """Return the value of that record: the lines as they were, and which ones replaced them."""
    return {
        "annotator": retraction.annotator,
        "since": retraction.since,
        "at": retraction.at,
        "taken": [msgspec.json.decode(encode(line)) for line in retraction.taken],
        "made": [list(each) for each in retraction.made],
    }


def retraction_of(value: Any) -> Retraction:
    """Return the retraction in a record; the inverse of `retraction_value`.

    Raises
    ------
    DecodeError, msgspec.ValidationError
        If no worker can have written it.

    """
    found = msgspec.convert(value, _Retracted)
    taken = [decode(msgspec.json.encode(line)) for line in found.taken]
    if not all(isinstance(line, LabelledExample) for line in taken):
        raise DecodeError("what was taken back must be labelled examples")
    return Retraction(
        annotator=found.annotator,
        since=found.since,
        at=found.at,
        taken=tuple(line for line in taken if isinstance(line, LabelledExample)),
        made=tuple(found.made),
    )


# --- Compacted contents of the topics `state` and `consensus` in one partition, as taken over by a
# worker.


_Kept: TypeAlias = tuple[int, bytes | None]
"""Offset and value of a record."""


class HistoryError(ValueError):
    """A record that no worker can have written; the text says which one, and what to do.

    Attributes
    ----------
    what
        Which one, and what is wrong with it.

    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; use the streamgp that wrote it, or stop all workers and remove it with "
            "`streamgp recover`"
        )
        self.what = what


class Unreadable(NamedTuple):
    """The place of a record that no worker can have written, and what is wrong with it."""

    topic: TopicName
    key: bytes
    what: str


class History:
    r"""History of one partition: the last record of each key of `state` and `consensus`.

    Bytes are kept and decoded on demand. For a record that no worker can have written, every method
    that decodes it raises `HistoryError`, unless a later one has replaced it: a null removes it.
    A record under a key that no version of streamgp can use (`is_foreign`) is skipped.

    Attributes
    ----------
    ends
        For each topic the offset after its last record.
    foreign
        The offsets of records of `state` that were skipped, by key; without those that a null has
        removed.

    Examples
    --------
    >>> history = History()
    >>> for value in ({"n": 1}, {"n": 2}):
    ...     history.append(state("ann", "head", value, partition=2))
    >>> history.entities(), history.parts("ann"), history.lines("ann")
    (['ann'], {'head': {'n': 2}}, [])

    """

    # _partition  that of the first record
    # _parts      for each entity the parts by name; a value of None is kept, as it must be merged
    # _apart      likewise what is not a part: by its prefix in `APART`, for each entity
    # _lines      for each entity the lines by record key; nulls are not kept
    # _nulls      for each entity the offsets and times of nulls that no worker has written
    # _deleted    for each entity by record key the lines that these have deleted, with offset and
    #             time of the null, until another record replaces it; compaction has removed most
    # _strays     by key the offset of a record of state whose key has too many parts, if it is
    #             the last

    def __init__(self) -> None:
        self.ends: dict[TopicName, int] = {}
        self._partition: int | None = None
        self._parts: dict[str, dict[str, _Kept]] = {}
        self._apart: dict[str, dict[str, dict[str, _Kept]]] = {prefix: {} for prefix in APART}
        self._lines: dict[str, dict[bytes, _Kept]] = {}
        self._nulls: dict[str, list[tuple[int, float]]] = {}
        self._deleted: dict[str, dict[bytes, tuple[_Kept, int, float]]] = {}
        self.foreign: dict[bytes | None, int] = {}
        self._strays: dict[bytes | None, int] = {}

    def take(self, record: Record) -> None:
        """Take the next record of either topic.

        Raises
        ------
        ValueError
            If it is of another topic, or of another partition than the first.

        """
        if record.topic not in COMPACTED:
            raise ValueError(f"topic must be state or consensus, got {record.topic!r}")
        if self._partition is None:
            self._partition = record.partition
        elif self._partition != record.partition:
            raise ValueError(
                f"partition must be {self._partition} as that of the first record, "
                f"got {record.partition}"
            )
        self.ends[record.topic] = record.offset + 1
        kept = record.offset, record.value
        match record.topic, parts_of(record.key):
            case "state", (entity, name):
                self._by_kind(name).setdefault(entity, {})[name] = kept
            case "state", _:
                # A foreign record takes no place of ours, so nothing is lost without it. A key of
                # more parts may be a later version's.
                found = self.foreign if is_foreign(record.key) else self._strays
                _take_stray(found, record)
            case "consensus", (entity, _, _):
                self._take_line(entity, record)
            case _:
                # Any producer may write to `consensus`. A record under a key that no line has is
                # not a label: the worker that reads it as an input makes a dead letter of it, and
                # it does not prevent a start. It could not be removed: a null with the key of an
                # entity forgets that entity.
                pass

    def append(self, record: Outgoing, at: float = 0.0) -> None:
        """Take a record that is to be written after those taken so far, at a time."""
        self.take(
            Record(
                topic=record.topic,
                partition=record.partition or 0,
                offset=self.ends.get(record.topic, 0),
                key=record.key,
                value=record.value,
                headers=record.headers,
                at=at,
            )
        )

    def _by_kind(self, name: str) -> dict[str, dict[str, _Kept]]:
        if not name.startswith(APART):
            return self._parts
        return next(kept for prefix, kept in self._apart.items() if name.startswith(prefix))

    def _take_line(self, entity: str, record: Record) -> None:
        key, lines = record.key or b"", self._lines.setdefault(entity, {})
        before = lines.pop(key, None)
        if is_request(record):
            self._nulls.setdefault(entity, []).append((record.offset, record.at))
            if before is not None:
                self._deleted.setdefault(entity, {})[key] = before, record.offset, record.at
            return
        self._deleted.get(entity, {}).pop(key, None)
        if record.value is not None:
            lines[key] = record.offset, record.value

    def entities(self) -> list[str]:
        """Return the entities of all loops with state or lines, also of those gone since.

        Raises
        ------
        HistoryError
            If there is a record of state without an owner.

        """
        for key, offset in self._strays.items():
            raise self._error("state", offset, _flaw_of_key(key))
        found = dict.fromkeys([*self._parts, *self._lines])
        if not self._lines.get("") and not self._named(""):
            found.pop("", None)
        return list(found)

    def parts(self, entity: str) -> dict[str, Any | None]:
        """Return the parts of a loop's state by name; None for a part that is gone."""
        named = self._named(entity)
        return {
            name: self._whole(entity, name, kept, named)
            for name, kept in named.items()
            if PIECES not in name
        }

    def part(self, entity: str, name: str) -> Any | None:
        """Return one part of a loop's state, or one of a partition's own records, by its name.

        None if there is none, or it is gone.
        """
        named = self._parts.get(entity, {})
        return self._whole(entity, name, named[name], named) if name in named else None

    def early(self) -> list[tuple[str, str, Any | None]]:
        """Return entity, name and value of answers that wait for an event; None: no longer."""
        return [
            (entity, name, self._value(entity, name, kept))
            for entity, parts in self._apart[EARLY].items()
            for name, kept in parts.items()
        ]

    def windows(self, *, keyed: bool) -> list[tuple[str, str, Any | None]]:
        """Return entity, name and value of parts of open windows; None: the part is gone.

        Those that are not at their key's place, where another program has put them, are left out.
        """
        return [
            (entity, name, self._whole(entity, name, kept, parts))
            for entity, parts in self._apart[WINDOWS].items()
            for name, kept in parts.items()
            if PIECES not in name and entity == (window_part(name)[0] or "" if keyed else "")
        ]

    def names(self, entity: str) -> list[str]:
        """Return the names of all records about a loop: also pieces, answers and windows."""
        apart = (kept.get(entity, ()) for kept in self._apart.values())
        return [*self._named(entity), *chain.from_iterable(apart)]

    def retractions(self, entity: str) -> list[Retraction]:
        """Return the retractions of annotators that can be undone, the earliest first."""
        parts = self._apart[RETRACTED].get(entity, {})
        every = (
            self._retraction(entity, name, kept, parts)
            for name, kept in parts.items()
            if PIECES not in name
        )
        found = [retraction for retraction in every if retraction is not None]
        return sorted(found, key=lambda retraction: retraction.at)

    def retraction(self, entity: str, name: str) -> Retraction | None:
        """Return the retraction under a name of `state`, which may be that of one of its pieces."""
        parts, whole = self._apart[RETRACTED].get(entity, {}), name.partition(PIECES)[0]
        return self._retraction(entity, whole, parts[whole], parts) if whole in parts else None

    def _retraction(
        self, entity: str, name: str, kept: _Kept, named: Mapping[str, _Kept]
    ) -> Retraction | None:
        value = self._whole(entity, name, kept, named)
        try:
            return None if value is None else retraction_of(value)
        except (DecodeError, msgspec.MsgspecError) as error:
            raise self._error("state", kept[0], str(error)) from None

    def quarantined(self, entity: str) -> list[str]:
        r"""Return the annotators whose labels were retracted by a quarantine, in the order named.

        Those whose labels were reinstated since are left out.

        Examples
        --------
        >>> history = History()
        >>> for name in ("Zoe%2FB/9", "ann", "bob/12", "bob/12/piece/0"):
        ...     history.append(state("k1", f"retracted/{name}", "...", partition=0))
        >>> history.quarantined("k1")
        ['Zoe/B', 'bob']

        """
        found: list[tuple[int, str]] = []
        for name, (_, value) in self._apart[RETRACTED].get(entity, {}).items():
            # A command stores it under the name alone, a quarantine with the last number after it.
            annotator, _, sequence = name.removeprefix(RETRACTED).partition("/")
            if value is not None and sequence.isdecimal():
                found.append((int(sequence), unquote(annotator)))
        return [annotator for _, annotator in sorted(found)]

    def lines(self, entity: str) -> list[LabelledExample]:
        """Return the lines of the consensus log, in the order of learning."""
        return sorted(self.lines_as_written(entity), key=lambda example: example.sequence)

    def lines_as_written(self, entity: str) -> list[LabelledExample]:
        """Return the lines of the consensus log, in the order in which they are stored."""
        lines = sorted(self._lines.get(entity, {}).items(), key=lambda line: line[1][0])
        return [self._example(key, kept) for key, kept in lines]

    def consensus_keys(self, entity: str) -> list[bytes]:
        """Return the record keys of these lines."""
        return list(self._lines.get(entity, {}))

    def deleted_keys(self, entity: str) -> list[bytes]:
        """Return the record keys of lines that only nulls of others have deleted."""
        return list(self._deleted.get(entity, {}))

    def deleted_lines(self, entity: str, start: int, after: float = inf) -> list[LabelledExample]:
        """Return the lines that nulls counted by `n_nulls` have deleted, as far as they are there.

        A worker has learned them, until it reads the null. What was no line is left out.
        """
        found = []
        for key, ((_, data), offset, at) in self._deleted.get(entity, {}).items():
            if offset >= start or at > after:
                with suppress(DecodeError):
                    found.append(line_of(key, data or b""))
        return found

    def n_nulls(self, entity: str, start: int, after: float = inf) -> int:
        """Return how many nulls delete lines and were not written by a worker.

        Counted are those from an offset on, and those written after a time.
        """
        nulls = self._nulls.get(entity, ())
        return sum(offset >= start or at > after for offset, at in nulls)

    def unreadable(self) -> list[Unreadable]:
        """Return all records of which a method raises `HistoryError`, and the foreign ones.

        Without those that have no key, which a null cannot remove.
        """
        found = [
            self._stray(key, offset)
            for key, offset in (self.foreign | self._strays).items()
            if key is not None
        ]
        for named in (self._parts, *self._apart.values()):
            for entity, parts in named.items():
                for name, kept in parts.items():
                    with _noting(found, "state", _joined(entity, name)):
                        self._check(entity, name, kept, parts)
        for lines in self._lines.values():
            for key, kept in lines.items():
                with _noting(found, "consensus", key):
                    self._example(key, kept)
        return found

    @property
    def configuration(self) -> dict[str, Any] | None:
        """The configuration that works on the partition; None if no worker ever did."""
        kept = self._parts.get("", {}).get(CONFIGURATION)
        return None if kept is None else self._configuration(kept)

    def _configuration(self, kept: _Kept) -> dict[str, Any] | None:
        value = self._value("", CONFIGURATION, kept)
        if value is None or isinstance(value, dict):
            return value
        raise self._error("state", kept[0], f"it must hold an object, got {value!r:.80}")

    def _named(self, entity: str) -> dict[str, _Kept]:
        parts = self._parts.get(entity, {})
        if entity:
            return parts
        return {name: kept for name, kept in parts.items() if name not in OF_PARTITION}

    def _whole(self, entity: str, name: str, kept: _Kept, named: Mapping[str, _Kept]) -> Any | None:
        value = self._value(entity, name, kept)
        if not (isinstance(value, dict) and value.keys() == {N_PIECES}):
            return value
        wanted = value[N_PIECES]
        if type(wanted) is not int:
            flaw = f"the number of its pieces must be an integer, got {wanted!r:.80}"
            raise self._error("state", kept[0], flaw)
        names = [f"{name}{PIECES}{n}" for n in range(min(wanted, len(named)))]
        texts = [str(self._value(entity, one, named[one])) for one in names if one in named]
        if len(texts) != wanted:
            raise self._error("state", kept[0], f"it must have {wanted} pieces")
        try:
            return msgspec.json.decode("".join(texts))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._error("state", kept[0], f"its pieces do not fit: {error}") from None

    def _check(self, entity: str, name: str, kept: _Kept, named: Mapping[str, _Kept]) -> None:
        """Decode a record of state."""
        if (entity, name) == ("", CONFIGURATION):
            self._configuration(kept)
        elif name.startswith(RETRACTED) and PIECES not in name:
            self._retraction(entity, name, kept, named)
        else:
            self._whole(entity, name, kept, named)

    def _value(self, entity: str, name: str, kept: _Kept) -> Any | None:
        offset, data = kept
        try:
            return None if data is None else value_of(entity, name, data)
        except DecodeError as error:
            raise self._error("state", offset, str(error)) from None

    def _example(self, key: bytes, kept: _Kept) -> LabelledExample:
        offset, data = kept
        try:
            return line_of(key, data or b"")
        except DecodeError as error:
            raise self._error("consensus", offset, str(error)) from None

    def _stray(self, key: bytes, offset: int) -> Unreadable:
        return Unreadable("state", key, self._error("state", offset, _flaw_of_key(key)).what)

    def _error(self, topic: TopicName, offset: int, flaw: str) -> HistoryError:
        return HistoryError(
            one_line(
                f"{topic}:{self._partition}:{offset} is nothing that this streamgp writes: {flaw}"
            )
        )


def is_foreign(key: bytes | None) -> bool:
    r"""Return whether a record of `state` has a key that no version of streamgp has ever written.

    Examples
    --------
    >>> [is_foreign(key) for key in (b"ann", b"\xff\x1fhead", b"ann\x1fhead", b"a\x1fb\x1fc")]
    [True, True, False, False]

    """
    return len(parts_of(key)) < 2


def _take_stray(found: dict[bytes | None, int], record: Record) -> None:
    if record.value is None:
        found.pop(record.key, None)
    else:
        found[record.key] = record.offset


def _flaw_of_key(key: bytes | None) -> str:
    return f"its key must not be {key!r:.80}"


@contextmanager
def _noting(found: list[Unreadable], topic: TopicName, key: bytes) -> Iterator[None]:
    """Note the record in `found` if it cannot be read within the block."""
    try:
        yield
    except HistoryError as error:
        found.append(Unreadable(topic, key, error.what))
