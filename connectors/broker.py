"""Sources and sinks of messages: the simple protocol of a broker, and its adapter over topics.

Topics carry bytes; each message type has its topic. Inputs are sent on `events` and `answers`,
outputs on `predictions`, `requests` and `consensus`; unusable records go to `dead-letters`.

Delivery is at least once: `commit` marks everything polled so far as done, and what was not
committed is delivered again to the next source of the same group. A sink may hold messages back
until `flush`. A broker with transactions may hold them back until `commit`, so that outputs and
input positions become visible together. The runner of a loop calls `flush` first, then `commit`.

"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import Literal, Protocol, TypeAlias, get_args

from msgspec.structs import replace

from connectors.memory import MemoryReader, MemoryTopics
from connectors.topics import Outgoing, Reader, Record, TopicName, Topics, Writer
from connectors.wire.codec import MAX_BYTES, MAX_INPUT_BYTES, DecodeError, decode, encode
from connectors.wire.outbound import ROUTES, Outbound, time_of
from streamgp.common.validation import path_in_url
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Event,
    Input,
    Message,
    Rejected,
    Retraction,
)

Topic: TypeAlias = Literal[
    "events", "answers", "predictions", "requests", "consensus", "dead-letters"
]
TOPICS: tuple[Topic, ...] = get_args(Topic)
INPUTS: tuple[Topic, ...] = ("answers", "events")
"""Topics that a worker reads."""

INPUT_TOPIC: dict[type, TopicName] = {Event: "events", Answer: "answers", Cancel: "answers"}
OUTPUT_TOPIC: dict[type, TopicName] = {
    **{kind: topic for kind, (topic, _) in ROUTES.items() if topic not in INPUTS},
    Rejected: "dead-letters",
}

_REJECTED = "dlq.rejected"
_SOURCE = "/streamgp/run"
_NOTICED_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One record that a source delivered.

    A record that could not be understood comes as `Rejected`. A broker may deliver a subclass with
    more attributes, such as the position and the headers of the record.

    Parameters
    ----------
    message
        The message that it contained.
    original
        The bytes as they were received, or None if there were none.
    at
        The record's own time, POSIX seconds.

    """

    message: Input | Message
    original: bytes | None = None
    at: float


class Source(Protocol):
    """Source of inputs."""

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return the next records, in order; an empty list if none came within the timeout."""

    @property
    def exhausted(self) -> bool:
        """Whether no record will ever come again."""

    def commit(self) -> None:
        """Mark everything polled so far as done, unless it can be read again from the start."""
        return

    def close(self) -> None:
        """Close the connection; what was not committed will be delivered again."""


class Sink(Protocol):
    """Sink of messages."""

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Take one message; `cause` is the input that caused it, None for a timer.

        A dead letter carries the bytes of its cause. A `Retraction` has no topic of its own.
        """

    def flush(self) -> None:
        """Return once everything sent has left."""

    def close(self) -> None:
        """Flush and close the connection."""


class Broker(Protocol):
    """Topics shared by several programs."""

    def source(self, topics: Iterable[Topic] = INPUTS, *, group: str = "worker") -> Source:
        """Read topics; sources of one group share their position, groups do not."""

    def sink(self) -> Sink:
        """Publish the messages of a loop (a `Cancel` goes to `requests`)."""

    def publisher(self) -> Sink:
        """Publish inputs of a loop: events, answers (and a `Cancel`, with the answers)."""

    def close(self) -> None:
        """Close the connection."""


class TopicsBroker(Broker):
    """The simple protocol over topics of any kind, for a loop that `connectors.run` drives.

    Delivery is at least once. To process every input exactly once, or with several workers, use the
    topics themselves and `connectors.worker`.

    Parameters
    ----------
    topics
        The topics; they must exist.

    """

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def source(self, topics: Iterable[Topic] = INPUTS, *, group: str = "worker") -> TopicsSource:
        """Read topics from where the group has committed; one source of a group at a time."""
        return TopicsSource(self._topics.reader(check_topics(topics), group=group))

    def sink(self) -> TopicsSink:
        return TopicsSink(self._topics.writer("run"), OUTPUT_TOPIC)

    def publisher(self) -> TopicsSink:
        return TopicsSink(self._topics.writer("run"), INPUT_TOPIC)

    def close(self) -> None:
        """Close the topics; callers close the sources and sinks that they opened."""
        self._topics.close()


