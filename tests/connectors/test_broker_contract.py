"""What every broker must do. A new broker is added to `BROKERS` and must pass unchanged."""

from contextlib import suppress

import pytest

from connectors.broker import TOPICS, MemoryBroker, TopicsBroker
from connectors.runner import run
from connectors.topics import BrokerError, Outgoing
from connectors.wire.codec import decode, encode
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Event,
    Expired,
    LabelledExample,
    Rejected,
)
from tests.helpers import messages as made
from tests.helpers.kafka_cases import opened


def request(i):
    return made.label_request(f"e{i}", float(i))


def prediction(i):
    return made.prediction(f"e{i}", 1.0, float(i), proba={1.0: 1.0}, n_learned=1)


BROKERS = ["memory", "kafka"]
# By day the adapter is with Kafka where the two differ: in positions and in what a commit shows.
everywhere = pytest.mark.parametrize("broker", BROKERS, indirect=True)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.nightly)])
def broker(request):
    if request.param == "memory":
        made = MemoryBroker()
        yield made
        made.close()
    else:
        servers, prefix = request.getfixturevalue("kafka"), request.getfixturevalue("kafka_prefix")
        with opened(servers, prefix, partitions=1) as topics:
            made = Closing(TopicsBroker(topics))
            yield made
            made.close_all()


class Closing:
    """A broker whose sources and sinks are closed at the end, as when a process ends."""

    def __init__(self, broker):
        self.broker = broker
        self.made = []

    def __getattr__(self, name):
        def make(*arguments, **options):
            self.made.append(getattr(self.broker, name)(*arguments, **options))
            return self.made[-1]

        return make

    def close_all(self):
        for each in self.made:
            with suppress(BrokerError):
                each.close()
        self.broker.close()


def event(i):
    return Event(event_id=f"e{i}", key="ann", x={"light": 0.5, 3: 1}, occurred_at=float(i))


def answer(i, y="home"):
    return Answer(answer_id=f"a{i}", event_id=f"e{i}", key="ann", y=y, answered_at=float(i))


def publish(broker, *messages):
    producer = broker.publisher()
    for message in messages:
        producer.send(message)
    producer.flush()
    producer.close()


def publish_bytes(broker, topic, data):
    if isinstance(broker, MemoryBroker):
        broker.publish(topic, data)
    else:
        writer = broker.broker.publisher()._writer
        writer.send(Outgoing(topic=topic, key=None, value=data))
        writer.close()


def said(source):
    return [received.message for received in source.poll(1.0)]


@everywhere
def test_published_inputs_reach_a_worker_in_order_of_their_topic(broker):
    events, answers = [event(i) for i in range(20)], [answer(i) for i in range(20)]
    publish(broker, *[m for pair in zip(events, answers, strict=True) for m in pair])
    found = said(broker.source())
    assert [m for m in found if isinstance(m, Event)] == events
    assert [m for m in found if isinstance(m, Answer)] == answers


def test_a_source_delivers_only_its_topics(broker):
    publish(broker, event(1), answer(1))
    assert said(broker.source(["answers"])) == [answer(1)]


def test_labels_keep_their_type_on_the_way(broker):
    publish(broker, *[answer(i, y) for i, y in enumerate([True, 1, 1.0, "1"])])
    found = said(broker.source(["answers"]))
    assert [type(m.y) for m in found] == [bool, int, float, str]


def test_polling_again_gives_only_what_is_new(broker):
    source = broker.source()
    publish(broker, event(1))
    assert said(source) == [event(1)]
    assert source.poll() == []
    publish(broker, event(2))
    assert said(source) == [event(2)]


@everywhere
def test_what_was_not_committed_is_delivered_again(broker):
    publish(broker, event(1), event(2))
    first = broker.source()
    assert said(first) == [event(1), event(2)]
    first.close()
    assert said(broker.source()) == [event(1), event(2)]


@everywhere
def test_what_was_committed_is_not_delivered_again(broker):
    publish(broker, event(1))
    first = broker.source()
    assert said(first) == [event(1)]
    first.commit()
    publish(broker, event(2))
    assert said(first) == [event(2)]
    first.close()
    assert said(broker.source()) == [event(2)]


def test_groups_do_not_share_their_position(broker):
    publish(broker, event(1))
    worker = broker.source(group="worker")
    assert said(worker) == [event(1)]
    worker.commit()
    assert said(broker.source(group="monitor")) == [event(1)]
    assert broker.source(group="worker").poll() == []


