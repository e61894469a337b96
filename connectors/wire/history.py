"""What is left of the topics `state` and `consensus` in one partition, as a worker takes it over.

What one record says is told in `statelog`.

"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from connectors.records import Record, TopicName
from connectors.wire.codec import DecodeError
from connectors.wire.refusals import one_line
from connectors.wire.statelog import (
    CONFIGURATION,
    CUT,
    EARLY,
    ERASED_BY,
    PIECES,
    line_of,
    parts_of,
    value_of,
)
from streamgp.interactive.messages import LabelledExample

_Kept: TypeAlias = tuple[int, bytes | None]
"""Offset and value of a record."""


class HistoryError(ValueError):
    """A record that no worker can have written; the text says which one, and what to do."""


class History:
    r"""What the topics `state` and `consensus` hold of one partition, the last record of each key.

    Bytes are kept and decoded when asked for. A record that no worker can have written is told of
    then, if no later one has replaced it: whoever wrote it can take it away with a null.

    Attributes
    ----------
    ends
        For each topic the offset that follows its last record.

    Examples
    --------
    >>> from connectors.wire.statelog import state
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
    # _early      of each entity the answers that wait for their event, likewise
    # _lines      of each entity the lines by record key; nulls are not kept
    # _nulls      of each entity the offsets of nulls that no worker has written
    # _strays     by key the offset of a record of state that is nobody's, if it is the last

    def __init__(self) -> None:
        self.ends: dict[TopicName, int] = {}
        self._partition: int | None = None
        self._parts: dict[str, dict[str, _Kept]] = {}
        self._early: dict[str, dict[str, _Kept]] = {}
        self._lines: dict[str, dict[bytes, _Kept]] = {}
        self._nulls: dict[str, list[int]] = {}
        self._strays: dict[bytes | None, int] = {}

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
        self.ends[record.topic] = record.offset + 1
        kept = record.offset, record.value
        match record.topic, parts_of(record.key):
            case "state", (entity, name):
                parts = self._early if name.startswith(EARLY) else self._parts
                parts.setdefault(entity, {})[name] = kept
            case "state", _:
                self._take_stray(record)
            case "consensus", (entity, _, _):
                self._take_line(entity, record.key or b"", kept)
                if record.value is None and not any(k == ERASED_BY for k, _ in record.headers):
                    self._nulls.setdefault(entity, []).append(record.offset)
            case _:
                # Anybody may write to `consensus`. What lies there under a key that no line has is
                # nobody's label: the worker that reads it as an input makes a dead letter of it,
                # and it keeps none from starting. It could not be taken away: a null with the key
                # of an entity forgets that entity.
                pass

    def _take_line(self, entity: str, key: bytes, kept: _Kept) -> None:
        lines = self._lines.setdefault(entity, {})
        if kept[1] is None:
            lines.pop(key, None)
        else:
            lines[key] = kept

    def _take_stray(self, record: Record) -> None:
        if record.value is None:
            self._strays.pop(record.key, None)
        else:
            self._strays[record.key] = record.offset

    def entities(self) -> list[str]:
        """Return all whose state or lines were spoken of, also of those who are gone since.

        Raises
        ------
        HistoryError
            If a record of state is there that belongs to nobody.

        """
        for key, offset in self._strays.items():
            raise self._error("state", offset, f"its key must not be {key!r:.80}")
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
            if PIECES not in name
        }

    def early(self) -> list[tuple[str, str, Any | None]]:
        """Return entity, name and value of the answers that wait for an event; None: no longer.

        Raises
        ------
        HistoryError
            If a record cannot be read.

        """
        return [
            (entity, name, self._value(entity, name, kept))
            for entity, parts in self._early.items()
            for name, kept in parts.items()
        ]

    def names(self, entity: str) -> list[str]:
        """Return the names of all records about an entity's state, pieces and answers included."""
        return [*self._named(entity), *self._early.get(entity, ())]

    def lines(self, entity: str) -> list[LabelledExample]:
        """Return the lines of the consensus log, in the order of learning.

        Raises
        ------
        HistoryError
            If a record cannot be read.

        """
        return sorted(self.lines_as_written(entity), key=lambda example: example.sequence)

    def lines_as_written(self, entity: str) -> list[LabelledExample]:
        """Return the lines of the consensus log, in the order in which they lie in it.

        Raises
        ------
        HistoryError
            If a record cannot be read.

        """
        lines = sorted(self._lines.get(entity, {}).items(), key=lambda line: line[1][0])
        return [self._example(key, kept) for key, kept in lines]

    def consensus_keys(self, entity: str) -> list[bytes]:
        """Return the record keys of these lines."""
        return list(self._lines.get(entity, {}))

    def n_nulls(self, entity: str, start: int) -> int:
        """Return how many nulls from an offset on take lines away, written by no worker."""
        return sum(offset >= start for offset in self._nulls.get(entity, ()))

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
        if not (isinstance(value, dict) and value.keys() == {CUT}):
            return value
        named = self._named(entity)
        names = [f"{name}{PIECES}{n}" for n in range(value[CUT])]
        texts = [str(self._value(entity, one, named[one])) for one in names if one in named]
        if len(texts) != len(names):
            raise self._error("state", kept[0], f"it must have {len(names)} pieces")
        try:
            return msgspec.json.decode("".join(texts))
        except msgspec.MsgspecError as error:
            raise self._error("state", kept[0], f"its pieces do not fit: {error}") from None

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

    def _error(self, topic: TopicName, offset: int, flaw: str) -> HistoryError:
        return HistoryError(
            one_line(
                f"{topic}:{self._partition}:{offset} is nothing that this streamgp writes: {flaw}; "
                "use the streamgp that wrote it, or write a null with its key and start again"
            )
        )
