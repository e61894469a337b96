"""Numbers that a learner cannot handle, on a real broker: the worker goes on."""

import json

import pytest

from connectors.topics import Outgoing
from connectors.wire.outbound import letter_of
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp.config.build import build_model
from streamgp.config.rules import section
from streamgp.config.settings import Config
from tests.helpers.hostile import Script, honest
from tests.helpers.kafka_cases import opened, write
from tests.helpers.topics import everything

FRIENDS = ("ann", "bob")


@pytest.fixture
def topics(kafka, kafka_prefix):
    with opened(kafka, kafka_prefix, partitions=2) as made:
        yield made


def work(topics, group):
    """Start a worker, and end it when nothing waits."""
    waiting = {"events", "answers"}

    def is_done():
        return not any(n for (topic, _), n in topics.lags(group).items() if topic in waiting)

    model = build_model(
        Config(target="number", query=section("query", "always"), warm_up=0, seed=1)
    )
    settings = WorkerSettings(group=group, instance="a", max_bad_share=1.0)
    Worker(topics, LoopSettings(model=model), settings).run(is_done)


def of_topic(records, topic):
    """Return those records of a topic, each in the partition of its key."""
    return [
        Outgoing(topic=topic, key=record.key, value=record.value)
        for record in records
        if record.topic == topic
    ]


def hostile():
    """Return what a key sends: two ordinary targets, one of 1e155, and an answer of 1e155."""
    script = Script("eve", numbers=True)
    for y in (0.1, 2.5, 1e155):
        script.event({"u": 0.3, "v": 0.2}, y)
    script.converse({"u": 0.3, "v": 0.2}, 1e155)
    script.event({"u": 0.3, "v": 0.1}, 0.7)
    return script


def said(topics, *keys):
    """Return what was said of some keys, by topic."""
    return {
        name: sorted(
            (record.key, record.value)
            for record in everything(topics, name)
            if record.key.split(b"\x1f")[0].decode() in keys
        )
        for name in ("predictions", "requests", "consensus")
    }


def after_a_restart(key, y):
    """Return two more events of a key."""
    script = Script(key, numbers=True)
    script.event({"u": 0.5}, y, event_id="later")
    script.event({"u": 0.5}, 0.9, event_id="last")
    return script.records


def test_a_target_of_1e155_is_a_dead_letter_and_the_worker_goes_on(kafka, kafka_prefix, topics):
    friendly = [record for key in FRIENDS for record in honest(key, numbers=True, n=6)]
    again = [record for key in FRIENDS for record in after_a_restart(key, 1.5)]
    group = kafka_prefix + "g"
    with opened(kafka, kafka_prefix + "calm.", partitions=2) as calm:
        for records, attack, topic in (
            (friendly, hostile().records, "events"),
            (friendly, hostile().records, "answers"),
            (again, after_a_restart("eve", 1e155), "events"),
        ):
            write(topics, *of_topic(attack + records, topic))
            write(calm, *of_topic(records, topic))
            work(topics, group)
            work(calm, group + ".calm")
        assert said(topics, *FRIENDS) == said(calm, *FRIENDS)
    letters = everything(topics, "dead-letters")
    sent = {
        (record.topic, record.partition, record.offset): record
        for record in everything(topics, "events", "answers")
    }
    for letter in letters:
        cause = letter_of(letter).cause
        record = sent[cause.topic, cause.partition, cause.offset]
        assert (letter.key, letter.value) == (record.key, record.value)
    large = [letter for letter in letters if b"1e+155" in letter.value]
    assert len(large) == sum(b"1e+155" in record.value for record in sent.values())
    predicted = [json.loads(r.value) for r in everything(topics, "predictions")]
    ours = [p["event_id"] for p in predicted if p["key"] == "eve"]
    assert ours == ["e0", "e1", "e3", "e6", "last"]
