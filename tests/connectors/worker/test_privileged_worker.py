"""Privileged features of answers, through topics and restarts: the learner is bitwise the same."""

import random
from contextlib import closing
from functools import cache

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import ALL_TOPICS
from streamgp import PrivilegedGPClassifier, SkepticalClassifier
from streamgp.apps.deployment.contents import histories_of, loops_in
from streamgp.interactive import Answer, Event, InteractiveLoop, LabelledExample, examples_in
from streamgp.learners import privileged_core
from streamgp.query import AlwaysAsk, SkepticalChallenge
from tests.helpers.kafka_cases import PATIENT
from tests.helpers.topics import everything, said
from tests.helpers.workbench import GROUP, put, worker

UNUSABLE = {"response_s": [0.4]}


def kafka_topics(request):
    pytest.importorskip("kafka")
    from connectors.kafka.topics import KafkaTopics, Timeouts

    prefix = request.getfixturevalue("kafka_prefix")
    return KafkaTopics(
        request.getfixturevalue("kafka"),
        names={name: prefix + name for name in ALL_TOPICS},
        partitions=2,
        timeouts=Timeouts(**PATIENT),
    )


FACTORIES = {
    "memory": lambda _: MemoryTopics(n_partitions=2),
    "embedded": lambda request: EmbeddedTopics(
        request.getfixturevalue("tmp_path") / "topics", clock=lambda: 0.0
    ),
    "kafka": kafka_topics,
}
BY_NIGHT = ("memory", "kafka")


# The worker that the others are compared with has its topics in memory.
# By day they are in a directory: test_topics_contract.py has what all brokers do alike.
@pytest.fixture(
    params=["embedded", *(pytest.param(name, marks=pytest.mark.nightly) for name in BY_NIGHT)]
)
def topics(request):
    with closing(FACTORIES[request.param](request)) as made:
        made.create()
        yield made


@pytest.fixture(autouse=True)
def early(monkeypatch):
    """Hyperparameters are learned in the middle of the conversation."""
    monkeypatch.setattr(privileged_core, "FIRST_FIT", 12)
    monkeypatch.setattr(privileged_core, "_LEAST_OTHERS", 2)


def model():
    learner = PrivilegedGPClassifier(max_points=20)
    return SkepticalClassifier(learner, AlwaysAsk(), SkepticalChallenge(0.3), warm_up=10, seed=1)


def conversation(n=28):
    """Inputs of two people, step by step: answers, corrections and withdrawals."""
    rng = random.Random(1)
    for i in range(n):
        for key in ("ann", "bob"):
            light = rng.uniform(-1.5, 1.5)
            event = Event(event_id=f"e{i}", key=key, x={"light": light}, occurred_at=float(i))
            careless = rng.random() < 0.4
            y = rng.choice(["day", "night"]) if careless else "day" if light > 0.0 else "night"
            known = {"response_s": rng.gauss(0.5 if careless else 2.0, 0.3), "device": "phone"}
            given = rng.choice([known, known, known, None, UNUSABLE])
            yield [event], [answer(i, key, y, given)]
            kind = rng.random()
            if kind < 0.2:
                yield [answer(i, key, "day", rng.choice([known, None]), name="b", of="a")], []
            elif kind < 0.3:
                yield [answer(i, key, None, None, name="b", of="a")], []


def answer(i, key, y, privileged, name="a", of=None):
    return Answer(
        answer_id=f"{name}{i}",
        event_id=f"e{i}",
        key=key,
        y=y,
        declined=y is None,
        annotator=key,
        answered_at=float(i),
        privileged=privileged,
        supersedes=None if of is None else f"{of}{i}",
    )


def work(topics, **options):
    """Work off all events and answers."""
    waiting = {"events", "answers"}

    def is_done():
        return not any(n for (topic, _), n in topics.lags(GROUP).items() if topic in waiting)

    worker(topics, model=model(), max_bad_share=1.0, **options).run(is_done)


def loops(topics):
    """Return the loops that the topics hold, made again."""
    histories = histories_of(everything(topics, "state", "consensus"))
    return {
        found.entity: InteractiveLoop.from_parts(found.parts, found.lines, model())
        for found in loops_in(histories, keyed=True)
    }


@cache
def unbroken():
    """Return the output of a worker that is restarted for each step of the conversation."""
    topics = MemoryTopics(n_partitions=2)
    for batch in conversation():
        for messages in batch:
            put(topics, *messages)
            work(topics)
    return topics


# By day tests/interactive/test_privileged_answers.py restarts loops of such learners.
@pytest.mark.nightly
@pytest.mark.parametrize("with_state", [False, True])
def test_restarts_leave_the_learner_what_it_was(topics, tmp_path, with_state):
    options = {}
    if with_state:  # one loop at a time is in memory, the other in a file
        options = {"state": StateDirectory(tmp_path / "state"), "max_keys": 1}
    batches = [messages for batch in conversation() for messages in batch]
    for n, messages in enumerate(batches, 1):
        put(topics, *messages)
        if n % 40 == 0:
            work(topics, **options)
    work(topics, **options)
    one, other = loops(unbroken()), loops(topics)
    assert sorted(one) == sorted(other) == ["ann", "bob"]
    for key, loop in one.items():
        assert other[key].model.examples() == loop.model.examples()
        assert other[key].model.state()["taught"] == loop.model.state()["taught"]
        assert sum(e.privileged is not None for e in loop.model.examples()) > 8
        for light in (-1.0, 0.1, 0.9):
            x = {"light": light}
            assert other[key].model.predict_proba_one(x) == loop.model.predict_proba_one(x)
        noise = loop.model.learner.noise_one({"response_s": 0.5})
        assert other[key].model.learner.noise_one({"response_s": 0.5}) == noise


def test_the_consensus_log_alone_makes_the_learner():
    lines = [m for m in said(unbroken(), "consensus") if isinstance(m, LabelledExample)]
    for key, loop in loops(unbroken()).items():
        mine = [line for line in lines if line.key == key]
        assert examples_in(mine) == loop.model.examples()


def test_answers_that_the_learner_cannot_use_are_dead_letters_with_the_reason():
    letters = [dict(r.headers) for r in everything(unbroken(), "dead-letters")]
    unusable = [a for _, answers in conversation() for a in answers if a.privileged == UNUSABLE]
    assert len(letters) == len(unusable) > 3
    for headers in letters:
        assert headers["dlq.error"] == (
            b"the learner refuses it: privileged feature 'response_s' must be a number or a "
            b"string, got [0.4]; encode it or leave it out"
        )