class TopicsSource(Source):
    """Reads messages from topics; of those polled together, the earliest records come first.

    Parameters
    ----------
    reader
        Reads the topics for a group.

    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return the records that have come; wait for the first one for at most the timeout."""
        places: dict[tuple[str, int], list[Record]] = {}
        for record in self._reader.poll(timeout_s):
            places.setdefault((record.topic, record.partition), []).append(record)
        # Each partition keeps its order, even if a clock was set back.
        return [_received(record) for record in merge(*places.values(), key=attrgetter("at"))]

    @property
    def exhausted(self) -> bool:
        """Whether no record will ever come again: false, as other programs may write."""
        return False

    def commit(self) -> None:
        self._reader.commit()

    def close(self) -> None:
        self._reader.close()


class TopicsSink(Sink):
    """Publishes messages; a rejection becomes a dead letter with the original bytes.

    Parameters
    ----------
    writer
        Writes to the topics.
    homes
        The topic of each type of message.

    """

    def __init__(self, writer: Writer, homes: Mapping[type, TopicName]) -> None:
        self._writer = writer
        self._homes = homes
        self._unsent: list[Outgoing] = []

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Keep one message until the next flush; of a `Retraction`, the lines that follow it."""
        if isinstance(message, Retraction):
            return
        topic = topic_of(message, self._homes)
        if isinstance(message, Rejected):
            data = encode(message)
            original = cause.original if cause is not None else None
            record = Outgoing(
                topic=topic,
                key=None if message.key is None else message.key.encode(),
                value=data if original is None else original,
                headers=((_REJECTED, data),),
            )
        else:
            record = Outbound(_SOURCE, keyed=message.key is not None).message(message, None)
            record = replace(record, topic=topic)
        self._unsent.append(record)

    def flush(self) -> None:
        """Publish everything sent."""
        for record in self._unsent:
            self._writer.send(record)
        self._unsent.clear()
        self._writer.flush()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._writer.close()


class MemoryBroker(TopicsBroker):
    """Topics in this process's memory, for tests and experiments.

    It behaves like a real broker where that matters: every message passes through the codec,
    messages leave with `flush`, what was not committed comes again, records are stamped on arrival.

    Parameters
    ----------
    clock
        Stamps the records; also the time of those without a time of their own.

    Examples
    --------
    >>> broker = MemoryBroker(clock=lambda: 0.0)
    >>> broker.publish("events", b"hello")
    >>> first = broker.source(["events"])
    >>> [received.message.subject for received in first.poll()]
    ['events:0:0']
    >>> first.close()  # without commit
    >>> [received.original for received in broker.source(["events"]).poll()]
    [b'hello']

    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._memory = MemoryTopics(clock=clock)
        super().__init__(self._memory)
        self.is_closed = False

    def publish(self, topic: Topic, data: bytes) -> None:
        """Append raw bytes to a topic."""
        (topic,) = check_topics([topic])
        if topic in INPUTS:
            self.check_open()
        writer = self._topics.writer("publish")
        writer.send(Outgoing(topic=topic, key=None, value=data))
        writer.flush()

    def topic(self, topic: Topic) -> list[bytes]:
        """Return the bytes of all records of one topic."""
        reader = self._topics.reader(check_topics([topic]))
        found: list[bytes] = []
        while not reader.caught_up:
            found += [record.value or b"" for record in reader.poll(0.0)]
        return found

    def source(self, topics: Iterable[Topic] = INPUTS, *, group: str = "worker") -> MemorySource:
        """Read topics from where the group has committed."""
        return MemorySource(self, self._memory.reader(check_topics(topics), group=group))

    def publisher(self) -> MemoryPublisher:
        return MemoryPublisher(self, self._topics.writer("run"))

    def check_open(self) -> None:
        """Raise an error if no more inputs are taken."""
        if self.is_closed:
            raise ValueError("broker is closed; open a new one")

    def close(self) -> None:
        """Take no more inputs; a worker ends once it has processed the remaining ones."""
        self.is_closed = True


