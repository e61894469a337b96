"""What any producer may write, and what a disk may spoil: it is used, put aside, or told."""

import hashlib
import json
import logging
import struct
from contextlib import closing

import pytest

from connectors.kafka.client_import import TopicPartition, kafka_errors
from connectors.kafka.record_codec import _Fetched
from connectors.storage.snapshots import StateDirectory
from connectors.topics import BrokerError
from connectors.wire.outbound import letter_of, resend
from connectors.worker.losses import LostRecordsError
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import isgp
from tests.helpers.kafka_cases import (
    BUSY_S,
    PATIENCE_S,
    Raw,
    error_of,
    eventually,
    linked,
    opened,
    out,
    poll,
    read,
    write,
)
from tests.helpers.topics import everything

GOOD = json.dumps({"x": {"light": 0.5}}).encode()


def work(topics, group, state=None):
    """Work off all events and answers."""
    waiting = {"events", "answers"}

    def is_done():
        return not any(n for (topic, _), n in topics.lags(group).items() if topic in waiting)

    settings = WorkerSettings(group=group, instance="a", max_bad_share=1.0)
    Worker(topics, LoopSettings(model=isgp(seed=1)), settings, state=state).run(is_done)


@pytest.fixture
def topics(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix, partitions=1) as made:
        yield made


# --- names of headers


def test_every_consumer_of_ours_reads_so(topics):
    consumer = topics._connection.consumer()
    assert consumer._fetcher.PartitionRecords.func is _Fetched
    consumer.close()


def test_such_a_record_is_a_dead_letter_and_the_stream_goes_on(topics, kafka_prefix):
    strange = ((Raw(b"caf\xe9"), b"\xff"), ("trace", b"7"), (Raw(b"\xff"), b""))
    write(
        topics,
        out("events", GOOD),
        out("events", GOOD, headers=strange),
        out("events", GOOD),
        out("answers", b"{}", headers=strange),
        out("events", None, headers=strange),
    )
    group = kafka_prefix + "g"
    work(topics, group)
    work(topics, group)
    assert len(read(topics, "predictions")) == 2
    letters = everything(topics, "dead-letters")
    assert [letter.value for letter in letters] == [b"{}", GOOD]  # answers are read first
    for letter in letters:
        assert letter.key == b"ann"
        assert list(letter.headers[:3]) == [("caf\\xe9", b"\xff"), ("trace", b"7"), ("\\xff", b"")]
        assert letter_of(letter).error == "names of headers must be UTF-8, got caf\\xe9"
    cause = letter_of(letters[1]).cause
    assert (cause.topic, cause.offset) == ("events", 1)
    # Sent again, it has names that every client can read.
    write(topics, resend(letters[1]))
    work(topics, group)
    assert len(read(topics, "predictions")) == 3
    assert len(read(topics, "dead-letters")) == 2


def test_such_a_null_takes_nothing_back(topics, kafka_prefix):
    write(topics, out("consensus", None, headers=((Raw(b"\xff"), b""),)), out("events", GOOD))
    work(topics, kafka_prefix + "g")
    [letter] = everything(topics, "dead-letters")
    assert (letter.value, letter_of(letter).cause.topic) == (None, "consensus")


@pytest.mark.parametrize(
    "record",
    [
        out("events", b"\xff\xfe"),
        out("events", GOOD, key=b"\xff\xfe"),
        out("events", GOOD, headers=(("ce_type", b"\xff"),)),
        out("events", GOOD, headers=(("", b""), ("ce_type", b"streamgp.answer.v1"))),
    ],
    ids=["value", "key", "value of a header", "header without a name"],
)
def test_other_bytes_that_are_no_text_are_dead_letters_with_those_bytes(
    topics, kafka_prefix, record
):
    write(topics, record, out("events", GOOD))
    work(topics, kafka_prefix + "g")
    [letter] = everything(topics, "dead-letters")
    assert (letter.key, letter.value) == (record.key, record.value)
    assert tuple(letter.headers[: len(record.headers)]) == record.headers
    assert len(read(topics, "predictions")) == 1


# --- names of topics


def test_a_dead_letter_names_the_topic_of_the_cluster_and_its_role(topics, kafka_prefix):
    write(topics, out("events", b"?"), out("answers", b"?"))
    work(topics, kafka_prefix + "g")
    found = {dict(r.headers)["dlq.role"]: r for r in everything(topics, "dead-letters")}
    assert found.keys() == {b"events", b"answers"}
    for role, record in found.items():
        name = topics.names()[role.decode()]
        assert name.startswith(kafka_prefix)
        assert dict(record.headers)["dlq.topic"] == name.encode()
        letter = letter_of(record)
        assert (letter.cause.topic, letter.name) == (role.decode(), name)
        assert resend(record).topic == role.decode()


# --- size


