"""Options and parameter types shared by several commands."""

from __future__ import annotations

import getpass
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from connectors.storage.snapshots import check_writable
from streamgp.common.printable import hidden_characters, printable
from streamgp.common.private_files import is_same_file
from streamgp.config.broker_url import ALLOWED


def split_columns(
    _context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Split at commas, so that `--ignore a,b` and `--ignore a --ignore b` are the same."""
    names = tuple(name.strip() for text in value for name in text.split(","))
    if not all(names):
        raise click.BadParameter("column names must not be empty")
    return names


ignore_option = click.option(
    "--ignore",
    metavar="COLUMN",
    multiple=True,
    callback=split_columns,
    help="Column that is not a feature. May be repeated, or list several: A,B. A name with a * "
    "matches several columns; quote it: 'label:*'.",
)
"""Columns that are not features, for every command that reads logs."""

features_option = click.option(
    "--features",
    metavar="A,B,...",
    multiple=True,
    callback=split_columns,
    help="Use only these columns as features. A name with a * matches several columns; quote it: "
    "'acc*'.",
)
"""The only columns that are features, for every command that reads logs."""


target_option = click.option(
    "--target",
    type=click.Choice(["label", "number"]),
    help="What the label column holds: names of classes (label) or numbers to predict (number).",
)
"""What is predicted, for every command that reads labels."""

log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="Format of the log on stderr.  [default: text on a terminal, else json]",
)
"""Format of the log, for every command that runs until it is stopped."""

no_response_time_option = click.option(
    "--no-response-time", is_flag=True, help="Do not record how long each answer took."
)
"""Whether to leave out the times of answers, for every command in which people answer."""


def completed_as(kind: Literal["dir", "file"]) -> Callable[[Any, Any, str], list[CompletionItem]]:
    """Leave the completion of names of directories, or also of files, to the shell."""
    return lambda _context, _parameter, incomplete: [CompletionItem(incomplete, type=kind)]


class GivenPath(click.Path):
    """A path; an empty text, which comes from an unset shell variable, is refused.

    Parameters
    ----------
    what
        What is there, for messages.
    refuses_dash
        Whether - is refused, as for something to be written that may not be standard output.

    Examples
    --------
    >>> GivenPath().convert("rooms.csv", None, None).name
    'rooms.csv'
    >>> GivenPath().convert("", None, None)
    Traceback (most recent call last):
    click.exceptions.BadParameter: expected a path, got an empty text

    """

    def __init__(self, what: str = "path", *, refuses_dash: bool = False, **options: Any) -> None:
        super().__init__(path_type=Path, **options)
        self._what = what
        self._refuses_dash = refuses_dash

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":  # it would mean the current directory
            self.fail(f"expected a {self._what}, got an empty text", param, ctx)
        if value == "-" and self._refuses_dash:
            self.fail(
                f"expected a {self._what}, got -, which has no meaning here; for a {self._what} of "
                "that name give ./-",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


config_argument = click.argument("config_file", metavar="CONFIG.toml", type=GivenPath())
"""The argument of every command of a deployment."""

broker_option = click.option(
    "--broker",
    metavar="URL",
    help=f"Where the topics are; overrides the configuration file: {ALLOWED}.",
)
"""The option of every command of a deployment."""


# --- Parameter types of several commands.


# 30 000 years, as for the settings: sums of times stay finite.
LARGEST = 1e12


class Number(click.FloatRange):
    """A number within bounds; "nan" and "inf" are refused.

    Parameters
    ----------
    at_least
        The smallest number allowed; None for any positive number.

    Examples
    --------
    >>> Number(at_least=0.0).convert("2.5", None, None)
    2.5
    >>> Number().convert("nan", None, None)
    Traceback (most recent call last):
    click.exceptions.BadParameter: expected a number > 0 and <= 1e+12, got 'nan'

    """

    def __init__(self, *, at_least: float | None = None) -> None:
        super().__init__(min=at_least or 0.0, min_open=at_least is None)
        self._at_least = at_least

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            number = nan
        least = self._at_least
        # NaN is not in any range.
        is_large_enough = number > 0.0 if least is None else number >= least
        if not (is_large_enough and number <= LARGEST):
            bound = "> 0" if least is None else f">= {least:g}"
            self.fail(
                f"expected a number {bound} and <= {LARGEST:g}, got {str(value)!r:.60}", param, ctx
            )
        return number


class WholeNumber(click.IntRange):
    """An integer within bounds, at most `LARGEST`, called a whole number in error messages.

    Examples
    --------
    >>> WholeNumber(min=1).convert("many", None, None)
    Traceback (most recent call last):
    click.exceptions.BadParameter: 'many' is not a valid whole number.

    """

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if number > LARGEST:
            self.fail(f"expected at most {LARGEST:g}, got {str(value)!r:.60}", param, ctx)
        return number


def check_picture(path: Path, *, read: Sequence[Path]) -> None:
    """Check before the work that a picture can be drawn; `read` as for `check_output`."""
    from streamgp.report.charts import PICTURE_FORMATS

    if path.suffix.removeprefix(".").lower() not in PICTURE_FORMATS:
        endings = ", ".join(f".{ending}" for ending in PICTURE_FORMATS)
        raise click.UsageError(f"--picture must end in one of {endings}, got {str(path)!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise click.ClickException(
            "--picture needs matplotlib; install it with: pip install matplotlib"
        )
    check_output(path, read=read)


def check_output(path: Path, *, read: Sequence[Path], makes_directory: bool = False) -> None:
    """Check before the work that a file can be written.

    Parameters
    ----------
    read
        Files that are needed, and must not be replaced. They need not exist yet.
    makes_directory
        Whether its directory is created when the file is written.

    Raises
    ------
    click.ClickException
        If it is a directory, or would replace one of these files.
    StateError
        If it cannot be written.

    """
    if os.path.isdir(path):
        raise click.ClickException(f"{path} is a directory; name a file")
    for file in read:
        if is_same_file(path, file):
            raise click.ClickException(f"{file} would be overwritten; name another file")
    check_writable(path, makes_directory=makes_directory)


def given_options() -> list[click.Parameter]:
    """Return the arguments and options given on the command line."""
    context = click.get_current_context()
    return [
        parameter
        for parameter in context.command.params
        if context.get_parameter_source(parameter.name or "") == ParameterSource.COMMANDLINE
    ]


# --- Name of the annotator.


MAX_ANNOTATOR = 100


def annotator_name(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> str | None:
    """Refuse an invalid name of an annotator."""
    if value is not None and not (
        value.strip() == value and 0 < len(value) <= MAX_ANNOTATOR and not hidden_characters(value)
    ):
        raise click.BadParameter(
            f"expected 1 to {MAX_ANNOTATOR} characters that can be seen, without leading or "
            f"trailing spaces, got {printable(repr(value))}"
        )
    return value


def login_name() -> str:
    """Return the user's login name, or one made of the user id if there is none."""
    try:
        name = getpass.getuser().strip()
    except (KeyError, OSError, ImportError):  # ImportError: on Windows without USERNAME
        name = ""
    if name and name.isprintable():
        return name
    if sys.platform == "win32":
        return "user"
    return f"user-{os.getuid()}"
