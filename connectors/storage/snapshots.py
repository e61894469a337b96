"""Snapshot files: atomically written bytes, in a directory that one process uses.

Only the code that wrote the bytes knows what they mean, and whether they are damaged. By default
only their owner can read the files, since snapshots contain what people said.

"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic, sleep

from streamgp.common.private_files import (
    BINARY,
    FILE_MODE,
    make_directory,
    part_of,
    private,
    remove_left_over,
)
from streamgp.common.validation import check_bytes, check_path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOCK = "lock"
_IN_USE_S = 1.0
_STEP_S = 0.02
_ADVICE = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "raise the limit on the size of files",
    errno.EACCES: "make it accessible, or name another place",
    errno.EPERM: "make it accessible, or name another place",
    errno.EROFS: "name a place that is writable",
    errno.ENAMETOOLONG: "choose a shorter one",
    errno.EMFILE: "raise the limit on open files",
    errno.ENOENT: "create its directory, or name another place",
    errno.ELOOP: "remove the link, or name another place",
}


class StateError(OSError):
    """State that cannot be saved or restored; the text says why, and what to do."""


class InUseError(StateError):
    """A directory that another process uses."""


def write_snapshot(path: str | Path, data: bytes, *, mode: int = FILE_MODE) -> None:
    """Write a file so that a crash at any moment leaves the old or the new one complete.

    The bytes are written to a temporary file beside it and synced to disk; the temporary file is
    renamed to the old file's name, and the directory is synced. The next write removes a temporary
    file that a crash left behind. Two concurrent writers never mix their bytes, but one of them may
    get an error: a `StateDirectory` keeps a second one out.

    Parameters
    ----------
    path
        The file. Its directory must exist. A symbolic link is replaced, not followed.
    data
        Its new contents.
    mode
        Its permissions, reduced by the process's umask; those of the old file are ignored. By
        default only the owner has access.

    Raises
    ------
    StateError
        If the disk is full or cannot be written. The old file is unchanged, unless the very last
        step failed: then the new one is there, but may not survive a power failure.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     write_snapshot(Path(directory, "loop"), b"all that was learned")
    ...     read_snapshot(Path(directory, "loop"))
    b'all that was learned'

    """
    path = check_path("path", path)
    check_bytes("data", data)
    try:
        with replacing(path) as part:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, mode)
            try:
                _write_all(descriptor, data)
                sync_file(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise state_error(f"cannot write {path}", error) from error


def check_writable(path: Path, *, makes_directory: bool = False) -> None:
    """Check before a long work that its result can be written to a file; changes nothing.

    Parameters
    ----------
    path
        The file, which need not exist. A symbolic link is followed.
    makes_directory
        Whether its directory is created when the file is written.

    Raises
    ------
    StateError
        If it cannot be written.

    Examples
    --------
    >>> check_writable(Path("/no-such-dir/results.html"))
    Traceback (most recent call last):
    connectors.storage.snapshots.StateError: cannot write /no-such-dir/results.html: there is no ...

    """
    try:
        os.stat(path)
        there = path
    except (FileNotFoundError, NotADirectoryError):
        is_link = path.is_symlink()
        there = path.resolve().parent if is_link else path.absolute().parent
        if makes_directory and not is_link:
            # The nearest that exists decides; a link that leads nowhere cannot become a directory.
            places = (each for each in (there, *there.parents) if os.path.lexists(each))
            there = next(places, Path(there.anchor))  # not even the drive is there
        if not os.path.lexists(there):
            raise StateError(f"cannot write {path}: there is no directory {there}") from None
        if not there.is_dir():
            raise StateError(f"cannot write {path}: {there} is not a directory") from None
    except OSError as error:
        raise state_error(f"cannot write {path}", error) from None
    if not os.access(there, os.W_OK | os.X_OK if there.is_dir() else os.W_OK):
        raise StateError(f"cannot write {path}: {there} is not writable")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file that is replaced as a whole against changes by other processes.

    Raises
    ------
    StateError
        If its directory cannot be created or written, or its file system has no locks.

    """
    try:
        make_directory(path.parent)
        lock = _open_lock(path.with_name(f".{path.name}.lock"))
    except OSError as error:
        raise state_error(f"cannot write {path}", error) from None
    try:
        try:
            _lock(lock)
        except OSError as error:
            raise state_error(f"cannot lock {path}", error) from None
        yield
    finally:
        os.close(lock)


