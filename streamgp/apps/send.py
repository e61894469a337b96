"""Program of `streamgp send`: rows of recorded logs as events, or lines of standard input."""

from __future__ import annotations

import sys
import time
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace as changed

from connectors.broker import Received
from connectors.tables.log_source import LogSource
from connectors.tables.readers import TableError
from connectors.topics import BrokerError, Outgoing, RefusedError, TopicName, Writer
from connectors.wire.inbound import MAX_NAME, flaw_of_name
from connectors.wire.outbound import Outbound
from connectors.wire.record_lines import from_line, input_of, is_object
from streamgp.apps.console import (
    DONE,
    LOST_BROKER,
    WRONG_USE,
    Incoming,
    Show,
    StatusLine,
    Stop,
    number,
    progress,
    span,
    status_of,
    tell,
)
from streamgp.apps.deployment.deployment import Deployment, visit
from streamgp.apps.recorded_logs import (
    N_REASONS_SHOWN,
    Notes,
    name_of,
    open_rows,
    prefixes,
    tell_rejected,
)
from streamgp.config.load import with_options
from streamgp.config.settings import Config, WorkerConfig, replay_part
from streamgp.config.validation import ConfigError
from streamgp.interactive.messages import Event, Rejected

# --- Sending rows to the events topic, at a given pace.


