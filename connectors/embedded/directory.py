"""Directory of an embedded broker: its files, the worker's lock, and error messages."""

from __future__ import annotations

import errno
import os
import re
import shlex
from pathlib import Path
from time import monotonic, sleep

from connectors.storage.snapshots import (
    StateError,
    lock_directory,
    opened_directory,
    state_error,
)
from connectors.topics import BrokerError, RefusedError

DATABASE = "topics.db"
"""Name of the database file; while it is in use, SQLite keeps `-wal` and `-shm` beside it."""
OLD_POSITION = "position.json"
OLD_OUTPUTS = ("predictions.jsonl", "requests.jsonl", "consensus.jsonl", "state.jsonl",
               "dead-letters.jsonl")  # fmt: skip
OLD_INPUTS = ("answers.jsonl", "taken-back.jsonl", "events.jsonl")
"""Files that held the topics before there was a database; `streamgp migrate` reads them."""
_PATIENCE_S = 0.2
_STEP_S = 0.02
_MOUNTS = Path("/proc/self/mountinfo")
# SQLite needs shared memory between all processes that use a file, and reliable locks.
_NETWORK = re.compile(
    r"nfs4?|cifs|smb3?|smbfs|afs|ceph|glusterfs|lustre|beegfs|fuse\.(sshfs|glusterfs|s3fs|rclone)"
)
PASSING = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EINTR,
    errno.EAGAIN,
    errno.ENFILE,
    errno.EMFILE,
}
"""Faults that can pass although the directory stays the same."""


def database_in(directory: Path) -> Path:
    """Return the path of the database in a directory.

    Raises
    ------
    RefusedError
        If there is none, or an earlier version wrote the directory; the text says what to do.

    """
    path = directory / DATABASE
    if flaw := flaw_of(directory):
        raise RefusedError(flaw)
    try:
        path.stat()
    except FileNotFoundError:
        raise RefusedError(f"{path} is not there; make the topics with --create-topics") from None
    except OSError as error:
        raise in_words(f"cannot read {path}", error) from error
    return path


def flaw_of(directory: Path) -> str | None:
    """Return why no database can be used or created there, None if one can."""
    path = directory / DATABASE
    if old := old_files(directory):
        command = f"streamgp migrate {shlex.quote(os.fspath(directory))}"
        if not path.exists():
            return (
                f"{directory} holds topics as files of an earlier version ({', '.join(old)}); stop "
                f"all that use it, then run: {command}"
            )
        if OLD_POSITION in old:
            return f"a migration of {directory} was cut short; run it again: {command}"
    if not path.exists() and path.with_name(f"{DATABASE}-wal").exists():
        # SQLite would take this file for a part of a new database.
        return str(changed(path, "it is not there"))
    return network_flaw(directory)


def old_files(directory: Path) -> list[str]:
    """Return the names of an earlier version's files that exist there."""
    names = (*OLD_INPUTS, *OLD_OUTPUTS, OLD_POSITION)
    return [name for name in names if (directory / name).exists()]


def network_flaw(directory: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return why a directory cannot hold a database, if it is on a network file system.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> line = "36 35 0:43 / /srv rw,relatime shared:20 - nfs4 nas:/data rw\\n"
    >>> with TemporaryDirectory() as directory:
    ...     mounts = Path(directory, "mountinfo")
    ...     _ = mounts.write_text(line)
    ...     network_flaw(Path("/srv/topics"), mounts)
    '/srv/topics is on a network file system (nfs4), where SQLite keeps nothing safe; name a ...

    """
    try:
        lines = mounts.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None  # not Linux: not checked
    place = directory.resolve()
    best, kind = -1, ""
    for line in lines:
        mount, _, rest = line.partition(" - ")
        where = Path(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), mount.split(" ")[4]))
        if len(where.parts) >= best and place.is_relative_to(where):  # later mounts win
            best, kind = len(where.parts), rest.split(" ")[0]
    if _NETWORK.fullmatch(kind) is None:
        return None
    return (
        f"{directory} is on a network file system ({kind}), where SQLite keeps nothing safe; "
        "name a directory on a disk of this machine, or use Kafka"
    )


def hold(directory: Path) -> int:
    """Keep other workers out of a directory until the descriptor returned is closed.

    Raises
    ------
    BrokerError
        If another worker holds it, or it cannot be read.

    """
    descriptor = _opened(directory)
    until = monotonic() + _PATIENCE_S
    while not lock_directory(descriptor):
        # A program that looks whether it `is_held` holds it, too, until it has the processor again.
        if monotonic() > until and is_held(directory):
            os.close(descriptor)
            raise RefusedError(
                f"{directory} is in use by another worker, and serves only one; stop that one, or "
                "use another broker"
            )
        sleep(_STEP_S)
    return descriptor


def is_held(directory: Path) -> bool:
    """Return whether a worker holds a directory."""
    descriptor = _opened(directory)
    try:
        return not lock_directory(descriptor, shared=True)
    finally:
        os.close(descriptor)


def in_words(what: str, error: OSError) -> BrokerError:
    """Return an error that says what went wrong, why, and what to do.

    It is a `RefusedError` if retrying cannot help.
    """
    if isinstance(error, BrokerError):
        return error
    if isinstance(error, StateError):
        return BrokerError(str(error))
    kind = BrokerError if error.errno in PASSING else RefusedError
    return kind(str(state_error(what, error)))


def changed(path: Path, what: str) -> RefusedError:
    """Return an error that says that a file is not what it was."""
    return RefusedError(
        f"{path} was changed: {what}; bring it back, or start over in another directory"
    )


def _opened(directory: Path) -> int:
    try:
        return opened_directory(directory)
    except OSError as error:
        raise in_words(f"cannot use {directory}", error) from error
