"""Messages on Kafka for a loop that `connectors.run` drives: at least once, one reader a group.

Who needs every input exactly once, and several workers, takes `KafkaTopics` and the worker.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

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
from connectors.kafka.admin import Administration
from connectors.kafka.client import (
    CLIENT_ERRORS,
    Connection,
    OffsetAndMetadata,
    TopicPartition,
    record_of,
    within,
)
from connectors.kafka.client_internals import EVERYTHING
from connectors.kafka.reader_writer import KafkaWriter
from connectors.kafka.settings import Security, Timeouts, check_name
from connectors.topics import ALL_TOPICS, Outgoing, Record, TopicName
from connectors.wire.codec import DecodeError, decode, encode
from connectors.wire.outbound import Outbox
from streamgp.interactive.messages import Input, Message, Rejected

_REJECTED = "dlq.rejected"
_SOURCE = "/streamgp/run"


class KafkaBroker:
    """Messages on the topics of a cluster; the topics must be there.

    Parameters
    ----------
    servers
        Some servers of the cluster: `host:port,host:port`.
    names
        What the topics are called; those left out are called what they are.
    security, timeouts
        How the servers are talked to, and how long that may take.

    """

    def __init__(
        self,
        servers: str,
        *,
        names: Mapping[TopicName, str] | None = None,
        security: Security | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        called = {name: name for name in ALL_TOPICS} | dict(names or {})
        self._names = {name: check_name(called[name]) for name in ALL_TOPICS}
        self._connection = Connection(servers, security, timeouts)
        self._administration = Administration(
            self._connection, self._names, partitions=1, replication=-1
        )

    def source(self, topics: Iterable[Topic] = INPUTS, *, group: str = "worker") -> KafkaSource:
        """Read topics from where the group has committed."""
        names: dict[TopicName, str] = {name: self._names[name] for name in check_topics(topics)}
        return KafkaSource(
            self._connection, self._administration, names, check_name(group, "group")
        )

    def sink(self) -> KafkaSink:
        """Publish what a loop says."""
        return KafkaSink(self._connection, self._names, OUTPUT_TOPIC)

    def publisher(self) -> KafkaSink:
        """Publish what a loop is told."""
        return KafkaSink(self._connection, self._names, INPUT_TOPIC)

    def close(self) -> None:
        """Let go; sources and sinks are closed by those who asked for them."""
        self._administration.close()


class KafkaSource:
    """Reads all partitions of some topics, from where its group has committed.

    Parameters
    ----------
    connection, administration
        Where.
    names
        What the topics to be read are called there.
    group
        Whose positions these are.

    """

    # _polled  where each partition is read on, of those polled since the last commit

    def __init__(
        self,
        connection: Connection,
        administration: Administration,
        names: Mapping[TopicName, str],
        group: str,
    ) -> None:
        self._connection = connection
        self._topics = {called: name for name, called in names.items()}
        self._polled: dict[TopicPartition, int] = {}
        counts = administration.counts(names)
        self._consumer: Any = connection.consumer(group_id=group)
        self._consumer.assign(
            [TopicPartition(names[name], n) for name in names for n in range(counts[name])]
        )

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return what has come; wait for the first record at most the timeout."""
        try:
            batches = self._consumer.poll(timeout_ms=round(1e3 * timeout_s), max_records=EVERYTHING)
        except CLIENT_ERRORS as error:
            raise self._connection.said(error, "read topics") from error
        received = []
        for place, found in batches.items():
            received += [
                _received(record_of(self._topics[place.topic], place.partition, each))
                for each in found
            ]
            self._polled[place] = found[-1].offset + 1
        return received

    @property
    def exhausted(self) -> bool:
        """Whether nothing will ever come again: never."""
        return False

    def commit(self) -> None:
        """Start the group's next source after what was polled."""
        offsets = {
            place: OffsetAndMetadata(offset, "", -1) for place, offset in self._polled.items()
        }
        timeout_ms = round(1e3 * self._connection.timeouts.delivery_s)
        try:
            if offsets:
                self._consumer.commit(offsets, timeout_ms=timeout_ms)
        except CLIENT_ERRORS as error:
            raise self._connection.said(error, "take positions") from error
        self._polled.clear()

    def close(self) -> None:
        """Let go; what was not committed will be delivered again."""
        with suppress(*CLIENT_ERRORS):
            within(
                self._connection.timeouts.close_s,
                "close",
                partial(self._consumer.close, autocommit=False),
            )


class KafkaSink:
    """Publishes messages; a rejection becomes a dead letter with the original bytes.

    Parameters
    ----------
    connection
        Where.
    names
        What the topics are called there.
    homes
        The topic of each kind of message.

    """

    def __init__(
        self,
        connection: Connection,
        names: Mapping[TopicName, str],
        homes: dict[type, Topic],
    ) -> None:
        self._writer = KafkaWriter(connection, names, "run")
        self._homes = homes
        self._unsent: list[Outgoing] = []

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Take one message until the next flush."""
        topic = topic_of(message, self._homes)
        if isinstance(message, Rejected):
            data = encode(message)
            original = cause.original if cause is not None else None
            self._unsent.append(
                Outgoing(
                    topic=topic,
                    key=None if message.key is None else message.key.encode(),
                    value=data if original is None else original,
                    headers=((_REJECTED, data),),
                )
            )
        else:
            outbox = Outbox(_SOURCE, keyed=message.key is not None)
            self._unsent.append(replace(outbox.message(message, None), topic=topic))

    def flush(self) -> None:
        """Publish everything sent."""
        for record in self._unsent:
            self._writer.send(record)
        self._unsent.clear()
        self._writer.flush()

    def close(self) -> None:
        """Flush and let go."""
        try:
            self.flush()
        finally:
            self._writer.close()


def _received(record: Record) -> Received:
    subject = f"{record.topic}:{record.partition}:{record.offset}"
    headers = dict(record.headers)
    if record.topic == "dead-letters":
        return Received(
            message=_rejected(record, headers, subject), original=record.value, at=record.at
        )
    (topic,) = check_topics([record.topic])
    return receive(topic, record.value or b"", subject=subject, at=record.at)


def _rejected(record: Record, headers: Mapping[str, bytes], subject: str) -> Rejected:
    """Return why a dead letter is one; a worker's says it in words only."""
    with suppress(DecodeError):
        message = decode(headers.get(_REJECTED, b""))
        if isinstance(message, Rejected):
            return message
    reason = headers.get("dlq.error", b"no reason given").decode(errors="replace")
    return Rejected(subject=subject, fault="malformed", reason=reason, at=record.at)
