"""Whatever lies in a partition is read as the client reads it, names that are not UTF-8 besides."""

import struct
import time
import tracemalloc
from functools import partial

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from connectors.kafka import record_codec
from connectors.kafka.client_import import DefaultRecordBatch, Fetcher, TopicPartition, kafka_errors
from connectors.kafka.record_codec import _Fetched
from connectors.kafka.record_codec import unpacked as unpacked_of
from connectors.topics import BrokerError, Record, RefusedError, UndecodableName
from tests.helpers.kafka_cases import Raw, out

PLACE = TopicPartition("events", 3)
_CRC, _FIRST = 17, 21  # where the checksum of a batch lies, and what it is of

sizes = st.sampled_from([0, 1, 63, 64, 65, 8191, 8192])
blobs = st.none() | st.binary(max_size=5) | sizes.map(bytes)
texts = st.text(max_size=5) | st.sampled_from([0, 1, 63, 64, 65, 130]).map("n".__mul__)
headers = st.lists(st.tuples(texts, st.binary(max_size=3) | sizes.map(bytes)), max_size=5)
records = st.lists(
    st.tuples(st.integers(0, 2**41), st.one_of(blobs), st.one_of(blobs), headers),
    min_size=1,
    max_size=5,
)


def unpacked(batch):
    return unpacked_of(batch, "events", 3)


def building(magic, compression=0):
    from kafka.record.memory_records import MemoryRecordsBuilder

    return MemoryRecordsBuilder(magic, compression, 2**24)


def batch_of(*records, compression=0):
    """Return a batch as it lies with a broker; records are values with their headers."""
    builder = building(2, compression)
    for value, named in records:
        assert builder.append(1_700_000_000_000, b"ann", value, named)
    builder.close()
    return bytes(builder.buffer())


OURS = partial(_Fetched, roles={"events": "events"})


def fetched(*batches, kind=OURS, start=0):
    from kafka.record.memory_records import MemoryRecords

    return kind(start, PLACE, MemoryRecords(b"".join(batches)))


def with_checksum(data):
    from kafka.record.util import calc_crc32c

    struct.pack_into(">I", data, _CRC, calc_crc32c(memoryview(data)[_FIRST:]))
    return bytes(data)


@given(records, st.sampled_from([0, 1]), st.integers(0, 2**40), st.booleans())
def test_records_are_what_the_client_makes_of_them(made, compression, offset, by_broker):
    from kafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(2, compression, True, 1, 0, 0, 2**24)
    for number, (at_ms, key, value, named) in enumerate(made):
        builder.append(number, at_ms, key, value, named)
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, offset)
    if by_broker:
        data[22] |= DefaultRecordBatch.TIMESTAMP_TYPE_MASK
    data = with_checksum(data)
    assert unpacked(DefaultRecordBatch(data)) == [
        Record(
            topic="events",
            partition=3,
            offset=r.offset,
            at=r.timestamp / 1e3,
            key=r.key,
            value=r.value,
            headers=tuple((n, v) for n, v in r.headers),
        )
        for r in DefaultRecordBatch(data)
    ]


@given(st.data())
def test_what_is_no_record_is_told_and_breaks_nothing(data):
    spoiled = bytearray(batch_of(*[(b"%d" % i, [("a", b"1"), ("b", b"2")]) for i in range(3)]))
    at = data.draw(st.integers(61, len(spoiled) - 1))
    if data.draw(st.booleans()):
        del spoiled[at:]
    else:
        spoiled[at] = data.draw(st.integers(0, 255))
    try:
        theirs = list(DefaultRecordBatch(bytes(spoiled)))
    except (kafka_errors.CorruptRecordError, UnicodeDecodeError):
        theirs = None
    try:
        ours = unpacked(DefaultRecordBatch(bytes(spoiled)))
    except kafka_errors.CorruptRecordError:
        assert theirs is None
    else:
        assume(theirs is not None)  # a name that is not UTF-8
        assert [(r.key, r.value) for r in ours] == [(r.key, r.value) for r in theirs]


def test_a_batch_with_more_or_fewer_records_than_it_says_is_damaged():
    for number, why in (
        (1, "its records end elsewhere than it does"),
        (3, "it ends amid a record"),
    ):
        data = bytearray(batch_of((b"1", []), (b"2", [])))
        struct.pack_into(">i", data, 57, number)
        with pytest.raises(BrokerError, match=f"offset 0 in partition 3 [(]{why}[)]"):
            fetched(with_checksum(data)).take()


@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_old_clients_are_read(magic):
    builder = building(magic)
    for value in (b"1", b"2"):
        builder.append(1_700_000_000_000, b"ann", value)
    builder.close()
    found = fetched(bytes(builder.buffer())).take()
    assert [(r.offset, r.key, r.value, r.headers) for r in found] == [
        (0, b"ann", b"1", ()),
        (1, b"ann", b"2", ()),
    ]


@pytest.mark.parametrize("magic", [1, 2])
def test_another_checksum_is_reported(magic):
    builder = building(magic)
    builder.append(1_700_000_000_000, b"ann", b"1", [] if magic == 2 else None)
    builder.close()
    data = bytearray(builder.buffer())
    data[-1] ^= 0xFF
    with pytest.raises(BrokerError, match=r"offset 0 in partition 3 \(its checksum is another\)"):
        fetched(bytes(data)).take()


