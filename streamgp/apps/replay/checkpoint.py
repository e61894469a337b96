"""Checkpoints of a replay (`--state DIR`): cut anywhere, the next one goes on.

One file holds the loop, how far the log was taken, the answers on their way and all counts; the
loops of keys that are not held ready lie beside it. What the sizes of the message files were is
part of it, so that everything written after the cut can be cut off.

"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import unquote_to_bytes

import click
import msgspec

from connectors.storage.snapshots import StateDirectory, StateError
from connectors.storage.sqlite import SqliteStore
from streamgp import __version__
from streamgp.apps.console import tell
from streamgp.base import State
from streamgp.common.environment import differences, differences_text, environment
from streamgp.common.printable import path_text
from streamgp.config.settings import Config, resolved
from streamgp.config.validation import converted
from streamgp.interactive.state.snapshot import Snapshot, SnapshotError

# --- Identity of the replay that a state belongs to; only the same one may resume it.
#
# The same is a replay of the same log with the same configuration and version to the same
# directory, and with the same hashes: some of River's learners follow their order, see `main`.
# Another numerical environment is reported, or refused where the user demands it.


_ENDS = 1 << 16
_HASH_SEED = "PYTHONHASHSEED"
_URI = "file://"  # no absolute path begins so
_START_OVER = "or name another directory to start over"


def origin_of(config: Config, log: Path, out: Path | None) -> State:
    """Return what a replay is known by, as plain JSON values.

    Parameters
    ----------
    config
        The configuration.
    log
        The log. Its name, its size and both of its ends are taken, not all of it.
    out
        Directory of the message files, or None.

    """
    return {
        "streamgp": __version__,
        "hash_seed": os.environ.get(_HASH_SEED, "random"),
        "configuration": _settings(resolved(config)),
        "log": _identity(log),
        "out": None if out is None else _address_of(out.resolve()),
        "environment": environment(),
    }


def _address_of(directory: Path) -> str:
    """Return a directory as text that JSON can hold: a URI where its name is not UTF-8."""
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        return directory.as_uri()
    return str(directory)


def out_of(origin: State) -> Path | None:
    r"""Return the directory of the message files of a replay, None if it writes none.

    Examples
    --------
    >>> out_of({"out": "/results"}), out_of({"out": "file:///r%E4ume"})
    (PosixPath('/results'), PosixPath('/r\udce4ume'))

    """
    out = origin["out"]
    if out is None or not out.startswith(_URI):
        return None if out is None else Path(out)
    return Path(os.fsdecode(unquote_to_bytes(out.removeprefix(_URI))))


def config_of(origin: State) -> Config:
    """Return the configuration of a replay, with everything that its preset decided.

    Examples
    --------
    >>> config_of({"configuration": {"seed": 3, "query": {"rule": "never"}}}).query
    NeverAsk()

    """
    return msgspec.convert(origin["configuration"], Config, dec_hook=converted)


def check_version(directory: Path, origin: State) -> None:
    """Refuse what another version has saved."""
    if origin["streamgp"] != __version__:
        raise click.ClickException(
            f"{directory} holds a replay of streamgp {origin['streamgp']}, this is {__version__}; "
            f"continue with that version, {_START_OVER}"
        )


def check_same(directory: Path, there: State, here: State) -> None:
    """Refuse to go on with another replay than that of a state."""
    check_version(directory, there)
    if there["hash_seed"] != here["hash_seed"]:
        raise click.ClickException(
            f"{directory} holds a replay with {_HASH_SEED}={there['hash_seed']}, this one has "
            f"{here['hash_seed']}; set that environment variable as before, {_START_OVER}"
        )
    if there["out"] != here["out"]:
        raise click.ClickException(
            f"{directory} holds a replay {_with(there['out'])}, this one is {_with(here['out'])}; "
            f"continue as it began, {_START_OVER}"
        )
    if there["log"] != here["log"]:
        raise click.ClickException(
            f"{directory} holds a replay of another log, or {here['log']['name']} has changed "
            f"since; restore {there['log']['name']} of {there['log']['size']} bytes, "
            f"{_START_OVER}"
        )
    # A state from before there was some setting is one without it.
    settings_there, settings_here = _settings(config_of(there)), here["configuration"]
    if settings_there != settings_here:
        name, was, now = _difference(settings_there, settings_here)
        raise click.ClickException(
            f"{directory} holds a replay with {name} = {was!r}, this one has {now!r}; continue "
            f"with the same configuration, {_START_OVER}"
        )


def compare_environments(directory: Path, there: State, *, strict: bool) -> None:
    """Say so if a replay goes on in another numerical environment, or refuse it."""
    was = there.get("environment")  # a state from before it was recorded has none
    if was is None:
        if strict:
            raise click.ClickException(
                f"{directory} does not record the numerical environment in which it was saved, so "
                f"--strict cannot check it; leave out --strict, {_START_OVER}"
            )
        return
    found = differences(was)
    if not found:
        return
    what = f"{directory} was saved in another numerical environment ({differences_text(found)})"
    if strict:
        raise click.ClickException(
            f"{what}, and --strict demands the same; go back to it, leave out --strict, "
            f"{_START_OVER}"
        )
    tell(f"note: {what}; results from here on agree to about 1e-9, not bitwise")


def _settings(config: Config) -> Any:
    return msgspec.json.decode(msgspec.json.encode(config))


def _with(out: str | None) -> str:
    return "without --out" if out is None else f"with --out {out}"


def _identity(log: Path) -> State:
    size = log.stat().st_size
    with log.open("rb") as file:
        ends = file.read(_ENDS)
        file.seek(max(0, size - _ENDS))
        ends += file.read(_ENDS)
    return {
        "name": path_text(log.name),
        "size": size,
        "ends": blake2b(ends, digest_size=16).hexdigest(),
    }


def _difference(there: Any, here: Any, path: str = "") -> tuple[str, Any, Any]:
    """Return the first setting in which two configurations differ, with both values.

    Examples
    --------
    >>> _difference({"seed": 1, "log": {"time": None}}, {"seed": 1, "log": {"time": "at"}})
    ('log.time', None, 'at')

    """
    if isinstance(there, dict) and isinstance(here, dict):
        for name in dict.fromkeys([*there, *here]):
            if there.get(name) != here.get(name):
                inner = f"{path}.{name}" if path else name
                return _difference(there.get(name), here.get(name), inner)
    return path, there, here


REPLAY = "replay.snapshot"
LOOPS = "loops.sqlite"
_KIND = "a replay"
_SHORTEST_PAUSE_S = 1.0
# In a long run, saving costs no more than one part in so many of the time.
_PAUSE_PER_COST = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Position at which a replay was cut.

    Parameters
    ----------
    loop
        Snapshot of the loop.
    game
        How far everything around the loop was.
    sizes
        Size of each message file; None if none are written.
    forgetting
        Keys whose deletion began and is unfinished.

    """

    loop: bytes
    game: State
    sizes: Mapping[str, int] | None
    forgetting: Sequence[str] = ()


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
    strict
        Whether to refuse to go on in another numerical environment.

    Raises
    ------
    StateError
        If the directory cannot be used; any method may raise it.

    """

    # _next  when the next save is due, by the clock of `perf_counter`
    def __init__(
        self, directory: Path, config: Config, log: Path, out: Path | None, *, strict: bool = False
    ) -> None:
        self._strict = strict
        self._origin = origin_of(config, log, out)
        self._config = config
        self._next = perf_counter() + _SHORTEST_PAUSE_S
        self._directory = StateDirectory(directory)

    def store(self) -> SqliteStore | None:
        """Open the store for loops that are not held ready, if there can be any."""
        return open_store(self._directory, self._config)

    def cut(self) -> Cut | None:
        """Return where an earlier replay was cut, or None if there was none.

        Raises
        ------
        click.ClickException
            If it was another replay, or, where that is to be refused, one in another numerical
            environment.
        SnapshotError
            If the file is damaged.

        """
        found = read(self._directory)
        if found is None:
            return None
        origin, cut = found
        check_same(self._directory.path, origin, self._origin)
        compare_environments(self._directory.path, origin, strict=self._strict)
        for key in cut.forgetting:
            raise click.ClickException(
                f"`streamgp forget` was interrupted while it removed {key!r} from "
                f"{self._directory.path}; run it again, then continue"
            )
        return cut

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return perf_counter() >= self._next

    def save(self, cut: Cut) -> None:
        """Save, durably; what was saved before is replaced."""
        write(self._directory, self._origin, cut)

    def rest(self, cost_s: float) -> None:
        """Put the next save off, in proportion to what this one cost."""
        self._next = perf_counter() + max(_SHORTEST_PAUSE_S, _PAUSE_PER_COST * cost_s)

    def close(self) -> None:
        """Let another process in."""
        self._directory.close()


def check_log(log: Path) -> None:
    """Refuse a log that cannot be read a second time."""
    # What is not there, or a directory, is for the reader of the log to talk about.
    if log.exists() and not (log.is_file() or log.is_dir()):
        raise click.ClickException(
            f"{log} cannot be read a second time, which --state needs; save it to a file first"
        )


def open_store(directory: StateDirectory, config: Config) -> SqliteStore | None:
    """Open the store for loops that are not held ready, if there can be any.

    Raises
    ------
    StateError
        If it cannot be opened, or is not there though the rest of the state is.

    """
    if config.log.key is None or config.loop.max_keys is None:
        return None
    path = directory.file(LOOPS)
    if directory.file(REPLAY).exists() and not path.exists():
        raise StateError(f"{path} is gone; restore it, or delete {directory.path} to start over")
    return SqliteStore(path)


def read(directory: StateDirectory) -> tuple[State, Cut] | None:
    """Return what a directory holds: where the replay came from, and where it was cut.

    Raises
    ------
    StateError, SnapshotError
        If the file cannot be read, or is damaged.

    """
    data = directory.read(REPLAY)
    if data is None:
        return None
    if not data:
        raise SnapshotError(
            "snapshot is damaged: it is empty; restore it, or delete it to start over"
        )
    snapshot = Snapshot.from_bytes(data)
    snapshot.check(_KIND, "")
    body = snapshot.body
    return body["origin"], Cut(
        loop=snapshot.blobs[0],
        game=body["game"],
        sizes=body["sizes"],
        forgetting=body["forgetting"],
    )


def write(directory: StateDirectory, origin: State, cut: Cut) -> None:
    """Write what `read` returns."""
    body = {
        "origin": origin,
        "game": cut.game,
        "sizes": cut.sizes,
        "forgetting": list(cut.forgetting),
    }
    snapshot = Snapshot(kind=_KIND, fingerprint="", body=body, blobs=[cut.loop])
    directory.write(REPLAY, snapshot.to_bytes())


@contextmanager
def in_words(directory: Path | None) -> Iterator[None]:
    """Turn what goes wrong with the state in a directory, if there is one, into one line."""
    try:
        yield
    except SnapshotError as error:
        where = "state" if directory is None else directory / REPLAY
        raise click.ClickException(f"{where}: {error}") from None
    except StateError as error:
        raise click.ClickException(str(error)) from None
