"""Files readable by their owner only: all that record what people did, said or answered.

An existing file keeps its permissions, as with any program that writes to a file: a user who opened
it to others did so on purpose. Devices and pipes are written to as they are. On Windows files have
the permissions of their directory; directories are made for their owner only by Python 3.12.4 and
newer.

"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Literal

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
BINARY = 0
if sys.platform == "win32":
    BINARY = os.O_BINARY
"""Flag of `os.open`; without it, `os.write` on Windows turns a newline into two characters."""
_LEFT_OVER_S = 3600.0
"""No write takes as long; a younger part may be that of another process."""
_LONGEST_NAME = 200
"""Bytes of a file's name that those of its parts hold; file systems allow 255."""


def private(path: str, flags: int) -> int:
    """Opener for `open`; a new file is for its owner only, further restricted by the umask.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "answers.jsonl")
    ...     with open(path, "w", opener=private) as file:
    ...         _ = file.write("{}")
    ...     f"{path.stat().st_mode & 0o777:o}"
    '600'

    """
    return os.open(path, flags | BINARY, FILE_MODE)


def write_private(path: str | Path, data: bytes | memoryview) -> None:
    """Write a file, for its owner only if it is new: all of it, or nothing.

    Half a page, picture or configuration may look like a whole one. So it is written beside the old
    one, which it then replaces; a link stays. What cannot be replaced without a change for others
    is written to as it is: a device, a pipe, a file with several names, of another owner or group,
    or with an access list, one that is a mount of its own, as in a container, and one in a
    directory that cannot be written to. What is the output of this process already, as
    `/dev/stdout` is, goes between what it has written and what it will write.

    Raises
    ------
    OSError
        If it cannot be written.

    """
    old, target = None, os.path.realpath(path)
    with suppress(FileNotFoundError):
        old = os.stat(path)
    if old is not None and (output := _output_to(old)) is not None:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        with open(output, "wb", buffering=0, closefd=False) as file:
            _write_all(file, data)
        return
    if old is None or _is_replaceable(target, old):
        try:
            _replace(target, old, data)
            return
        except OSError as error:
            if old is None or error.errno != errno.EBUSY:  # busy: it is a mount
                error.filename, error.filename2 = os.fspath(path), None
                raise
    with open(path, "wb", buffering=0, opener=private) as file:
        _write_all(file, data)


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether writing to one path would overwrite the other, which need not exist.

    A file may have several names: links of either kind, or another case on macOS and Windows.

    """
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    with suppress(OSError):
        return os.path.samefile(one, other)
    return False


def _replace(target: str, old: os.stat_result | None, data: bytes | memoryview) -> None:
    with suppress(OSError):  # a directory that cannot be listed
        remove_left_over(Path(target), age_s=_LEFT_OVER_S)
    part = part_of(Path(target))
    try:
        with open(part, "xb", buffering=0, opener=private) as file:
            _write_all(file, data)
        if old is not None:
            if sys.platform != "win32":
                os.chown(part, -1, old.st_gid)
            os.chmod(part, stat.S_IMODE(old.st_mode))
        os.replace(part, target)
    except BaseException:  # Ctrl-C, too
        with suppress(OSError):
            os.unlink(part)
        raise


def part_of(path: Path) -> Path:
    """Return a new name for a file beside another one, which it is to replace when it is whole."""
    return path.with_name(f"{_part_begins(path)}{secrets.token_hex(8)}.part")


def remove_left_over(path: Path, *, age_s: float = 0.0) -> None:
    """Remove the parts of a file that crashes left behind, which frees their space.

    Parameters
    ----------
    age_s
        For how long nothing was written to them; 0 only where no other writes the same file.

    Raises
    ------
    OSError
        If its directory cannot be listed, or one of them not be removed.

    """
    left_over = re.compile(rf"{re.escape(_part_begins(path))}[0-9a-f]{{16}}\.part.*")
    for entry in list(os.scandir(path.parent)):
        if left_over.fullmatch(entry.name):
            with suppress(FileNotFoundError):
                if not age_s or time.time() - entry.stat().st_mtime > age_s:
                    os.unlink(entry.path)


def _part_begins(path: Path) -> str:
    is_short = len(os.fsencode(path.name)) <= _LONGEST_NAME
    return f".{path.name if is_short else path.name[: _LONGEST_NAME // 4]}."


def _output_to(file: os.stat_result) -> int | None:
    """Return by which descriptor this process writes its output to a file; None if it does not."""
    for number in (1, 2):
        with suppress(OSError):  # it is closed
            if os.path.samestat(os.fstat(number), file):
                return number
    return None


def _is_replaceable(target: str, old: os.stat_result) -> bool:
    """Whether a file may be replaced by another one, without a change of what may be done to it."""
    folder = os.path.dirname(target)
    may = os.access(target, os.W_OK) and os.access(folder, os.W_OK | os.X_OK)
    is_plain = stat.S_ISREG(old.st_mode) and old.st_nlink == 1
    return is_plain and may and _keeps_rights(target, old)


def _keeps_rights(target: str, old: os.stat_result) -> bool:
    """Whether owner, group and mode, which a new file can be given, are all that counts."""
    if sys.platform == "win32":
        return True
    is_ours = old.st_uid == os.geteuid() and old.st_gid in (os.getegid(), *os.getgroups())
    lists: list[str] = []
    if sys.platform == "linux":
        with suppress(OSError):  # a file system that has none
            lists = [name for name in os.listxattr(target) if name.startswith("system.posix_acl")]
    return is_ours and not lists


def _write_all(file: FileIO, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def others_can(path: Path) -> Literal["read", "write", None]:
    """Return what users other than the owner and the group can do with a file, or in a directory.

    The worse of the two; None for neither, if nothing is there, and on Windows, whose access lists
    are not read. That they can list a directory does not count, but a directory that they cannot
    enter protects everything in it.

    Examples
    --------
    >>> others_can(Path("/dev/null"))
    'write'

    """
    if sys.platform == "win32":
        return None
    try:
        path = Path(os.path.realpath(path, strict=True))  # `resolve` may raise RuntimeError
        mode = path.stat().st_mode
        is_open = all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
    except OSError:
        return None
    if is_open and mode & stat.S_IWOTH:
        return "write"
    return "read" if is_open and mode & stat.S_IROTH and not stat.S_ISDIR(mode) else None


def make_directory(path: str | Path) -> list[Path]:
    """Create a directory and its parents, for their owner only; existing ones stay as they are.

    Returns
    -------
    Those that were missing, parents first.

    Raises
    ------
    OSError
        If it cannot be created, or something else is there.

    """
    path = Path(path)
    if path.is_dir() or path == path.parent:  # a drive that is not there: what is below it fails
        return []
    # `Path.mkdir(parents=True)` creates parents as open as the umask allows.
    made = make_directory(path.parent)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    return [*made, path]