def test_an_input_larger_than_any_topic_of_ours_takes_is_a_dead_letter(kafka, kafka_prefix):
    large = {"num_partitions": 1, "configs": {"max.message.bytes": str(24 * 2**20)}}
    with opened(kafka, kafka_prefix, partitions=1, create=False) as topics:
        admin = topics._connection.admin()
        admin.create_topics({topics.names()["events"]: large})
        admin.close()
        topics.create()
        producer = topics._connection.producer(max_request_size=24 * 2**20)
        for value in (b"x" * (20 * 2**20), GOOD):
            producer.send(topics.names()["events"], value, b"ann").get(timeout=PATIENCE_S)
        producer.close()
        work(topics, kafka_prefix + "g")
        [letter] = everything(topics, "dead-letters")
        assert (letter.key, letter.value) == (b"ann", b"x" * 2**20)
        assert dict(letter.headers)["dlq.truncated"] == b"20971523"
        digest = hashlib.sha256(b"x" * (20 * 2**20)).hexdigest()
        assert dict(letter.headers)["dlq.sha256"] == digest.encode()
        assert len(read(topics, "predictions")) == 1


# --- recreated topics


def test_a_snapshot_that_knows_more_than_the_topics_is_not_used(
    topics, kafka_prefix, tmp_path, caplog
):
    """Nor does the worker start empty if the group has processed events before."""
    caplog.set_level(logging.INFO, logger="streamgp.worker")
    labelled = json.dumps({"x": {"light": 0.5}, "y": "home"}).encode()
    group = kafka_prefix + "g"
    with closing(StateDirectory(tmp_path)) as state:
        write(topics, *[out("events", labelled)] * 3)
        work(topics, group, state)
        admin = topics._connection.admin()
        made_anew = [topics.names()[name] for name in ("state", "consensus")]
        admin.delete_topics(made_anew)
        assert eventually(lambda: set(admin.list_topics()).isdisjoint(made_anew), True)
        admin.close()
        topics.create()
        caplog.clear()
        write(topics, out("events", labelled))
        with pytest.raises(LostRecordsError, match="state and consensus hold nothing"):
            work(topics, group, state)
        said = [(record.message, record.fields) for record in caplog.records]
        [unused] = [told for event, told in said if event == "snapshot-unused"]
        assert "ends at offset 0 in partition 0, but is known up to " in unused["reason"]
    found = [json.loads(value)["n_learned"] for value in read(topics, "predictions")]
    assert found == [0, 1, 2]


# --- damage


def damage(broker, topic, n, how):
    """Spoil a batch on the disk of a broker; it reads what is there then."""
    [path] = (broker.directory / "data").glob(f"{topic}-0/*.log")
    data = bytearray(path.read_bytes())
    at = 0
    for _ in range(n):
        at += 12 + struct.unpack_from(">i", data, at + 8)[0]
    if how == "bytes":
        data[at + 12 + struct.unpack_from(">i", data, at + 8)[0] - 2] ^= 0xFF
    else:
        struct.pack_into(">i", data, at + 8, 0)
    with path.open("r+b") as file:
        file.write(data)


def test_a_client_that_fails_before_it_has_a_place_is_not_told_that_it_was_replaced(
    topics, kafka_prefix
):
    link = topics.client(group=kafka_prefix + "g", instance="a", max_records=1)
    assert link._member.settle()

    def fail(_wait_s):
        raise kafka_errors.UnknownError

    link._member.fetch = fail
    with pytest.raises(BrokerError, match=" failed to read: ") as caught:
        link.poll(5.0)
    assert type(caught.value) is BrokerError
    link.close()


@pytest.mark.parametrize(
    ("how", "why"),
    [("bytes", "its checksum is another"), ("length", "Record size is less than .*")],
)
def test_a_damaged_record_is_reported_with_its_place_to_all_readers(
    own_broker, kafka_prefix, how, why
):
    with opened(own_broker.servers, kafka_prefix, partitions=1) as topics:
        for i in range(4):
            write(topics, out("events", b"%d" % i), out("state", b"%d" % i))
        for topic in ("events", "state"):
            damage(own_broker, topics.names()[topic], 2, how)
        place = f"^topic {kafka_prefix}%s is damaged at offset 2 in partition 0 [(]{why}[)]; bring "
        with pytest.raises(BrokerError, match=place % "events"):
            read(topics, "events")
        link = topics.client(group=kafka_prefix + "g", instance="a", max_records=1)
        with pytest.raises(BrokerError, match=place % "events") as caught:
            poll(link, 4)
        assert type(caught.value) is BrokerError  # starting again may help, so 75
        link.close()
        with (
            linked(topics, kafka_prefix + "h", wait=False) as link,
            pytest.raises(BrokerError, match=place % "state"),
        ):
            list(link.history({0: {}}))
        if how == "bytes":  # the broker finds the next one
            admin = topics._connection.admin()
            admin.delete_records({TopicPartition(topics.names()["events"], 0): 3})
            admin.close()
            assert read(topics, "events") == [b"3"]


def test_what_the_broker_itself_cannot_read_is_reported_by_its_place(own_broker, kafka_prefix):
    with opened(own_broker.servers, kafka_prefix, partitions=1) as topics:
        for i in range(4):
            write(topics, out("state", b"%d" % i))
        damage(own_broker, topics.names()["state"], 2, "length")
        with linked(topics, kafka_prefix + "g", wait=False) as link:
            error, took_s = error_of(lambda: list(link.history({0: {"state": 3}})))
        assert str(error).startswith(
            f"topic {kafka_prefix}state is damaged at offset 3 in partition 0 (the broker cannot "
        )
        assert took_s < BUSY_S
