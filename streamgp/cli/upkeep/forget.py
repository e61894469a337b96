"""The command `streamgp forget`: one person taken out of a replay, or out of a deployment."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from streamgp.cli.deployment.deployed import broker_option
from streamgp.cli.option_types import Number, path_to


def _directories_and_files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


@click.command()
@click.argument(
    "place",
    metavar="DIR|CONFIG.toml",
    callback=path_to("directory or file"),
    shell_complete=_directories_and_files,
)
@click.argument("key")
@click.option("--yes", is_flag=True, help="With CONFIG.toml: do not ask.")
@click.option(
    "--wait",
    "wait_s",
    type=Number(at_least=0.0),
    default=30.0,
    show_default=True,
    metavar="S",
    help="With CONFIG.toml: how many seconds to wait for the worker.",
)
@broker_option
def forget(place: Path, key: str, yes: bool, wait_s: float, broker: str | None) -> None:
    """Remove one person from a run or from a deployment, for good.

    With DIR, what `streamgp replay --key COLUMN --state DIR` saved, KEY is one of the values in
    that column. Removed are the learner of that key and all its labels, questions and answers; its
    share of every count; and, where the run was written to a directory with --out, its lines in
    the message files and its results in summary.json. The replay must not be running. The log
    itself is not touched, nor are pages made by --report, nor copies that somebody made of DIR.
    The same `streamgp replay` command goes on afterwards; if `forget` is cut, run it again first.

    With CONFIG.toml, the configuration of `streamgp run`, KEY is the key of the person's events.
    The worker that has the key forgets its learner, its open questions, and what the topics of
    labels and state hold of it; the command waits until that is done. The other topics keep what
    they hold until their retention time; the command names them.

    This cannot be undone. Events of that key still to come begin with a learner that knows nothing.

    \b
    Examples:
      streamgp replay phones.parquet --label activity --key user --out results --state state
      streamgp forget state ann
      streamgp forget worker.toml ann

    \b
    Exit status, beside those of every command:
      3  the worker was told, and has not done it yet
    """
    if place.is_file():
        from streamgp.cli.upkeep.forget_deployed import forget_in_topics

        forget_in_topics(place, key, yes=yes, wait_s=wait_s, broker=broker)
        return
    if broker is not None:
        raise click.UsageError("--broker goes with CONFIG.toml, not with a directory")
    from streamgp.cli.replay.forgetting import forget_key

    click.echo(forget_key(place, key))
