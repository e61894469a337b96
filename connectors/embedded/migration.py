"""Migration of topics from line files to a database.

The database is created as a whole beside the files, which then move to the folder `migrated`. A
crash leaves either the files, or the database and some files not moved yet; the next migration
completes the move. Offsets do not change (the offset of a line is that of its first byte, counted
as if nothing had ever been compacted), and with them positions, numbers of dead letters and
workers' snapshots remain valid.

"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from connectors.embedded.database import INPUTS, TABLES, Database, Row, Table, build
from connectors.embedded.directory import (
    DATABASE,
    OLD_OUTPUTS,
    OLD_POSITION,
    changed,
    hold,
    in_words,
    network_flaw,
    old_files,
)
from connectors.storage.snapshots import StateError, sync_directory, write_snapshot
from connectors.topics import RefusedError, TopicName
from connectors.wire.record_lines import from_line
from streamgp.common.private_files import make_directory

MIGRATED = "migrated"
"""Folder to which the files are moved."""
_LOGS: dict[str, tuple[TopicName, Table]] = {
    **{f"{topic}.jsonl": (topic, table) for topic, table in TABLES.items()},
    "taken-back.jsonl": ("consensus", INPUTS["consensus"]),
}
_OUTPUTS = {topic for name, (topic, _) in _LOGS.items() if name in OLD_OUTPUTS}
_KEYED = {"consensus", "state"}
_COMPACTED_MARK = b'{"compacted":'
"""Start of the first line of a compacted file; no record's line starts like this."""
_LONGEST = 900_000_000  # SQLite's limit is a little higher
_MANY_BYTES = 1 << 22
_Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class _Position(msgspec.Struct, forbid_unknown_fields=True):
    version: Literal[1]
    identity: str
    ends: dict[TopicName, _Offset]
    groups: dict[str, dict[TopicName, _Offset]] = {}


class _Compacted(msgspec.Struct, forbid_unknown_fields=True):
    first: int
    end: int


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    compacted: _Compacted


def migrate(directory: Path) -> list[str]:
    """Move topics from files into a database; return what was done, one line each.

    No other process may use the directory in the meantime. A second migration does nothing.

    Raises
    ------
    BrokerError
        If a worker uses the directory, the files are damaged, or the database cannot be written.
        The files are unchanged then.

    """
    lock = hold(directory)
    try:
        path = directory / DATABASE
        done = []
        if not path.exists():
            if not old_files(directory):
                raise RefusedError(
                    f"{directory} holds no topics, expected the files of an earlier version; make "
                    "new ones with --create-topics"
                )
            if flaw := network_flaw(directory):
                raise RefusedError(flaw)
            _write_position(directory)
            counts: dict[str, int] = {}
            build(path, lambda database: counts.update(_copy(directory, database)))
            done += [f"{name}: {n} record{'s' * (n != 1)}" for name, n in counts.items() if n]
            done.append(f"made {path}")
        if (directory / OLD_POSITION).exists():
            _check_made(directory, path)
            _move_files(directory, old_files(directory))
            done.append(f"moved the files to {directory / MIGRATED}, which can be deleted")
        return done
    finally:
        os.close(lock)


def _check_made(directory: Path, path: Path) -> None:
    """Refuse a database that was not created from the files beside it."""
    with closing(Database(path)) as database:
        database.check_lists()
        if database.identity() != _read_position(directory).identity:
            raise RefusedError(
                f"{path} was not made of the files beside it; move one of the two elsewhere"
            )


def _move_files(directory: Path, names: list[str]) -> None:
    """Move files to a folder, the position last: while it is there, the directory is refused."""
    target = directory / MIGRATED
    try:
        make_directory(target)
        for name in names:
            if (target / name).exists():
                raise RefusedError(f"{target / name} is there already; move it elsewhere")
            os.rename(directory / name, target / name)
        sync_directory(target)
        sync_directory(directory)
    except OSError as error:
        raise in_words(f"cannot move files to {target}", error) from error


def _copy(directory: Path, database: Database) -> dict[str, int]:
    """Fill a new database; return the number of records of each file."""
    position = _read_position(directory)
    database.set_identity(position.identity)
    counts = {}
    for name, (topic, table) in _LOGS.items():
        path = directory / name
        log = _Log(path, topic, position.ends[topic] if name in OLD_OUTPUTS else None)
        counts[name] = log.copy_to(database, table)
    for group, offsets in position.groups.items():
        database.move(group, {topic: offsets.get(topic, 0) for topic in INPUTS})
        database.positions(group)  # raises an error if they lie beyond the ends
    return counts


