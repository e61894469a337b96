"""Log of a program that runs on: one line per event, for people or for machines.

A line has a time, a level, the name of the event and its fields, but never features, answers or
labels. On a terminal it is text, elsewhere one JSON object.

"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Literal, TextIO, TypeAlias

from connectors.worker.logging import say
from streamgp.common.printable import printable

LogFormat: TypeAlias = Literal["text", "json"]

_LONGEST_TEXT = 1000


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
