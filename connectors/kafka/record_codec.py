"""Codec of record batches: fetched batches become `Record`s, and `Outgoing`s become batches.

The client's own codec takes three times as long, a tenth of a worker's whole time: it builds each
record twice, with fields that are never read. It also fails on a header name that is not UTF-8,
which any producer can write, again at every attempt; here it becomes an `UndecodableName`. Damaged
data raises a `BrokerError` that says where it is.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from gzip import GzipFile
from io import BytesIO
from time import time
from typing import Any

from connectors.kafka.client_import import (
    DefaultRecordBatch,
    Fetcher,
    FutureRecordMetadata,
    MemoryRecordsBuilder,
    ProducerBatch,
    TopicPartition,
    kafka_codecs,
    kafka_errors,
)
from connectors.kafka.settings import brief
from connectors.kafka.topic_identity import missing
from connectors.topics import (
    BrokerError,
    Outgoing,
    Record,
    RefusedError,
    TopicName,
    UndecodableName,
)


class UndecodableBatchError(Exception):
    """A batch matches its producer's checksum but cannot be decompressed."""


MAX_UNPACKED_BYTES = 1 << 27
"""Bytes of a batch without its compression. The broker limits what it takes, by default 1 MiB, as
it is sent: that may be some GiB of zeros."""


def unpack_here(consumer: Any, roles: Mapping[str, TopicName]) -> None:
    """Make a consumer unpack its fetches here, so that its polls return lists of `Record`.

    Parameters
    ----------
    consumer
        A consumer of the client library.
    roles
        The role of each of its topics, by the topic's name on the broker.

    """
    fetcher = consumer._fetcher
    parse = fetcher._parse_fetched_data

    def parse_or_say_where(fetched: Any) -> Any:
        try:
            return parse(fetched)
        except kafka_errors.CorruptRecordError as error:
            why = "the broker cannot read it"
            raise _damaged(fetched.topic_partition, fetched.fetched_offset, why) from error

    fetcher._parse_fetched_data = parse_or_say_where
    fetcher.PartitionRecords = partial(_Fetched, roles=roles)


def unpacked(batch: Any, topic: TopicName, partition: int) -> list[Record]:
    """Return the records of a batch.

    Raises
    ------
    CorruptRecordError
        If they do not fill the batch exactly.
    UnsupportedCodecError
        If the codec is unknown, or its library is missing.
    UndecodableBatchError
        If the compressed data is invalid.

    """
    if type(batch) is not DefaultRecordBatch:  # from clients older than 2017
        return [
            Record(
                topic=topic,
                partition=partition,
                offset=r.offset,
                key=r.key,
                value=r.value,
                at=(r.timestamp or 0) / 1e3,
            )
            for r in map(_checked, batch)
        ]
    _decompress(batch)
    data, at = bytes(batch._buffer), batch._pos
    offset, sent_at, written_at = batch.base_offset, batch.first_timestamp, None
    if batch.timestamp_type == batch.LOG_APPEND_TIME:
        written_at = batch.max_timestamp
    records = []
    try:
        for _ in range(batch.records_count):
            further, later, key, value, headers, at = _fields(data, at)
            time_ms = sent_at + later if written_at is None else written_at
            records.append(
                Record(
                    topic=topic,
                    partition=partition,
                    offset=offset + further,
                    key=key,
                    value=value,
                    headers=headers,
                    at=time_ms / 1e3,
                )
            )
    except IndexError:
        raise kafka_errors.CorruptRecordError("it ends amid a record") from None
    if at != len(data):
        raise kafka_errors.CorruptRecordError("its records end elsewhere than it does")
    return records


def _decompress(batch: Any) -> None:
    codec = batch.compression_type
    try:
        if codec in _CODECS:
            batch._assert_has_codec(codec)
            data = bytes(memoryview(batch._buffer)[batch._pos :])
            found = _CODECS[codec](data, MAX_UNPACKED_BYTES + 1)
            batch._buffer, batch._pos, batch._decompressed = found, 0, True
        else:
            batch._maybe_uncompress()
    except kafka_errors.UnsupportedCodecError:
        raise
    # Each codec's library raises its own errors, some of which derive directly from Exception.
    except Exception as error:
        raise UndecodableBatchError(brief(error)) from error
    if len(batch._buffer) > MAX_UNPACKED_BYTES:
        raise UndecodableBatchError(f"it has more than {MAX_UNPACKED_BYTES} bytes")


def _from_gzip(data: bytes, most: int) -> bytes:
    with GzipFile(fileobj=BytesIO(data)) as stream:
        return _start_of(stream, most)


def _from_zstd(data: bytes, most: int) -> bytes:
    decompressor = kafka_codecs.zstd.ZstdDecompressor()
    with decompressor.stream_reader(BytesIO(data), read_across_frames=True) as stream:
        return _start_of(stream, most)


