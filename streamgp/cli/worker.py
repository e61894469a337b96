"""The commands about workers: `streamgp run`, `streamgp check` and `streamgp watch`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from connectors.topics import ALL_TOPICS, TopicName
from streamgp.apps.console import Stop, leave
from streamgp.cli.options import Number, broker_option, config_argument, log_format_option

if TYPE_CHECKING:
    from streamgp.apps.log import LogFormat


@click.command()
@config_argument
@click.option(
    "--create-topics",
    is_flag=True,
    help="Create missing topics first, as section [topics] says. Existing ones are not changed.",
)
@click.option(
    "--instance",
    metavar="NAME",
    help="Name of this worker within its group; keep it the same across restarts. Overrides the "
    "configuration file.  [default: the name of the machine and a number]",
)
@broker_option
@click.option(
    "--observe",
    metavar="HOST:PORT",
    help="Serve metrics, health and readiness at this address; port 0 picks a free one. Overrides "
    "the configuration file. Each worker on a machine needs a port of its own.",
)
@log_format_option
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with status 2 if the state was learned in another numerical environment (versions "
    "of streamgp, numpy and others, BLAS kernel), where the last digits of predictions may differ. "
    "Without this option, the worker only logs a warning.",
)
@click.option("--debug", is_flag=True, help="Log the traceback of errors as well.")
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
    `streamgp check` tests it. Every input counts exactly once, whatever happens to the worker or
    the broker. If you start several workers, they share the partitions.

    On SIGTERM, Ctrl-C or a closed terminal, the worker finishes and commits the current batch, then
    exits. A second signal ends it at once; even then nothing is lost. The log goes to stderr, with
    at most one line a second about batches. It never contains observations or answers.

    \b
    Examples:
      streamgp init --worker > worker.toml
      streamgp run worker.toml --create-topics
      streamgp run worker.toml --broker file://./topics --create-topics

    \b
    Exit status:
       0  stopped by a signal
       2  wrong usage, configuration or topics: starting again does not help
      65  too many inputs could not be used: look at the dead letters
      70  a bug in streamgp, or memory ran out; the current batch was not committed
      75  lost the broker or a transaction: start again
      76  another worker with the same instance name took over: do not start again
     129, 130, 143  ended at once by a second signal
    """
    from connectors.worker.logging import say
    from streamgp.apps.log import start_log

    start_log(log_format)
    # Before slow imports: a signal must not arrive before its handler is installed.
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


# --- The command `streamgp check`: a deployment, tested without changing it.


@click.command()
@config_argument
@broker_option
@click.option("--create-topics", is_flag=True, help="Create missing topics first.")
@click.option(
    "--timeout",
    "timeout_s",
    type=Number(at_least=1.0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to read what workers have learned, and how long to restore it.",
)
def check(config_file: Path, broker: str | None, create_topics: bool, timeout_s: float) -> None:
    """Check whether a worker can run, and list what would prevent it.

    Reads CONFIG.toml and connects to the broker. Checks the topics, the access rights, the workers
    of the group, whether another configuration or another group has written to the topics, and, if
    no worker is running, whether what was learned can be restored. If inputs are waiting, it
    watches for up to 30 seconds whether all partitions make progress. Nothing is changed, except
    for topics that --create-topics creates.

    Exit status: 0 no problem (there may be warnings); 1 an alert: inputs wait without progress or
    without a worker, or were deleted before they were read; 2 a problem.

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


# --- The command `streamgp watch`: workers at work.


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