def read_snapshot(path: str | Path) -> bytes | None:
    """Return the contents of a file, None if it does not exist.

    Raises
    ------
    StateError
        If it exists and cannot be read.

    """
    path = check_path("path", path)
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise StateError(f"cannot read {path}: it is no file; remove it")
            return file.read()
    except FileNotFoundError:
        return None
    except StateError:
        raise
    except OSError as error:
        raise state_error(f"cannot read {path}", error) from error


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe in its place would be waited for, and no signal would end that."""
    if sys.platform != "win32":
        flags |= os.O_NONBLOCK
    return os.open(path, flags)


def file_version(path: str | Path) -> tuple[int, int, int] | None:
    """Return what distinguishes a file from its predecessors, None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class StateDirectory:
    """A directory of snapshot files that only one process may use at a time.

    Parameters
    ----------
    path
        The directory; if missing, it is created with access for its owner only. A file `lock` in it
        names the process that uses it. The lock is released with the process, however that ends.

    Attributes
    ----------
    path
        The directory.

    Raises
    ------
    StateError
        If it cannot be created or read, or is in use.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory, StateDirectory(directory) as state:
    ...     state.write("loop", b"all that was learned")
    ...     state.names(), state.read("loop"), state.read("page")
    (['loop'], b'all that was learned', None)

    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_path("path", path)
        try:
            for made in make_directory(self.path):
                sync_directory(made.parent)
            self._lock = _open_lock(self.path / _LOCK)
        except (FileExistsError, NotADirectoryError) as error:
            raise StateError(
                f"state must be kept in a directory, but {what_is_there(error)}; name another place"
            ) from None
        except OSError as error:
            raise state_error(f"cannot keep state in {path}", error) from error
        self._closed = False
        try:
            is_free = _try_lock(self._lock)
            if is_free:
                os.ftruncate(self._lock, 0)
                os.write(self._lock, b"%d\n" % os.getpid())
            else:
                owner = os.read(self._lock, 20).decode("ascii", "replace").strip() or "unknown"
        except OSError as error:
            self.close()
            raise state_error(f"cannot lock {path}", error) from error
        if not is_free:
            self.close()
            raise InUseError(
                f"{path} is in use by process {owner}; stop it, or name another directory"
            )

    def file(self, name: str) -> Path:
        """Return the path of one file, for a caller that writes it without this class."""
        if self._closed:
            raise ValueError("state directory is closed; open it again")
        if Path(name).name != name or name in ("", _LOCK) or name.startswith("."):
            raise ValueError(f"name must be a plain file name other than 'lock', got {name!r}")
        return self.path / name

    def write(self, name: str, data: bytes) -> None:
        """Write one file, as `write_snapshot` does."""
        write_snapshot(self.file(name), data)

    def read(self, name: str) -> bytes | None:
        """Return the contents of one file, None if it does not exist."""
        return read_snapshot(self.file(name))

    def names(self) -> list[str]:
        """Return the names of the files, in alphabetical order."""
        found = (entry.name for entry in os.scandir(self.path) if entry.is_file())
        return sorted(name for name in found if name != _LOCK and not name.startswith("."))

    def close(self) -> None:
        """Release the directory for other processes."""
        if not self._closed:
            self._closed = True
            os.close(self._lock)

    def __enter__(self) -> StateDirectory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


# --- Locks: exclusive, and released with the descriptor or the process, however that ends.


if sys.platform == "win32":

    def opened_directory(path: str | Path) -> int:
        """Return a descriptor by which a directory can be locked: a file in it, on Windows."""
        return private(str(Path(path, ".lock")), os.O_RDWR | os.O_CREAT)

    def _try_lock(descriptor: int, *, shared: bool = False) -> bool:  # noqa: ARG001
        """Lock a file that was just opened; return whether no other process has it."""
        # No process can read a locked byte: this one lies behind all that lock files hold.
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

    def no_locks(directory: Path) -> str | None:  # noqa: ARG001
        """Return that files in a directory cannot be locked as SQLite does; None: they can."""
        return None

    def _lock(descriptor: int) -> None:
        """Lock a file as soon as no other process has it."""
        while not _try_lock(descriptor):
            sleep(_STEP_S)

else:

    def opened_directory(path: str | Path) -> int:
        """Return a descriptor of a directory, by which it can be locked and synced."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def _try_lock(descriptor: int, *, shared: bool = False) -> bool:
        """Lock a file that was just opened; return whether no other process has it."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def no_locks(directory: Path) -> str | None:
        """Return that files in a directory cannot be locked as SQLite does; None: they can.

        SQLite takes a lock that the file system does not give for one that another process has. A
        file of its own is tried: closing one that SQLite uses would release the locks on that.
        """
        try:
            with TemporaryFile(dir=directory) as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno == errno.ENOLCK:
                return f"files in {directory} cannot be locked, as on some network file systems"
        return None

    def _lock(descriptor: int) -> None:
        """Lock a file as soon as no other process has it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def lock_directory(descriptor: int, *, shared: bool = False) -> bool:
    """Lock a directory until its descriptor is closed; return whether no other process has it.

    The lock is on the directory itself, so that no further file appears in it. Some file systems
    cannot lock directories: better unguarded than refused.
    """
    with suppress(OSError):
        return _try_lock(descriptor, shared=shared)
    return True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of a temporary file beside a file, which it replaces at the end of the block.

    The block must sync it to disk. After an error the old file is unchanged, unless the very last
    step failed, and the temporary one is removed.
    """
    remove_left_over(path)
    part = part_of(path)
    try:
        yield part
        _replace(part, path)
        sync_directory(path.parent)
    finally:
        with suppress(OSError):
            part.unlink()


def _replace(part: Path, path: Path) -> None:
    """Rename a file to that of another, on Windows once no program has that one open."""
    until = monotonic() + _IN_USE_S
    while True:
        try:
            os.replace(part, path)
            return
        except PermissionError:
            if sys.platform != "win32" or monotonic() > until:
                raise
            sleep(_STEP_S)


def sync_directory(path: Path) -> None:
    """Sync the entries of a directory to disk; Windows can only do so by itself."""
    if sys.platform == "win32":
        return
    descriptor = opened_directory(path)
    try:
        sync_file(descriptor)
    except OSError as error:
        # Some file systems do not support this; they order their writes by themselves.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def sync_file(descriptor: int) -> None:
    """Sync a file that can be written to disk, and out of the disk's own cache."""
    if sys.platform == "darwin":
        with suppress(OSError):  # not every file system supports it
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def what_is_there(error: FileExistsError | NotADirectoryError) -> str:
    """Return a sentence about what exists where a directory is expected."""
    path = Path(error.filename)
    is_loose = path.is_symlink() and not path.exists()
    return f"{path} is {'a link that leads nowhere' if is_loose else 'a file'}"


def state_error(what: str, error: OSError) -> StateError:
    """Return an error that says what went wrong, why, and what to do."""
    advice = _ADVICE.get(error.errno or 0, "name another place")
    return StateError(f"{what}: {error.strerror or error}; {advice}")


def _open_lock(path: Path) -> int:
    """Open a lock file, which is made if it is not there; a link is refused, not followed.

    A lock is written to: a link that another user has put there would lead to a file of theirs to
    choose, which would lose what it holds.
    """
    flags = os.O_RDWR | os.O_CREAT
    if sys.platform != "win32":
        flags |= os.O_NOFOLLOW
    return private(str(path), flags)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
