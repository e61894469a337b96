"""The command `streamgp flink`: the workers' task as an Apache Flink job."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgp.apps.console import Stop, leave
from streamgp.cli.options import WholeNumber, broker_option, config_argument, log_format_option

if TYPE_CHECKING:
    from streamgp.apps.log import LogFormat


@click.command()
@config_argument
@click.option(
    "--parallelism",
    type=WholeNumber(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of tasks that share the keys; may change from one run to the next.",
)
@click.option(
    "--submit",
    metavar="URL",
    help="Submit the job to a cluster, http://HOST:PORT, and exit.  [default: run it here]",
)
@click.option(
    "--from",
    "begin_at",
    metavar="DIR",
    help="Start from this Flink checkpoint or savepoint.  [default: without --submit, the last "
    "checkpoint]",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Start with what the workers have learned. Stop all workers first.",
)
@click.option(
    "--hand-back",
    is_flag=True,
    help="Hand what was learned back to the workers, and exit.",
)
@click.option(
    "-D",
    "flink",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a Flink option, such as state.backend.type=rocksdb. May be repeated.",
)
@click.option("--create-topics", is_flag=True, help="Create missing topics first.")
@broker_option
@log_format_option
def flink(
    config_file: Path,
    parallelism: int,
    submit: str | None,
    begin_at: str | None,
    take_over: bool,
    hand_back: bool,
    flink: tuple[str, ...],
    create_topics: bool,
    broker: str | None,
    log_format: LogFormat | None,
) -> None:
    """Run on Apache Flink in place of a group of workers.

    The job reads the same CONFIG.toml and topics as `streamgp run` and writes the same messages.
    What it learns is kept in Flink's state, not in the topic `state`. It needs Kafka, and PyFlink
    in an environment of its own; docs/flink.md explains how to set it up and when it is worth it.

    Without --submit, the job keeps its checkpoints in the directory that worker.state names. The
    next start continues from the last one, however this run ended.

    \b
    Examples:
      streamgp flink worker.toml --create-topics
      streamgp flink worker.toml --parallelism 4 -D state.backend.type=rocksdb
      streamgp flink worker.toml --submit http://jobmanager:8081

    Exit status: 0 stopped by a signal, or handed over; 2 wrong usage, configuration, topics or
    rights; 75 the job failed: start it again.
    """
    from connectors.worker.logging import say
    from streamgp.apps.log import start_log

    settings = {}
    for each in flink:
        name, separator, value = each.partition("=")
        if not (name and separator):
            raise click.UsageError(f"-D must be KEY=VALUE, got {each!r}")
        settings[name] = value
    if take_over and hand_back:
        raise click.UsageError(
            "--take-over moves to Flink and --hand-back moves back from it; choose one"
        )
    start_log(log_format)
    with Stop(lambda name: say(logging.INFO, "stopping", signal=name)) as stop:
        from streamgp.apps.flink.process import FlinkOptions, run_flink

        options = FlinkOptions(
            parallelism=parallelism,
            submit=submit,
            begin_at=begin_at,
            take_over=take_over,
            hand_back=hand_back,
            flink=settings,
        )
        leave(run_flink(config_file, stop, options, broker=broker, create_topics=create_topics))
