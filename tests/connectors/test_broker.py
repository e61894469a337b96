import subprocess
import sys
from contextlib import closing

import pytest

import connectors
from connectors.broker import (
    INPUT_TOPIC,
    OUTPUT_TOPIC,
    TOPICS,
    MemoryBroker,
    check_topics,
    open_broker,
    receive,
    time_of,
    topic_of,
)
from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import RefusedError
from connectors.wire.codec import TYPES, encode
from streamgp.base import Decision
from streamgp.interactive.messages import Answer, Cancel, Event, Prediction

EVENT = Event(event_id="e1", x={"light": 0.5}, occurred_at=10.0)


def test_memory_urls_open_a_broker_of_their_own():
    first, second = open_broker("memory://"), open_broker("memory://")
    assert isinstance(first, MemoryBroker)
    assert first is not second


def test_a_directory_is_open_for_inputs_and_readers_beside_its_worker(tmp_path):
    with pytest.raises(RefusedError, match=r"topics\.db is not there; make the topics with"):
        open_broker(f"file://{tmp_path}").source()
    EmbeddedTopics(tmp_path).create()
    broker = open_broker(f"file://{tmp_path}")
    with closing(broker.publisher()) as inputs:
        inputs.send(EVENT)
    with closing(broker.source(group="archive")) as source:
        assert [received.message for received in source.poll()] == [EVENT]
    refused = r"got one for requests; a worker alone writes there$"
    with pytest.raises(ValueError, match=refused), closing(broker.sink()) as outputs:
        outputs.send(Cancel(request_id="e1/label", why="gone", at=3.0))


@pytest.mark.parametrize("url", ["", "memory", "rabbit://host", "memory://x", "file://"])
def test_an_unknown_broker_is_told_which_are_known(url):
    known = "'memory://', 'file://DIR' or 'kafka://HOST:PORT,HOST:PORT'"
    with pytest.raises(ValueError, match=f"^broker must be {known}, got {url!r}$"):
        open_broker(url)


@pytest.mark.parametrize("url", [None, 9092, b"memory://"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(TypeError, match=r"^broker must be an address such as 'memory://', got"):
        open_broker(url)


def test_every_message_type_has_its_topics():
    assert set(INPUT_TOPIC) | set(OUTPUT_TOPIC) == set(TYPES.values())
    assert set(INPUT_TOPIC.values()) | set(OUTPUT_TOPIC.values()) == set(TOPICS)


def test_a_cancellation_goes_to_the_answers_as_input_and_to_the_requests_as_output():
    cancel = Cancel(request_id="e1/label", why="gone", at=3.0)
    assert topic_of(cancel, INPUT_TOPIC) == "answers"
    assert topic_of(cancel, OUTPUT_TOPIC) == "requests"


def test_an_event_is_no_output():
    with pytest.raises(TypeError, match=r"^message must be one of Prediction, .*, got Event$"):
        topic_of(EVENT, OUTPUT_TOPIC)


@pytest.mark.parametrize(
    ("topics", "error", "match"),
    [
        (["event"], ValueError, r"^topic must be one of events, .*, dead-letters, got 'event'$"),
        ([], ValueError, r"^topics must name at least one of events, .*, got none$"),
        ("events", TypeError, "^topics must be a list of names, got the text 'events'$"),
    ],
)
def test_topics_must_be_known(topics, error, match):
    with pytest.raises(error, match=match):
        check_topics(topics)


def test_received_bytes_keep_their_original_and_the_records_own_time():
    received = receive("events", encode(EVENT), subject="events:0", at=99.0)
    assert received.message == EVENT
    assert received.original == encode(EVENT)
    assert received.at == 10.0


def test_a_message_of_another_topic_is_malformed():
    answer = Answer(answer_id="a", event_id="e1", y=1, answered_at=1.0)
    received = receive("events", encode(answer), subject="events:3", at=99.0)
    assert received.message.subject == "events:3"
    assert received.message.fault == "malformed"
    assert received.message.reason == "topic 'events' must hold Event, got Answer"
    assert received.original == encode(answer)
    assert received.at == received.message.at == 99.0
    rejected = receive("answers", encode(EVENT), subject="answers:0", at=0.0).message
    assert rejected.reason == "topic 'answers' must hold Answer or Cancel, got Event"


def test_outputs_are_received_with_their_time():
    decision = Decision.of(0.3, 0.1, "SkepticalAsk")
    said = Prediction(event_id="e1", y=None, proba={}, decision=decision, n_learned=0, at=7.0)
    assert receive("predictions", encode(said), subject="", at=99.0).at == time_of(said) == 7.0


def test_names_of_the_package_load_on_first_use():
    code = (
        "import sys, connectors; assert 'msgspec' not in sys.modules; "
        "connectors.open_broker; assert 'msgspec' in sys.modules; "
        "assert 'river' not in sys.modules and 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert all(getattr(connectors, name) is not None for name in dir(connectors))
    with pytest.raises(AttributeError, match="module 'connectors' has no attribute 'kafka_'"):
        _ = connectors.kafka_
