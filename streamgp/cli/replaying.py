"""What `streamgp replay` does once its options are known: open, play, write, show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import click

from connectors.broker import Received
from connectors.files import MessageFiles
from connectors.logs import LogSource
from connectors.streams import TableError
from streamgp.base import State
from streamgp.cli import build
from streamgp.cli.report import write_report
from streamgp.cli.results import FILE_NAMES, SUMMARY, TIMING, results_text, write_results
from streamgp.cli.scenario import Game
from streamgp.cli.settings import Config
from streamgp.cli.state import Cut, Keeper, in_words
from streamgp.cli.terminal import progress
from streamgp.interactive import Input, InteractiveLoop, KeyedLoops, Message, Rejected
from streamgp.interactive.snapshot import INCONSISTENT

N_REASONS_SHOWN = 5


def replay_log(
    path: Path,
    config: Config,
    out: Path | None,
    *,
    source: str,
    report: Path | None = None,
    state: Path | None = None,
) -> int:
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
    report
        Page to write, or None.
    state
        Directory in which the replay is saved, and from which it goes on, or None.

    Returns
    -------
    The exit status: 0, 130 after Ctrl-C, 2 if the log turned out to be damaged on the way.

    Raises
    ------
    ConfigError
        If the learner cannot be built.
    click.ClickException
        If the log cannot be read, a directory or the page cannot be written, or the state belongs
        to another replay.

    """
    with ExitStack() as stack:
        directory = out
        if report is not None and out is None:
            # The page is made from a run's files; nobody wants to keep these.
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="streamgp-")))
        keeper = None
        if state is not None:
            keeper = stack.enter_context(closing(Keeper(state, config, path, out)))
        replay = _Replay(path, config, directory, keeper, source=source)
        try:
            replay.play()
        except OSError as error:
            # Whatever is wrong with the log is a TableError: this is about what we write.
            if directory is None:
                raise
            raise click.ClickException(
                f"cannot write to {directory}: {error.strerror or error}"
            ) from None
        return replay.say(out, report)


class _Replay:
    """One replay, from opening the log to the last word on the terminal."""

    def __init__(
        self,
        path: Path,
        config: Config,
        directory: Path | None,
        keeper: Keeper | None,
        *,
        source: str,
    ) -> None:
        self._path = path
        self._config = config
        self._directory = directory
        self._keeper = keeper
        self._source = source
        self._start = perf_counter()

    def play(self) -> None:
        """Play the log, from where an earlier replay was cut, and write the files."""
        keeper, config, notes = self._keeper, self._config, list[str]()
        with ExitStack() as stack:
            shelf = None if keeper is None else keeper.shelf()
            if shelf is not None:
                stack.enter_context(closing(shelf))
            cut = None if keeper is None else keeper.cut()
            with in_words():
                loop = build.build_loop(
                    config,
                    source=self._source,
                    shelf=shelf,
                    snapshot=None if cut is None else cut.loop,
                )
            annotator = build.build_annotator(config)
            log = stack.enter_context(closing(_Log(_open_log(self._path, config, notes))))
            files = self._open_files(None if cut is None else cut.sizes)
            sink = stack.enter_context(closing(_Sink(files)))
            show = stack.enter_context(progress())
            game = Game(loop, log, annotator, sink)
            if cut is not None:
                _go_on(game, sink, cut, lambda n: show(f"{n} events again", log.source.progress))
            save = _Saver(keeper, loop, game, sink)
            played = game.play(
                on_event=lambda n: show(f"{n} events", log.source.progress),
                on_commit=save.if_due,
            )
            if played.result.whole:
                save.now()
        self._seconds = perf_counter() - self._start
        if self._directory is not None:
            write_results(
                self._directory,
                log=self._path,
                config=config,
                notes=notes,
                played=played,
                wall_s=self._seconds,
            )
        self._log, self._sink, self._played = log, sink, played

    def say(self, out: Path | None, report: Path | None) -> int:
        """Show the table, make the page, and return the exit status."""
        sink, played = self._sink, self._played
        _say_what_was_rejected(sink, out)
        click.echo(results_text(self._config, played))
        if out is not None:
            click.echo(f"messages, {SUMMARY} and {TIMING} are in {out}")
        if report is not None:
            assert self._directory is not None  # there is one wherever a page is wanted
            write_report(self._directory, report)
            click.echo(f"report: {report}")
        click.echo(f"{played.result.n_events} events in {self._seconds:.1f} s", err=True)
        if self._log.error is not None:
            click.echo(f"Error: {self._log.error} (what came before it is kept)", err=True)
            return 2
        if not played.tally.n_events and sink.n_rejected:
            click.echo(
                f"Error: no row of {self._path} could be read; see the reasons above", err=True
            )
            return 2
        if played.result.interrupted:
            further = "" if self._keeper is None else "; the same command goes on from here"
            click.echo(f"interrupted; what was done so far is kept{further}", err=True)
            return 130
        return 0

    def _open_files(self, sizes: Mapping[str, int] | None) -> MessageFiles | None:
        out, log = self._directory, self._path
        if out is None:
            return None
        if log.resolve() in [(out / name).resolve() for name in FILE_NAMES]:
            raise click.ClickException(
                f"{log} would be overwritten by what is written to {out}; name another directory"
            )
        try:
            files = MessageFiles(out, sizes=sizes)
        except ValueError as error:
            raise click.ClickException(str(error)) from None
        for name in (SUMMARY, TIMING):  # of an earlier run: they do not belong to what follows
            (out / name).unlink(missing_ok=True)
        return files


class _Saver:
    """Saves a game where the keeper wants it; without one, nothing is saved."""

    def __init__(
        self,
        keeper: Keeper | None,
        loop: InteractiveLoop | KeyedLoops,
        game: Game,
        sink: _Sink,
    ) -> None:
        self._keeper = keeper
        self._loop = loop
        self._game = game
        self._sink = sink

    def if_due(self) -> None:
        if self._keeper is not None and self._keeper.is_due():
            self.now()

    def now(self) -> None:
        if self._keeper is None:
            return
        start = perf_counter()
        # The files first: a state must not speak of more than is there.
        sizes = self._sink.sync()
        game = {"game": self._game.state(), "sink": self._sink.state()}
        with in_words():
            self._keeper.save(Cut(loop=self._loop.snapshot(), game=game, sizes=sizes))
        self._keeper.rest(perf_counter() - start)


def _go_on(game: Game, sink: _Sink, cut: Cut, on_event: Callable[[int], None]) -> None:
    try:
        sink.load_state(cut.game["sink"])
        game.load_state(cut.game["game"], on_event=on_event)
    except INCONSISTENT as error:
        raise click.ClickException(
            f"the state cannot be restored: {error!s:.200}; name another directory to begin anew"
        ) from None


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
        """Leave it to the files' buffers: what is not synced is made once more."""

    def sync(self) -> dict[str, int] | None:
        return None if self._files is None else self._files.sync()

    def state(self) -> State:
        return {"reasons": self.reasons, "n_rejected": self.n_rejected}

    def load_state(self, state: State) -> None:
        self.reasons, self.n_rejected = list(state["reasons"]), int(state["n_rejected"])

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


def _say_what_was_rejected(sink: _Sink, out: Path | None) -> None:
    for reason in sink.reasons:
        click.echo(reason, err=True)
    more = sink.n_rejected - len(sink.reasons)
    if more:
        where = "; --out DIR writes them all" if out is None else ", see rejected.jsonl"
        click.echo(f"and {more} more rejected{where}", err=True)
