"""The command `streamgp forget`: one person taken out of what `streamgp replay` has kept."""

from __future__ import annotations

from pathlib import Path

import click

from streamgp.cli.completion import directories
from streamgp.cli.replay import path_to


@click.command()
@click.argument(
    "directory", metavar="DIR", callback=path_to("directory"), shell_complete=directories
)
@click.argument("key")
def forget(directory: Path, key: str) -> None:
    """Remove one person from a run, for good.

    DIR is what `streamgp replay --key COLUMN --state DIR` saved, KEY one of the values in that
    column. Removed are the learner of that key and all its labels, questions and answers; its
    share of every count; and, where the run was written to a directory with --out, its lines in
    the message files and its results in summary.json. The replay must not be running.

    This cannot be undone. The log itself is not touched, nor are pages made by --report, nor copies
    that somebody made of DIR.

    The same `streamgp replay` command goes on afterwards. Rows of that key still to come begin with
    a learner that knows nothing; those that were read before are not learned again.

    If it is cut, run it again: until it is through, the replay does not go on.

    \b
    Example:
      streamgp replay phones.parquet --label activity --key user --out results --state state
      streamgp forget state ann
    """
    from streamgp.cli.forgetting import forget_key

    click.echo(forget_key(directory, key))
