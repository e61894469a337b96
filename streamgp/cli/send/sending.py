"""What `streamgp send` does once its options are known: open, send, say how far it came."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace as changed

from connectors.broker import Received
from connectors.records import LinkError
from connectors.tables.logs import LogSource
from connectors.tables.streams import TableError
from streamgp.cli.configuration.logs import Notes, name_of, open_log, prefixes
from streamgp.cli.configuration.options import with_options
from streamgp.cli.configuration.settings import Config
from streamgp.cli.configuration.validation import ConfigError
from streamgp.cli.configuration.worker_settings import WorkerConfig, replay_part
from streamgp.cli.deployment.visiting import visit
from streamgp.cli.exit_codes import DONE, LOST_BROKER, WRONG_USE, status_of
from streamgp.cli.send.feeder import Feeder, Pace, RowRead, Say
from streamgp.cli.status_line import StatusLine
from streamgp.cli.stopping import Stop
from streamgp.cli.terminal import progress, tell
from streamgp.cli.wording import number
from streamgp.interactive.messages import Event, Rejected

PROGRAM = "send"


def send_logs(
    config_file: Path,
    logs: Sequence[Path],
    pace: Pace,
    *,
    columns: Mapping[str, Any],
    unlabelled: bool,
    teach: int,
    limit: int | None,
    first: int,
    prefix: str | None,
    broker: str | None,
) -> int:
    """Send logs, and say what was sent.

    Parameters
    ----------
    config_file
        The configuration of the deployment.
    logs
        The logs, in their order.
    pace
        When rows are sent.
    columns
        What is said about the columns on the command line, as for `streamgp replay`.
    unlabelled
        Whether the logs have no column of labels.
    teach
        Number of first rows that bring their label to be learned.
    limit
        Number of rows at most, None for what the configuration says.
    first
        The row to begin with, counted over all logs.
    prefix
        What event ids begin with; None for nothing, or the name of each of several logs.
    broker
        Address of the broker; replaces the configured one.

    Returns
    -------
    The exit status.

    Raises
    ------
    LinkError
        If the broker cannot be reached at the beginning.

    """
    if prefix is not None and not prefix.isprintable():
        raise click.UsageError(f"--prefix must be printable, got {prefix!r}")
    heads = [(prefix or "") + head for head in prefixes(logs)]
    with visit(config_file, broker) as deployment, ExitStack() as stack:
        config = _columns(deployment.config, columns, pace, unlabelled=unlabelled)
        limit = config.log.limit if limit is None else limit
        config = changed(config, log=changed(config.log, limit=None))
        notes = Notes()
        # All of them before anything is sent: what is wrong with the last is said now.
        sources = [stack.enter_context(closing(open_log(path, config, notes))) for path in logs]
        # Where every key has a learner, a log that names no keys is that of one: its own name.
        is_one = deployment.config.worker.keyed and config.log.key is None
        keys = [name_of(path) if is_one else None for path in logs]
        rows = _rows(sources, heads, keys, first, limit)
        stop = stack.enter_context(Stop())
        started_at = time.monotonic()
        writer = deployment.topics.writer(PROGRAM)
        feeder = Feeder(writer, pace, keyed=deployment.config.worker.keyed, n_taught=teach)
        feeder.last = feeder.safe = first - 1
        notes.show()
        try:
            with _shown() as say:
                feeder.run(rows, stop, say)
            writer.close()
        except (LinkError, TableError) as error:
            with suppress(LinkError):
                writer.close()
            _say_rejected(feeder)
            return _cut_by(error, feeder, first)
        _say_rejected(feeder)
        return _end(feeder, stop, first, time.monotonic() - started_at)


def _rows(
    logs: Sequence[LogSource],
    heads: Sequence[str],
    keys: Sequence[str | None],
    first: int,
    limit: int | None,
) -> Iterator[RowRead]:
    """Return the rows of logs, from the first that is wanted on."""
    rows = (
        ((i + log.progress) / len(logs), head, key, received.message)
        for i, (log, head, key) in enumerate(zip(logs, heads, keys, strict=True))
        for received in _polled(log)
    )
    last = None if limit is None else first - 1 + limit
    numbered = enumerate(rows, start=1)
    for n, (share, head, key, message) in islice(numbered, first - 1, last):
        assert isinstance(message, Event | Rejected)  # what a log holds
        if isinstance(message, Event):
            message = replace(message, event_id=head + message.event_id, key=key or message.key)
        yield RowRead(number=n, message=message, share=share)


def _polled(log: LogSource) -> Iterator[Received]:
    while not log.exhausted:
        yield from log.poll()


def _columns(
    config: WorkerConfig, columns: Mapping[str, Any], pace: Pace, *, unlabelled: bool
) -> Config:
    """Return the configuration with the columns of the command line, or say what is missing."""
    found = with_options(replay_part(config), **columns)
    for column, option, why in (
        (
            "" if unlabelled else found.log.label,
            "label",
            "the column that holds the true label (or give --unlabelled if there is none)",
        ),
        (
            found.log.time if pace.speed is not None or pace.keep_times else "",
            "time",
            "the column that holds the time, which --speed and --keep-times need",
        ),
    ):
        if column is None:
            raise ConfigError(
                f"name {why}: --{option} COLUMN, or {option} in section [log] of the "
                "configuration file"
            )
    return found


@contextmanager
def _shown() -> Iterator[Say]:
    """Show a bar on a terminal, elsewhere a line now and then."""
    if sys.stderr.isatty():
        with progress() as show:
            yield show
    else:
        line = StatusLine()
        yield lambda text, _share: line.show(lambda: text)


def _say_rejected(feeder: Feeder) -> None:
    for reason in feeder.reasons:
        tell(f"rejected {reason}")
    more = feeder.n_rejected - len(feeder.reasons)
    if more:
        tell(f"rejected {number(more, 'more row')}")


def _end(feeder: Feeder, stop: Stop, first: int, seconds: float) -> int:
    rejected = f", {number(feeder.n_rejected, 'row')} rejected" if feeder.n_rejected else ""
    span = f" (rows {first} to {feeder.last})" if feeder.last >= first else ""
    tell(f"{number(feeder.n_sent, 'event')} sent{span}{rejected} in {seconds:.1f} s")
    if stop():
        tell(f"interrupted; go on with --from {feeder.last + 1}")
        return status_of(stop.signal)
    if not feeder.n_sent and feeder.n_rejected:
        tell("Error: no row could be read; see the reasons above")
        return WRONG_USE
    return DONE


def _cut_by(error: LinkError | TableError, feeder: Feeder, first: int) -> int:
    if isinstance(error, TableError):
        tell(f"Error: {error} (sent what came before it, rows {first} to {feeder.last})")
        return WRONG_USE
    tell(
        f"Error: {' '.join(str(error).split())}; rows up to {feeder.safe} are safe, go on with "
        f"--from {feeder.safe + 1}"
    )
    return LOST_BROKER
