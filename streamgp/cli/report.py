"""The command `streamgp report`: a web page made from the files of a replay."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("file", metavar="FILE.html", type=click.Path(path_type=Path))
def report(directory: Path, file: Path) -> None:
    """Make a web page of a run.

    DIR is the directory that `streamgp replay --out DIR` wrote. FILE.html is a single
    self-contained file: numbers, curves, confusion matrix, and every challenge with its outcome.
    The page is the same as that of `streamgp replay --report FILE.html`.

    \b
    Example:
      streamgp replay rooms.csv.gz --label room --out results
      streamgp report results rooms.html
    """
    from streamgp.apps.replay.results import check_report, write_report

    check_report(file, out=directory, read=[])
    write_report(directory, file)
    click.echo(f"report: {file}")
