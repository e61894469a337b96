"""Program of `streamgp replay`: open, run, write, show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from unicodedata import normalize

import click

from connectors.broker import Received
from connectors.jsonl import MessageFiles, alone_in
from connectors.storage.snapshots import state_error
from connectors.tables.log_source import LogSource, WindowedLog
from streamgp.apps.console import (
    DONE,
    INTERRUPTED,
    WRONG_USE,
    in_one_line,
    number,
    progress,
    tell,
    warnings_as_notes,
)
from streamgp.apps.gc_tuning import seldom_collected
from streamgp.apps.recorded_logs import (
    N_REASONS_SHOWN,
    Notes,
    RepeatedLog,
    check_rereadable,
    open_log,
    tell_rejected,
)
from streamgp.apps.replay.checkpoint import Cut, Keeper, state_in_one_line
from streamgp.apps.replay.engine import (
    Played,
    Replay,
    columns_of,
    drifts_of,
    reliability_of,
)
from streamgp.apps.replay.results import (
    FILE_NAMES,
    SUMMARY,
    TIMING,
    results_text,
    write_report,
    write_results,
)
from streamgp.base import State
from streamgp.common.printable import HiddenLabels, cut, hidden_characters, printable
from streamgp.common.private_files import is_same_file
from streamgp.config import build
from streamgp.config.settings import Config
from streamgp.interactive import Input, Message, Prediction, Rejected
from streamgp.interactive.state.snapshot import INCONSISTENT

# --- Input and output files of a replay.


def claim(out: Path | None, *, log: Path, until: ExitStack) -> None:
    """Lock the output directory, if there is one, against other replays until a stack ends."""
    if out is None:
        return
    if any(is_same_file(log, out / name) for name in FILE_NAMES):
        raise click.ClickException(
            f"{log} would be overwritten by what is written to {out}; name another directory"
        )
    be_alone_in(out, until=until)


def be_alone_in(out: Path, *, until: ExitStack) -> None:
    """Lock a directory against other replays until a stack ends."""
    with in_one_line(ValueError):
        until.enter_context(alone_in(out))


def open_files(out: Path | None, *, sizes: Mapping[str, int] | None) -> MessageFiles | None:
    """Open the message files of a directory; with sizes, truncate to them and append.

    The summary of an earlier run is removed, as it does not describe this one.
    """
    if out is None:
        return None
    with in_one_line(ValueError):
        files = MessageFiles(out, sizes=sizes)
    for name in (SUMMARY, TIMING):
        (out / name).unlink(missing_ok=True)
    return files


class ReplaySink:
    """Message files, if any are requested, and the first reasons for rejected rows.

    Attributes
    ----------
    reasons
        The first reasons, by the key of the row.
    n_unlearnable
        Number of rejected examples which the learner could not learn.

    """

    def __init__(self, files: MessageFiles | None) -> None:
        self._files = files
        self.reasons: list[tuple[str | None, str]] = []
        self.n_unlearnable = 0
        self.n_predicted = 0

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        if isinstance(message, Rejected):
            self.n_unlearnable += message.fault == "unlearnable" or message.stage == "learn"
            if len(self.reasons) < N_REASONS_SHOWN:
                stage = "" if message.stage is None else f" ({message.stage})"
                reason = f"rejected {message.subject}{stage}: {message.reason}"
                self.reasons.append((message.key, reason))
        self.n_predicted += isinstance(message, Prediction)
        if self._files is not None:
            self._files.send(message, cause=cause)

    def flush(self) -> None:
        """Do nothing: unsynced messages are generated again after a restart."""

    def sync(self) -> dict[str, int] | None:
        """Sync everything to disk; return the size of each file, None without files."""
        return None if self._files is None else self._files.sync()

    def forget(self, key: str, n_rejected: int) -> None:
        """Remove the rows of a key; `n_rejected` of all others were rejected."""
        self.reasons = [(whose, reason) for whose, reason in self.reasons if whose != key]
        self.n_unlearnable = min(self.n_unlearnable, n_rejected)

    def state(self) -> State:
        """Return the state that must survive a restart."""
        return {
            "reasons": [list(pair) for pair in self.reasons],
            "n_unlearnable": self.n_unlearnable,
            "n_predicted": self.n_predicted,
        }

    def load_state(self, state: State) -> None:
        self.reasons = [(key, reason) for key, reason in state["reasons"]]
        # Older files lack these.
        self.n_unlearnable = int(state.get("n_unlearnable", 0))
        self.n_predicted = int(state.get("n_predicted", 0))

    def close(self) -> None:
        if self._files is not None:
            self._files.close()


def play_log(
    log: RepeatedLog,
    config: Config,
    *,
    on_event: Callable[[int, float], None],
    notes: Notes | None = None,
    sink: ReplaySink | None = None,
) -> Played:
    """Replay a log once, from its start, without files.

    Parameters
    ----------
    on_event
        Called with the number of events so far, and the share of the log that has been read.
    notes
        Notes of the log's reader, which are shown; None to show none.

    """
    with closing(log.open(config, notes or Notes())) as events:
        loop = build.build_loop(config, source=log.source)
        if notes is not None:
            notes.show()
        replay = Replay(loop, events, build.build_annotator(config), sink, target=config.target)
        with seldom_collected(), warnings_as_notes():
            played = replay.run(on_event=lambda n: on_event(n, events.progress))
    return replace(played, drifts=drifts_of(loop, played.by_key))


def replay_log(
    path: Path,
    config: Config,
    out: Path | None,
    *,
    source: str,
    report: Path | None,
    state: Path | None,
    strict: bool,
) -> int:
    """Replay a log, write the requested files, show the table.

    Parameters
    ----------
    state
        Directory from which the replay is resumed, and in which it is saved, or None.

    Returns
    -------
    The exit status: 0, 130 after Ctrl-C, 2 if the log turned out to be damaged.

    Raises
    ------
    ConfigError
        If the learner cannot be built.
    click.ClickException
        If the log cannot be read, a directory or the page cannot be written, or the state belongs
        to another replay.

    """
    if state is not None:
        check_rereadable(path, needed_by="--state")
    with ExitStack() as stack:
        notes = Notes()
        # First, so that an unreadable log leaves no directory behind.
        log = stack.enter_context(closing(open_log(path, config, notes, source=source)))
        directory = out
        if report is not None and out is None:
            # The page is generated from a run's files, here temporary ones.
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="streamgp-")))
        start = perf_counter()
        try:
            with state_in_one_line(state):
                keeper = None
                if state is not None:
                    keeper = Keeper(state, config, path, out, strict=strict)
                    stack.enter_context(closing(keeper))
                played, sink = _play(
                    path, config, directory, log, keeper, notes, source=source, until=stack
                )
                seconds = perf_counter() - start
                if directory is not None:
                    write_results(
                        directory,
                        log=path,
                        config=config,
                        notes=notes.lines,
                        played=played,
                        wall_s=seconds,
                    )
        except OSError as error:
            # Problems with the log are TableErrors: this is about our own files.
            if directory is None:
                raise
            raise click.ClickException(
                str(state_error(f"cannot write to {directory}", error))
            ) from None
        where = "; --out DIR writes them all" if out is None else ", see rejected.jsonl"
        tell_rejected([reason for _, reason in sink.reasons], played.statistics.n_rejected, where)
        click.echo(results_text(config, played))
        if out is not None:
            click.echo(f"messages, {SUMMARY} and {TIMING} are in {out}")
        if report is not None:
            assert directory is not None  # set whenever a page is requested
            write_report(directory, report)
            click.echo(f"report: {report}")
        tell(f"{number(played.result.n_events, 'event')} in {seconds:.1f} s")
        return status_of_run(path, played, sink, is_resumable=keeper is not None)


def _play(
    path: Path,
    config: Config,
    directory: Path | None,
    log: LogSource | WindowedLog,
    keeper: Keeper | None,
    notes: Notes,
    *,
    source: str,
    until: ExitStack,
) -> tuple[Played, ReplaySink]:
    """Run a log from the start, or from a checkpoint, and write the messages.

    The directory of the files is locked against others until a stack ends.
    """
    with ExitStack() as stack:
        cut = None if keeper is None else keeper.cut()
        store = None if keeper is None else keeper.store()
        if store is not None:
            stack.enter_context(closing(store))
        loop = build.build_loop(
            config, source=source, store=store, snapshot=None if cut is None else cut.loop
        )
        annotator = build.build_annotator(config)
        claim(directory, log=path, until=until)
        files = open_files(directory, sizes=None if cut is None else cut.sizes)
        sink = stack.enter_context(closing(ReplaySink(files)))
        notes.show()
        show = stack.enter_context(progress())
        replay = Replay(loop, log, annotator, sink, target=config.target)
        if cut is not None:
            _go_on(replay, sink, cut, lambda n: show(f"{number(n, 'event')} again", log.progress))

        def now() -> Cut:
            # The files first: a state must not refer to more than they contain.
            sizes = sink.sync()
            around = {"game": replay.state(), "sink": sink.state()}
            return Cut(loop=loop.snapshot(with_environment=False), around=around, sizes=sizes)

        with seldom_collected(), warnings_as_notes():
            played = replay.run(
                on_event=lambda n: show(number(n, "event"), log.progress),
                on_commit=None if keeper is None else partial(keeper.save_if_due, now),
            )
        if keeper is not None and played.result.whole:
            keeper.save(now)
        weights, forms = columns_of(loop, played.by_key)
        played = replace(
            played,
            reliability=reliability_of(loop, played.by_key),
            drifts=drifts_of(loop, played.by_key),
            weights=weights,
            forms=forms,
        )
        _note_names(played, notes)
    return played, sink


def status_of_run(
    path: Path, played: Played, sink: ReplaySink, *, is_resumable: bool = False
) -> int:
    """Return the exit status of a replay, and say why it is not 0."""
    counts = played.statistics
    if played.damage is not None:
        tell(f"Error: {played.damage} (what came before it is kept)")
        return WRONG_USE
    if not counts.n_events and counts.n_rejected:
        tell(f"Error: no row of {path} could be read; see the reasons above")
        return WRONG_USE
    if 0 < counts.n_events <= counts.n_rejected and not sink.n_predicted:
        tell("Error: the learner or a rule failed on every event; see the reasons above")
        return WRONG_USE
    if played.result.interrupted:
        further = "; the same command continues from here" if is_resumable else ""
        tell(f"interrupted; what was done so far is kept{further}")
        return INTERRUPTED
    if not counts.n_events:
        tell(f"Error: the rows of {path} make no window; see the notes above")
        return WRONG_USE
    if 0 < counts.n_answered <= sink.n_unlearnable and not counts.n_learned:
        tell("Error: the learner could not learn a single label; see the reasons above")
        return WRONG_USE
    return DONE


def _go_on(replay: Replay, sink: ReplaySink, cut: Cut, on_event: Callable[[int], None]) -> None:
    try:
        sink.load_state(cut.around["sink"])
        replay.load_state(cut.around["game"], on_event=on_event)
    except INCONSISTENT as error:
        raise click.ClickException(
            f"the state cannot be restored: {error!s:.200}; name another directory to start over"
        ) from None


def _note_names(played: Played, notes: Notes) -> None:
    """Report labels with invisible characters, and labels and keys that look the same."""
    met = HiddenLabels()
    labels = played.statistics.confusion.summary()["labels"]
    for label in labels:
        if isinstance(label, str) and hidden_characters(label) and (said := met.warning(label)):
            notes(said)
    for what, names in (("label", labels), ("key", played.by_key)):
        alike: dict[str, list[str]] = {}
        for name in names:
            if isinstance(name, str) and not name.isascii():
                alike.setdefault(normalize("NFC", name), []).append(ascii(name))
        for name, forms in alike.items():
            if len(forms) > 1:
                notes(
                    f"{what} {printable(name)[:80]} is written in {len(forms)} Unicode forms, "
                    f"which count as different {what}s: {cut(', '.join(forms), 200)}; write it in "
                    "one"
                )
