"""What a long command shows while it runs.

Progress goes to stderr, and only to a terminal: a log file of a hundred bars helps nobody.

"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO, TypeAlias, cast

import click

from streamgp.printable import printable

Show: TypeAlias = Callable[[str, float], None]

# rich takes a lock for every update; a bar need not move more often than this.
CALLS_PER_UPDATE = 20


@contextlib.contextmanager
def progress(*, every: int = CALLS_PER_UPDATE) -> Iterator[Show]:
    """Show a bar on stderr while the block runs, if stderr is a terminal.

    Yields what is to be called with a line of text and the share done, between 0 and 1; one of
    `every` calls moves the bar.
    """
    if not sys.stderr.isatty():
        yield lambda _line, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        # No markup: the text may hold the name of a file or a learner.
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    console = Console(file=steady(sys.stderr))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        calls = 0

        def show(line: str, share: float) -> None:
            nonlocal calls
            if calls % every == 0:
                bar.update(task, description=line, completed=share)
            calls += 1

        yield show


class _Steady:
    """A stream on which writing never fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def steady(stream: TextIO) -> TextIO:
    """Return a terminal that may be closed while something is drawn on it."""
    return cast(TextIO, _Steady(stream))


def tell(line: str) -> None:
    """Write a line to stderr; where nobody can read it any more, that is no error.

    It may quote what comes from outside: a path, a column, a reason.
    """
    with contextlib.suppress(OSError):
        click.echo(printable(line), err=True)


def confirm(question: str) -> bool:
    """Ask on the terminal, or read the answer from wherever standard input comes from.

    Raises
    ------
    click.ClickException
        If there is nobody to answer.

    """
    if sys.stdin is None:
        raise click.ClickException(f"nobody is there to be asked: {question} Give --yes")
    click.echo(f"{printable(question)} [y/N]: ", nl=False)
    answer = sys.stdin.readline()
    if not answer.endswith("\n") or not sys.stdin.isatty():
        click.echo()
    if not answer:
        raise click.ClickException("nobody has answered; give --yes to go on without being asked")
    return answer.strip().lower() in ("y", "yes")
