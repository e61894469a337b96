"""Writing of a run's web page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from streamgp.common.private_files import make_directory, private


def check_report(path: Path, *, out: Path | None, read: Sequence[Path]) -> None:
    """Say before the work, not after it, that a page cannot be written.

    Parameters
    ----------
    path
        The page.
    out
        Directory of the run's files, or None. It may not be there yet.
    read
        Files that are read, and that a page must not replace.

    Raises
    ------
    click.ClickException
        If the page cannot be written, or would replace a file that is needed.

    """
    from streamgp.apps.replay.results import FILE_NAMES

    if path.is_dir():
        raise click.ClickException(f"{path} is a directory; name a file for the report")
    needed = [*read, *([] if out is None else [out / name for name in FILE_NAMES])]
    for file in needed:
        if path.resolve() == file.resolve():
            raise click.ClickException(
                f"{file} would be overwritten by the report; name another file"
            )
    # Directories are made when the page is written, so the nearest one that is there decides.
    there = path if path.exists() else next(d for d in path.absolute().parents if d.exists())
    if there != path and not there.is_dir():
        raise click.ClickException(f"cannot write {path}: {there} is no directory")
    if not os.access(there, os.W_OK):
        raise click.ClickException(f"cannot write {path}: {there} is not writable")


def write_report(directory: Path, path: Path) -> None:
    """Write the page of the run whose files are in a directory.

    Raises
    ------
    click.ClickException
        If the files cannot be read or the page cannot be written.

    """
    from streamgp.apps.replay.results import read_run
    from streamgp.report.page import page

    text = page(read_run(directory))
    try:
        make_directory(path.parent)
        with open(path, "w", encoding="utf-8", newline="\n", opener=private) as file:
            file.write(text)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None
