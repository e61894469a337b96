"""The command `streamgp rebuild`: another learner, taught what the people have said so far."""

from __future__ import annotations

from pathlib import Path

import click

from streamgp.cli.deployment.deployed import broker_option, config_argument


@click.command()
@config_argument
@click.option(
    "--learner",
    "learner_file",
    required=True,
    metavar="NEW.toml",
    type=click.Path(path_type=Path),
    help="What is to be different: any of preset, seed, warm_up, [learner], [query], [challenge], "
    "[review], [reservoir] and [budget], each in place of the one in CONFIG.toml. Other sections "
    "are not looked at.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Let the workers go on with the new learners. No worker may be running.",
)
@click.option("--yes", is_flag=True, help="With --take-over: do not ask.")
@broker_option
def rebuild(
    config_file: Path, learner_file: Path, take_over: bool, yes: bool, broker: str | None
) -> None:
    """Teach another learner the labels that the topics hold, and compare it with the present one.

    CONFIG.toml is that of the workers. For every key both learners are taught the labelled
    examples, in the order learned and with the labels that stand now; each predicts an example
    before it learns it. The table shows how often they were right, how often they said the same,
    what the new one could not learn, and what it costs. Nothing is changed by that, and workers may
    run meanwhile.

    With --take-over the new learners replace the old ones. Open questions stay open; budgets begin
    anew. Stop all workers first; afterwards put what is in NEW.toml into CONFIG.toml and start them
    again. If it is cut, workers refuse to start until it was run again.

    \b
    Examples:
      streamgp rebuild worker.toml --learner new.toml
      streamgp rebuild worker.toml --learner new.toml --take-over
    """
    from streamgp.cli.upkeep.rebuilding import rebuild_learners

    rebuild_learners(config_file, learner_file, take_over=take_over, yes=yes, broker=broker)
