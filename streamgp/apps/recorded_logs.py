"""Recorded logs, as the commands that read them open and name them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import click

from connectors.tables.log_source import LogSource, WindowedLog
from streamgp.apps.console import tell
from streamgp.common.printable import path_text
from streamgp.config.build import build_windows
from streamgp.config.settings import Config
from streamgp.query.registry import LEARNERS

N_REASONS_SHOWN = 5
"""Rows that cannot be read are many or few; of so many it is said why."""


class Notes:
    """Notes of the reader of a log: shown once the work begins, as they come from then on.

    So a command that is refused says nothing but why.

    Attributes
    ----------
    lines
        Everything it said.

    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._shown = False

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if self._shown:
            tell(f"note: {line}")

    def show(self) -> None:
        """Show everything said so far."""
        self._shown = True
        for line in self.lines:
            tell(f"note: {line}")


def open_log(
    path: Path, config: Config, notes: Notes, *, source: str = "configuration"
) -> LogSource | WindowedLog:
    """Open the log that a configuration describes: its rows, or the windows of them.

    Errors about the windows name `source`, the file of the configuration.
    """
    windows = build_windows(config, label="truth", source=source)
    rows = open_rows(path, config, notes)
    return rows if windows is None else WindowedLog(rows, windows, notes)


def open_rows(path: Path, config: Config, notes: Notes) -> LogSource:
    """Open the log that a configuration describes, row by row.

    Raises
    ------
    click.ClickException
        If it cannot be read, or there are windows and no column tells the time.

    """
    columns, windows = config.log, config.windows
    if windows is not None and columns.time is None:
        raise click.ClickException(
            "windows need the time of each row: name its column with --time COLUMN, or time in "
            "section [log] of the configuration file"
        )
    try:
        return LogSource(
            path,
            label=columns.label,
            time=columns.time,
            key=columns.key,
            ignore=columns.ignore,
            features=columns.features,
            channels=() if windows is None else (*chain(*windows.vectors), *(windows.gps or ())),
            # Not every classifier of River, or of a user's own, takes texts; those of streamgp do.
            texts=config.learner.name == "gp" or config.learner.name in LEARNERS,
            numbers=config.target == "number",
            limit=columns.limit,
            in_order=windows is None,  # which have a tolerance of their own
            notes=notes,
        )
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def name_of(path: Path) -> str:
    """Return what a log is called: the name of its file, up to the first point."""
    return path_text(path.name.split(".")[0])


def prefixes(paths: Sequence[Path]) -> list[str]:
    """Return what the event ids of each log begin with: nothing if there is one, else its name.

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
