"""The command `streamgp flink`: the conversation as a job of Apache Flink."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgp.apps.console import Stop, leave
from streamgp.cli.options import WholeNumber, broker_option, config_argument, log_format_option

if TYPE_CHECKING:
    from streamgp.apps.worker.logging import LogFormat


@click.command()
@config_argument
@click.option(
    "--parallelism",
    type=WholeNumber(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of tasks among which the keys are divided; may change between two runs.",
)
@click.option(
    "--submit",
    metavar="URL",
    help="Hand the job to a cluster, http://HOST:PORT, and leave.  [default: run it here]",
)
@click.option(
    "--from",
    "begin_at",
    metavar="DIR",
    help="Go on from a checkpoint or savepoint of Flink.  [default: run here, the last checkpoint]",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Begin with what workers have learned, which must have stopped.",
)
@click.option(
    "--hand-back",
    is_flag=True,
    help="Give what was learned to workers, and end.",
)
@click.option(
    "-D",
    "flink",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set something of Flink, such as state.backend.type=rocksdb; may be repeated.",
)
@click.option("--create-topics", is_flag=True, help="Make the topics that are missing first.")
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
    """Work on Apache Flink in place of a group of workers.

    Reads the same CONFIG.toml as `streamgp run`, and the same topics, and says the same; what is
    learned is kept in Flink's state, not in the topic `state`. Needs Kafka, and PyFlink in an
    environment of its own: docs/flink.md says how, and when it is worth it.

    Run here, checkpoints lie in the directory worker.state, and the next start goes on from the
    last one, whatever has ended this one.

    \b
    Examples:
      streamgp flink worker.toml --create-topics
      streamgp flink worker.toml --parallelism 4 -D state.backend.type=rocksdb
      streamgp flink worker.toml --submit http://jobmanager:8081

    Exit status: 0 stopped by a signal, or handed over; 2 wrong use, configuration or topics; 75 the
    job has failed: start again.
    """
    from streamgp.apps.worker.logging import say, start_log

    settings = {}
    for each in flink:
        name, separator, value = each.partition("=")
        if not (name and separator):
            raise click.UsageError(f"-D must be KEY=VALUE, got {each!r}")
        settings[name] = value
    if take_over and hand_back:
        raise click.UsageError("--take-over is the way to Flink, and --hand-back the way from it")
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
