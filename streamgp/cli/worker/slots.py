"""Which worker this is: its instance name, and the directory that goes with it.

A restarted worker should be the same as before: it finds its snapshots, and the broker gives it
back its partitions at once. Where no name is configured, the workers of one machine count through;
the lock of a directory says which numbers are taken, and a process that ends gives its number back.

"""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from connectors.storage.snapshots import InUseError, StateDirectory
from streamgp.cli.configuration.validation import ConfigError

_ORIGIN = "topics"


@dataclass(frozen=True, slots=True)
class Slot:
    """A worker's place.

    Parameters
    ----------
    instance
        Its name within the group.
    state
        Where it keeps snapshots, None if it cannot keep any.
    trouble
        Why not, in one line.

    """

    instance: str
    state: StateDirectory | None = None
    trouble: str | None = None


def take_slot(root: Path, instance: str | None, *, origin: str) -> Slot:
    """Take a place and lock its directory.

    Parameters
    ----------
    root
        Directory of the directories of all instances.
    instance
        Name of this one; None for the first that is free.
    origin
        Which topics the snapshots belong to. Those of other topics are removed: they hold nothing
        that is not in those topics.

    Raises
    ------
    ConfigError
        If the instance that was named is at work already.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     one, two = (take_slot(Path(directory), None, origin="here") for _ in range(2))
    ...     one.state.close(), two.state.close()
    ...     one.instance[-2:], two.instance[-2:], one.state.path.name == one.instance
    (None, None)
    ('-0', '-1', True)

    """
    try:
        state = _first_free(root) if instance is None else StateDirectory(root / instance)
        try:
            _claim(state, origin)
        except OSError:
            state.close()
            raise
        return Slot(state.path.name, state)
    except InUseError as error:
        raise ConfigError(
            f"worker {instance!r} is at work already: {error}, or give this worker a name of its "
            "own with --instance"
        ) from None
    except OSError as error:
        # Without a lock nobody knows which numbers are taken: one that nobody else has.
        return Slot(instance or f"{_host()}-{secrets.token_hex(4)}", trouble=str(error))


def origin_of_state(url: str, names: Iterable[str], group: str, identity: str) -> str:
    """Return which topics a worker's snapshots belong to, in a form that can be compared.

    The identity tells topics from earlier ones that were called the same.
    """
    return "\n".join([url, group, *names, identity, ""])


def _first_free(root: Path) -> StateDirectory:
    """Lock the first directory that no other worker uses."""
    host, n = _host(), 0
    while True:
        try:
            return StateDirectory(root / f"{host}-{n}")
        except InUseError:
            n += 1


def _claim(state: StateDirectory, origin: str) -> None:
    """Make sure that everything in a directory belongs to some topics."""
    if state.read(_ORIGIN) == origin.encode():
        return
    for name in state.names():
        with suppress(FileNotFoundError):
            state.file(name).unlink()
    state.write(_ORIGIN, origin.encode())


def _host() -> str:
    """Return the name of this machine, as far as it can be part of an instance name."""
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", socket.gethostname())[:150].strip(".-") or "worker"
