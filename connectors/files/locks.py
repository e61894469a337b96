"""One worker at a time in a directory of topics."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from time import monotonic, sleep

from connectors.files.layout import in_words
from connectors.topics import RefusedError

_PATIENCE_S = 0.2
_STEP_S = 0.02


def hold(directory: Path) -> int:
    """Keep other workers out of a directory until the descriptor returned is closed.

    The lock is on the directory itself and ends with the process, however that ends.

    Raises
    ------
    LinkError
        If somebody is in it, or it cannot be read.

    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise in_words(f"cannot use {directory}", error) from error
    until = monotonic() + _PATIENCE_S
    while not _lock(descriptor, fcntl.LOCK_EX):
        if monotonic() > until:
            os.close(descriptor)
            raise RefusedError(
                f"{directory} is in use by another worker, and serves only one; stop that one, or "
                "use another broker"
            )
        sleep(_STEP_S)  # whoever looks whether it is held holds it for a moment
    return descriptor


def is_held(directory: Path) -> bool:
    """Return whether a worker is in a directory."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise in_words(f"cannot use {directory}", error) from error
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # some file systems lock no directories: better unguarded than refused
    return True
