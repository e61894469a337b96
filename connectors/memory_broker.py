"""A broker within this process: topics of bytes, positions by group, nothing on disk.

It behaves like a real one where that matters for tests: every message passes through the codec,
messages leave with `flush`, what was not committed comes again, and records are stamped on arrival.
Records of several topics are delivered in the order in which they arrived.

"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Condition

from connectors.broker import (
    INPUT_TOPIC,
    INPUTS,
    OUTPUT_TOPIC,
    Received,
    Topic,
    check_topics,
    receive,
    topic_of,
)
from connectors.wire.codec import decode, encode
from streamgp.interactive.messages import Input, Message, Rejected


@dataclass(frozen=True, slots=True)
class _Record:
    topic: Topic
    offset: int  # within the topic
    data: bytes
    why: bytes | None  # of a dead letter: the encoded `Rejected`
    at: float


class MemoryBroker:
    """Topics in memory.

    Parameters
    ----------
    clock
        Stamps the records; the time of those that bring none of their own.

    Examples
    --------
    >>> broker = MemoryBroker(clock=lambda: 0.0)
    >>> broker.publish("events", b"hello")
    >>> first = broker.source(["events"])
    >>> [received.message.subject for received in first.poll()]
    ['events:0']
    >>> first.close()  # without commit
    >>> [received.original for received in broker.source(["events"]).poll()]
    [b'hello']

    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._log: list[_Record] = []  # all topics, in order of arrival
        self._sizes: dict[Topic, int] = {}
        self._positions: dict[tuple[str, Topic], int] = {}  # committed, by group
        self._closed = False
        self._arrival = Condition()

    def publish(self, topic: Topic, data: bytes, *, why: bytes | None = None) -> None:
        """Append raw bytes to a topic."""
        (topic,) = check_topics([topic])
        with self._arrival:
            if self._closed and topic in INPUTS:
                raise ValueError("broker is closed; open a new one")
            offset = self._sizes.get(topic, 0)
            self._sizes[topic] = offset + 1
            self._log.append(_Record(topic, offset, data, why, self._clock()))
            self._arrival.notify_all()

    def topic(self, topic: Topic) -> list[bytes]:
        """Return the bytes of all records of one topic."""
        (topic,) = check_topics([topic])
        return [record.data for record in self._log if record.topic == topic]

    def source(self, topics: Iterable[Topic] = INPUTS, *, group: str = "worker") -> MemorySource:
        """Read topics from where the group has committed."""
        return MemorySource(self, check_topics(topics), group)

    def sink(self) -> MemorySink:
        """Publish what a loop says."""
        return MemorySink(self, OUTPUT_TOPIC)

    def publisher(self) -> MemorySink:
        """Publish what a loop is told."""
        return MemorySink(self, INPUT_TOPIC)

    def close(self) -> None:
        """Take no more inputs; a worker ends once it has worked off what is there."""
        with self._arrival:
            self._closed = True
            self._arrival.notify_all()


class MemorySource:
    """Reads topics of a `MemoryBroker`."""

    def __init__(self, broker: MemoryBroker, topics: tuple[Topic, ...], group: str) -> None:
        self._broker = broker
        self._group = group
        self._next = 0  # in the broker's log
        self._polled = {t: broker._positions.get((group, t), 0) for t in topics}

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return everything that has arrived; wait for the first record at most the timeout."""
        broker = self._broker
        with broker._arrival:
            fresh = self._fresh()
            if not fresh and timeout_s > 0.0 and not broker._closed:
                broker._arrival.wait_for(self._has_news, timeout_s)
                fresh = self._fresh()
        return [_received(record) for record in fresh]

    @property
    def exhausted(self) -> bool:
        """Whether the broker is closed and everything was read."""
        return self._broker._closed and self._next == len(self._broker._log)

    def commit(self) -> None:
        """Start the group's next source after what was polled."""
        for topic, offset in self._polled.items():
            self._broker._positions[self._group, topic] = offset

    def close(self) -> None:
        """Let go; what was not committed will be delivered again."""

    def _has_news(self) -> bool:
        return self._broker._closed or self._next < len(self._broker._log)

    def _fresh(self) -> list[_Record]:
        fresh = []
        for record in self._broker._log[self._next :]:
            if record.offset >= self._polled.get(record.topic, record.offset + 1):
                self._polled[record.topic] = record.offset + 1
                fresh.append(record)
        self._next = len(self._broker._log)
        return fresh


class MemorySink:
    """Publishes to a `MemoryBroker`; a rejection becomes a dead letter with the original bytes."""

    def __init__(self, broker: MemoryBroker, topics: dict[type, Topic]) -> None:
        self._broker = broker
        self._topics = topics
        self._unsent: list[tuple[Topic, bytes, bytes | None]] = []

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Take one message until the next flush."""
        topic = topic_of(message, self._topics)
        data = encode(message)
        if isinstance(message, Rejected):
            original = cause.original if cause is not None else None
            self._unsent.append((topic, data if original is None else original, data))
        else:
            self._unsent.append((topic, data, None))

    def flush(self) -> None:
        """Publish everything sent."""
        for topic, data, why in self._unsent:
            self._broker.publish(topic, data, why=why)
        self._unsent.clear()

    def close(self) -> None:
        """Flush."""
        self.flush()


def _received(record: _Record) -> Received:
    if record.why is not None:
        return Received(message=decode(record.why), original=record.data, at=record.at)
    subject = f"{record.topic}:{record.offset}"
    return receive(record.topic, record.data, subject=subject, at=record.at)
