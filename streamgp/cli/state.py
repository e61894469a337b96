"""What `--state DIR` holds: a replay cut anywhere, from which the next one goes on.

One file holds the loop, how far the log was taken, the answers on their way and all counts; the
loops of keys that are not held ready lie beside it. What the sizes of the message files were is
part of it, so that everything written after the cut can be cut off.

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import msgspec

from connectors.shelf import SqliteShelf
from connectors.snapshots import StateDirectory, StateError
from streamgp import __version__
from streamgp.base import State
from streamgp.cli.settings import Config, resolved
from streamgp.interactive.snapshot import Snapshot, SnapshotError

REPLAY = "replay.snapshot"
LOOPS = "loops.sqlite"
_KIND = "a replay"
_SHORTEST_PAUSE_S = 1.0
# Saving costs no more than one part in so many of the time.
_PAUSE_PER_COST = 10.0
_ENDS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where a replay was cut.

    Parameters
    ----------
    loop
        Snapshot of the loop.
    game
        How far everything around the loop was.
    sizes
        Size of each message file; None if none are written.

    """

    loop: bytes
    game: State
    sizes: Mapping[str, int] | None


class Keeper:
    """Saves a replay in a directory, and finds there where an earlier one was cut.

    Parameters
    ----------
    directory
        The directory, made if it is not there.
    config
        The configuration; a replay goes on only with that it began with.
    log
        The log; the same holds.
    out
        Directory of the message files, or None; the same holds.

    Raises
    ------
    click.ClickException
        If the directory cannot be used, or belongs to another replay.

    """

    # _next  when the next save is due, by the clock of `perf_counter`
    def __init__(self, directory: Path, config: Config, log: Path, out: Path | None) -> None:
        if not log.is_file():
            raise click.ClickException(
                f"{log} is no file that can be read again, which --state needs; save it first"
            )
        self._origin = {
            "streamgp": __version__,
            "configuration": msgspec.json.decode(msgspec.json.encode(resolved(config))),
            "log": _identity(log),
            "out": None if out is None else str(out.resolve()),
        }
        self._keyed = config.log.key is not None and config.loop.max_keys is not None
        self._next = perf_counter() + _SHORTEST_PAUSE_S
        with in_words():
            self._directory = StateDirectory(directory)

    def shelf(self) -> SqliteShelf | None:
        """Open the shelf for loops that are not held ready, if there can be any."""
        if not self._keyed:
            return None
        with in_words():
            return SqliteShelf(self._directory.file(LOOPS))

    def cut(self) -> Cut | None:
        """Return where an earlier replay was cut, or None if there was none."""
        with in_words():
            found = read(self._directory)
        if found is None:
            return None
        origin, cut = found
        _compare(self._directory.path, origin, self._origin)
        return cut

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return perf_counter() >= self._next

    def save(self, cut: Cut) -> None:
        """Save, durably; what was saved before is replaced."""
        with in_words():
            write(self._directory, self._origin, cut)

    def rest(self, cost_s: float) -> None:
        """Put the next save off, in proportion to what this one cost."""
        self._next = perf_counter() + max(_SHORTEST_PAUSE_S, _PAUSE_PER_COST * cost_s)

    def close(self) -> None:
        """Let another process in."""
        self._directory.close()


def read(directory: StateDirectory) -> tuple[State, Cut] | None:
    """Return what a directory holds: where the replay came from, and where it was cut."""
    data = directory.read(REPLAY)
    if data is None:
        return None
    snapshot = Snapshot.from_bytes(data)
    snapshot.check(_KIND, "")
    origin, body = snapshot.body["origin"], snapshot.body
    return origin, Cut(loop=snapshot.blobs[0], game=body["game"], sizes=body["sizes"])


def write(directory: StateDirectory, origin: State, cut: Cut) -> None:
    """Write what `read` returns."""
    body = {"origin": origin, "game": cut.game, "sizes": cut.sizes}
    snapshot = Snapshot(kind=_KIND, fingerprint="", body=body, blobs=[cut.loop])
    directory.write(REPLAY, snapshot.to_bytes())


class in_words:  # noqa: N801 - used like a function
    """Turns what goes wrong with state on disk into one line for the user."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, StateError | SnapshotError):
            raise click.ClickException(str(error)) from None


def _identity(log: Path) -> State:
    """Return by what a log is known again, without reading all of it."""
    size = log.stat().st_size
    with log.open("rb") as file:
        ends = file.read(_ENDS)
        file.seek(max(0, size - _ENDS))
        ends += file.read(_ENDS)
    return {"name": log.name, "size": size, "ends": blake2b(ends, digest_size=16).hexdigest()}


def _compare(directory: Path, there: State, here: State) -> None:
    """Refuse to go on with something else."""
    if there == here:
        return
    anew = "or name another directory to begin anew"
    for what, name in (("streamgp", "with streamgp"), ("out", "with --out")):
        if there[what] != here[what]:
            raise click.ClickException(
                f"{directory} holds a replay {name} {there[what]}, this is {here[what]}; "
                f"go on with that, {anew}"
            )
    if there["log"] != here["log"]:
        raise click.ClickException(
            f"{directory} holds a replay of another log, or {here['log']['name']} has changed "
            f"since; bring back that of {there['log']['size']} bytes, {anew}"
        )
    name, was, now = _difference(there["configuration"], here["configuration"])
    raise click.ClickException(
        f"{directory} holds a replay with {name} = {was!r}, this one has {now!r}; "
        f"go on with the same configuration, {anew}"
    )


def _difference(there: Any, here: Any, path: str = "configuration") -> tuple[str, Any, Any]:
    """Return the first setting in which two configurations differ, with both values."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in dict.fromkeys([*there, *here]):
            if there.get(name) != here.get(name):
                inner = name if path == "configuration" else f"{path}.{name}"
                return _difference(there.get(name), here.get(name), inner)
    return path, there, here
