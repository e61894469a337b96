"""Log of a worker: one line per event, for people or for machines.

A line has a time, a level, the name of the event and its fields, but never features, answers or
labels. On a terminal it is text, elsewhere one JSON object.

"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from math import isfinite
from typing import Any, BinaryIO, Literal, TextIO, TypeAlias

import msgspec

from connectors.topics import Record, TopicName, Topics
from connectors.wire.record_lines import input_of
from streamgp.common.printable import printable

LogFormat: TypeAlias = Literal["text", "json"]

WORKER = logging.getLogger("streamgp.worker")
_LONGEST_TEXT = 1000


def say(level: int, event: str, /, **fields: Any) -> None:
    """Log one event with its fields."""
    WORKER.log(level, event, extra={"fields": fields})


def start_log(kind: LogFormat | None, *, stream: TextIO | None = None) -> None:
    """Send this process's log to a stream, one line per event: by default stderr.

    Without a format, lines are text on a terminal and JSON elsewhere.

    Warnings of libraries and errors that end a thread become lines too. Log lines of the broker's
    client are left out: during an outage it repeats itself many times a second, and the worker
    reports what matters.
    """
    handler = _handler(kind, sys.stderr if stream is None else stream)
    # If the reader has gone, there is no reason to stop, and nowhere to report it.
    logging.raiseExceptions = False
    for name, level in (("streamgp", logging.INFO), ("py.warnings", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
    logging.captureWarnings(True)
    client = logging.getLogger("kafka")
    client.handlers = [logging.NullHandler()]
    client.propagate = False
    threading.excepthook = _say_thread_failed


def _handler(kind: LogFormat | None, stream: TextIO | None) -> logging.Handler:
    if stream is None:  # closed by the shell: `2>&-`
        return logging.NullHandler()
    if kind is None:
        kind = "text" if stream.isatty() else "json"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextLines() if kind == "text" else JsonLines())
    return handler


def _say_thread_failed(args: threading.ExceptHookArgs) -> None:
    name = "?" if args.thread is None else args.thread.name
    error = f"{args.exc_type.__name__}: {args.exc_value}"
    say(logging.ERROR, "thread-failed", thread=name, error=error)


class JsonLines(logging.Formatter):
    """Formats a record as a JSON object on one line.

    Examples
    --------
    >>> record = logging.makeLogRecord(
    ...     {"msg": "batch", "levelname": "INFO", "created": 0.25, "fields": {"events": 500}}
    ... )
    >>> JsonLines().format(record)
    '{"at":"1970-01-01T00:00:00.250Z","level":"info","event":"batch","events":500}'

    """

    def format(self, record: logging.LogRecord) -> str:
        event, fields = _event_of(record)
        line = {
            "at": _at(record, "milliseconds"),
            "level": record.levelname.lower(),
            "event": event,
        }
        line |= {name: _plain(value) for name, value in fields.items() if name not in line}
        return json.dumps(line, separators=(",", ":"))


class TextLines(logging.Formatter):
    """Formats a record for people.

    Examples
    --------
    >>> record = logging.makeLogRecord(
    ...     {"msg": "failed", "levelname": "ERROR", "created": 0.0, "fields": {"why": "no disk"}}
    ... )
    >>> TextLines().format(record)
    '1970-01-01T00:00:00Z error failed why="no disk"'

    """

    def format(self, record: logging.LogRecord) -> str:
        event, fields = _event_of(record)
        words = [f"{name}={_shown(_plain(value))}" for name, value in fields.items()]
        return " ".join([_at(record, "seconds"), record.levelname.lower(), event, *words])


def _event_of(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    if record.name == "py.warnings":
        return "library-warning", {"text": record.getMessage()}
    if record.exc_info:
        text = logging.Formatter().formatException(record.exc_info)
        fields = {**fields, "traceback": text}
    return record.getMessage(), fields


def _at(record: logging.LogRecord, precision: str) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec=precision).replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; text that is too long is cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    text = str(value)
    if "\n" in text.strip() and len(text) > _LONGEST_TEXT:
        return "..." + text[-4 * _LONGEST_TEXT :]  # the end of a traceback is the most informative
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "..."


def _shown(value: Any) -> str:
    if isinstance(value, str):
        is_plain = printable(value) == value
        if value and is_plain and not set(value) & set(' "='):
            return value
        return json.dumps(value, ensure_ascii=not is_plain)
    return json.dumps(value, separators=(",", ":"))


# --- A worker between two pipes: it reads lines of standard input and writes to standard output.
#
# Only for `memory://`, to try a configuration without a broker. A line is an event or an answer in
# the form of a record's value; its `key` becomes the record's key. Lines that cannot be used are
# written out as `{"type":"dead-letter", ...}`.


_SHOWN: tuple[TopicName, ...] = ("predictions", "requests", "consensus", "dead-letters")
_MOST_WAITING = 5000
_PAUSE_S = 0.01
_LONGEST_WAIT_S = 0.1


class Pipes:
    """Feeds lines to a worker of this process, and writes its outputs.

    Attributes
    ----------
    trouble
        Why reading or writing ended early, None if it did not.

    """

    # _all_in    set once all input has been read
    # _unwanted  set once the reader of the output has gone
    def __init__(self, topics: Topics, group: str, lines: Iterable[bytes], out: BinaryIO) -> None:
        self._topics = topics
        self._group = group
        self._lines = lines
        self._out = out
        self.trouble: str | None = None
        self._reader = topics.reader(_SHOWN)
        self._all_in = threading.Event()
        self._unwanted = threading.Event()
        self._closing = threading.Event()
        self._stdin_writer = threading.Thread(target=self._feed, name="stdin", daemon=True)
        self._printer = threading.Thread(target=self._print_on, name="stdout", daemon=True)

    def start(self) -> None:
        self._stdin_writer.start()
        self._printer.start()

    def is_through(self) -> bool:
        """Whether all input is processed, or the reader of the output has gone."""
        if self._unwanted.is_set():
            return True
        return self._all_in.is_set() and self._n_waiting() == 0

    def close(self) -> None:
        """Write the remaining outputs."""
        self._closing.set()
        self._printer.join()
        self._reader.close()

    def _n_waiting(self) -> int:
        return sum(self._topics.lags(self._group).values())

    def _feed(self) -> None:
        writer = self._topics.writer("stdin")
        try:
            for line in self._lines:
                if not line.strip():
                    continue
                record = input_of(line.rstrip(b"\r\n"))
                # A worker takes waiting answers first; here they must come after what they answer.
                self._wait_for(0 if record.topic == "answers" else _MOST_WAITING)
                writer.send(record)
                writer.flush()
        except OSError as error:
            self.trouble = str(error)
        self._all_in.set()

    def _wait_for(self, n_waiting: int) -> None:
        while self._n_waiting() > n_waiting and not self._closing.is_set():
            time.sleep(_PAUSE_S)

    def _print_on(self) -> None:
        try:
            while not self._closing.is_set():
                self._print(self._reader.poll(_LONGEST_WAIT_S))
            while records := self._reader.poll(0.0):
                self._print(records)
        except BrokenPipeError:
            self._unwanted.set()  # `| head`: not an error
        except OSError as error:
            self.trouble = str(error)
            self._unwanted.set()

    def _print(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.value is not None:
                self._out.write(line_of(record) + b"\n")
        self._out.flush()


def line_of(record: Record) -> bytes:
    """Return the output line of a record."""
    value = record.value or b""
    if record.topic != "dead-letters":
        return value
    said = {name: text.decode("utf-8", "replace") for name, text in record.headers}
    return msgspec.json.encode(
        {
            "type": "dead-letter",
            "stage": said.get("dlq.stage"),
            "error": said.get("dlq.error"),
            "line": value.decode("utf-8", "replace"),
        }
    )
