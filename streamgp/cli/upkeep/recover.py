"""The command `streamgp recover`: state that was lost, made anew from the labels learned."""

from __future__ import annotations

from pathlib import Path

import click

from streamgp.cli.deployment.deployed import broker_option, config_argument


@click.command()
@config_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@broker_option
def recover(config_file: Path, yes: bool, broker: str | None) -> None:
    """Make the topic `state` anew from the topic `consensus`.

    CONFIG.toml is that of the workers. When `state` was deleted, emptied, cut or put back from an
    older copy, workers refuse to run: they would number what they learn from 1 again. Stop them
    all, make `state` again if it is gone (`streamgp check CONFIG.toml --create-topics`), then run
    this. What can and cannot come back is printed, and nothing is written before you agree.

    Labels, their order and their corrections come back exactly. Learners are taught once more, and
    may predict a little differently: their scaling has seen labelled events only. Sequence numbers
    that were given twice, by workers that went on without state, are given anew in the order of
    writing. Learners whose state is whole are left as they are.

    If it is cut, workers refuse to start until it was run again. `consensus` itself, once lost,
    is nowhere else.

    \b
    Examples:
      streamgp recover worker.toml
    """
    from streamgp.cli.upkeep.recovering import recover_state

    recover_state(config_file, yes=yes, broker=broker)