class MemorySource(TopicsSource):
    """Reads topics of a `MemoryBroker`, until it is closed and everything has been read."""

    def __init__(self, broker: MemoryBroker, reader: MemoryReader) -> None:
        super().__init__(reader)
        self._broker = broker
        self._memory = reader

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return all records that have arrived; wait for the first one for at most the timeout."""
        until = time.monotonic() + timeout_s
        while True:
            left_s = max(0.0, until - time.monotonic())
            found = super().poll(min(left_s, _NOTICED_S))
            if found or left_s == 0.0 or self._broker.is_closed:
                return found

    @property
    def exhausted(self) -> bool:
        """Whether the broker is closed and everything was read."""
        return self._broker.is_closed and self._memory.is_at_end


class MemoryPublisher(TopicsSink):
    """Publishes inputs to a `MemoryBroker` as long as it is open."""

    def __init__(self, broker: MemoryBroker, writer: Writer) -> None:
        super().__init__(writer, INPUT_TOPIC)
        self._broker = broker

    def flush(self) -> None:
        if self._unsent:
            self._broker.check_open()
        super().flush()


def open_broker(url: str) -> Broker:
    """Return the broker at a URL.

    `memory://` is a new broker within this process, `kafka://host:port,host:port` a cluster of
    Apache Kafka, on whose topics delivery is at least once; their names are those of `TOPICS`.
    `file://DIR` is a directory of topics, where `streamgp run` is the only worker: a program can
    send inputs and read every topic, but not send the messages of a loop.

    Examples
    --------
    >>> broker = open_broker("memory://")
    >>> producer = broker.publisher()
    >>> producer.send(Event(event_id="e1", x={"light": 0.5}, occurred_at=10.0))
    >>> producer.flush()
    >>> [received.message.event_id for received in broker.source().poll()]
    ['e1']

    """
    if not isinstance(url, str):
        raise TypeError(f"broker must be an address such as 'memory://', got {url!r}")
    if url == "memory://":
        return MemoryBroker()
    if url.startswith("kafka://"):
        from connectors.kafka.topics import KafkaTopics

        return TopicsBroker(KafkaTopics(url.removeprefix("kafka://")))
    if url.startswith("file://") and url != "file://":
        from connectors.embedded.topics import EmbeddedTopics

        return TopicsBroker(EmbeddedTopics(path_in_url(url.removeprefix("file://"))))
    raise ValueError(
        f"broker must be 'memory://', 'file://DIR' or 'kafka://HOST:PORT,HOST:PORT', got {url!r}"
    )


def check_topics(topics: Iterable[str]) -> tuple[Topic, ...]:
    """Return the topics as a tuple; raise an error that names a topic that does not exist."""
    if isinstance(topics, str):
        raise TypeError(f"topics must be a list of names, got the text {topics!r}")
    known = {name: name for name in TOPICS}
    found = []
    for name in topics:
        if name not in known:
            raise ValueError(f"topic must be one of {', '.join(TOPICS)}, got {name!r}")
        found.append(known[name])
    if not found:
        raise ValueError(f"topics must name at least one of {', '.join(TOPICS)}, got none")
    return tuple(found)


def topic_of(message: Input | Message, topics: Mapping[type, TopicName]) -> TopicName:
    """Return the topic of a message by its type; raise an error if it has none here."""
    topic = topics.get(type(message))
    if topic is None:
        names = ", ".join(kind.__name__ for kind in topics)
        raise TypeError(f"message must be one of {names}, got {type(message).__name__}")
    return topic


def receive(topic: Topic, data: bytes, *, subject: str, at: float) -> Received:
    """Convert the bytes of one record to a message of its topic, or to `Rejected`.

    Parameters
    ----------
    topic
        Topic of the record; a message of another topic is malformed.
    data
        The bytes.
    subject
        Name for the record if it must be rejected, for example `events:17`.
    at
        When the broker received it, POSIX seconds: the time of a record without a time of its own.

    Examples
    --------
    >>> receive("events", b"hello", subject="events:17", at=0.0).message.reason
    'message must be JSON, got malformed text: Expecting value: line 1 column 1 (char 0)'

    """
    try:
        message = decode(data, max_bytes=MAX_INPUT_BYTES if topic in INPUTS else MAX_BYTES)
    except DecodeError as error:
        reason = str(error)
    else:
        kinds = INPUT_TOPIC if topic in INPUTS else OUTPUT_TOPIC
        if kinds.get(type(message)) == topic:
            return Received(message=message, original=data, at=time_of(message))
        expected = " or ".join(kind.__name__ for kind, home in kinds.items() if home == topic)
        reason = f"topic {topic!r} must hold {expected}, got {type(message).__name__}"
    rejected = Rejected(subject=subject, fault="malformed", reason=reason, at=at)
    return Received(message=rejected, original=data, at=at)


def _received(record: Record) -> Received:
    if record.topic == "dead-letters":
        message = _rejected(record)
        return Received(message=message, original=record.value, at=record.at)
    (topic,) = check_topics([record.topic])
    return receive(topic, record.value or b"", subject=record.position, at=record.at)


def _rejected(record: Record) -> Rejected:
    """Return why a dead letter was rejected; a worker's dead letter has only a text."""
    headers = dict(record.headers)
    with suppress(DecodeError):
        message = decode(headers.get(_REJECTED, b""))
        if isinstance(message, Rejected):
            return message
    reason = headers.get("dlq.error", b"no reason given").decode(errors="replace")
    return Rejected(subject=record.position, fault="malformed", reason=reason, at=record.at)