def _from_lz4(data: bytes, most: int) -> bytes:
    decompressor = kafka_codecs.lz4.LZ4FrameDecompressor()
    # It makes room for all that it may return.
    room = min(most, _LZ4_RATIO * len(data) + _CHUNK)
    found: bytes = decompressor.decompress(data, max_length=room)
    if not decompressor.eof and len(found) < most:
        raise EOFError("the frame is cut")
    return found


_CHUNK = 1 << 20
_LZ4_RATIO = 255  # the most that a byte of LZ4 stands for
_CODECS: dict[int, Callable[[bytes, int], bytes]] = {
    DefaultRecordBatch.CODEC_GZIP: _from_gzip,
    DefaultRecordBatch.CODEC_LZ4: _from_lz4,
    DefaultRecordBatch.CODEC_ZSTD: _from_zstd,
}
"""Codecs whose data may be a thousand times as large, and more; of Snappy twenty times."""


def _start_of(stream: Any, most: int) -> bytes:
    """Return what a stream holds, or so many bytes of it."""
    parts: list[bytes] = []
    while most > 0 and (part := stream.read(min(most, _CHUNK))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _fields(
    data: bytes, at: int
) -> tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...], int]:
    """Return the fields of the record at a position of a batch (version 2), and its end.

    Offset and time are relative to those of the batch, the time in milliseconds.
    """
    size, at = _number(data, at)
    end = at + size
    at += 1  # the attributes of records are unused so far
    later, at = _number(data, at)
    further, at = _number(data, at)
    key, at = _bytes(data, at)
    value, at = _bytes(data, at)
    n_headers, at = _number(data, at)
    if n_headers < 0:
        raise kafka_errors.CorruptRecordError("a record has a negative number of headers")
    headers = []
    for _ in range(n_headers):
        # What `_bytes` does, inlined twice: most numbers in a record are sizes of its headers.
        size = data[at]
        if size & 0x81:
            size, at = _number(data, at)
            if size < 0:
                raise kafka_errors.CorruptRecordError("a header has no name")
        else:
            size, at = size >> 1, at + 1
        written = data[at : at + size]
        name = _short_name(written) if size <= _SHORT else _name(written)
        at += size
        size = data[at]
        if size & 0x81:
            found, at = _bytes(data, at)
            headers.append((name, found or b""))
        else:
            at += 1
            headers.append((name, data[at : (at := at + (size >> 1))]))
    if at != end or end > len(data):
        raise kafka_errors.CorruptRecordError("a record ends elsewhere than it says")
    return further, later, key, value, tuple(headers), at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and its end: seven bits a byte, zigzag."""
    byte = data[at]
    at += 1
    found, shift = byte & 0x7F, 7
    while byte & 0x80:
        if shift > 63:
            raise kafka_errors.CorruptRecordError("a number is too long")
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        shift += 7
    return (found >> 1) ^ -(found & 1), at


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _number(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def _name(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return UndecodableName(name.decode(errors="backslashreplace"))


# The longest name of a header that is cached: a producer can invent others as long as a record.
_SHORT = 100
_short_name = lru_cache(maxsize=1 << 10)(_name)


def _checked(record: Any) -> Any:
    if not record.validate_crc():
        raise kafka_errors.CorruptRecordError("its checksum is another")
    return record


class _Fetched(Fetcher.PartitionRecords):  # type: ignore[misc]
    """Records fetched from one partition."""

    def __init__(self, *arguments: Any, roles: Mapping[str, TopicName], **options: Any) -> None:
        self._roles = roles
        super().__init__(*arguments, **options)

    def _unpack_records(self, partition: Any, batches: Any, *_: Any) -> Iterator[Record]:
        role = self._roles[partition.topic]
        try:
            while (batch := batches.next_batch()) is not None:
                if self._is_to_be_read(batch):
                    for record in unpacked(batch, role, partition.partition):
                        self.next_fetch_offset = record.offset + 1
                        yield record
                if type(batch) is DefaultRecordBatch:
                    # Even if its last records, or all of them, have been compacted away.
                    self.next_fetch_offset = batch.next_offset
            self.drain()
        except kafka_errors.CorruptRecordError as error:
            raise _damaged(partition, self.next_fetch_offset, str(error.args[0])) from error
        except kafka_errors.UnsupportedCodecError as error:
            what_to_do = "install kafka-python[lz4,snappy,zstd]"
            raise self._undecodable(partition, str(error.args[0]), what_to_do) from error
        except UndecodableBatchError as error:
            what_to_do = (
                "correct its producer (compression.type), and delete the batch with "
                "kafka-delete-records.sh"
            )
            raise self._undecodable(partition, str(error), what_to_do) from error

    def _undecodable(self, partition: Any, why: str, what_to_do: str) -> RefusedError:
        return RefusedError(
            f"topic {partition.topic} has a batch of records at offset {self.next_fetch_offset} in "
            f"partition {partition.partition} that cannot be decompressed ({why}); {what_to_do}"
        )

    def _is_to_be_read(self, batch: Any) -> bool:
        """Return whether a batch holds records that were not aborted."""
        if not batch.validate_crc():
            raise kafka_errors.CorruptRecordError("its checksum is another")
        if type(batch) is not DefaultRecordBatch:
            return True
        self.leader_epoch = batch.leader_epoch
        if batch.has_producer_id():
            self._consume_aborted_transactions_up_to(batch.last_offset)
            if self._contains_abort_marker(batch):
                self.aborted_producer_ids.discard(batch.producer_id)
            elif self._is_batch_aborted(batch):
                return False
        return not batch.is_control_batch


def _damaged(partition: Any, offset: int, why: str) -> BrokerError:
    return BrokerError(
        f"topic {partition.topic} is damaged at offset {offset} in partition {partition.partition} "
        f"({why}); bring it back from another server of the cluster, or delete what lies there"
    )


# --- Packing records that are sent together.
#
# The client's own `send` takes one record at a time: it checks sizes, types and partitions, and
# creates a future for each, which several callbacks complete once the broker has answered. That
# took a sixth of a worker's whole time. Here the records of a partition become one batch, or a few,
# and each batch has one future, that of its last record.


_VERSION = 2


def put(
    producer: Any, topics: Sequence[str], records: Sequence[Outgoing]
) -> list[tuple[TopicPartition, Any]]:
    """Pass records to a producer, each with its topic, and have them sent.

    Returns
    -------
    The partition of each batch and the future of its last record; the records are stored once all
    futures are done.

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
            partition = _partition_of(producer, topic, record)
            found = known[topic, number] = waiting.setdefault(partition, [])
        found.append(record)
    at_ms, limit = int(1e3 * time()), producer.config["batch_size"]
    futures = []
    for partition, those in waiting.items():
        for bodies in _bodies(those, limit):
            futures.append(
                (partition, _give(producer._accumulator, partition, bodies, at_ms, limit))
            )
    producer._sender.wakeup()
    return futures


