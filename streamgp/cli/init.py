"""The command `streamgp init`: a commented configuration file with the values of a preset."""

from __future__ import annotations

import click

from streamgp.base import Preset, Target
from streamgp.cli.options import target_option
from streamgp.config.templates import template


@click.command()
@click.option(
    "--preset",
    type=click.Choice(["default", "paper"]),
    default="default",
    show_default=True,
    help="Preset whose values to write.",
)
@click.option(
    "--worker", is_flag=True, help="Print one for `streamgp run` instead of `streamgp replay`."
)
@click.option(
    "--all", "complete", is_flag=True, help="Print all settings, not only those often changed."
)
@target_option
def init(preset: Preset, worker: bool, complete: bool, target: Target | None) -> None:
    """Print a commented configuration file.

    \b
    For a replay:
      streamgp init > streamgp.toml
      streamgp replay log.csv --label activity --config streamgp.toml
    For a worker on Kafka:
      streamgp init --worker > worker.toml
      streamgp check worker.toml
      streamgp run worker.toml --create-topics
    """
    if (preset, target) == ("paper", "number"):
        raise click.UsageError("--preset paper is for labels; leave it out")
    click.echo(template(preset, target or "label", worker=worker, complete=complete), nl=False)
