"""SQLite database of an embedded broker: a table of records for each topic, and positions.

Every row has a checksum, which is verified whenever the row is read. The offsets of topics that are
not compacted have no gaps, so that a lost row is noticed too.

"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeAlias
from urllib.parse import quote
from zlib import crc32

import msgspec
from msgspec.structs import replace

from connectors.embedded.directory import PASSING, changed, in_words
from connectors.storage.snapshots import no_locks, replacing, sync_file
from connectors.storage.sqlite import PROGRAMS
from connectors.topics import (
    ALL_TOPICS,
    COMPACTED,
    WORKER_INPUTS,
    BrokerError,
    Headers,
    Outgoing,
    Record,
    RefusedError,
    TopicName,
    TruncatedValue,
    content_size,
)
from connectors.wire.codec import MAX_BYTES, MAX_INPUT_BYTES
from connectors.wire.record_lines import headers_follow
from streamgp.common.private_files import private
from streamgp.common.validation import check_process

Table: TypeAlias = str
Row: TypeAlias = tuple[int, bytes | None, bytes | None, Headers, float]
"""Offset, key, value, headers, and the time of writing."""
TABLES: dict[TopicName, Table] = {topic: topic.replace("-", "_") for topic in ALL_TOPICS}
"""Table of each topic."""
INPUTS: dict[TopicName, Table] = {
    topic: "taken_back" if topic == "consensus" else TABLES[topic] for topic in WORKER_INPUTS
}
"""Tables that a worker reads and others write; what takes examples back waits in its own table."""
OUTPUTS: dict[TopicName, Table] = {
    topic: table for topic, table in TABLES.items() if table not in INPUTS.values()
}
"""Tables that only the worker writes."""
DELETE_RETENTION_S = 86_400.0
"""How long tombstones are kept, as in Kafka. A snapshot that is brought up to date from the topics
must not be older."""
BUSY_S = 30.0
"""How long to wait while another process writes: on a stalled disk a commit may take over 10 s."""
FIRST_S = 1.0
"""How long to wait for the first lock; only then is it looked whether there are locks at all."""
EMPTY_S = 1.0
"""How long to wait for readers, to empty the write-ahead log; meanwhile no process can write."""

_APPLICATION = 0x73677074  # "sgpt" in the header of the file
_VERSION = 1
_MOST_BYTES = 1 << 20
"""A read stops once it has returned this many bytes."""
_TOPICS: dict[Table, TopicName] = {
    table: topic for topics in (TABLES, INPUTS) for topic, table in topics.items()
}
_READERS = "readers of "  # no group of workers has such a name: names contain no spaces
# Row ids are offsets, which makes appending and sequential reading as cheap as SQLite allows.
_CREATE = (
    "CREATE TABLE {} (offset INTEGER PRIMARY KEY, key BLOB, value BLOB, headers BLOB, at REAL,"
    " checksum INTEGER)"
)
_SCHEMA = [
    *(_CREATE.format(table) for table in _TOPICS),
    # The next offset, and the offset from which on there are no gaps, null if there is none.
    "CREATE TABLE ends (records TEXT PRIMARY KEY, next INTEGER, dense INTEGER, checksum INTEGER)",
    "CREATE TABLE positions (workers TEXT, records TEXT, offset INTEGER, checksum INTEGER,"
    " PRIMARY KEY (workers, records))",
    "CREATE TABLE deployment (identity TEXT, checksum INTEGER)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
]
_LISTS = ("ends", "positions", "deployment")
_COMPACTED = {TABLES[topic] for topic in COMPACTED}
_SEEDS = {table: crc32(table.encode()) for table in _TOPICS}
_HEAD = struct.Struct("<qdqq")
_headers = msgspec.msgpack.Decoder(list[tuple[str, bytes]])


class Database:
    """One connection to the database of a deployment.

    Within `reading` one state of the database is seen; what is written within `writing` is durable
    as a whole, or not written at all.

    Raises
    ------
    RefusedError
        If it is damaged, belongs to another program or version, or is not writable.
    BrokerError
        If it cannot be read at the moment.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "topics.db")
    ...     build(path, lambda database: database.set_identity("me"))
    ...     database = Database(path)
    ...     with database.writing():
    ...         end = database.append(
    ...             "events", [Outgoing(topic="events", key=b"ann", value=b"{}")], now=3.0
    ...         )
    ...     with database.reading():
    ...         [record] = database.records("events", 0, 10)
    ...     database.close()
    ...     end, record.offset, record.key, record.at
    (1, 0, b'ann', 3.0)

    """

    # _file  device and inode number of the file

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._file = self._on_disk()
        self._process = os.getpid()  # SQLite's locks do not survive a fork
        self._connection = _connected(self.path)
        try:
            self._check_origin()
            # Once a commit has returned, it survives a power failure.
            self._execute("PRAGMA synchronous = FULL")
            self._execute("PRAGMA fullfsync = ON")  # on macOS, or it stays in the disk's cache
            # Deleted data is overwritten.
            self._execute("PRAGMA secure_delete = ON")
        except BaseException:
            self.close()
            raise

    # --- transactions

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the database within the block."""
        self._check_place()
        self._execute("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write everything that is written within the block, or nothing."""
        self._check_place()
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def close(self) -> None:
        """Close the connection; the last one to close merges `-wal` into the file itself."""
        with suppress(sqlite3.Error):
            self._connection.close()

    # --- records

    def append(self, table: Table, records: Iterable[Outgoing], now: float) -> int:
        """Append records; return the offset after them.

        Headers that can be derived from the message are left out, which halves what is written.
        """
        start, _ = self._end(table)
        return self.insert(
            table,
            (
                (offset, each.key, each.value, each.headers, now)
                for offset, each in enumerate(records, start)
            ),
        )

    def insert(self, table: Table, rows: Iterable[Row]) -> int:
        """Write rows, in the order of their offsets; return the offset after them."""
        end, dense = self._end(table)
        seed = _SEEDS[table]
        values = []
        for offset, key, value, headers, at in rows:
            packed = None
            if headers and (value is None or not headers_follow(headers, value)):
                packed = msgspec.msgpack.encode([(str(name), data) for name, data in headers])
            checksum = _checksum(seed, offset, key, value, packed, at)
            values.append((offset, key, value, packed, at, checksum))
            end = offset + 1
        with self._in_words():
            self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)", values)
        self._set_end(table, end, dense)
        return end

    def records(self, table: Table, start: int, most: int, end: int | None = None) -> list[Record]:
        """Return the next records from an offset on; fewer than requested, if they are large.

        Only the beginning of an input that is too long to be used is returned; see
        `Record.truncated`.

        Raises
        ------
        RefusedError
            If a row is damaged or missing.

        """
        next_offset, dense = self._end(table)
        stop = next_offset if end is None else min(end, next_offset)
        records: list[Record] = []
        n_bytes, expected = 0, max(start, 0 if dense is None else dense)
        for record in self._read(table, start, stop, most):
            if dense is not None and record.offset > expected:
                break  # the error below names the missing record
            expected = max(expected, record.offset + 1)
            n_bytes += 0 if record.value is None else len(record.value)
            records.append(record if table in OUTPUTS.values() else _cut(record))
            if n_bytes >= _MOST_BYTES or len(records) == most:
                return records
        if dense is not None and expected < stop and len(records) < most:
            raise self._damaged(f"the record of {_TOPICS[table]} at offset {expected} is missing")
        return records

    def end(self, table: Table) -> int:
        """Return the offset after the last record."""
        return self._end(table)[0]

    def count(self, table: Table, start: int, end: int | None = None) -> int:
        """Return the number of records from an offset on."""
        next_offset, dense = self._end(table)
        stop = next_offset if end is None else min(end, next_offset)
        sparse_end = stop if dense is None else min(stop, dense)
        n = max(0, stop - max(start, sparse_end))
        if start < sparse_end:
            sql = f"SELECT COUNT(*) FROM {table} WHERE offset >= ? AND offset < ?"
            ((n_sparse,),) = self._execute(sql, (start, sparse_end))
            n += n_sparse
        return n

    def compact(self, table: Table, now: float) -> int:
        """Keep the last record of each key; tombstones only for a day.

        Records without a key are kept. No byte of what was removed remains in the file. No other
        connection may write to the table; others may write to the file, except while rows are
        moved. If another connection reads for longer than `EMPTY_S`, as that of a stopped process
        may, what was removed stays in the write-ahead log until that is next emptied or restarted.

        Returns
        -------
        The bytes of the keys and values that are kept.

        """
        kept: dict[int, int] = {}
        last: dict[bytes, int] = {}
        n_read = 0
        with self.reading():
            for record in self._read(table, 0, self.end(table), -1):
                n_read += 1
                if record.key is not None:
                    if record.key in last:
                        del kept[last.pop(record.key)]
                    if record.value is None and record.at < now - DELETE_RETENTION_S:
                        continue
                    last[record.key] = record.offset
                kept[record.offset] = content_size(record)  # most headers are not stored
        if len(kept) < n_read:
            with self.writing():
                self._keep(table, kept)
        self._empty_log()  # in any case: a worker may have been killed just before
        return sum(kept.values())

    # --- positions

    def positions(self, group: str) -> dict[TopicName, int]:
        """Return the offsets at which a group of workers continues in its inputs."""
        at = self._positions(group)
        found = {topic: at.get(table, 0) for topic, table in INPUTS.items()}
        for topic, offset in found.items():
            if offset > (end := self.end(INPUTS[topic])):
                raise self._damaged(f"{topic} ends at offset {end}, but is worked off to {offset}")
        return found

    def move(self, group: str, positions: Mapping[TopicName, int]) -> None:
        """Write the offsets at which a group of workers continues."""
        self._move(group, {INPUTS[topic]: offset for topic, offset in positions.items()})

    def reader_positions(self, group: str) -> dict[TopicName, int]:
        """Return the offsets at which a group's readers continue, for the topics they have read."""
        at = self._positions(_READERS + group)
        return {topic: at[table] for topic, table in TABLES.items() if table in at}

    def move_reader(self, group: str, positions: Mapping[TopicName, int]) -> None:
        """Write the offsets at which the readers of a group continue."""
        at = {TABLES[topic]: offset for topic, offset in positions.items()}
        self._move(_READERS + group, at)

    def _move(self, group: str, positions: Mapping[Table, int]) -> None:
        with self._in_words():
            self._connection.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)",
                [
                    (group, table, offset, _sum(group, table, offset))
                    for table, offset in positions.items()
                ],
            )

    # --- the deployment

    def begin(self) -> None:
        """Start to fill a file that no other connection uses; it is not valid before `finish`."""
        self._execute("PRAGMA journal_mode = OFF")
        self._execute("PRAGMA synchronous = OFF")
        self._execute("BEGIN")
        for table in _TOPICS:
            self._set_end(table, 0, None if table in _COMPACTED else 0)

    def finish(self) -> None:
        """Allow other connections to use the file."""
        self._execute("COMMIT")
        self._execute("PRAGMA journal_mode = WAL")

    def set_identity(self, identity: str) -> None:
        """Write what distinguishes these topics from others."""
        self._execute("INSERT INTO deployment VALUES (?, ?)", (identity, _sum(identity)))

    def skip(self, table: Table, end: int) -> None:
        """Move the next offset of an otherwise filled table to `end`."""
        self._set_end(table, end, None if table in _COMPACTED else end)

    def identity(self) -> str:
        """Return the identity, generated when the topics were created."""
        match self._execute("SELECT identity, checksum FROM deployment"):
            case [(str(identity), checksum)] if checksum == _sum(identity):
                return identity
        raise self._damaged("its identity is damaged")

    def check(self) -> None:
        """Check for damage that reading records would not reveal.

        Every reader of a topic that is not compacted notices damaged or missing rows; these topics,
        however large, are therefore not read here.

        Raises
        ------
        RefusedError
            If the file is damaged.

        """
        for table in (*_COMPACTED, *_LISTS):
            found = self._execute(f"PRAGMA quick_check({table})")
            if found != [("ok",)]:
                raise self._damaged(str(found[0][0]))
        self.check_lists()

    def check_lists(self) -> None:
        """Check that everything is there, at little cost."""
        self.identity()
        for table in _TOPICS:
            self._end(table)

    def _positions(self, group: str) -> dict[Table, int]:
        found = {}
        rows = self._execute(
            "SELECT records, offset, checksum FROM positions WHERE workers = ?", (group,)
        )
        for table, offset, checksum in rows:
            if table not in _TOPICS or checksum != _sum(group, table, offset):
                raise self._damaged(f"the position of group {group} is damaged")
            found[table] = offset
        return found

    def _read(self, table: Table, start: int, stop: int, most: int) -> Iterator[Record]:
        """Yield rows as records, each verified."""
        topic, seed = _TOPICS[table], _SEEDS[table]
        with self._in_words():
            cursor = self._connection.execute(
                f"SELECT * FROM {table} WHERE offset >= ? AND offset < ? ORDER BY offset LIMIT ?",
                (start, stop, most),
            )
            with closing(cursor):
                for offset, key, value, headers, at, checksum in cursor:
                    if checksum != _checksum(seed, offset, key, value, headers, at):
                        raise self._damaged(f"the record of {topic} at offset {offset} is damaged")
                    yield Record(
                        topic=topic,
                        partition=0,
                        offset=offset,
                        key=key,
                        value=value,
                        headers=() if headers is None else tuple(_headers.decode(headers)),
                        at=at,
                    )

    def _keep(self, table: Table, offsets: Iterable[int]) -> None:
        """Delete all other rows so that no byte of them remains.

        SQLite's `secure_delete` overwrites deleted data, but not the copies that remain in the free
        part of a page after its rows have moved. The rows that are kept are therefore moved to a
        new table, and the pages of the old one are overwritten completely.
        """
        self._execute(f"ALTER TABLE {table} RENAME TO former")
        self._execute(_CREATE.format(table))
        with self._in_words():
            self._connection.executemany(
                f"INSERT INTO {table} SELECT * FROM former WHERE offset = ?",
                ((offset,) for offset in offsets),
            )
        self._execute("DROP TABLE former")

    def _empty_log(self) -> None:
        """Empty the write-ahead log, which still holds what was removed."""
        self._execute(f"PRAGMA busy_timeout = {1e3 * EMPTY_S:.0f}")
        try:
            self._execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._execute(f"PRAGMA busy_timeout = {1e3 * BUSY_S:.0f}")

    def _end(self, table: Table) -> tuple[int, int | None]:
        """Return the next offset, and the offset from which on there are no gaps, or None."""
        sql = "SELECT next, dense, checksum FROM ends WHERE records = ?"
        match self._execute(sql, (table,)):
            case [(int(end), dense, checksum)] if checksum == _sum(table, end, dense):
                return end, dense
        raise self._damaged(f"the end of {_TOPICS[table]} is damaged")

    def _set_end(self, table: Table, end: int, dense: int | None) -> None:
        self._execute(
            "INSERT OR REPLACE INTO ends VALUES (?, ?, ?, ?)",
            (table, end, dense, _sum(table, end, dense)),
        )

    # --- the file

    def _on_disk(self) -> tuple[int, int]:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            raise changed(self.path, "it is not there") from None
        except OSError as error:
            raise in_words(f"cannot read {self.path}", error) from error
        return status.st_dev, status.st_ino

    def _check_place(self) -> None:
        """Refuse to continue with a file that was deleted or replaced: writes to it are lost."""
        check_process(self._process, str(self.path))
        if self._on_disk() != self._file:
            raise changed(self.path, "another file is in its place")

    def _check_origin(self) -> None:
        ((application,),) = self._execute("PRAGMA application_id")
        ((version,),) = self._execute("PRAGMA user_version")
        if application != _APPLICATION:
            # SQLite treats an empty file as a database without tables.
            fault = "belongs to another program"
            if not self.path.stat().st_size:
                fault = "is empty: it was cut, or never written; bring it back, or remove it"
            raise RefusedError(f"{self.path} {fault}; name another directory")
        if version != _VERSION:
            raise RefusedError(
                f"{self.path} has version {version}, expected {_VERSION}; use the version of "
                "streamgp that wrote it, or name another directory"
            )
        if found := self._execute(PROGRAMS):
            raise self._damaged(f"it has {found[0][0]!r}, which is no table")

    def _execute(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._in_words():
            return self._connection.execute(sql, values).fetchall()

    def _roll_back(self) -> None:
        """Roll back a transaction that was not committed."""
        with suppress(sqlite3.Error):
            self._connection.rollback()

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # the caller's mistake, such as a closed connection
        except sqlite3.Error as error:
            raise _in_words(self.path, error) from error

    def _damaged(self, what: str) -> RefusedError:
        return changed(self.path, what)


def build(path: Path, fill: Callable[[Database], None]) -> None:
    """Create and fill a database; after a crash at any moment it is complete or does not exist.

    Parameters
    ----------
    path
        The file, which must not exist; no other process may create it at the same time.
    fill
        Writes the initial contents, at least an identity.

    Raises
    ------
    BrokerError
        If it cannot be written.

    """
    try:
        with replacing(path) as part:
            descriptor = private(str(part), os.O_RDWR | os.O_CREAT | os.O_EXCL)
            os.close(descriptor)  # before SQLite opens it: closing the file releases SQLite's locks
            with closing(_connected(part)) as connection:
                for sql in (
                    "PRAGMA page_size = 8192",
                    "PRAGMA synchronous = OFF",
                    "BEGIN",
                    *_SCHEMA,
                    "COMMIT",
                ):
                    connection.execute(sql)
            with closing(Database(part)) as database:
                database.begin()
                fill(database)
                database.finish()
            descriptor = os.open(part, os.O_RDWR)
            try:
                sync_file(descriptor)
            finally:
                os.close(descriptor)
    except sqlite3.Error as error:
        raise _in_words(path, error) from error
    except OSError as error:
        raise in_words(f"cannot write {path}", error) from error


def _connected(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            # The name as bytes, which need not be UTF-8; `mode=rw` never creates a file.
            f"file:{quote(os.fsencode(path))}?mode=rw",
            uri=True,
            timeout=FIRST_S,
            isolation_level=None,  # `Database` begins and ends transactions itself
            check_same_thread=False,  # SQLite lets threads wait for each other
        )
    except sqlite3.Error as error:
        raise _in_words(path, error) from error
    try:
        connection.execute("PRAGMA user_version")
    except sqlite3.Error as error:
        if isinstance(told := _in_words(path, error), RefusedError):
            connection.close()
            raise told from error
        # What may pass is waited for by the next statement.
    connection.execute(f"PRAGMA busy_timeout = {1e3 * BUSY_S:.0f}")
    # A damaged name does not match its checksum, however it is decoded.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _cut(record: Record) -> Record:
    """Return an input, or only the beginning of one that is too long to be used."""
    value = record.value
    if value is None or len(value) <= MAX_BYTES:
        return record
    truncated = TruncatedValue(size=len(value), sha256=hashlib.sha256(value).hexdigest())
    return replace(record, value=value[:MAX_INPUT_BYTES], truncated=truncated)


def _checksum(seed: int, offset: Any, key: Any, value: Any, headers: Any, at: Any) -> int:
    """Return a checksum of a row; rows of different tables differ."""
    try:
        sizes = (-1 if key is None else len(key), -1 if value is None else len(value))
        text = _HEAD.pack(offset, at, *sizes) + (key or b"") + (headers or b"")
        return crc32(value or b"", crc32(text, seed))
    except (TypeError, struct.error):  # damage has changed the type of a field
        return -1


def _sum(*fields: object) -> int:
    return crc32(repr(fields).encode())


def _no_file_opens(directory: Path) -> OSError | None:
    """Return what keeps any file from being opened for now; SQLite says only that its own was."""
    try:
        TemporaryFile(dir=directory).close()
    except OSError as error:
        if error.errno in PASSING:  # too many are open, or there is no room for one more
            return error
    return None


def _in_words(path: Path, error: sqlite3.Error) -> BrokerError:
    """Convert an error of SQLite to one that says what went wrong, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY if (what := no_locks(path.parent)) is not None:
            return RefusedError(f"{what}; name a directory on a disk of this machine, or use Kafka")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return BrokerError(
                f"{path} is busy: another program has written to it for over {BUSY_S:g} s; stop "
                "it, or start again"
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_ERROR:
            return changed(path, str(error))
        case sqlite3.SQLITE_FULL:
            return BrokerError(f"cannot write {path}: {error}; free some space")
        case sqlite3.SQLITE_IOERR:
            # SQLite does not distinguish a file size limit from a failing disk.
            return BrokerError(
                f"cannot use {path}: {error}; free some space, raise the limit on the size of "
                "files, or name a directory on another disk"
            )
        case sqlite3.SQLITE_CANTOPEN if (why := _no_file_opens(path.parent)) is not None:
            return in_words(f"cannot use {path}", why)
        case _:
            return RefusedError(
                f"cannot use {path}: {error}; make it and its directory writable, or name another "
                "place"
            )
