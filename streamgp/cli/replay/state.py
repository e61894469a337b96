"""What `--state DIR` holds: a replay cut anywhere, from which the next one goes on.

One file holds the loop, how far the log was taken, the answers on their way and all counts; the
loops of keys that are not held ready lie beside it. What the sizes of the message files were is
part of it, so that everything written after the cut can be cut off.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import click

from connectors.storage.shelf import SqliteShelf
from connectors.storage.snapshots import StateDirectory, StateError
from streamgp.base import State
from streamgp.cli.configuration.settings import Config
from streamgp.cli.replay.origin import check_same, compare_environments, origin_of
from streamgp.interactive.snapshot import Snapshot, SnapshotError

REPLAY = "replay.snapshot"
LOOPS = "loops.sqlite"
_KIND = "a replay"
_SHORTEST_PAUSE_S = 1.0
# In a long run, saving costs no more than one part in so many of the time.
_PAUSE_PER_COST = 10.0


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
    forgetting
        Keys that somebody began to forget and has not finished with.

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

    def shelf(self) -> SqliteShelf | None:
        """Open the shelf for loops that are not held ready, if there can be any."""
        return open_shelf(self._directory, self._config)

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
                f"`streamgp forget` was cut while it removed {key!r} from {self._directory.path}; "
                "run it again, then go on"
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
            f"{log} is no file that can be read again, which --state needs; save it first"
        )


def open_shelf(directory: StateDirectory, config: Config) -> SqliteShelf | None:
    """Open the shelf for loops that are not held ready, if there can be any.

    Raises
    ------
    StateError
        If it cannot be opened, or is not there though the rest of the state is.

    """
    if config.log.key is None or config.loop.max_keys is None:
        return None
    path = directory.file(LOOPS)
    if directory.file(REPLAY).exists() and not path.exists():
        raise StateError(f"{path} is gone; bring it back, or delete {directory.path} to begin anew")
    return SqliteShelf(path)


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
            "snapshot is damaged: it is empty; bring it back, or delete it to begin anew"
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
