import threading

import pytest

from connectors.broker import MemoryBroker
from connectors.wire.codec import encode
from streamgp.interactive.messages import Event


def event(i):
    return Event(event_id=f"e{i}", x={}, occurred_at=float(i))


def test_topics_hold_bytes():
    broker = MemoryBroker()
    producer = broker.publisher()
    producer.send(event(1))
    assert broker.topic("events") == []
    producer.flush()
    assert broker.topic("events") == [encode(event(1))]
    assert broker.topic("answers") == []


def test_a_record_without_a_time_has_that_of_its_arrival():
    broker = MemoryBroker(clock=lambda: 42.0)
    broker.publish("events", b"x")
    [received] = broker.source().poll()
    assert received.at == received.message.at == 42.0


def test_records_of_all_topics_come_in_order_of_arrival():
    broker = MemoryBroker()
    for topic in ("answers", "events", "answers", "events"):
        broker.publish(topic, b"x")
    found = [received.message.subject for received in broker.source().poll()]
    assert found == ["answers:0:0", "events:0:0", "answers:0:1", "events:0:1"]


def test_a_closed_broker_is_exhausted_once_everything_was_read():
    broker = MemoryBroker()
    broker.publish("events", encode(event(1)))
    source = broker.source()
    broker.close()
    assert not source.exhausted
    assert len(source.poll()) == 1
    assert source.exhausted
    with pytest.raises(ValueError, match=r"^broker is closed; open a new one$"):
        broker.publish("events", b"")


def test_to_ask_whether_a_source_is_exhausted_reads_nothing():
    broker = MemoryBroker()
    broker.publish("events", encode(event(1)))
    source = broker.source()
    broker.close()
    assert not source.exhausted
    source.commit()
    assert [received.message for received in broker.source().poll()] == [event(1)]


def test_a_waiting_source_wakes_up_when_a_record_arrives():
    broker = MemoryBroker()
    source = broker.source()
    producer = threading.Timer(0.01, broker.publish, ["events", encode(event(1))])
    producer.start()
    assert [received.message for received in source.poll(60.0)] == [event(1)]
    producer.join()


def test_a_waiting_source_wakes_up_when_the_broker_closes():
    broker = MemoryBroker()
    source = broker.source()
    closer = threading.Timer(0.01, broker.close)
    closer.start()
    assert source.poll(60.0) == []
    assert source.exhausted
    closer.join()


def test_waiting_ends_with_the_timeout():
    assert MemoryBroker().source().poll(0.001) == []


def test_closing_a_sink_flushes_it():
    broker = MemoryBroker()
    producer = broker.publisher()
    producer.send(event(1))
    producer.close()
    assert len(broker.topic("events")) == 1


def test_unknown_topics_are_refused_in_publishing():
    with pytest.raises(ValueError, match=r"got 'event'$"):
        MemoryBroker().publish("event", b"")
