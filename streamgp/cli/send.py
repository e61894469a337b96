"""The command `streamgp send`: recorded logs as the events of a deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from connectors.topics import ALL_TOPICS, TopicName
from streamgp.cli.options import (
    Number,
    WholeNumber,
    broker_option,
    config_argument,
    features_option,
    ignore_option,
)

_SENT_BY_ALL: tuple[TopicName, ...] = ("events", "answers")
_OF_LINES = {"config_file", "logs", "topic", "restore", "broker"}


@click.command()
@config_argument
@click.argument(
    "logs",
    metavar="LOG...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
)
@click.option(
    "--label",
    metavar="COLUMN",
    help="Column that holds the true label: it goes into `truth`, which no learner sees. Required, "
    "here or in the configuration file, unless the logs are --unlabelled.",
)
@click.option("--unlabelled", is_flag=True, help="The logs have no labels.")
@click.option(
    "--time",
    metavar="COLUMN",
    help="Column that holds the time: POSIX seconds or ISO 8601.",
)
@click.option(
    "--key",
    metavar="COLUMN",
    help="Column that says whose row it is. Without it, a whole log is of one key, its own name.",
)
@ignore_option
@features_option
@click.option(
    "--speed",
    type=Number(),
    metavar="X",
    help="Send at X times the pace of the time column. Without it: as fast as possible.",
)
@click.option(
    "--keep-times",
    is_flag=True,
    help="The events happen when the time column says.  [default: when they are sent]",
)
@click.option(
    "--teach",
    type=WholeNumber(min=0),
    metavar="N",
    default=0,
    help="The first N rows bring their label to be learned, not only as `truth`.",
)
@click.option("--limit", type=WholeNumber(min=1), metavar="N", help="Send N rows at most.")
@click.option(
    "--from",
    "first",
    type=WholeNumber(min=1),
    metavar="ROW",
    default=1,
    help="Begin with this row, counted over all logs.",
)
@click.option(
    "--prefix",
    metavar="TEXT",
    help="What event ids begin with; the number of the row follows, before it the name of the log "
    "if there are several.",
)
@click.option(
    "--topic",
    type=click.Choice(ALL_TOPICS),
    help="With -: whose records the lines are, as `streamgp watch --follow` prints them. Without "
    "it: events and answers, told apart by what they say.",
)
@click.option(
    "--restore",
    is_flag=True,
    help="With - and --topic: write what a worker alone writes, to bring back what was printed. "
    "No worker may be running. Only for file://DIR.",
)
@broker_option
def send(
    config_file: Path,
    logs: tuple[Path, ...],
    speed: float | None,
    keep_times: bool,
    unlabelled: bool,
    teach: int,
    limit: int | None,
    first: int,
    prefix: str | None,
    topic: TopicName | None,
    restore: bool,
    broker: str | None,
    **columns: Any,
) -> None:
    """Send the rows of recorded LOGs as events, or lines of standard input as they are.

    CONFIG.toml is that of the workers; what its section [log] says about the columns holds here,
    too. Several logs are sent one after the other.

    The id of an event is the number of its row: a row that is sent twice counts once. To send the
    same log as new events, give another --prefix.

    With - as the only LOG, every line of standard input is one record, as JSON: an event, or an
    answer. They are sent as they come; none of the options about rows counts then.

    After Ctrl-C, or when the broker is lost, a line says with which row to go on: give the same
    command with --from.

    \b
    Examples:
      streamgp send worker.toml rooms.csv --label room --key phone
      streamgp send worker.toml phones.parquet --label activity --key user \\
          --time timestamp --speed 60
      streamgp send worker.toml may.csv june.csv --label room --key phone --teach 20
      echo '{"key": "ann", "x": {"light": 0.5}}' | streamgp send worker.toml -
      streamgp send worker.toml - --topic answers < answers.jsonl

    Exit status: 0 done, 2 wrong use, a damaged log or topics that may not be written, 75 the broker
    is lost, 130 ended by Ctrl-C, 129 because the terminal was closed, 143 by SIGTERM.
    """
    if Path("-") in logs:
        _check_lines(click.get_current_context(), logs, topic, restore=restore)
        from streamgp.apps.topic_lines import send_lines

        status = send_lines(config_file, topic, restore=restore, broker=broker)
        click.get_current_context().exit(status)
    if topic is not None or restore:
        raise click.UsageError("--topic and --restore go with lines of standard input: LOG is -")
    if unlabelled and columns["label"] is not None:
        raise click.UsageError("--label names a column of labels, --unlabelled says there is none")
    from streamgp.apps.send import Pace, send_logs

    status = send_logs(
        config_file,
        logs,
        Pace(speed=speed, keep_times=keep_times),
        columns=columns,
        unlabelled=unlabelled,
        teach=teach,
        limit=limit,
        first=first,
        prefix=prefix,
        broker=broker,
    )
    click.get_current_context().exit(status)


def _check_lines(
    context: click.Context, logs: tuple[Path, ...], topic: TopicName | None, *, restore: bool
) -> None:
    """Refuse what does not go with lines of standard input."""
    if len(logs) > 1:
        raise click.UsageError("- (standard input) must be the only LOG")
    if restore and (topic is None or topic in _SENT_BY_ALL):
        raise click.UsageError(
            "--restore needs --topic with one that a worker alone writes: "
            f"{', '.join(name for name in ALL_TOPICS if name not in _SENT_BY_ALL)}"
        )
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in _OF_LINES and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[-1]} is about rows of a log, not about lines")
