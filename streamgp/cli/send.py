"""The command `streamgp send`: recorded logs as the events of a deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamgp.apps.deployment.deployment import broker_option, config_argument
from streamgp.cli.options import Number, features_option, ignore_option


@click.command()
@config_argument
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
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
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    help="The first N rows bring their label to be learned, not only as `truth`.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Send N rows at most.")
@click.option(
    "--from",
    "first",
    type=click.IntRange(min=1),
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
    broker: str | None,
    **columns: Any,
) -> None:
    """Send the rows of recorded LOGs as events.

    CONFIG.toml is that of the workers; what its section [log] says about the columns holds here,
    too. Several logs are sent one after the other.

    The id of an event is the number of its row: a row that is sent twice counts once. To send the
    same log as new events, give another --prefix.

    After Ctrl-C, or when the broker is lost, a line says with which row to go on: give the same
    command with --from.

    \b
    Examples:
      streamgp send worker.toml rooms.csv --label room --key phone
      streamgp send worker.toml phones.parquet --label activity --key user \\
          --time timestamp --speed 60
      streamgp send worker.toml may.csv june.csv --label room --key phone --teach 20

    Exit status: 0 done, 2 wrong use or a damaged log, 75 the broker is lost, 130 ended by Ctrl-C,
    129 because the terminal was closed, 143 by SIGTERM.
    """
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
