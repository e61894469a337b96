"""On-disk store: learners of many keys, as bytes, in one SQLite file.

A mark names a point in time. A caller that takes one writes it into a snapshot of its own, which a
crash may prevent; the store can therefore return to either of the last two marks. Each generation
ends with a mark. Every put is stored under the current generation, and those versions of each key
are kept to which a caller may still return: at most three.

"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from connectors.storage.snapshots import (
    StateError,
    no_locks,
    replacing,
    state_error,
    sync_file,
)
from streamgp.base import State
from streamgp.common.private_files import private, remove_left_over
from streamgp.common.validation import check_path, check_process
from streamgp.interactive.loop_cache import LoopStore

# --- A SQLite file used by one process: durable commits, clear errors, real erasure.


CACHE_KIB = 8192
PROGRAMS = """
    SELECT name FROM sqlite_master
    WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL %'
"""
"""Names of what runs when a table is read or written. No database of ours has any; one that comes
from elsewhere may have a view without an end, or a trigger that deletes."""
_APPLICATION = 0x73677031  # "sgp1" in the header of the file
_VERSION = 1
# A key is text, or an empty blob for None. The table has row ids: with large rows, a tree ordered
# by key (WITHOUT ROWID) would be five times slower.
_SCHEMA = [
    "CREATE TABLE loops (key, generation INTEGER, checksum INTEGER, data BLOB,"
    " PRIMARY KEY (key, generation))",
    "CREATE TABLE marks (generation INTEGER PRIMARY KEY)",
    "CREATE TABLE shelf (id TEXT, generation INTEGER, has_remains INTEGER)",
    "INSERT INTO shelf VALUES (lower(hex(randomblob(16))), 1, 0)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
]


class _SqliteFile:
    """The file of a store, with one transaction always open, from one commit to the next.

    Nothing of an open transaction survives a crash. After an error the file is closed as after a
    crash: what was written since the last commit is lost, so the caller cannot continue.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_path("path", path).absolute()
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        try:
            remove_left_over(self.path)
            # Only if the file is missing: closing it releases all locks of this process on it.
            with suppress(FileExistsError):
                os.close(private(str(self.path), os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except OSError as error:
            raise state_error(f"cannot open {self.path}", error) from error
        self._connect()
        is_new = self._check_origin()
        self._begin()
        if is_new:
            for sql in _SCHEMA:
                self.rows(sql)
            self.commit()

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Execute one statement of the open transaction and return all its rows."""
        if self._connection is None:
            raise ValueError(f"{self.path} is closed; open it again")
        check_process(self._process, str(self.path))
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.ProgrammingError:
            raise  # the caller's mistake, such as another thread
        except sqlite3.Error as error:
            self._abandon()
            raise _in_words(self.path, error) from error

    def commit(self) -> None:
        """Make everything durable, even through a power failure, and begin the next transaction."""
        self.rows("COMMIT")
        # The log is emptied at once, so that it does not retain erased data.
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        self.rows("BEGIN IMMEDIATE")

    def rewrite(self) -> None:
        """Commit, and rewrite the file so that no byte of deleted data is left in it.

        SQLite's `secure_delete` overwrites deleted data, but not the copies that remain in the free
        part of a page after its rows have moved. `VACUUM` would suffice, but needs space in the
        system's temporary directory.
        """
        self.commit()
        self.rows("COMMIT")
        try:
            with replacing(self.path) as part:
                descriptor = private(str(part), os.O_RDWR | os.O_CREAT | os.O_EXCL)
                try:
                    # As bytes: a file name need not be UTF-8, but a text parameter must be.
                    self.rows("VACUUM INTO CAST(? AS TEXT)", (os.fsencode(part),))
                    sync_file(descriptor)
                finally:
                    os.close(descriptor)
                self._abandon()
        except StateError:
            raise
        except OSError as error:
            self._abandon()
            raise state_error(f"cannot write {self.path}", error) from error
        self._connect()
        self._begin()

    def close(self) -> None:
        if self._connection is not None:
            self.rows("COMMIT")
            self._abandon()

    @property
    def is_open(self) -> bool:
        """Whether it was neither closed nor abandoned after an error."""
        return self._connection is not None

    def damaged(self, what: str) -> StateError:
        """Close without a commit, and return an error that says what is damaged."""
        self._abandon()
        return StateError(f"{self.path} is damaged: {what}; delete it and start over")

    def _connect(self) -> None:
        try:
            # Without an isolation level, this class begins and ends transactions itself.
            self._connection = sqlite3.connect(self.path, timeout=0.0, isolation_level=None)
        except sqlite3.Error as error:
            raise _in_words(self.path, error) from error
        # Other processes are kept out from the first statement that reads the file.
        self.rows("PRAGMA locking_mode = EXCLUSIVE")

    def _check_origin(self) -> bool:
        """Refuse a file of another program before anything is written; return whether it is new."""
        ((application,),) = self.rows("PRAGMA application_id")
        ((version,),) = self.rows("PRAGMA user_version")
        if application == _APPLICATION and version == _VERSION:
            if found := self.rows(PROGRAMS):
                raise self.damaged(f"it has {found[0][0]!r}, which is no table")
            return False
        if not (application or version or self.rows("SELECT 1 FROM sqlite_master")):
            return True
        self._abandon()
        if application == _APPLICATION:
            raise StateError(
                f"{self.path} has version {version}, expected {_VERSION}; "
                "use the version of streamgp that wrote it, or name another file"
            )
        raise StateError(f"{self.path} belongs to another program; name another file")

    def _begin(self) -> None:
        for sql in (
            "PRAGMA journal_mode = WAL",
            # A commit is on disk when it returns. With NORMAL, a power failure could lose the last
            # ones, while a snapshot that relies on them survives.
            "PRAGMA synchronous = FULL",
            "PRAGMA fullfsync = ON",  # on macOS, or it stays in the disk's cache
            f"PRAGMA cache_size = -{CACHE_KIB}",
            "PRAGMA secure_delete = ON",
            "PRAGMA wal_checkpoint(TRUNCATE)",  # what a crash left in the log
            "BEGIN IMMEDIATE",
        ):
            self.rows(sql)

    def _abandon(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _in_words(path: Path, error: sqlite3.Error) -> StateError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY if (what := no_locks(path.parent)) is not None:
            return StateError(f"{what}; name another place")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StateError(f"{path} is in use by another process; stop it, or name another file")
        case sqlite3.SQLITE_NOTADB:
            return StateError(f"{path} is no SQLite file; name another file")
        case sqlite3.SQLITE_CORRUPT:
            return StateError(f"{path} is damaged: {error}; delete it and start over")
        case sqlite3.SQLITE_FULL:
            return StateError(f"cannot write {path}: {error}; free some space")
        case sqlite3.SQLITE_IOERR:
            # SQLite does not distinguish a file size limit from a failing disk.
            return StateError(
                f"cannot use {path}: {error}; free some space, raise the limit on the size of "
                "files, or name a file on another disk"
            )
        case _:
            return StateError(f"cannot use {path}: {error}; make it writable, or name another file")


_N_MARKS = 2
_PAGE = 1000


class SqliteStore(LoopStore):
    """Bytes by key in one file, used by one process and one thread at a time.

    A store starts empty even if the file is not: its contents are meaningful only together with the
    snapshot that holds its mark, and `reset` restores them. Without `reset`, the first change
    erases them.

    Take the next mark only once the snapshot with the last one is safely on disk; otherwise the
    existing snapshot may hold a mark older than the last two.

    After a disk error the store is closed, as after a crash.

    Parameters
    ----------
    path
        The file; created if missing. A second file beside it, `-wal`, belongs to it.

    Raises
    ------
    StateError
        If the file is damaged, in use, or written by another program or a newer version; later, if
        the disk is full or the file turns out to be damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     with SqliteStore(Path(directory, "loops")) as store:
    ...         store.put("ann", b"1")
    ...         mark = store.mark()
    ...         store.put("ann", b"2")
    ...     with SqliteStore(Path(directory, "loops")) as store:
    ...         before = store.get("ann")
    ...         store.reset(mark)
    ...         before, store.get("ann"), len(store)
    (None, b'1', 1)

    """

    # _generation   the current generation; never that of an earlier mark, even after a reset.
    # _marks        generations of the marks to which `reset` can return, ascending.
    # _is_claimed   whether a reset or a change has determined the contents.
    # _n_keys       number of keys in the store.
    # _has_remains  whether bytes of deleted data may still be in the file.

    def __init__(self, path: str | Path) -> None:
        self._file = _SqliteFile(path)
        self._id, self._generation, self._has_remains, self._marks = self._load()
        self._is_claimed = False
        self._n_keys = 0

    def get(self, key: str | None) -> bytes | None:
        if not self._is_claimed:
            return None
        found = self._file.rows(
            "SELECT generation, checksum, data FROM loops WHERE key = ?"
            " ORDER BY generation DESC LIMIT 1",
            (_stored(key),),
        )
        if not found:
            return None
        ((generation, checksum, data),) = found
        if not isinstance(data, bytes) or _checksum(key, generation, data) != checksum:
            raise self._file.damaged(f"data of key {key!r}")
        return data

    def put(self, key: str | None, data: bytes) -> None:
        self._claim()
        stored, now, rows = _stored(key), self._generation, self._file.rows
        generations = [g for (g,) in rows("SELECT generation FROM loops WHERE key = ?", (stored,))]
        rows(
            "INSERT INTO loops VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
            " SET checksum = excluded.checksum, data = excluded.data",
            (stored, now, _checksum(key, now, data), data),
        )
        if not generations:
            self._n_keys += 1
            return
        needed = {max((g for g in generations if g <= m), default=now) for m in self._marks}
        for generation in generations:
            if generation != now and generation not in needed:
                rows("DELETE FROM loops WHERE key = ? AND generation = ?", (stored, generation))

    def discard(self, key: str | None) -> None:
        """Delete a key for good, if it exists: `reset` will not restore it.

        The next mark, or `close`, makes this durable and rewrites the file once, so that no byte of
        it is left.
        """
        self._claim()
        if self._delete("FROM loops WHERE key = ?", (_stored(key),)):
            self._n_keys -= 1

    def keys(self) -> Iterator[str | None]:
        """Return all keys, None last."""
        sql = f"SELECT DISTINCT key FROM loops WHERE key > ? ORDER BY key LIMIT {_PAGE}"
        last: object = -1  # sorts before all text
        while self._is_claimed and (page := self._file.rows(sql, (last,))):
            for (last,) in page:
                yield None if last == b"" else str(last)

    def __len__(self) -> int:
        return self._n_keys

    def mark(self) -> State:
        """Make all puts and discards so far durable; return a mark of this point in time."""
        self._claim()
        this = self._generation
        self._file.rows("INSERT INTO marks VALUES (?)", (this,))
        self._marks = [*self._marks, this][-_N_MARKS:]
        self._file.rows("DELETE FROM marks WHERE generation < ?", (self._marks[0],))
        self._generation += 1
        self._save()
        return self._name(this)

    def reset(self, mark: State) -> None:
        """Return to one of the last two marks, undoing later puts; later marks become invalid.

        Raises
        ------
        StateError
            If it is not one of them, or belongs to another file; the store is unchanged.

        """
        if mark not in [self._name(generation) for generation in self._marks]:
            raise StateError(
                f"{self._file.path} cannot go back to the snapshot that is restored: one of the "
                "two was replaced; bring both back, or delete both and start over"
            )
        generation = mark["generation"]
        # The subquery reads only the index, not the data.
        self._delete(
            "FROM loops WHERE rowid IN (SELECT rowid FROM loops WHERE generation > ?)",
            (generation,),
        )
        self._file.rows("DELETE FROM marks WHERE generation > ?", (generation,))
        self._marks = [g for g in self._marks if g <= generation]
        ((self._n_keys,),) = self._file.rows("SELECT COUNT(DISTINCT key) FROM loops")
        self._is_claimed = True

    @property
    def is_open(self) -> bool:
        """Whether it was neither closed nor given up after an error."""
        return self._file.is_open

    def close(self) -> None:
        """Make discards durable, and release the file for other processes.

        Puts since the last mark are lost, as in a crash.
        """
        if self._file.is_open:
            self._save()
            self._file.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _load(self) -> tuple[str, int, bool, list[int]]:
        rows = self._file.rows
        kept = rows("SELECT id, generation, has_remains FROM shelf")
        marks = [g for (g,) in rows("SELECT generation FROM marks ORDER BY generation")]
        match kept:
            case [(str(identity), int(generation), int(has_remains))] if generation > max(
                marks, default=0
            ):
                return identity, generation, bool(has_remains), marks
        raise self._file.damaged("list of marks")

    def _save(self) -> None:
        self._file.rows(
            "UPDATE shelf SET generation = ?, has_remains = ?",
            (self._generation, self._has_remains),
        )
        if self._has_remains:
            # The file remains marked as having remains until the next mark: a crash before the new
            # file is in place must not hide them.
            self._file.rewrite()
            self._has_remains = False
        else:
            self._file.commit()

    def _claim(self) -> None:
        """Erase contents that no reset has claimed."""
        if not self._is_claimed:
            self._is_claimed = True
            self._delete("FROM loops")
            self._file.rows("DELETE FROM marks")
            self._marks = []

    def _delete(self, what: str, values: tuple[str | bytes | int, ...] = ()) -> int:
        self._file.rows(f"DELETE {what}", values)
        ((n_deleted,),) = self._file.rows("SELECT changes()")
        self._has_remains = self._has_remains or n_deleted > 0
        return int(n_deleted)

    def _name(self, generation: int) -> State:
        return {"shelf": self._id, "generation": generation}


def _stored(key: str | None) -> str | bytes:
    return b"" if key is None else key


def _checksum(key: str | None, generation: int, data: bytes) -> int:
    """Return a checksum of these bytes; equal bytes of different rows differ."""
    return crc32(data, crc32(repr((key, generation)).encode()))