def test_reading_begins_amid_a_batch_and_ends_after_the_last():
    data = batch_of(*[(b"%d" % i, []) for i in range(4)])
    found = fetched(data, start=2)
    assert [record.value for record in found.take(1)] == [b"2"]
    assert found.next_fetch_offset == 3
    assert [record.value for record in found.take()] == [b"3"]
    assert found.next_fetch_offset == 4


# --- names of headers


def test_the_client_still_cannot_read_a_name_that_is_not_utf_8_where_we_can():
    """If this fails, the client has learned it."""
    data = batch_of((b"?", [(Raw(b"caf\xe9"), b"v")]))
    with pytest.raises(kafka_errors.CorruptRecordError, match="UnicodeDecodeError"):
        fetched(data, kind=Fetcher.PartitionRecords).take()
    assert fetched(data).take()[0].headers == (("caf\\xe9", b"v"),)


@given(st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=4)), max_size=5))
def test_a_name_that_is_utf_8_is_read_as_it_is_and_any_other_so_that_it_can_be_written(pairs):
    named = [(Raw(name), value) for name, value in pairs]
    before, after = (b"1", (("good", b"1"),)), (b"3", (("\u00e9", b"3"),))
    one, two, three = fetched(batch_of(before, (b"2", named), after)).take()
    assert (one.value, one.headers) == before
    assert (three.value, three.headers) == after
    assert (two.key, two.value, two.offset) == (b"ann", b"2", 1)
    assert [value for _, value in two.headers] == [value for _, value in pairs]
    for (name, _), (data, _) in zip(two.headers, pairs, strict=True):
        assert name == data.decode(errors="backslashreplace")
        try:
            data.decode()
        except UnicodeDecodeError:
            assert type(name) is UndecodableName
        else:
            assert type(name) is str
    again = fetched(batch_of((b"2", two.headers))).take()[0]
    assert again.headers == two.headers
    assert not any(isinstance(name, UndecodableName) for name, _ in again.headers)


def test_a_batch_full_of_such_names_is_read_once_and_quickly_also_a_compressed_one():
    made = [(b"%d" % i, [(Raw(b"\xff"), b"v" * 50)]) for i in range(20_000)]
    for compression in (0, 1):
        data = batch_of(*made, compression=compression)
        start = time.process_time()
        found = fetched(data).take()
        assert [record.value for record in found] == [value for value, _ in made]
        assert time.process_time() - start < 5.0  # 0.1 s; a copy for each record takes a minute


def test_no_long_name_stays_in_memory_once_its_record_is_done():
    tracemalloc.start()
    try:
        for i in range(30):
            name = Raw(b"%d\xff" % i + b"x" * 100_000)
            headers = fetched(batch_of((b"1", [(name, b"v")]))).take()[0].headers
            assert len(record_codec.packed(0, out("dead-letters", b"1", headers=headers))) > 100_000
        del name, headers
        assert tracemalloc.get_traced_memory()[0] < 2**20
    finally:
        tracemalloc.stop()


# --- compression


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_every_codec_of_producers_is_decompressed(number):
    made = [(b"%d" % i, [("n", b"%d" % i)]) for i in range(100)]
    found = fetched(batch_of(*made, compression=number)).take()
    assert [(each.value, list(each.headers)) for each in found] == made


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_small_batch_that_is_large_inside_is_refused_with_its_place(monkeypatch, number):
    bomb = batch_of((bytes(3_000_000), []), compression=number)
    assert len(bomb) < 200_000
    assert len(fetched(bomb).take()[0].value) == 3_000_000
    monkeypatch.setattr(record_codec, "MAX_UNPACKED_BYTES", 2_000_000)
    found = fetched(batch_of((b"1", [])), bomb)
    assert [record.value for record in found.take()] == [b"1"]
    with pytest.raises(
        RefusedError,
        match=r"^topic events has a batch of records at offset \d in partition 3 that cannot be "
        r"decompressed \(it has more than 2000000 bytes\); correct its producer",
    ):
        found.take()


def test_memory_does_not_grow_with_what_a_batch_is_inside():
    import zstandard

    data = zstandard.ZstdCompressor().compress(bytes(2**28))
    assert len(data) < 20_000
    tracemalloc.start()
    try:
        assert len(record_codec._from_zstd(data, 2**20 + 1)) == 2**20 + 1
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def stated_as(number, data):
    """Return a batch that says to be compressed by a codec."""
    data = bytearray(data)
    data[22] = number
    return with_checksum(data)


@pytest.mark.parametrize(("number", "name"), [(2, "snappy"), (3, "lz4"), (4, "zstd")])
def test_what_cannot_be_decompressed_is_reported_with_its_place_and_what_to_install(
    monkeypatch, number, name
):
    monkeypatch.setattr(f"kafka.codec.has_{name}", lambda: False)
    found = fetched(batch_of((b"1", [])), stated_as(number, batch_of((b"x" * 1000, []))))
    assert [record.value for record in found.take()] == [b"1"]
    with pytest.raises(
        RefusedError,
        match=r"^topic events has a batch of records at offset 1 in partition 3 that cannot be "
        rf"decompressed \(Libraries for {name} compression codec not found\); install "
        r"kafka-python\[lz4,snappy,zstd\]$",
    ):
        found.take()


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 7])
def test_data_that_its_codec_does_not_know_is_refused_with_its_place(number):
    found = fetched(batch_of((b"1", [])), stated_as(number, batch_of((b"x" * 1000, []))))
    assert [record.value for record in found.take()] == [b"1"]
    with pytest.raises(
        RefusedError,
        match=r"^topic events has a batch of records at offset 1 in partition 3 that cannot be "
        r"decompressed \(.+\); ",
    ):
        found.take()
