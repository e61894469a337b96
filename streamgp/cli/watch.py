"""The command `streamgp watch`: a live view of a deployment."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from connectors.topics import ALL_TOPICS, TopicName
from streamgp.cli.options import Number, broker_option, config_argument

if TYPE_CHECKING:
    from streamgp.apps.watch.view import Follower


_PATIENCE_S = 0.2


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
    from streamgp.apps.console import Stop
    from streamgp.apps.deployment.contents import warning_of
    from streamgp.apps.deployment.deployment import visit
    from streamgp.apps.watch.view import Follower

    with visit(config_file, broker) as deployment, Stop() as stop:
        if topic is not None:
            from streamgp.apps.topic_lines import print_records

            print_records(deployment.topics, topic, stop, from_start=from_start, once=once)
            return
        warning = warning_of(deployment.topics)
        if warning is not None:
            click.echo(f"warning: {warning}", err=True)
        follower = Follower(deployment, from_start=from_start)
        try:
            if once:
                _show_once(follower, interval_s, stop)
            else:
                _show_live(follower, interval_s, stop)
        finally:
            follower.close()


def _show_once(follower: Follower, interval_s: float, stop: Callable[[], bool]) -> None:
    until = time.monotonic() + (0.0 if follower.watching.is_whole else interval_s)
    while not stop() and (time.monotonic() < until or not follower.caught_up):
        follower.read_on(min(_PATIENCE_S, interval_s))
    click.echo(follower.text())


def _show_live(follower: Follower, interval_s: float, stop: Callable[[], bool]) -> None:
    import sys

    if sys.stdout is None or not sys.stdout.isatty():  # None: closed by the shell, `>&-`
        while not stop():
            _read_for(follower, interval_s, stop)
            if follower.caught_up:
                click.echo(follower.text() + "\n")
        return
    from rich.console import Console
    from rich.live import Live

    from streamgp.apps.console import steady

    console = Console(file=steady(sys.stdout))
    with Live(follower.picture(), console=console, auto_refresh=False) as live:
        while not stop():
            _read_for(follower, interval_s, stop)
            live.update(follower.picture(), refresh=True)


def _read_for(follower: Follower, seconds: float, stop: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not stop() and (left := until - time.monotonic()) > 0:
        follower.read_on(min(_PATIENCE_S, left))
