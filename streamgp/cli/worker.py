"""The command `streamgp run`: one worker."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgp.apps.console import Stop, leave
from streamgp.cli.options import Number, broker_option, config_argument, log_format_option

if TYPE_CHECKING:
    from streamgp.apps.worker.logging import LogFormat


@click.command()
@config_argument
@click.option(
    "--create-topics",
    is_flag=True,
    help="Make the topics that are missing first, as section [topics] says. Those that are there "
    "stay as they are.",
)
@click.option(
    "--instance",
    metavar="NAME",
    help="Name of this worker within its group, the same after every restart. Without it, here or "
    "in the configuration file: the name of the machine and a number.",
)
@broker_option
@click.option(
    "--observe",
    metavar="HOST:PORT",
    help="Serve metrics, health and readiness there, in place of what the file says; port 0 for "
    "any that is free. Several workers on one machine need a port each.",
)
@log_format_option
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse, with status 2, what was learned in another numerical environment (versions of "
    "streamgp, numpy and others, BLAS kernel), where predictions may differ in their last digits. "
    "Without it a line of the log says so.",
)
@click.option("--debug", is_flag=True, help="Log the traceback of an error, too.")
def run(
    config_file: Path,
    create_topics: bool,
    instance: str | None,
    broker: str | None,
    observe: str | None,
    log_format: LogFormat | None,
    strict: bool,
    debug: bool,
) -> None:
    """Run one worker: read events and answers, write predictions and requests.

    CONFIG.toml says where the topics are and how to learn; `streamgp init --worker` prints one, and
    `streamgp check` tries it. Every input counts exactly once, whatever happens to the worker or
    the broker. Started several times, the workers share the partitions.

    SIGTERM, Ctrl-C or a terminal that is closed: the batch at hand is finished and committed, then
    the worker leaves. A second signal ends it at once; nothing is lost by that either. The log goes
    to stderr, a line a second at most about batches; it never holds what was observed or answered.

    With memory:// the worker reads events and answers from standard input, one JSON object a line,
    writes what it says to standard output, and ends with the input.

    \b
    Examples:
      streamgp init --worker > worker.toml
      streamgp run worker.toml --create-topics
      streamgp run worker.toml --broker file://./topics --create-topics
      echo '{"key": "ann", "x": {"light": 0.5}}' | streamgp run worker.toml --broker memory://

    \b
    Exit status:
       0  stopped by a signal, or at the end of standard input
       2  wrong use, configuration or topics: starting again does not help
      65  too many inputs could not be used: look at the dead letters
      70  an error of streamgp itself; nothing of that batch is committed
      75  lost the broker or a transaction: start again
      76  another worker with the same instance name took over: do not start again
     129, 130, 143  ended at once by a second signal
    """
    from streamgp.apps.worker.logging import say, start_log

    start_log(log_format)
    # Before anything that takes its time is loaded: a signal must not find the door unguarded.
    with Stop(lambda name: say(logging.INFO, "stopping", signal=name)) as stop:
        from streamgp.apps.worker.process import run_worker

        leave(
            run_worker(
                config_file,
                stop,
                create_topics=create_topics,
                instance=instance,
                broker=broker,
                observe=observe,
                strict=strict,
                debug=debug,
            )
        )


# --- The command `streamgp check`: a deployment, tried without working on it.


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
    from streamgp.apps.worker.check import check_deployment

    leave(
        check_deployment(
            config_file, broker=broker, create_topics=create_topics, timeout_s=timeout_s
        )
    )
