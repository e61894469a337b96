"""A worker between two pipes: lines of standard input go in, what it says goes to standard output.

Only for `memory://`, to try a configuration without any broker. A line is an event or an answer, as
it would be the value of a record; its `key` becomes the key of the record. Lines that could not be
used come out again as `{"type":"dead-letter", ...}`.

"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any, BinaryIO

import msgspec

from connectors.records import Outgoing, Record, TopicName, Topics

_SHOWN: tuple[TopicName, ...] = ("predictions", "requests", "consensus", "dead-letters")
_MOST_WAITING = 5000
_PAUSE_S = 0.01
_LONGEST_WAIT_S = 0.1


class _Head(msgspec.Struct):
    """What tells where a line belongs; anything else in it is for the worker to judge."""

    type: Any = None
    key: Any = None
    x: Any = None


class Pipes:
    """Feeds lines to a worker of this process, and writes what comes out.

    Parameters
    ----------
    topics
        The worker's topics.
    group
        The worker's group.
    lines
        What goes in.
    out
        Where everything goes that comes out.

    Attributes
    ----------
    trouble
        Why reading or writing ended before its time, None if it did not.

    """

    # _all_in    nothing more will go in
    # _unwanted  nobody reads what comes out
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
        self._feeder = threading.Thread(target=self._feed, name="stdin", daemon=True)
        self._printer = threading.Thread(target=self._print_on, name="stdout", daemon=True)

    def start(self) -> None:
        """Begin to read and write."""
        self._feeder.start()
        self._printer.start()

    def is_through(self) -> bool:
        """Whether everything is worked off, or nobody reads what comes out."""
        if self._unwanted.is_set():
            return True
        return self._all_in.is_set() and self._n_waiting() == 0

    def close(self) -> None:
        """Write out what is left."""
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
                record = record_of(line.rstrip(b"\r\n"))
                # Of what waits together a worker takes answers first; here they come after what
                # they answer.
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
            self._unwanted.set()  # `| head`: no trouble
        except OSError as error:
            self.trouble = str(error)
            self._unwanted.set()

    def _print(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.value is not None:
                self._out.write(line_of(record) + b"\n")
        self._out.flush()


def record_of(line: bytes) -> Outgoing:
    """Return the record that a line stands for; what cannot be read is for the worker to refuse.

    Examples
    --------
    >>> record = record_of(b'{"key": "ann", "x": {"light": 0.5}}')
    >>> record.topic, record.key
    ('events', b'ann')
    >>> record_of(b'{"event_id": "e1", "y": "home"}').topic
    'answers'

    """
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # the worker says what is wrong
        head = _Head(type="event")
    is_event = head.type == "event" or (head.type is None and head.x is not None)
    key = head.key.encode("utf-8", "replace") if isinstance(head.key, str) else None
    return Outgoing(topic="events" if is_event else "answers", key=key, value=line)


def line_of(record: Record) -> bytes:
    """Return the line that a record is written as."""
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
