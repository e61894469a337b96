"""One SQLite file that belongs to one process: durable commits, errors in words, real erasure.

What is in it is for those to know who use it.

"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from connectors.storage.snapshots import StateError, new_part, state_error, sync_directory
from streamgp.private_files import private

CACHE_KIB = 8192
_APPLICATION = 0x73677031  # "sgp1" in the header of the file
_VERSION = 1


class SqliteFile:
    """A SQLite file with one transaction always open, from one commit to the next.

    Nothing of an open transaction survives a crash. After an error the file is closed as a crash
    would leave it: what was written since the last commit is gone, so nobody may go on.

    Parameters
    ----------
    path
        The file; created, readable by its owner alone, if it is not there. While it is open,
        SQLite keeps a file beside it that ends in `-wal`; the two belong together.
    schema
        Statements that fill a new file.

    Attributes
    ----------
    path
        The file.

    Raises
    ------
    StateError
        If the file is damaged, in use, of another program or of a newer version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     file = SqliteFile(Path(directory, "numbers"), ["CREATE TABLE numbers (n INTEGER)"])
    ...     _ = file.rows("INSERT INTO numbers VALUES (?)", (3,))
    ...     file.commit()
    ...     file.rows("SELECT n FROM numbers")
    ...     file.close()
    [(3,)]

    """

    def __init__(self, path: str | Path, schema: list[str]) -> None:
        self.path = Path(path).absolute()
        self._connection: sqlite3.Connection | None = None
        try:
            with new_part(self.path):
                pass  # a crash may have left one behind
            # Only if it is not there: closing a file ends the locks of its process, SQLite's too.
            with suppress(FileExistsError):
                os.close(private(str(self.path), os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except OSError as error:
            raise state_error(f"cannot open {self.path}", error) from error
        self._connect()
        is_new = self._check_origin()
        self._begin()
        if is_new:
            self._fill(schema)

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Execute one statement of the open transaction and return all its rows."""
        if self._connection is None:
            raise ValueError(f"{self.path} is closed; open it again")
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.ProgrammingError:
            raise  # a mistake of the caller, such as another thread
        except sqlite3.Error as error:
            self._abandon()
            raise _in_words(self.path, error) from error

    def commit(self) -> None:
        """Make everything durable, also over a power failure, and begin the next transaction."""
        self.rows("COMMIT")
        # The log is emptied at once, so that it does not remember what was erased.
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        self.rows("BEGIN IMMEDIATE")

    def rewrite(self) -> None:
        """Commit, and write the file anew, so that no byte of what was deleted is left in it.

        SQLite's `secure_delete` overwrites what is deleted, but not the copies that stay in the
        free part of a page when its rows have moved. `VACUUM` would do, but needs space among
        the system's temporary files.
        """
        self.commit()
        self.rows("COMMIT")
        try:
            with new_part(self.path) as part:
                descriptor = private(str(part), os.O_RDWR | os.O_CREAT | os.O_EXCL)
                try:
                    self.rows("VACUUM INTO ?", (os.fspath(part),))
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                self._abandon()
                os.replace(part, self.path)
                sync_directory(self.path.parent)
        except StateError:
            raise
        except OSError as error:
            self._abandon()
            raise state_error(f"cannot write {self.path}", error) from error
        self._connect()
        self._begin()

    def close(self) -> None:
        """Commit and let go."""
        if self._connection is not None:
            self.rows("COMMIT")
            self._abandon()

    @property
    def is_open(self) -> bool:
        """Whether it was neither closed nor given up after an error."""
        return self._connection is not None

    def damaged(self, what: str) -> StateError:
        """Close without a commit, and return an error which says what is damaged."""
        self._abandon()
        return StateError(f"{self.path} is damaged: {what}; delete it and begin anew")

    def _connect(self) -> None:
        try:
            # Without isolation level, transactions begin and end where this class says so.
            self._connection = sqlite3.connect(self.path, timeout=0.0, isolation_level=None)
        except sqlite3.Error as error:
            raise _in_words(self.path, error) from error
        # Another process is kept out from the first statement that reads the file.
        self.rows("PRAGMA locking_mode = EXCLUSIVE")

    def _check_origin(self) -> bool:
        """Refuse a file that is not ours, before anything is written; say whether it is new."""
        ((application,),) = self.rows("PRAGMA application_id")
        ((version,),) = self.rows("PRAGMA user_version")
        if application == _APPLICATION and version == _VERSION:
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
            # A commit is on the disk when it returns. NORMAL could lose the last ones to a power
            # failure, while a snapshot that relies on them is kept.
            "PRAGMA synchronous = FULL",
            f"PRAGMA cache_size = -{CACHE_KIB}",
            "PRAGMA secure_delete = ON",
            "PRAGMA wal_checkpoint(TRUNCATE)",  # what a crash has left in the log
            "BEGIN IMMEDIATE",
        ):
            self.rows(sql)

    def _fill(self, schema: list[str]) -> None:
        for sql in schema:
            self.rows(sql)
        self.rows(f"PRAGMA application_id = {_APPLICATION}")
        self.rows(f"PRAGMA user_version = {_VERSION}")
        self.commit()

    def _abandon(self) -> None:
        """Close without a commit."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _in_words(path: Path, error: sqlite3.Error) -> StateError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StateError(f"{path} is in use by another process; stop it, or name another file")
        case sqlite3.SQLITE_NOTADB:
            return StateError(f"{path} is no SQLite file; name another file")
        case sqlite3.SQLITE_CORRUPT:
            return StateError(f"{path} is damaged: {error}; delete it and begin anew")
        case sqlite3.SQLITE_FULL:
            return StateError(f"cannot write {path}: {error}; free some space")
        case sqlite3.SQLITE_IOERR:
            # SQLite does not tell a limit on the size of files from a disk that fails.
            return StateError(
                f"cannot use {path}: {error}; free some space, raise the limit on the size of "
                "files, or name a file on another disk"
            )
        case _:
            return StateError(f"cannot use {path}: {error}; make it writable, or name another file")
