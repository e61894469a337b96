"""What `streamgp replay` does once its options are known: open, play, write, show."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from time import perf_counter

import click

from connectors.broker import Received
from connectors.files import MessageFiles
from connectors.logs import LogSource
from connectors.streams import TableError
from streamgp.cli import build
from streamgp.cli.results import FILE_NAMES, SUMMARY, TIMING, results_text, write_results
from streamgp.cli.scenario import play
from streamgp.cli.settings import Config
from streamgp.cli.terminal import progress
from streamgp.interactive import Input, Message, Rejected

N_REASONS_SHOWN = 5


def replay_log(path: Path, config: Config, out: Path | None, *, source: str) -> int:
    """Replay a log, write what was asked for, show the table.

    Parameters
    ----------
    path
        The log.
    config
        The configuration, with the label column.
    out
        Directory to write to, or None.
    source
        Where the configuration came from, for messages about it.

    Returns
    -------
    The exit status: 0, 130 after Ctrl-C, 2 if the log turned out to be damaged on the way.

    Raises
    ------
    ConfigError
        If the learner cannot be built.
    click.ClickException
        If the log cannot be read or the directory cannot be written.

    """
    start = perf_counter()
    loop = build.build_loop(config, source=source)
    annotator = build.build_annotator(config)
    notes: list[str] = []
    try:
        with (
            closing(_Log(_open_log(path, config, notes))) as log,
            closing(_Sink(None if out is None else _open_files(out, path))) as sink,
            progress() as show,
        ):
            played = play(
                loop,
                log,
                annotator,
                name=path.name,
                sink=sink,
                on_event=lambda n: show(f"{n} events", log.source.progress),
                curve_every=0,
            )
        seconds = perf_counter() - start
        if out is not None:
            write_results(out, log=path, config=config, notes=notes, played=played, wall_s=seconds)
    except OSError as error:
        # Whatever is wrong with the log is a TableError: this is about what we write.
        if out is None:
            raise
        raise click.ClickException(f"cannot write to {out}: {error.strerror or error}") from None
    _say_what_was_rejected(sink, out)
    click.echo(results_text(config, played))
    if out is not None:
        click.echo(f"messages, {SUMMARY} and {TIMING} are in {out}")
    click.echo(f"{played.result.n_events} events in {seconds:.1f} s", err=True)
    if log.error is not None:
        click.echo(f"Error: {log.error} (what came before it is kept)", err=True)
        return 2
    if not played.result.n_events and sink.n_rejected:
        click.echo(f"Error: no row of {path} could be read; see the reasons above", err=True)
        return 2
    if played.result.interrupted:
        click.echo("interrupted; what was done so far is kept", err=True)
        return 130
    return 0


class _Log:
    """A log that ends where it is damaged, so that what came before is not lost."""

    def __init__(self, source: LogSource) -> None:
        self.source = source
        self.error: TableError | None = None

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        try:
            return self.source.poll(timeout_s)
        except TableError as error:
            self.error = error
            return []

    @property
    def exhausted(self) -> bool:
        return self.error is not None or self.source.exhausted

    def commit(self) -> None:
        self.source.commit()

    def close(self) -> None:
        self.source.close()


class _Sink:
    """Message files, if any are wanted, and the first reasons for which rows were rejected."""

    def __init__(self, files: MessageFiles | None) -> None:
        self._files = files
        self.reasons: list[str] = []
        self.n_rejected = 0

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        if isinstance(message, Rejected):
            self.n_rejected += 1
            if self.n_rejected <= N_REASONS_SHOWN:
                self.reasons.append(f"rejected {message.subject}: {message.reason}")
        if self._files is not None:
            self._files.send(message, cause=cause)

    def flush(self) -> None:
        """Leave it to the files' buffers: a replay is repeated, not resumed."""

    def close(self) -> None:
        if self._files is not None:
            self._files.close()


def _open_log(path: Path, config: Config, notes: list[str]) -> LogSource:
    columns = config.log
    assert columns.label is not None

    def note(line: str) -> None:
        notes.append(line)
        click.echo(f"note: {line}", err=True)

    try:
        return LogSource(
            path,
            label=columns.label,
            time=columns.time,
            key=columns.key,
            ignore=columns.ignore,
            features=columns.features,
            limit=columns.limit,
            notes=note,
        )
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def _open_files(out: Path, log: Path) -> MessageFiles:
    if log.resolve() in [(out / name).resolve() for name in FILE_NAMES]:
        raise click.ClickException(
            f"{log} would be overwritten by what is written to {out}; name another directory"
        )
    try:
        files = MessageFiles(out)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    for name in (SUMMARY, TIMING):  # of an earlier run: they do not belong to what follows
        (out / name).unlink(missing_ok=True)
    return files


def _say_what_was_rejected(sink: _Sink, out: Path | None) -> None:
    for reason in sink.reasons:
        click.echo(reason, err=True)
    more = sink.n_rejected - len(sink.reasons)
    if more:
        where = "; --out DIR writes them all" if out is None else ", see rejected.jsonl"
        click.echo(f"and {more} more rejected{where}", err=True)