@everywhere
def test_outputs_are_there_after_flush_and_commit_in_order(broker):
    publish(broker, event(1))
    source, sink = broker.source(), broker.sink()
    source.poll(1.0)
    outputs = [
        prediction(1),
        request(1),
        Cancel(request_id="e1/label", why="gone", at=1.0),
        Expired(request_id="e1/label", event_id="e1", at=1.0),
        LabelledExample(event_id="e1", sequence=1, x={}, y=1, origin="asked", learned_at=1.0),
    ]
    for message in outputs:
        sink.send(message)
    sink.flush()
    source.commit()
    assert said(broker.source(["predictions"], group="page")) == outputs[:1]
    assert said(broker.source(["requests"], group="page")) == outputs[1:4]
    assert said(broker.source(["consensus"], group="page")) == outputs[4:]


def test_what_was_sent_and_not_flushed_is_lost_with_its_sink(broker):
    publish(broker, event(1))
    source, sink = broker.source(), broker.sink()
    source.poll(1.0)
    sink.send(prediction(1))
    assert broker.source(["predictions"], group="page").poll() == []


@everywhere
def test_undecodable_bytes_become_dead_letters_with_the_original_bytes(broker):
    publish_bytes(broker, "events", b"\xff not a message")
    publish(broker, event(1))
    result = work(broker, 2)
    assert (result.n_events, result.n_rejected) == (1, 1)
    [letter] = broker.source(["dead-letters"], group="page").poll(1.0)
    assert letter.original == b"\xff not a message"
    assert isinstance(letter.message, Rejected)
    assert letter.message.subject == "events:0:0"
    assert letter.message.fault == "malformed"
    assert letter.message.reason == "message must be UTF-8, got the byte 0xff at position 0"


def test_an_output_on_an_input_topic_becomes_a_dead_letter(broker):
    publish_bytes(broker, "answers", encode(prediction(1)))
    work(broker, 1)
    [letter] = broker.source(["dead-letters"], group="page").poll(1.0)
    assert letter.message.reason == "topic 'answers' must hold Answer or Cancel, got Prediction"
    assert decode(letter.original) == prediction(1)


def test_a_rejection_by_the_loop_carries_the_bytes_of_its_cause(broker):
    publish(broker, answer(1))
    work(broker, 1)
    [letter] = broker.source(["dead-letters"], group="page").poll(1.0)
    assert letter.message.fault == "unknown"
    assert decode(letter.original) == answer(1)


def test_a_rejection_without_a_cause_stands_for_itself(broker):
    rejected = Rejected(subject="e1", fault="unlearnable", reason="why", at=1.0)
    sink = broker.sink()
    sink.send(rejected)
    sink.flush()
    broker.source().commit()
    [letter] = broker.source(["dead-letters"], group="page").poll(1.0)
    assert letter.message == rejected
    assert decode(letter.original) == rejected


@everywhere
def test_a_worker_that_dies_before_its_commit_repeats_nothing_and_loses_nothing(broker):
    publish(broker, event(1), event(2))
    source, sink = broker.source(), broker.sink()
    for received in source.poll(1.0):
        sink.send(prediction(int(received.at)))
    del source, sink  # killed: neither flushed nor committed
    work(broker, 2)
    found = said(broker.source(["predictions"], group="page"))
    assert [m.event_id for m in found] == ["e1", "e2"]


def test_unknown_topics_are_refused(broker):
    with pytest.raises(ValueError, match=f"^topic must be one of {', '.join(TOPICS)}, got 'x'$"):
        broker.source(["x"])


def test_a_loop_cannot_say_an_event_nor_be_told_a_prediction(broker):
    with pytest.raises(TypeError, match=r"got Event$"):
        broker.sink().send(event(1))
    with pytest.raises(TypeError, match=r"got Prediction$"):
        broker.publisher().send(prediction(1))


def test_an_open_broker_is_never_exhausted(broker):
    source = broker.source()
    assert source.poll() == []
    assert not source.exhausted


class Silent:
    """A loop that predicts every event and knows no request."""

    def on_event(self, _event, now, **_):
        return [prediction(int(now))]

    def on_answer(self, answer, now, **_):
        return [Rejected(subject=answer.answer_id, fault="unknown", reason="why", at=now)]

    def on_cancel(self, *_args, **_options):
        return []

    def on_time(self, _now):
        return []

    def next_deadline(self):
        return None


def work(broker, n_inputs):
    """Run a worker until it has taken `n` inputs."""
    seen = []
    return run(
        Silent(),
        broker.source(),
        broker.sink(),
        on_input=seen.append,
        should_stop=lambda: len(seen) >= n_inputs,
    )
