"""Readers and writers on a real broker: without a group, without transactions."""

import os
import time

import pytest

from connectors.topics import BrokerError, RefusedError
from tests.helpers.kafka_cases import (
    PATIENCE_S,
    error_of,
    linked,
    numbered,
    open_transaction,
    opened,
    out,
    read,
    write,
)
from tests.helpers.topics import everything


@pytest.fixture
def topics(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix) as made:
        yield made


def test_what_a_writer_has_flushed_is_read_by_everybody_from_the_start(topics):
    writer = topics.writer("producer")
    writer.send(out("events", b"1", 0))
    writer.send(out("events", b"2", 0, headers=(("a", b"b"),)))
    writer.flush()
    for _ in range(2):
        records = everything(topics, "events")
        assert [(r.topic, r.offset, r.value, r.headers) for r in records] == [
            ("events", 0, b"1", ()),
            ("events", 1, b"2", (("a", b"b"),)),
        ]
    writer.close()


def test_closing_a_writer_flushes(topics):
    writer = topics.writer("producer")
    writer.send(out("events", b"1"))
    writer.close()
    writer.close()
    assert read(topics, "events") == [b"1"]
    with pytest.raises(BrokerError, match=r"^writer is closed; open a new one$"):
        writer.send(out("events", b"2"))


def test_a_reader_reads_on_after_it_has_caught_up(topics):
    write(topics, out("events", b"1", 1))
    reader = topics.reader(["events", "answers"])
    assert not reader.caught_up
    assert [r.value for r in reader.poll(PATIENCE_S)] == [b"1"]
    assert reader.caught_up
    assert reader.poll(0.1) == []
    write(topics, out("answers", b"2"))
    assert [(r.topic, r.value) for r in reader.poll(PATIENCE_S)] == [("answers", b"2")]
    reader.close()
    reader.close()
    with pytest.raises(BrokerError, match=r"^reader is closed; open a new one$"):
        reader.poll(0.0)


def test_after_a_fork_readers_and_writers_are_refused_and_topics_connect_anew(topics, monkeypatch):
    """They waited for ever, or until a timeout, for threads that a forked process does not have."""
    topics.n_partitions()
    reader, writer = topics.reader(["events"], group="g"), topics.writer("producer")
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: 0)
        for use in (lambda: reader.poll(0.0), reader.commit, writer.flush):
            with pytest.raises(
                RuntimeError, match=r"^this (reader|writer) of Kafka was opened befo"
            ):
                use()
        kept = topics._administration._client
        assert topics.n_partitions() == 2
        assert topics._administration._client is not kept
    kept.close()
    writer.close()
    reader.close()


def test_a_reader_of_nothing_has_caught_up(topics):
    reader = topics.reader(["events"])
    assert reader.caught_up
    reader.close()


def test_a_reader_from_the_end_sees_what_comes(topics):
    write(topics, *numbered("events", 10))
    reader = topics.reader(["events"], from_end=True)
    assert reader.caught_up
    assert reader.poll(0.2) == []
    write(topics, out("events", b"new", 1))
    assert [r.value for r in reader.poll(PATIENCE_S)] == [b"new"]
    reader.close()


def test_a_reader_sees_committed_records_only_and_passes_what_was_aborted(topics, kafka_prefix):
    producer = topics._connection.producer(transactional_id=kafka_prefix + "t")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topics.names()["predictions"], b"aborted", b"k", partition=0).get(PATIENCE_S)
    reader = topics.reader(["predictions"])
    assert reader.poll(0.2) == []
    assert not reader.caught_up
    producer.abort_transaction()
    start = time.monotonic()
    assert reader.poll(2 * PATIENCE_S) == []
    assert time.monotonic() - start < PATIENCE_S
    assert reader.caught_up
    reader.close()
    producer.close()
    with linked(topics, kafka_prefix + "g") as link:
        link.commit([out("predictions", b"1")])
    assert read(topics, "predictions") == [b"1"]


def test_a_reader_that_is_held_back_for_long_says_where(topics, kafka, kafka_prefix):
    """It waited for ever behind a transaction that a broker had lost track of."""
    write(topics, out("events", b"1", 0))
    patience = {"request_s": 1.0, "stall_s": 3.0}
    with (
        opened(kafka, kafka_prefix, create=False, timeouts=patience) as hasty,
        open_transaction(kafka, kafka_prefix + "producer", kafka_prefix + "events"),
    ):
        reader = hasty.reader(["events"])

        def read_on():
            until = time.monotonic() + PATIENCE_S
            while not reader.caught_up and time.monotonic() < until:
                reader.poll(0.1)

        error, took_s = error_of(read_on)
        reader.close()
    where = f"{kafka_prefix}events partition 0 at 1 of 2"
    text = f"nothing could be read for 3 s, is a transaction left open? {where}"
    assert str(error) == text
    assert took_s > 3.0


def test_the_time_without_a_poll_is_no_stall(topics, kafka, kafka_prefix):
    """A program that was stopped, or busy, was told that nothing could be read."""
    write(topics, out("events", b"1", 0))
    patience = {"request_s": 1.0, "stall_s": 3.0}
    with (
        opened(kafka, kafka_prefix, create=False, timeouts=patience) as hasty,
        open_transaction(kafka, kafka_prefix + "producer", kafka_prefix + "events"),
    ):
        reader = hasty.reader(["events"])
        until = time.monotonic() + 1.5  # long enough to ask the broker once where topics end
        while time.monotonic() < until:
            reader.poll(0.1)
        time.sleep(3.5)
        assert reader.poll(0.0) == []
        assert not reader.caught_up
        reader.close()


def test_many_records_are_safe_although_nobody_flushed_in_between(topics):
    n = 12_000
    write(topics, *numbered("events", n))
    assert read(topics, "events") == [b"%d" % i for i in range(n)]


def test_a_record_that_the_broker_does_not_take_breaks_the_writer(topics):
    writer = topics.writer("producer")
    writer.send(out("events", b"x" * 2_000_000))
    with pytest.raises(RefusedError, match=r" refused to take records: a record is larger than "):
        writer.flush()
    with pytest.raises(BrokerError, match=r"^writer is broken \(.*max.message.bytes.*; open a n"):
        writer.send(out("events", b"1"))
    writer.close()


def test_a_record_that_no_topic_takes_is_refused(topics):
    writer = topics.writer("producer")
    with pytest.raises(ValueError, match=r"^record for events has \d+ bytes, expected at most"):
        writer.send(out("events", b"x" * 17_000_000))
    writer.close()


def test_a_partition_that_is_not_there_is_named(topics):
    writer = topics.writer("producer")
    with pytest.raises(BrokerError, match="Unrecognized partition 9 for topic"):
        writer.send(out("events", b"1", 9))
    writer.close()


def test_a_record_leaves_soon_and_what_comes_just_after_with_the_next_one_or_a_flush(topics):
    reader, writer = topics.reader(["events"]), topics.writer("producer")
    writer.send(out("events", b"1"))
    assert [record.value for record in reader.poll(PATIENCE_S)] == [b"1"]
    for _ in range(5):
        writer.send(out("events", b"2"))
    writer.flush()
    assert read(topics, "events") == [b"1"] + [b"2"] * 5
    reader.close()
    writer.close()