SOURCE = "/streamgp/send"
PROGRAM = "send"
MOST_IN_FLIGHT = 1000
"""The largest number of rows sent but not known to be stored."""
UNSAFE_FOR_S = 0.25
_NAP_S = 0.05
_TOLD_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Pace of sending, and the times of the rows.

    Parameters
    ----------
    speed
        How many times faster than recorded; None for as fast as possible.
    keep_times
        Whether events keep the times of the log; otherwise they get the time of sending.

    """

    speed: float | None = None
    keep_times: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRead:
    """A row of a log.

    Parameters
    ----------
    number
        Its number over all logs, from 1.
    share
        Share of all logs that has been read, between 0 and 1.

    """

    number: int
    message: Event | Rejected
    share: float


class Sender:
    """Sends the records of numbered inputs, and has them stored before there are too many.

    Parameters
    ----------
    send, flush
        Send a record; return once everything sent is stored by the broker.

    Attributes
    ----------
    last, safe
        The last input processed; the last one up to which everything is stored.

    """

    # _flushed_at  time of the last flush
    def __init__(
        self,
        send: Callable[[Outgoing], None],
        flush: Callable[[], None],
        *,
        first: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.n_sent = 0
        self.last = self.safe = first - 1
        self._send = send
        self._flush = flush
        self._clock = clock
        self._flushed_at = clock()

    def take(self, record: Outgoing | None) -> None:
        """Process the next input: its record, None if there is nothing to send."""
        if record is not None:
            self._send(record)
            self.n_sent += 1
        self.last += 1
        is_long_ago = self._clock() - self._flushed_at >= UNSAFE_FOR_S
        if is_long_ago or self.last - self.safe >= MOST_IN_FLIGHT:
            self.flush()

    def flush(self) -> None:
        """Return once everything is stored."""
        if self.safe < self.last:
            self._flush()
            self.safe = self.last
            self._flushed_at = self._clock()


class EventProducer:
    """Sends rows to the events topic.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    n_taught
        Number of first rows that carry their label, to be learned.

    Attributes
    ----------
    sender
        Knows the last row processed, and up to which row everything is stored.
    n_rejected, reasons
        Number of rows that could not be sent, and why the first of them could not.

    """

    # _start  time of the first row in the log, and of its sending
    def __init__(
        self,
        writer: Writer,
        pace: Pace,
        *,
        keyed: bool,
        n_taught: int = 0,
        first: int = 1,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.sender = Sender(writer.send, writer.flush, first=first, clock=clock)
        self.n_rejected = 0
        self.reasons: list[str] = []
        self._pace = pace
        self._outbound = Outbound(SOURCE, keyed=keyed)
        self._n_taught = n_taught
        self._clock = clock
        self._sleep = sleep
        self._start: tuple[float, float] | None = None

    def run(self, rows: Iterator[RowRead], should_stop: Callable[[], bool], say: Show) -> None:
        """Send rows until there are no more, or `should_stop` returns true.

        Raises
        ------
        BrokerError
            If the broker is lost; `sender.safe` is the last row written.
        TableError
            If a log is damaged; the rows before have been sent.

        """
        try:
            for row in rows:
                if should_stop() or not self._wait_for(row, should_stop, say):
                    break
                self.sender.take(self._record(row))
                say(f"{number(self.sender.n_sent, 'event')} sent", row.share)
        except TableError:
            self.sender.flush()
            raise
        self.sender.flush()

    def _wait_for(self, row: RowRead, should_stop: Callable[[], bool], say: Show) -> bool:
        """Wait until a row is due, and report a long wait; return whether it is due."""
        speed, event = self._pace.speed, row.message
        if speed is None or isinstance(event, Rejected):
            return True
        if self._start is None:
            self._start = (event.occurred_at, self._clock())
        first_at, started_at = self._start
        due = started_at + (event.occurred_at - first_at) / speed
        while (wait_s := due - self._clock()) > 0.0:
            if should_stop():
                return False
            if wait_s > _NAP_S:
                self.sender.flush()
            if wait_s >= _TOLD_S:  # a night in the log must not look like a hanging command
                sent = f"{number(self.sender.n_sent, 'event')} sent"
                say(f"{sent}, the next one in {span(wait_s)}", row.share)
            self._sleep(min(wait_s, _NAP_S))
        return True

    def _record(self, row: RowRead) -> Outgoing | None:
        """Return the record of a row, None if it cannot be sent."""
        message = row.message
        if isinstance(message, Rejected):
            self._reject(f"{message.subject}: {message.reason}")
            return None
        # A worker would make them dead letters.
        for name, what in ((message.key, "key"), (message.truth, "label")):
            if isinstance(name, str) and (flaw := flaw_of_name(name)):
                self._reject(f"row {row.number}: {what} {flaw}")
                return None
        if long := next((name for name in message.x if len(name) > MAX_NAME), None):
            self._reject(f"row {row.number}: a column {flaw_of_name(long)}")
            return None
        if not self._pace.keep_times:
            message = replace(message, occurred_at=self._clock())
        if row.number <= self._n_taught:
            message = replace(message, y=message.truth)
        try:
            return self._outbound.message(message, None)
        except ValueError as error:
            self._reject(f"row {row.number}: {error}")
            return None

    def _reject(self, reason: str) -> None:
        self.n_rejected += 1
        if len(self.reasons) < N_REASONS_SHOWN:
            self.reasons.append(f"rejected {reason}")


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
    """Send logs as the options of `streamgp send` say, and report it; return the status."""
    if prefix is not None and not prefix.isprintable():
        raise click.UsageError(f"--prefix must be printable, got {prefix!r}")
    heads = [(prefix or "") + head for head in prefixes(logs)]
    with visit(config_file, broker) as deployment, ExitStack() as stack:
        if deployment.config.windows is not None:  # windows need the times of the log
            pace = replace(pace, keep_times=True)
        config = _columns(deployment.config, columns, pace, unlabelled=unlabelled)
        limit = config.log.limit if limit is None else limit
        config = changed(config, log=changed(config.log, limit=None))
        notes = Notes()
        # Open all of them before sending anything, so that problems of the last one show now.
        sources = [stack.enter_context(closing(open_rows(path, config, notes))) for path in logs]
        # If every key has a learner, a log without keys has one key: its name.
        is_one = deployment.config.worker.keyed and config.log.key is None
        keys = [name_of(path) if is_one else None for path in logs]
        if is_one:
            more = ", ..." if len(keys) > 1 else ""
            notes(f"without --key all rows of a log have its name as their key: {keys[0]!r}{more}")
        rows = _rows(sources, heads, keys, first, limit)
        stop = stack.enter_context(Stop())
        started_at = time.monotonic()
        writer = deployment.topics.writer(PROGRAM)
        producer = EventProducer(
            writer, pace, keyed=deployment.config.worker.keyed, n_taught=teach, first=first
        )
        notes.show()
        try:
            with _shown() as say:
                producer.run(rows, stop, say)
            writer.close()
        except (BrokerError, TableError) as error:
            with suppress(BrokerError):
                writer.close()
            tell_rejected(producer.reasons, producer.n_rejected)
            return _cut_by(error, producer.sender, first, limit)
        tell_rejected(producer.reasons, producer.n_rejected)
        return _end(producer, stop, first, limit, time.monotonic() - started_at)


def _rows(
    logs: Sequence[LogSource],
    heads: Sequence[str],
    keys: Sequence[str | None],
    first: int,
    limit: int | None,
) -> Iterator[RowRead]:
    """Return the rows of logs, from the first requested one on."""
    rows = (
        ((i + log.progress) / len(logs), head, key, received.message)
        for i, (log, head, key) in enumerate(zip(logs, heads, keys, strict=True))
        for received in _polled(log)
    )
    begun = islice(enumerate(rows, start=1), first - 1, None)
    for n, (share, head, key, message) in islice(begun, limit):
        assert isinstance(message, Event | Rejected)  # a log contains only these
        if isinstance(message, Event):
            message = replace(message, event_id=head + message.event_id, key=key or message.key)
        yield RowRead(number=n, message=message, share=share)


def _polled(log: LogSource) -> Iterator[Received]:
    while not log.exhausted:
        yield from log.poll()


def _columns(
    config: WorkerConfig, columns: Mapping[str, Any], pace: Pace, *, unlabelled: bool
) -> Config:
    """Return the configuration with the columns of the command line; errors name a missing one."""
    found = with_options(replay_part(config), **columns)
    if found.log.label is None and not unlabelled:
        option = "label"
        what = "the column that holds the true label (or give --unlabelled if there is none)"
    elif found.log.time is None and (pace.speed is not None or pace.keep_times):
        option = "time"
        what = "the column that holds the time, which --speed, --keep-times and windows need"
    else:
        return found
    raise ConfigError(
        f"name {what}: --{option} COLUMN, or {option} in section [log] of the configuration file"
    )


@contextmanager
def _shown() -> Iterator[Show]:
    """Show a bar on a terminal, elsewhere a line from time to time."""
    if sys.stderr.isatty():
        with progress() as show:
            yield show
    else:
        line = StatusLine()
        yield lambda text, _share: line.show(lambda: text)


def _end(producer: EventProducer, stop: Stop, first: int, limit: int | None, seconds: float) -> int:
    n_sent, last = producer.sender.n_sent, producer.sender.last
    rejected = f", {number(producer.n_rejected, 'row')} rejected" if producer.n_rejected else ""
    rows = f"row {first}" if last == first else f"rows {first} to {last}"
    which = f" ({rows})" if last >= first else ""
    tell(f"{number(n_sent, 'event')} sent{which}{rejected} in {seconds:.1f} s")
    if stop():
        tell(f"interrupted; {_rest(last, first, limit)}")
        return status_of(stop.signal)
    if not n_sent and producer.n_rejected:
        tell("Error: no row could be read; see the reasons above")
        return WRONG_USE
    if last < first:
        tell(f"there is no row {first}: the logs end before it")
    return DONE


def _cut_by(error: BrokerError | TableError, sender: Sender, first: int, limit: int | None) -> int:
    if isinstance(error, TableError):
        sent = f"the rows before it were sent: {first} to {sender.last}"
        tell(f"Error: {error} ({sent if sender.last >= first else 'no row was sent'})")
        return WRONG_USE
    tell(
        f"Error: {' '.join(str(error).split())}; rows up to {sender.safe} are safe, "
        f"{_rest(sender.safe, first, limit)}"
    )
    return _status_by(error)


def _rest(last: int, first: int, limit: int | None) -> str:
    """Return the options that send the rest, after the last row that was sent."""
    if limit is None:
        return f"continue with --from {last + 1}"
    rest = first + limit - (last + 1)
    return f"continue with --from {last + 1} --limit {rest}" if rest else "nothing is left to send"


def _status_by(error: BrokerError) -> int:
    """Return the exit status of a sender that the broker has stopped: 75 if a retry may help."""
    return WRONG_USE if isinstance(error, RefusedError) else LOST_BROKER


# --- Lines of standard input, each one record.


_PAUSE_S = 0.2


def send_lines(
    config_file: Path, topic: TopicName | None, *, restore: bool, broker: str | None
) -> int:
    """Send lines of standard input, report how many were sent, and return the exit status.

    Parameters
    ----------
    topic
        Topic of the lines; None for events and answers, distinguished by their contents.

    Raises
    ------
    click.ClickException
        If standard input is closed.

    """
    if sys.stdin is None:
        raise click.ClickException("standard input is closed; pipe the lines in, or name a log")
    with visit(config_file, broker) as there, ExitStack() as stack:
        sender = stack.enter_context(_restoring(there) if restore else _writing(there))
        stop = stack.enter_context(Stop())
        started_at = time.monotonic()
        try:
            try:
                for line in _lines(Incoming(sys.stdin), stop):
                    if line is None:
                        sender.flush()
                    else:
                        sender.take(_record(line, topic, is_first=sender.last == 0))
            except ValueError:  # the lines before it have been sent
                sender.flush()
                raise
            sender.flush()
        except (BrokerError, ValueError) as error:
            rest = (
                f"; the first {number(sender.safe, 'line')} of the input are safe, continue with: "
                f"tail -n +{sender.safe + 1}"
            )
            tell(f"Error: {' '.join(str(error).split())}{rest if sender.safe else ''}")
            return _status_by(error) if isinstance(error, BrokerError) else WRONG_USE
        seconds = time.monotonic() - started_at
        tell(f"{number(sender.n_sent, 'record')} sent in {seconds:.1f} s")
        if stop():
            tell(f"interrupted; continue with: tail -n +{sender.safe + 1}")
            return status_of(stop.signal)
        return DONE


@contextmanager
def _writing(there: Deployment) -> Iterator[Sender]:
    writer = there.topics.writer(PROGRAM)
    try:
        yield Sender(writer.send, writer.flush)
    finally:
        with suppress(BrokerError):  # already reported, or nothing is left to write
            writer.close()


@contextmanager
def _restoring(there: Deployment) -> Iterator[Sender]:
    """Write in place of a worker; none may be running."""
    if not there.is_in_directory:
        raise click.ClickException(
            "--restore needs a broker file://DIR; copy topics in Kafka with Kafka's own tools"
        )
    client = there.topics.client(group=there.group, instance=PROGRAM, max_records=1)
    unsent: list[Outgoing] = []

    def flush() -> None:
        client.commit(unsent)
        unsent.clear()

    try:
        yield Sender(unsent.append, flush)
    finally:
        client.close(leave=True)


def _record(line: bytes, topic: TopicName | None, *, is_first: bool) -> Outgoing | None:
    """Return the record in a line, None if it is blank; a byte order mark may precede the first."""
    # A later line may have null bytes in UTF-8, too, if a crash truncated its file.
    if is_first and (b"\0" in line or line.startswith((BOM_UTF16_LE, BOM_UTF16_BE))):
        raise ValueError(
            "standard input is UTF-16 text, or binary; expected lines of JSON in UTF-8 (as from "
            "iconv -f UTF-16 -t UTF-8 FILE)"
        )
    line = (line.removeprefix(BOM_UTF8) if is_first else line).rstrip(b"\r")
    if not line or line.isspace():
        return None
    # A worker makes a dead letter, which says why, of a later line and of an object with a flaw.
    if is_first and not line.lstrip().startswith(b"{"):
        raise ValueError(
            "the first line of standard input is no JSON object; expected lines of JSON (to send a "
            "log, such as CSV, give its name in place of -)"
        )
    if topic is None:
        record = input_of(line)
        if record.value is None:
            raise ValueError(
                "a record without a value says nothing as an event or an answer; to forget a key, "
                "or to take an example back, give --topic consensus"
            )
        return record
    # A worker refuses any input that it cannot read, but what workers write must be whole.
    if topic not in ("events", "answers") and not is_object(line):
        raise ValueError(
            f"a line for {topic} is no JSON object, which every line is that streamgp watch "
            "--follow prints: it was truncated or changed; leave it out, or print the topic again"
        )
    read = from_line(topic, line)
    if read is None:
        return None
    return Outgoing(topic=topic, key=read.key, value=read.value, headers=read.headers)


def _lines(incoming: Incoming, stop: Callable[[], bool]) -> Iterator[bytes | None]:
    """Yield lines as they arrive, and None whenever there was none for a moment."""
    parts: list[bytes] = []
    while not stop():
        if not incoming.wait(_PAUSE_S):
            yield None
            continue
        data = incoming.read()
        if not data:
            if parts:  # a last line without a newline
                yield b"".join(parts)
            return
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield b"".join((*parts, line))
            parts.clear()
            if stop():
                return
        parts.append(rest)
