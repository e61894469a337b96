"""What a worker, a feeder and an annotator ask of a broker, whichever it is.

Topics carry bytes; each message type has its topic. Inputs travel on `events` and `answers`,
outputs on `predictions`, `requests` and `consensus`; what could not be used goes to `dead-letters`.

Delivery is at least once: `commit` marks everything polled so far as done, and what was not
committed is delivered again to the next source of the same group. A sink may keep messages back
until `flush`; a broker with transactions may keep them back until `commit`, so that outputs and
input positions become visible together. Whoever drives a loop calls `flush` first, then `commit`.

"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

from connectors.wire.codec import MAX_BYTES, MAX_INPUT_BYTES, DecodeError, decode
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
)

Topic: TypeAlias = Literal[
    "events", "answers", "predictions", "requests", "consensus", "dead-letters"
]
TOPICS: tuple[Topic, ...] = get_args(Topic)
INPUTS: tuple[Topic, ...] = ("answers", "events")
"""What a worker reads."""

INPUT_TOPIC: dict[type, Topic] = {Event: "events", Answer: "answers", Cancel: "answers"}
OUTPUT_TOPIC: dict[type, Topic] = {
    Prediction: "predictions",
    LabelRequest: "requests",
    Challenge: "requests",
    Cancel: "requests",
    Expired: "requests",
    LabelledExample: "consensus",
    Rejected: "dead-letters",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One record that a source delivered.

    A record that could not be understood comes as `Rejected`. A broker may deliver a subclass that
    remembers more, such as the position and the headers of the record.

    Parameters
    ----------
    message
        What it said.
    original
        The bytes as they were received, or None where there were none.
    at
        The record's own time, POSIX seconds.

    """

    message: Input | Message
    original: bytes | None = None
    at: float


class Source(Protocol):
    """Where inputs come from."""

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return the next records, in order; an empty list if none came within the timeout."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether nothing will ever come again."""
        ...

    def commit(self) -> None:
        """Mark everything polled so far as done."""
        ...

    def close(self) -> None:
        """Let go; what was not committed will be delivered again."""
        ...


class Sink(Protocol):
    """Where messages go."""

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Take one message; `cause` is the input that brought it about, None for a timer.

        A dead letter carries the bytes of its cause.
        """
        ...

    def flush(self) -> None:
        """Return when everything sent has left."""
        ...

    def close(self) -> None:
        """Flush and let go."""
        ...


class Broker(Protocol):
    """Topics that several programs share."""

    def source(self, topics: Iterable[Topic] = INPUTS, *, group: str = "worker") -> Source:
        """Read topics; sources of one group share their position, groups do not."""
        ...

    def sink(self) -> Sink:
        """Publish what a loop says (a `Cancel` goes to `requests`)."""
        ...

    def publisher(self) -> Sink:
        """Publish what a loop is told: events, answers (and a `Cancel`, beside the answers)."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


def open_broker(url: str) -> Broker:
    """Return the broker at a URL.

    `memory://` is a new broker within this process, `kafka://host:port,host:port` a cluster of
    Apache Kafka, on whose topics delivery is at least once; their names are those of `TOPICS`.

    Examples
    --------
    >>> broker = open_broker("memory://")
    >>> feeder = broker.publisher()
    >>> feeder.send(Event(event_id="e1", x={"light": 0.5}, occurred_at=10.0))
    >>> feeder.flush()
    >>> [received.message.event_id for received in broker.source().poll()]
    ['e1']

    """
    if url == "memory://":
        from connectors.memory_broker import MemoryBroker

        return MemoryBroker()
    if url.startswith("kafka://"):
        from connectors.kafka.broker import KafkaBroker

        return KafkaBroker(url.removeprefix("kafka://"))
    raise ValueError(f"broker must be 'memory://' or 'kafka://HOST:PORT,HOST:PORT', got {url!r}")


def check_topics(topics: Iterable[str]) -> tuple[Topic, ...]:
    """Return the topics as a tuple, or say which one there is not."""
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


def topic_of(message: Input | Message, topics: dict[type, Topic]) -> Topic:
    """Return where a message goes, by its type, or say that it does not belong there."""
    topic = topics.get(type(message))
    if topic is None:
        names = ", ".join(kind.__name__ for kind in topics)
        raise TypeError(f"message must be one of {names}, got {type(message).__name__}")
    return topic


def receive(topic: Topic, data: bytes, *, subject: str, at: float) -> Received:
    """Turn the bytes of one record into a message of its topic, or into `Rejected`.

    Parameters
    ----------
    topic
        Where the bytes were found; a message of another topic is malformed.
    data
        The bytes.
    subject
        What to call the record if it must be rejected, for example `events:17`.
    at
        When the broker got it, POSIX seconds: the time of a record that brings none of its own.

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


def time_of(message: Input | Message) -> float:
    """Return a message's own time."""
    match message:
        case Event():
            return message.occurred_at
        case Answer():
            return message.answered_at
        case LabelRequest() | Challenge():
            return message.requested_at
        case LabelledExample():
            return message.learned_at
        case Prediction() | Cancel() | Expired() | Rejected():
            return message.at
