"""The command `streamgp migrate`: topics of an earlier version, moved into a database."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def migrate(directory: Path) -> None:
    """Move the topics in DIR, of a broker file://DIR, from files into a database.

    Versions before 0.1.0 was released kept each topic as a file of lines (`events.jsonl` and so
    on). Stop all that uses the directory, then run this once. Nothing is lost: records, positions,
    and what workers keep of them stay valid. The files move to the folder `migrated` in DIR.

    If it is cut, the topics are as they were or as they will be; run it again to complete it.

    \b
    Examples:
      streamgp migrate ./topics
    """
    from connectors.embedded.migration import migrate as move

    for line in move(directory) or [f"{directory} has nothing to migrate"]:
        click.echo(line)
