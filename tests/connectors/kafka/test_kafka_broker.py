"""Messages on a real broker, beyond what every broker does."""

import pytest

from connectors import open_broker
from connectors.broker import TopicsBroker
from connectors.kafka.topics import KafkaTopics
from connectors.topics import BrokerError
from streamgp.interactive.messages import Event, LabelledExample, Rejected
from tests.helpers.kafka_cases import opened, out, write
from tests.helpers.topics import everything


@pytest.fixture
def topics(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix) as made:
        yield made


@pytest.fixture
def broker(kafka, topics):
    made = TopicsBroker(KafkaTopics(kafka, names=topics.names()))
    yield made
    made.close()


def event(i, key="ann"):
    return Event(event_id=f"e{i}", key=key, x={"light": 0.5}, occurred_at=float(i))


def test_an_address_opens_a_broker_and_nothing_is_connected_before_it_is_used():
    broker = open_broker("kafka://nowhere.invalid:9093")
    assert isinstance(broker, TopicsBroker)
    broker.close()
    with pytest.raises(ValueError, match=r"^server must be host:port, got 'a b'$"):
        open_broker("kafka://a b")


def test_events_of_one_key_share_a_partition_and_keep_their_order(broker, topics):
    producer = broker.publisher()
    for i in range(20):
        producer.send(event(i, key=("ann", "bob", "eve", "dan")[i % 4]))
    producer.close()
    records = everything(topics, "events")
    assert len({record.partition for record in records}) == 2
    for key in (b"ann", b"bob", b"eve", b"dan"):
        mine = [record for record in records if record.key == key]
        assert len({record.partition for record in mine}) == 1
        assert [record.offset for record in mine] == sorted(record.offset for record in mine)
    assert dict(records[0].headers)["ce_type"] == b"streamgp.event.v1"


def test_a_labelled_example_has_the_key_by_which_its_topic_is_compacted(broker, topics):
    sink = broker.sink()
    sink.send(LabelledExample(event_id="e1", sequence=1, x={}, y=1, origin="asked", learned_at=1.0))
    sink.close()
    assert [record.key for record in everything(topics, "consensus")] == [b"\x1fe1\x1f0"]


def test_a_worker_s_dead_letter_says_what_was_wrong(broker, topics):
    headers = (("dlq.error", b"what was wrong"), ("dlq.stage", b"decode"))
    write(topics, out("dead-letters", b"\xff", headers=headers), out("dead-letters", b"x", 1))
    source = broker.source(["dead-letters"])
    letters = []
    while len(letters) < 2:
        letters += source.poll(5.0)
    source.close()
    by_original = {letter.original: letter.message for letter in letters}
    assert by_original[b"\xff"].reason == "what was wrong"
    assert by_original[b"x"].reason == "no reason given"
    assert {type(message) for message in by_original.values()} == {Rejected}


def test_topics_that_are_missing_are_named(kafka, kafka_prefix):
    broker = TopicsBroker(KafkaTopics(kafka, names={"events": kafka_prefix + "events"}))
    with pytest.raises(BrokerError, match=f"^topic {kafka_prefix}events is missing"):
        broker.source(["events"])
    broker.close()
