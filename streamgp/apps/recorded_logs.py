"""Recorded logs: opening and naming them for the commands that read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import click
from msgspec.structs import replace

from connectors.broker import Received, Source
from connectors.tables.log_source import LogSource, WindowedLog
from streamgp.apps.console import in_one_line, tell
from streamgp.common.printable import path_text
from streamgp.config.build import build_windows
from streamgp.config.settings import Config
from streamgp.query.registry import LEARNERS

N_REASONS_SHOWN = 5
"""The largest number of unreadable rows whose reasons are shown."""


class Notes:
    """Notes of a log's reader: held back until the work begins, then shown as they come.

    A command that is refused therefore shows only the reason.

    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._shown = False

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if self._shown:
            tell(f"note: {line}")

    def show(self) -> None:
        """Show all notes so far, and from now on each new one."""
        self._shown = True
        for line in self.lines:
            tell(f"note: {line}")


def check_rereadable(log: Path, *, needed_by: str) -> None:
    """Refuse a log that cannot be read a second time, such as a pipe."""
    # The reader of the log reports a missing file or a directory.
    if log.exists() and not (log.is_file() or log.is_dir()):
        raise click.ClickException(
            f"{log} cannot be read a second time, which {needed_by} needs; save it to a file first"
        )


def useless_log(path: Path, reasons: Sequence[str], *, see: str) -> click.ClickException:
    """Return the error about a log none of whose rows could be used.

    `reasons` say why, row by row; without any, the rows make no window, and `see` says where the
    reason is.
    """
    if reasons:
        because = f"no row of {path} could be used, the first because: {reasons[0]}"
        return click.ClickException(because)
    return click.ClickException(f"the rows of {path} make no window; {see}")


def open_log(path: Path, config: Config, notes: Notes, *, source: str) -> LogSource | WindowedLog:
    """Open the log of a configuration: its rows, or windows over them.

    Errors about the windows name `source`, the configuration file.
    """
    windows = build_windows(config, label="truth", source=source)
    rows = open_rows(path, config, notes)
    return rows if windows is None else WindowedLog(rows, windows, notes)


class RepeatedLog:
    """A log that several replays read: windows over its rows are cut once, and stay in memory.

    They have no excerpts. Rows without windows are read from the file again.

    Parameters
    ----------
    path
        The log.
    source
        The configuration file, for error messages.

    """

    def __init__(self, path: Path, *, source: str) -> None:
        self.path = path
        self.source = source
        self._cut: _CutWindows | None = None

    def open(self, config: Config, notes: Notes) -> LogSource | _CutWindows | _KeptWindows:
        """Open it from its start, for one of several configurations that read it alike.

        They have the same sections `[log]` and `[windows]`. The notes of the reader come once.
        """
        if self._cut is not None and self._cut.exhausted:
            return _KeptWindows(self._cut.polled)
        if config.windows is not None:
            config = replace(config, windows=replace(config.windows, excerpt=False))
        log = open_log(self.path, config, notes, source=self.source)
        if isinstance(log, LogSource):
            return log
        self._cut = _CutWindows(log)
        return self._cut


class _CutWindows(Source):
    """Windows over a log's rows, kept as they are cut."""

    def __init__(self, log: WindowedLog) -> None:
        self._log = log
        self.polled: list[list[Received]] = []

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        received = self._log.poll(timeout_s)
        self.polled.append(received)
        return received

    @property
    def exhausted(self) -> bool:
        return self._log.exhausted

    @property
    def progress(self) -> float:
        return self._log.progress

    def close(self) -> None:
        self._log.close()


class _KeptWindows(Source):
    """Windows that have been cut before."""

    def __init__(self, polled: Sequence[list[Received]]) -> None:
        self._polled = polled
        self._n = 0

    def poll(self, timeout_s: float = 0.0) -> list[Received]:  # noqa: ARG002
        self._n += 1
        return self._polled[self._n - 1]

    @property
    def exhausted(self) -> bool:
        return self._n == len(self._polled)

    @property
    def progress(self) -> float:
        return self._n / len(self._polled)

    def close(self) -> None:
        """Do nothing."""


def open_rows(path: Path, config: Config, notes: Notes) -> LogSource:
    """Open the log of a configuration, row by row.

    Raises
    ------
    click.ClickException
        If it cannot be read, or there are windows but no time column.

    """
    columns, windows = config.log, config.windows
    if windows is not None and columns.time is None:
        raise click.ClickException(
            "windows need the time of each row: name its column with --time COLUMN, or time in "
            "section [log] of the configuration file; docs/logs.md shows how to make one for rows "
            "at a fixed rate"
        )
    with in_one_line(ValueError):
        return LogSource(
            path,
            label=columns.label,
            time=columns.time,
            key=columns.key,
            ignore=columns.ignore,
            features=columns.features,
            channels=() if windows is None else (*chain(*windows.vectors), *(windows.gps or ())),
            # Not every classifier of River, or of a user, accepts text; those of streamgp do.
            texts=config.learner.name == "gp" or config.learner.name in LEARNERS,
            numbers=config.target == "number",
            limit=columns.limit,
            windowed=windows is not None,  # which have their own tolerance
            notes=notes,
        )


def tell_rejected(reasons: Sequence[str], n: int, where: str = "") -> None:
    """Report the first of `n` rejected rows, and how many more there are; `where` tells of them."""
    shown = reasons[:N_REASONS_SHOWN]
    for reason in shown:
        tell(reason)
    if n > len(shown):
        tell(f"and {n - len(shown)} more rejected{where}")


def name_of(path: Path) -> str:
    """Return the name of a log: its file name up to the first dot."""
    return path_text(path.name.split(".")[0])


def prefixes(paths: Sequence[Path]) -> list[str]:
    """Return the prefix of each log's event ids: empty for a single log, otherwise its name.

    Raises
    ------
    click.ClickException
        If two logs have the same name.

    Examples
    --------
    >>> prefixes([Path("rooms.csv")]), prefixes([Path("a/may.csv.gz"), Path("june.csv")])
    ([''], ['may:', 'june:'])

    """
    if len(paths) == 1:
        return [""]
    names = [name_of(path) for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise click.ClickException(
                f"two logs are called {name}, so their event ids would be the same; rename one, or "
                "send them one by one with --prefix"
            )
    return [f"{name}:" for name in names]
