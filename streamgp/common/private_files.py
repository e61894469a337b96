"""Files for their owner alone: whatever holds what people did, said or answered.

A file that is there already keeps the permissions that it has, as with any program that writes
into a file: who has opened it to others wants it so. Devices and pipes are written to as they are.

"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


def private(path: str, flags: int) -> int:
    """Open a file for `open`; one that is made is its owner's alone, or less by the umask.

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
    return os.open(path, flags, FILE_MODE)


def make_directory(path: str | Path) -> None:
    """Make a directory, and those above it, for their owner alone; one that is there stays so.

    Raises
    ------
    OSError
        If it cannot be made, or something else is there.

    """
    path = Path(path)
    if path.is_dir():
        return
    # `Path.mkdir(parents=True)` makes the ones above as open as the umask allows.
    make_directory(path.parent)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
