"""Message files without the lines of some keys: what a person said, taken out for good.

The lines of others keep their bytes and their order.

"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from connectors.storage.snapshots import new_part, state_error, sync_directory
from streamgp.private_files import private


def count_lines(path: str | Path, keys: Collection[str]) -> int:
    """Return how many lines of a file belong to one of these keys; 0 if it is not there.

    Raises
    ------
    StateError
        If it cannot be read.

    """
    path = Path(path)
    try:
        return sum(is_theirs for _, is_theirs in _lines(path, path.stat().st_size, keys))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise state_error(f"cannot read {path}", error) from error


def remove_lines(path: str | Path, keys: Collection[str], size: int) -> int:
    """Take the lines of some keys out of the first bytes of a file; what follows them is cut off.

    A crash at any moment leaves the old file or the new one, whole. Done twice, it changes nothing
    the second time.

    Parameters
    ----------
    path
        The file.
    keys
        Whose lines are removed.
    size
        The number of bytes, up to the end of a line.

    Returns
    -------
    The size of the new file.

    Raises
    ------
    StateError
        If it cannot be read, or the new one cannot be written. The old one is untouched.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "answers.jsonl")
    ...     _ = path.write_text('{"key":"ann"}\\n{"key":"bob"}\\n')
    ...     count_lines(path, ["ann"]), remove_lines(path, ["ann"], 28), path.read_text()
    (1, 14, '{"key":"bob"}\\n')

    """
    path = Path(path)
    try:
        with new_part(path) as part:
            descriptor = private(str(part), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(descriptor, "wb") as file:
                os.fchmod(descriptor, path.stat().st_mode & 0o777)
                for line, is_theirs in _lines(path, size, keys):
                    if not is_theirs:
                        file.write(line)
                file.flush()
                os.fsync(descriptor)
                left = file.tell()
            os.replace(part, path)
            sync_directory(path.parent)
    except OSError as error:
        raise state_error(f"cannot write {path}", error) from error
    return left


class _Keyed(msgspec.Struct):
    key: str | None = None


_decoder = msgspec.json.Decoder(_Keyed)


def _lines(path: Path, size: int, keys: Collection[str]) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines in the first bytes of a file, and whether each belongs to one of the keys."""
    # As the codec writes them: only lines that hold one anywhere need a closer look.
    written = [msgspec.json.encode(key) for key in keys]
    with open(path, "rb") as file:
        while size > 0 and (line := file.readline(size)):
            size -= len(line)
            yield line, any(key in line for key in written) and _belongs(line, keys)


def _belongs(line: bytes, keys: Collection[str]) -> bool:
    try:
        return _decoder.decode(line).key in keys
    except (msgspec.MsgspecError, ValueError):
        return True  # a line that was cut or damaged and names the key: better one too many
