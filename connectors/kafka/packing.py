"""Records that leave together, made into what the client sends.

The client's own `send` takes one record at a time: it looks at sizes, types and partitions, and
makes for each a promise that it keeps, through several callbacks, when the broker has answered.
That was a sixth of all that a worker does. Here the records of a partition become one batch, or a
few, and each batch has one promise, of its last record.

"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from time import time
from typing import Any

from connectors.kafka.library import (
    FutureRecordMetadata,
    MemoryRecordsBuilder,
    ProducerBatch,
    TopicPartition,
    kafka_errors,
)
from connectors.records import Outgoing

_VERSION = 2


def put(
    producer: Any, topics: Sequence[str], records: Sequence[Outgoing]
) -> list[tuple[TopicPartition, Any]]:
    """Hand records to a producer, each for its topic, and have them sent.

    Returns
    -------
    Where batches go, and the futures of their last records: what they hold is safe when all are
    done.

    Raises
    ------
    ValueError
        If a topic is missing.

    """
    waiting: dict[TopicPartition, list[Outgoing]] = {}
    known: dict[tuple[str, int | None], list[Outgoing]] = {}
    for topic, record in zip(topics, records, strict=True):
        number = record.partition
        found = None if number is None else known.get((topic, number))
        if found is None:
            place = _place(producer, topic, record)
            found = known[topic, number] = waiting.setdefault(place, [])
        found.append(record)
    at_ms, limit = int(1e3 * time()), producer.config["batch_size"]
    futures = []
    for place, those in waiting.items():
        for bodies in _bodies(those, limit):
            futures.append((place, _give(producer._accumulator, place, bodies, at_ms, limit)))
    producer._sender.wakeup()
    return futures


def _place(producer: Any, topic: str, record: Outgoing) -> TopicPartition:
    """Return where a record goes, and make that a part of the transaction, if there is one."""
    producer.partitions_for(topic)  # from now on it is known which there are
    key, value = record.key, record.value
    number = producer._partition(topic, record.partition, key, value, key, value)
    if number is None:
        raise ValueError(f"topic {topic} is missing; --create-topics makes it")
    place = TopicPartition(topic, number)
    transactions = producer._transaction_manager
    if transactions.is_transactional():
        transactions.maybe_add_partition_to_transaction(place)
    return place


def _bodies(records: Sequence[Outgoing], limit: int) -> list[list[bytes]]:
    """Return records as they lie in batches of at most so many bytes, or of one record."""
    batches: list[list[bytes]] = [[]]
    left = limit
    for record in records:
        number = len(batches[-1])
        body = packed(number, record)
        if number and len(body) > left:
            body, left = packed(0, record), limit
            batches.append([])
        batches[-1].append(body)
        left -= len(body)
    return batches


def packed(number: int, record: Outgoing) -> bytes:
    """Return a record as it lies in a batch, the `number`-th there, written when the batch was."""
    key, value, headers = record.key, record.value, record.headers
    parts = [b"\0\0", size_of(number)]  # no attributes, no later than the batch
    for data in (key, value):
        if data is None:
            parts.append(_NOTHING)
        else:
            parts += size_of(len(data)), data
    parts.append(size_of(len(headers)))
    for name, data in headers:
        parts += _named(name), size_of(len(data)), data
    body = b"".join(parts)
    return size_of(len(body)) + body


@lru_cache(maxsize=1 << 14)
def size_of(number: int) -> bytes:
    r"""Return a number of at least -1 as sizes are written: seven bits a byte, zigzag.

    Examples
    --------
    >>> size_of(0), size_of(-1), size_of(63), size_of(64)
    (b'\x00', b'\x01', b'~', b'\x80\x01')

    """
    rest = 2 * number if number >= 0 else -2 * number - 1
    found = bytearray()
    while rest > 0x7F:
        found.append(0x80 | rest & 0x7F)
        rest >>= 7
    found.append(rest)
    return bytes(found)


_NOTHING = size_of(-1)


@lru_cache(maxsize=1 << 10)
def _named(name: str) -> bytes:
    data = name.encode()
    return size_of(len(data)) + data


def _give(
    accumulator: Any, place: TopicPartition, bodies: list[bytes], at_ms: int, limit: int
) -> Any:
    """Let a batch wait to be sent; return the future of its last record."""
    n = len(bodies)
    records = MemoryRecordsBuilder(_VERSION, 0, limit)
    records._next_offset = n
    builder = records._builder
    builder._buffer += b"".join(bodies)
    builder._num_records, builder._last_offset = n, n - 1
    builder._first_timestamp = builder._max_timestamp = at_ms
    batch = ProducerBatch(place, records)
    last = FutureRecordMetadata(batch.produce_future, n - 1, at_ms, None, -1, -1, -1)
    # A batch that is too large for its topic is split: then the future goes where its record goes.
    batch._record_futures = [_NOBODY] * (n - 1) + [last]
    with accumulator._tp_lock(place):
        if accumulator._closed:
            raise kafka_errors.IllegalStateError("producer is closed")
        accumulator._batches[place].append(batch)
        accumulator._incomplete.add(batch)
    return last


class _Nobody:
    """Stands for the future of a record that nobody waits for."""

    def rebind(self, future: Any, number: int) -> None:
        """Follow the record into another batch."""


_NOBODY = _Nobody()
