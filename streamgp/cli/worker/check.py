"""The command `streamgp check`: a deployment, tried without working on it."""

from __future__ import annotations

from pathlib import Path

import click

from streamgp.cli.deployment.deployed import broker_option, config_argument
from streamgp.cli.exit_codes import leave
from streamgp.cli.option_types import Number


@click.command()
@config_argument
@broker_option
@click.option("--create-topics", is_flag=True, help="Make the topics that are missing first.")
@click.option(
    "--timeout",
    "timeout_s",
    type=Number(at_least=1.0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to look for the configuration of earlier workers in the topics.",
)
def check(config_file: Path, broker: str | None, create_topics: bool, timeout_s: float) -> None:
    """Say what would keep a worker from working, in one line each.

    Reads CONFIG.toml, connects, and looks at the topics, the rights, the workers of the group, and
    whether the topics hold what another configuration or another group has learned. Where inputs
    wait, it looks for up to 30 seconds whether all partitions move on. Nothing is changed, but for
    what --create-topics makes.

    Exit status: 0 nothing is wrong (there may be warnings); 1 an alert: inputs wait without
    progress or for no worker, or were deleted before they were read; 2 something is wrong.

    \b
    Examples:
      streamgp check worker.toml
      streamgp check worker.toml --broker kafka://test-host:9092
    """
    from streamgp.cli.worker.checking import check_deployment

    leave(
        check_deployment(
            config_file, broker=broker, create_topics=create_topics, timeout_s=timeout_s
        )
    )