def _partition_of(producer: Any, topic: str, record: Outgoing) -> TopicPartition:
    """Return the partition of a record, and add it to the transaction, if there is one."""
    producer.partitions_for(topic)  # fetches the topic's partitions if needed
    key, value = record.key, record.value
    number = producer._partition(topic, record.partition, key, value, key, value)
    if number is None:
        raise ValueError(missing([topic]))
    partition = TopicPartition(topic, number)
    transactions = producer._transaction_manager
    if transactions.is_transactional():
        transactions.maybe_add_partition_to_transaction(partition)
    return partition


def _bodies(records: Sequence[Outgoing], limit: int) -> list[list[bytes]]:
    """Return the encoded records in batches of at most `limit` bytes, or of a single record."""
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
    """Encode a record as the `number`-th of a batch, with the batch's timestamp."""
    key, value, headers = record.key, record.value, record.headers
    parts = [b"\0\0", varint(number)]  # no attributes, no time after the batch's
    for data in (key, value):
        if data is None:
            parts.append(_NOTHING)
        else:
            parts += varint(len(data)), data
    parts.append(varint(len(headers)))
    for name, data in headers:
        named = _short_named(name) if len(name) <= _SHORT else _named(name)
        parts += named, varint(len(data)), data
    body = b"".join(parts)
    return varint(len(body)) + body


@lru_cache(maxsize=1 << 14)
def varint(number: int) -> bytes:
    r"""Encode a number of at least -1 as Kafka writes sizes: seven bits a byte, zigzag.

    Examples
    --------
    >>> varint(0), varint(-1), varint(63), varint(64)
    (b'\x00', b'\x01', b'~', b'\x80\x01')

    """
    rest = 2 * number if number >= 0 else -2 * number - 1
    found = bytearray()
    while rest > 0x7F:
        found.append(0x80 | rest & 0x7F)
        rest >>= 7
    found.append(rest)
    return bytes(found)


_NOTHING = varint(-1)


def _named(name: str) -> bytes:
    data = name.encode()
    return varint(len(data)) + data


_short_named = lru_cache(maxsize=1 << 10)(_named)


def _give(
    accumulator: Any, partition: TopicPartition, bodies: list[bytes], at_ms: int, limit: int
) -> Any:
    """Queue a batch for sending; return the future of its last record."""
    n = len(bodies)
    records = MemoryRecordsBuilder(_VERSION, 0, limit)
    records._next_offset = n
    builder = records._builder
    builder._buffer += b"".join(bodies)
    builder._num_records, builder._last_offset = n, n - 1
    builder._first_timestamp = builder._max_timestamp = at_ms
    batch = ProducerBatch(partition, records)
    last = FutureRecordMetadata(batch.produce_future, n - 1, at_ms, None, -1, -1, -1)
    # A batch that is too large for its topic is split; the future then follows its record.
    batch._record_futures = [_IGNORED] * (n - 1) + [last]
    with accumulator._tp_lock(partition):
        if accumulator._closed:
            raise kafka_errors.IllegalStateError("producer is closed")
        accumulator._batches[partition].append(batch)
        accumulator._incomplete.add(batch)
    return last


class _Ignored:
    """Placeholder for the future of a record that no caller waits for."""

    def rebind(self, future: Any, number: int) -> None:
        """Do nothing when the record moves to another batch."""


_IGNORED = _Ignored()
