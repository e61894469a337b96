"""The ends of a replay on the disk: where its events come from, and where its messages go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from connectors.broker import Received
from connectors.files.messages import MessageFiles, alone_in
from connectors.tables.logs import LogSource
from connectors.tables.streams import TableError
from streamgp.base import State
from streamgp.cli.configuration.logs import N_REASONS_SHOWN
from streamgp.cli.replay.results import FILE_NAMES, SUMMARY, TIMING
from streamgp.interactive import Input, Message, Rejected


def claim(out: Path | None, *, log: Path, until: ExitStack) -> None:
    """Keep other replays out of the directory to write to, if there is one, until a stack ends."""
    if out is None:
        return
    if log.resolve() in [(out / name).resolve() for name in FILE_NAMES]:
        raise click.ClickException(
            f"{log} would be overwritten by what is written to {out}; name another directory"
        )
    be_alone_in(out, until=until)


def be_alone_in(out: Path, *, until: ExitStack) -> None:
    """Keep other replays out of a directory until a stack ends."""
    with _in_words():
        until.enter_context(alone_in(out))


def open_files(out: Path | None, *, sizes: Mapping[str, int] | None) -> MessageFiles | None:
    """Open the message files of a directory, to go on at their sizes if there are any.

    The summary of an earlier run is removed: it does not belong to what follows.
    """
    if out is None:
        return None
    with _in_words():
        files = MessageFiles(out, sizes=sizes)
    for name in (SUMMARY, TIMING):
        (out / name).unlink(missing_ok=True)
    return files


@contextmanager
def _in_words() -> Iterator[None]:
    """Turn what is wrong with a directory into one line."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(str(error)) from None


class EndingLog:
    """A log that ends where it is damaged, so that what came before is not lost.

    Attributes
    ----------
    source
        The log itself.
    error
        What is wrong with it; None as long as nothing is.

    """

    def __init__(self, source: LogSource) -> None:
        self.source = source
        self.error: TableError | None = None

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return the next rows; none where the log is damaged."""
        try:
            return self.source.poll(timeout_s)
        except TableError as error:
            self.error = error
            return []

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing further to read."""
        return self.error is not None or self.source.exhausted

    def commit(self) -> None:
        """Commit the log."""
        self.source.commit()

    def close(self) -> None:
        """Let go of the file."""
        self.source.close()


class ReplaySink:
    """Message files, if any are wanted, and the first reasons for which rows were rejected.

    Attributes
    ----------
    reasons
        The first reasons, by the key of the row.
    n_rejected
        How many there were.

    """

    def __init__(self, files: MessageFiles | None) -> None:
        self._files = files
        self.reasons: list[tuple[str | None, str]] = []
        self.n_rejected = 0

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Write a message."""
        if isinstance(message, Rejected):
            self.n_rejected += 1
            if self.n_rejected <= N_REASONS_SHOWN:
                reason = f"rejected {message.subject}: {message.reason}"
                self.reasons.append((message.key, reason))
        if self._files is not None:
            self._files.send(message, cause=cause)

    def flush(self) -> None:
        """Leave it to the files' buffers: what is not synced is made once more."""

    def sync(self) -> dict[str, int] | None:
        """Force everything to the disk; return the size of each file, None without files."""
        return None if self._files is None else self._files.sync()

    def forget(self, key: str, n_rejected: int) -> None:
        """Take out the rows of a key, of which so many were rejected."""
        self.reasons = [(whose, reason) for whose, reason in self.reasons if whose != key]
        self.n_rejected -= n_rejected

    def state(self) -> State:
        """Return what must survive a restart."""
        return {"reasons": [list(pair) for pair in self.reasons], "n_rejected": self.n_rejected}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self.reasons = [(key, reason) for key, reason in state["reasons"]]
        self.n_rejected = int(state["n_rejected"])

    def close(self) -> None:
        """Close the files."""
        if self._files is not None:
            self._files.close()
