"""Topics as JSON lines: printing records as they arrive, and sending lines of standard input."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import click

from connectors.topics import BrokerError, Outgoing, TopicName, Topics
from connectors.wire.record_lines import from_line, input_of, to_line
from streamgp.apps.console import DONE, WRONG_USE, Stop, number, seen, status_of, tell
from streamgp.apps.deployment.deployment import Deployment, visit
from streamgp.apps.send import MOST_IN_FLIGHT, UNSAFE_FOR_S, status_by

_PROGRAM = "send"
_PAUSE_S = 0.2
_PATIENCE_S = 0.2
_CHUNK = 1 << 20


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
            for line in _lines(sys.stdin.fileno(), stop):
                if line is None:
                    sender.flush()
                else:
                    sender.take(line, topic)
            sender.flush()
        except (BrokerError, ValueError) as error:
            tell(
                f"Error: {' '.join(str(error).split())}; the first {number(sender.n_safe, 'line')} "
                f"of the input are safe, continue with: tail -n +{sender.n_safe + 1}"
            )
            return status_by(error) if isinstance(error, BrokerError) else WRONG_USE
        seconds = time.monotonic() - started_at
        tell(f"{number(sender.n_sent, 'record')} sent in {seconds:.1f} s")
        if stop():
            tell(f"interrupted; continue with: tail -n +{sender.n_safe + 1}")
            return status_of(stop.signal)
        return DONE


class _LineSender:
    """Sends lines as records.

    Attributes
    ----------
    n_sent, n_safe
        Number of records sent; number of lines up to which all are stored.

    """

    def __init__(self, send: Callable[[Outgoing], None], flush: Callable[[], None]) -> None:
        self.n_sent = 0
        self.n_safe = 0
        self._n_lines = 0
        self._send = send
        self._flush = flush
        self._flushed_at = time.monotonic()

    def take(self, line: bytes, topic: TopicName | None) -> None:
        """Send the next line; a blank one is skipped."""
        if record := _record(line, topic):
            self._send(record)
            self.n_sent += 1
        self._n_lines += 1
        if (
            self._n_lines - self.n_safe >= MOST_IN_FLIGHT
            or time.monotonic() - self._flushed_at >= UNSAFE_FOR_S
        ):
            self.flush()

    def flush(self) -> None:
        """Return once everything is stored."""
        if self.n_safe < self._n_lines:
            self._flush()
            self.n_safe = self._n_lines
        self._flushed_at = time.monotonic()


@contextmanager
def _writing(there: Deployment) -> Iterator[_LineSender]:
    writer = there.topics.writer(_PROGRAM)
    try:
        yield _LineSender(writer.send, writer.flush)
    finally:
        with suppress(BrokerError):  # already reported, or nothing is left to write
            writer.close()


@contextmanager
def _restoring(there: Deployment) -> Iterator[_LineSender]:
    """Write in place of a worker; none may be running."""
    if not there.is_in_directory:
        raise click.ClickException(
            "--restore needs a broker file://DIR; copy topics in Kafka with Kafka's own tools"
        )
    client = there.topics.client(group=there.group, instance=_PROGRAM, max_records=1)
    unsent: list[Outgoing] = []

    def flush() -> None:
        client.commit(unsent)
        unsent.clear()

    try:
        yield _LineSender(unsent.append, flush)
    finally:
        client.close(leave=True)


def _record(line: bytes, topic: TopicName | None) -> Outgoing | None:
    line = line.rstrip(b"\r")
    if not line or line.isspace():
        return None
    if topic is None:
        record = input_of(line)
        if record.value is None:
            raise ValueError(
                "a record without a value says nothing as an event or an answer; to forget a key, "
                "or to take an example back, give --topic consensus"
            )
        return record
    read = from_line(topic, line)
    if read is None:
        return None
    return Outgoing(topic=topic, key=read.key, value=read.value, headers=read.headers)


def _lines(descriptor: int, stop: Callable[[], bool]) -> Iterator[bytes | None]:
    """Yield lines as they arrive, and None whenever there was none for a moment."""
    parts: list[bytes] = []
    while not stop():
        ready, _, _ = select.select([descriptor], [], [], _PAUSE_S)
        if not ready:
            yield None
            continue
        data = os.read(descriptor, _CHUNK)
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


# --- printing


def print_records(
    topics: Topics, topic: TopicName, stop: Callable[[], bool], *, from_start: bool, once: bool
) -> None:
    """Print the records of a topic on standard output.

    Raises
    ------
    BrokenPipeError
        If the output is no longer read.
    click.ClickException
        If standard output is closed.

    """
    if sys.stdout is None:
        raise click.ClickException("standard output is closed; let the records go somewhere")
    out, is_terminal = sys.stdout.buffer, sys.stdout.isatty()
    with closing(topics.reader((topic,), from_end=not from_start)) as reader:
        while not stop() and not (once and reader.caught_up):
            for record in reader.poll(_PATIENCE_S):
                outgoing = Outgoing(
                    topic=topic, key=record.key, value=record.value, headers=record.headers
                )
                line = to_line(outgoing, record.at)
                if is_terminal:
                    line = seen(line.decode("utf-8", "replace")).encode()
                out.write(line + b"\n")
            out.flush()
            _check_read()


def _check_read() -> None:
    """Notice that a pipe is no longer read even if there is nothing to write."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # not a file
        return
    poll = select.poll()
    poll.register(descriptor, 0)
    if any(events & select.POLLERR for _, events in poll.poll(0)):
        raise BrokenPipeError