def _write_position(directory: Path) -> None:
    """Write a position if no worker has written one; it marks an unfinished migration."""
    path = directory / OLD_POSITION
    if path.exists():
        return
    for name in OLD_OUTPUTS:
        other = directory / name
        if other.exists() and other.stat().st_size:
            raise RefusedError(
                f"{other} holds results, and {OLD_POSITION} is not there; bring it back, or name "
                "another directory"
            )
    position = _Position(version=1, identity=secrets.token_hex(8), ends=dict.fromkeys(_OUTPUTS, 0))
    try:
        write_snapshot(path, msgspec.json.encode(position) + b"\n")
    except StateError as error:
        raise in_words(f"cannot write {path}", error) from error


def _read_position(directory: Path) -> _Position:
    path = directory / OLD_POSITION
    try:
        position = msgspec.json.decode(path.read_bytes(), type=_Position)
    except OSError as error:
        raise in_words(f"cannot read {path}", error) from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise changed(path, f"it is damaged ({error})") from None
    if position.ends.keys() != _OUTPUTS:
        raise changed(path, f"it is damaged (ends of {', '.join(sorted(position.ends))})")
    return position


class _Log:
    """One file of lines.

    Parameters
    ----------
    path
        The file; a missing one counts as empty, but is an error if `end` is not 0.
    topic
        Topic of its records.
    end
        The offset up to which its lines count; None for all.

    """

    # _header  size of the first line, if it says that the file was compacted
    # _first   offset of the byte after it

    def __init__(self, path: Path, topic: TopicName, end: int | None) -> None:
        self._path = path
        self._topic = topic
        self._header = self._first = 0
        if not path.exists():
            if end:
                raise changed(path, "it is not there")
            end = 0
        elif topic in _KEYED and end is not None:
            end = max(end, self._read_header())
        self._end = end

    def copy_to(self, database: Database, table: Table) -> int:
        """Write its records; return their number."""
        rows: list[Row] = []
        n = n_bytes = end = 0
        for offset, line, at in self._lines():
            end = offset + len(line) + (not line.endswith(b"\n"))
            read = from_line(self._topic, line.removesuffix(b"\n"))
            if read is None:
                continue
            if read.key is None and self._end is not None and table in _KEYED:
                raise changed(self._path, f"no worker has written the line at offset {offset}")
            written_at = at if read.at is None else read.at
            rows.append((offset, read.key, read.value, read.headers, written_at))
            n_bytes += len(line)
            if n_bytes >= _MANY_BYTES:
                database.insert(table, rows)
                n, n_bytes = n + len(rows), 0
                rows.clear()
        database.insert(table, rows)
        database.skip(table, end if self._end is None else self._end)
        return n + len(rows)

    def _read_header(self) -> int:
        """Read the first offset; return the end offset at the time of the compaction."""
        with open(self._path, "rb") as file:
            line = file.readline(128)
        if not line.startswith(_COMPACTED_MARK):
            return 0
        try:
            compacted = msgspec.json.decode(line, type=_Header).compacted
        except (msgspec.MsgspecError, ValueError) as error:
            raise changed(self._path, f"its first line is damaged ({error})") from None
        self._header, self._first = len(line), compacted.first
        return compacted.end

    def _lines(self) -> Iterator[tuple[int, bytes, float]]:
        """Yield lines with their offsets, and the time when the file was last modified."""
        if not self._path.exists():
            return
        try:
            with open(self._path, "rb") as file:
                at = os.fstat(file.fileno()).st_mtime
                file.seek(self._header)
                offset = self._first
                while (self._end is None or offset < self._end) and (
                    line := file.readline(_LONGEST)
                ):
                    # A last line without a newline, forgotten or cut off, still counts as a line.
                    if len(line) == _LONGEST:
                        raise changed(self._path, f"the line at byte {file.tell()} is too long")
                    yield offset, line, at
                    offset += len(line)
                if self._end is not None and offset != self._end:
                    raise changed(self._path, f"no line ends at offset {self._end}, but {offset}")
        except OSError as error:
            raise in_words(f"cannot read {self._path}", error) from error
