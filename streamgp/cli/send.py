"""The command `streamgp send`: recorded logs as the events of a deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from connectors.topics import ALL_TOPICS, TopicName
from streamgp.cli.options import (
    GivenPath,
    Number,
    WholeNumber,
    broker_option,
    config_argument,
    features_option,
    given_options,
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
    type=GivenPath(allow_dash=True),
)
@click.option(
    "--label",
    metavar="COLUMN",
    help="Column that holds the true label. It is sent as `truth`, which no learner sees. Required "
    "here or in the configuration file, unless --unlabelled is given.",
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
    help="Column that says to whom or what a row belongs. Without it, all rows of a log have one "
    "key, the name of the log.",
)
@ignore_option
@features_option
@click.option(
    "--speed",
    type=Number(),
    metavar="X",
    help="Send at X times the pace of the time column, at which answers should keep up.  [default: "
    "as fast as possible]",
)
@click.option(
    "--keep-times",
    is_flag=True,
    help="Give events the times of the time column.  [default: the time when they are sent]",
)
@click.option(
    "--teach",
    type=WholeNumber(min=0),
    metavar="N",
    default=0,
    help="Send the first N rows with a label to be learned, not only as `truth`.",
)
@click.option("--limit", type=WholeNumber(min=1), metavar="N", help="Send N rows at most.")
@click.option(
    "--from",
    "first",
    type=WholeNumber(min=1),
    metavar="ROW",
    default=1,
    help="Start with this row, counted across all logs.",
)
@click.option(
    "--prefix",
    metavar="TEXT",
    help="Start of the event ids; the name of the log (if there are several) and the row number "
    "follow.",
)
@click.option(
    "--topic",
    type=click.Choice(ALL_TOPICS),
    help="With -: topic of the records, in the form that `streamgp watch --follow` prints. Without "
    "it, lines are events or answers, told apart by their fields.",
)
@click.option(
    "--restore",
    is_flag=True,
    help="With - and --topic: write to a topic that only workers write to, to restore records that "
    "were printed. Stop all workers first. Only for file://DIR.",
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

    CONFIG.toml is the workers' configuration; its section [log] names the columns here as well.
    Several logs are sent one after the other.

    The id of an event is its row number, so a row that is sent twice counts once. To send the same
    log as new events, or another log with the same keys, give another --prefix.

    With - as the only LOG, every line of standard input is one record in JSON: an event or an
    answer. Lines are sent as they come, and options about rows cannot be used.

    After Ctrl-C, or when the broker is lost, a message names the next row; to continue, repeat the
    command with --from.

    \b
    Examples:
      streamgp send worker.toml rooms.csv --label room --key phone
      streamgp send worker.toml phones.parquet --label activity --key user \\
          --time timestamp --speed 60
      streamgp send worker.toml may.csv june.csv --label room --key phone --teach 20
      echo '{"key": "ann", "x": {"light": 0.5}}' | streamgp send worker.toml -
      streamgp send worker.toml - --topic answers < answers.jsonl

    Exit status: 0 success; 2 wrong usage, a damaged log or topics that may not be written; 75 lost
    the broker; 129 the terminal was closed; 130 interrupted by Ctrl-C; 143 stopped by SIGTERM.
    """
    if Path("-") in logs:
        _check_lines(logs, topic, restore=restore)
        from streamgp.apps.send import send_lines

        status = send_lines(config_file, topic, restore=restore, broker=broker)
        click.get_current_context().exit(status)
    if topic is not None or restore:
        raise click.UsageError(
            "--topic and --restore can be used only with lines of standard input (LOG is -)"
        )
    if unlabelled and columns["label"] is not None:
        raise click.UsageError("--label and --unlabelled contradict each other; choose one")
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


def _check_lines(logs: tuple[Path, ...], topic: TopicName | None, *, restore: bool) -> None:
    """Refuse arguments that cannot be combined with lines of standard input."""
    if len(logs) > 1:
        raise click.UsageError("- (standard input) must be the only LOG")
    if restore and (topic is None or topic in _SENT_BY_ALL):
        raise click.UsageError(
            "--restore needs --topic with a topic that only workers write to: "
            f"{', '.join(name for name in ALL_TOPICS if name not in _SENT_BY_ALL)}"
        )
    for parameter in given_options():
        if parameter.name not in _OF_LINES:
            raise click.UsageError(
                f"{parameter.opts[-1]} concerns rows of a log and cannot be used with lines"
            )
