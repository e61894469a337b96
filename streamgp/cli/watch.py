"""The command `streamgp watch`: a live view of a deployment."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.topics import ALL_TOPICS, TopicName
from streamgp.cli.options import Number, broker_option, config_argument


@click.command()
@config_argument
@click.option("--once", is_flag=True, help="Print the view once as text, and exit.")
@click.option(
    "--interval",
    "interval_s",
    type=Number(at_least=0.1),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between updates; with --once, how long to watch.",
)
@click.option(
    "--from-start",
    is_flag=True,
    help="Count everything in the topics, from the first record on. This may take a long time.",
)
@click.option(
    "--follow",
    "topic",
    type=click.Choice(ALL_TOPICS),
    help="Print the records of this topic as they arrive, one line of JSON each. With "
    "--from-start, print all earlier records first; with --once, exit after them.",
)
@broker_option
def watch(
    config_file: Path,
    once: bool,
    interval_s: float,
    from_start: bool,
    topic: TopicName | None,
    broker: str | None,
) -> None:
    """Watch workers at work: throughput, accuracy, questions, dead letters, lag.

    CONFIG.toml is the workers' configuration. Watching changes nothing. Records are shown only with
    --follow; otherwise you see no more of dead letters than their reasons, which may quote a value.

    The view counts what arrives from now on, and all open questions, however old. With --from-start
    it counts everything that the topics hold. Whether a prediction was right or a label wrong is
    known only for events that bring their `truth`.

    If the output is not a terminal, the view is printed as text once per interval.

    \b
    Examples:
      streamgp watch worker.toml
      streamgp watch worker.toml --once --from-start
      streamgp watch worker.toml --follow requests
      streamgp watch worker.toml --follow events --from-start --once > events.jsonl
    """
    from streamgp.apps.watch.view import watch_deployment

    watch_deployment(
        config_file,
        broker=broker,
        topic=topic,
        interval_s=interval_s,
        from_start=from_start,
        once=once,
    )
