"""What is handed to the client is what the client would have made, and all of it arrives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.record_codec import _bodies, packed, varint
from connectors.topics import RefusedError
from tests.helpers.kafka_cases import opened, out, read

sizes = st.sampled_from([0, 1, 63, 64, 65, 8191, 8192])
blobs = st.none() | st.binary(max_size=5) | sizes.map(bytes)
texts = st.text(max_size=5) | st.sampled_from([0, 1, 63, 64, 65, 130]).map("n".__mul__)
headers = st.lists(st.tuples(texts, st.binary(max_size=3) | sizes.map(bytes)), max_size=5)
records = st.lists(
    st.tuples(blobs, blobs, headers).map(lambda r: out("state", r[1], key=r[0], headers=r[2])),
    min_size=1,
    max_size=5,
)


@given(records)
def test_records_lie_in_a_batch_as_the_client_lays_them(made):
    from kafka.record.default_records import DefaultRecordBatchBuilder

    theirs = DefaultRecordBatchBuilder(2, 0, True, 1, 0, 0, 2**24)
    for number, record in enumerate(made):
        theirs.append(number, 1_700_000_000_000, record.key, record.value, record.headers)
    ours = b"".join(packed(number, record) for number, record in enumerate(made))
    assert bytes(theirs._buffer[theirs.HEADER_STRUCT.size :]) == ours


@given(st.integers(-1, 2**40))
def test_sizes_are_written_as_the_client_writes_them(number):
    from kafka.record.util import encode_varint

    theirs = bytearray()
    encode_varint(number, theirs.append)
    assert varint(number) == theirs


@given(records, st.integers(1, 20_000))
def test_batches_hold_as_much_as_they_may_and_number_their_records(made, limit):
    batches = _bodies(made, limit)
    done = iter(made)
    for batch, following in zip(batches, [*batches[1:], None], strict=True):
        assert batch == [packed(number, next(done)) for number in range(len(batch))]
        total = sum(map(len, batch))
        assert total <= limit or len(batch) == 1
        if following is not None:
            assert total + len(following[0]) > limit - 2  # its number may take a byte or two more
    assert next(done, None) is None


def test_what_is_too_large_for_a_topic_together_is_sent_in_parts(kafka, kafka_prefix):
    small = {"num_partitions": 1, "configs": {"max.message.bytes": "20000"}}
    with opened(kafka, kafka_prefix, partitions=1, create=False) as topics:
        admin = topics._connection.admin()
        admin.create_topics({topics.names()["events"]: small})
        admin.close()
        topics.create()
        values = [b"%05d" % i * 200 for i in range(100)]
        writer = topics.writer("producer")
        for value in values:
            writer.send(out("events", value))
        writer.flush()
        assert read(topics, "events") == values
        writer.send(out("events", b"x" * 30_000))
        with pytest.raises(RefusedError, match=r"a record is larger than max\.message\.bytes"):
            writer.flush()
        writer.close()


def test_records_without_a_partition_go_where_their_key_belongs(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix, partitions=4) as topics:
        made = [out("events", b"%d" % i, None, key=b"%d" % (i % 7)) for i in range(70)]
        writer = topics.writer("producer")
        for record in made:
            writer.send(record)
        writer.close()
        reader, found = topics.reader(["events"]), []
        while len(found) < len(made):
            found += reader.poll(5.0)
        reader.close()
    partition_of = {record.key: record.partition for record in found}
    assert len(set(partition_of.values())) > 1
    assert all(partition_of[record.key] == record.partition for record in found)
    for key in partition_of:
        mine = [record.value for record in found if record.key == key]
        assert mine == [record.value for record in made if record.key == key]
