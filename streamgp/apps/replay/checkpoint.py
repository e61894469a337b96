"""Checkpoints of a replay (`--state DIR`): interrupted anywhere, it can be resumed.

One file holds the loop, the position in the log, the pending answers and all counts; evicted loops
are stored beside it. It also holds the sizes of the message files, so that everything written after
the checkpoint can be truncated.

"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from streamgp.apps.console import in_one_line, tell
from streamgp.base import State
from streamgp.common.environment import differences, differences_text, environment
from streamgp.common.printable import path_text
from streamgp.config.settings import Config, resolved
from streamgp.config.validation import converted
from streamgp.interactive.state.snapshot import Snapshot, SnapshotError

# --- Identity of the replay to which a state belongs; only the same replay may resume it.
#
# A replay is the same if it has the same log, configuration, version and output directory, and the
# same hash seed, since some of River's learners depend on hash order (see `main`). Another
# numerical environment is reported, or refused if the user demands it.


_ENDS = 1 << 16
_HASH_SEED = "PYTHONHASHSEED"
_URI = "file://"  # no absolute path begins like this
_START_OVER = "or name another directory to start over"


def origin_of(config: Config, log: Path, out: Path | None) -> State:
    """Return the identity of a replay, as plain JSON values.

    Parameters
    ----------
    log
        The log. Only its name, its size and both of its ends are used.
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
    """Return a directory as text that JSON can hold: a URI if its name is not UTF-8."""
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
    """Return the configuration of a replay, with everything that its preset determined.

    Examples
    --------
    >>> config_of({"configuration": {"seed": 3, "query": {"rule": "never"}}}).query
    NeverAsk()

    """
    return msgspec.convert(origin["configuration"], Config, dec_hook=converted)


def check_version(directory: Path, origin: State) -> None:
    """Refuse a state that another version has saved."""
    if origin["streamgp"] != __version__:
        raise click.ClickException(
            f"{directory} holds a replay of streamgp {origin['streamgp']}, this is {__version__}; "
            f"continue with that version, {_START_OVER}"
        )


def check_same(directory: Path, there: State, here: State) -> None:
    """Refuse to resume another replay than that of a state."""
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
    # States older than a setting lack it.
    settings_there, settings_here = _settings(config_of(there)), here["configuration"]
    if settings_there != settings_here:
        name, was, now = _difference(settings_there, settings_here)
        raise click.ClickException(
            f"{directory} holds a replay with {name} = {was!r}, this one has {now!r}; continue "
            f"with the same configuration, {_START_OVER}"
        )


def compare_environments(directory: Path, there: State, *, strict: bool) -> None:
    """Report if a replay is resumed in another numerical environment, or refuse it."""
    was = there.get("environment")  # older states have none
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
# In a long run, saving takes at most one part in this many of the time.
_PAUSE_PER_COST = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """State of a replay at a checkpoint.

    Parameters
    ----------
    around
        State of everything around the loop.
    sizes
        Size of each message file; None if none are written.
    forgetting
        Keys whose deletion has begun but is unfinished.

    """

    loop: bytes
    around: State
    sizes: Mapping[str, int] | None
    forgetting: Sequence[str] = ()


class Keeper:
    """Saves a replay in a directory, and loads the checkpoint of an earlier one.

    Parameters
    ----------
    directory
        The directory; created if missing.
    config
        The configuration; a replay is resumed only with the same one.
    log
        The log; likewise.
    out
        Directory of the message files, or None; likewise.
    strict
        Whether to refuse to go on in another numerical environment.

    Raises
    ------
    StateError
        If the directory cannot be used; any method may raise it.

    """

    # _next  when the next save is due, on the clock `perf_counter`
    def __init__(
        self, directory: Path, config: Config, log: Path, out: Path | None, *, strict: bool
    ) -> None:
        self._strict = strict
        self._origin = origin_of(config, log, out)
        self._config = config
        self._next = perf_counter() + _SHORTEST_PAUSE_S
        self._directory = StateDirectory(directory)

    def store(self) -> SqliteStore | None:
        """Open the store of evicted loops, if loops can be evicted."""
        return open_store(self._directory, self._config)

    def cut(self) -> Cut | None:
        """Return the checkpoint of an earlier replay, None if there is none.

        Raises
        ------
        click.ClickException
            If it was another replay or, with `strict`, had another numerical environment.
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
        return perf_counter() >= self._next

    def save_if_due(self, now: Callable[[], Cut]) -> None:
        if self.is_due():
            self.save(now)

    def save(self, now: Callable[[], Cut]) -> None:
        """Save the state that `now` returns durably, in place of the earlier checkpoint."""
        start = perf_counter()
        write(self._directory, self._origin, now())
        end = perf_counter()
        self._next = end + max(_SHORTEST_PAUSE_S, _PAUSE_PER_COST * (end - start))

    def close(self) -> None:
        """Release the directory for other processes."""
        self._directory.close()


def open_store(directory: StateDirectory, config: Config) -> SqliteStore | None:
    """Open the store of evicted loops, if loops can be evicted.

    Raises
    ------
    StateError
        If it cannot be opened, or is missing although the rest of the state is there.

    """
    if config.log.key is None or config.loop.max_keys is None:
        return None
    path = directory.file(LOOPS)
    if directory.file(REPLAY).exists() and not path.exists():
        raise StateError(f"{path} is gone; restore it, or delete {directory.path} to start over")
    return SqliteStore(path)


def read(directory: StateDirectory) -> tuple[State, Cut] | None:
    """Read the identity and the checkpoint of the replay in a directory.

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
        around=body["game"],
        sizes=body["sizes"],
        forgetting=body["forgetting"],
    )


def write(directory: StateDirectory, origin: State, cut: Cut) -> None:
    """Write the identity and the checkpoint of a replay."""
    body = {
        "origin": origin,
        "game": cut.around,
        "sizes": cut.sizes,
        "forgetting": list(cut.forgetting),
    }
    snapshot = Snapshot(kind=_KIND, fingerprint="", body=body, blobs=[cut.loop])
    directory.write(REPLAY, snapshot.to_bytes())


@contextmanager
def state_in_one_line(directory: Path | None) -> Iterator[None]:
    """Let errors of the state in a directory, if there is one, end the command."""
    try:
        with in_one_line(StateError):
            yield
    except SnapshotError as error:
        where = "state" if directory is None else directory / REPLAY
        raise click.ClickException(f"{where}: {error}") from None
