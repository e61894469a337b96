"""The command `streamgp report`: a web page made from what a replay left in its directory."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("file", metavar="FILE.html", type=click.Path(path_type=Path))
def report(directory: Path, file: Path) -> None:
    """Make a web page of a run.

    DIR is what `streamgp replay --out DIR` wrote. FILE.html becomes one file that needs nothing
    else: numbers, curves, confusion matrix, and every challenge with what came of it. The same
    files give the same page as `streamgp replay --report FILE.html`.

    \b
    Example:
      streamgp replay rooms.csv.gz --label room --out results
      streamgp report results rooms.html
    """
    from streamgp.apps.replay.results import check_report, write_report

    check_report(file, out=directory, read=[])
    write_report(directory, file)
    click.echo(f"report: {file}")
