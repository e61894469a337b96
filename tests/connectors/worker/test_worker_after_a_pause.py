"""A worker that goes on after a pause: questions that it writes then are not over at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from time import monotonic

import pytest

from connectors.annotation.inbox import AnnotationInbox
from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import GPClassifier, SkepticalClassifier
from streamgp.interactive.messages import Answer, Challenge, Expired, LabelledExample, LabelRequest
from streamgp.query import AlwaysAsk, SkepticalChallenge
from tests.helpers.kafka_cases import opened
from tests.helpers.topics import said
from tests.helpers.workbench import event, put

EXPIRES_S, HORIZON_S = 60.0, 600.0


class Deployment:
    """Topics, and a worker that is run now and then, at a time that the test sets."""

    def __init__(self, topics, group="g"):
        self.topics = topics
        self.group = group
        self.now = 0.0

    def work(self, until=lambda: True):
        """Work off everything that waits, look a few times whether something is due, and go on
        until something is so."""
        model = SkepticalClassifier(
            GPClassifier(), AlwaysAsk(), SkepticalChallenge(), warm_up=0, seed=1
        )
        loops = LoopSettings(model=model, expires_after_s=EXPIRES_S, answer_horizon_s=HORIZON_S)
        settings = WorkerSettings(group=self.group, instance="w")
        worker = Worker(self.topics, loops, settings, clock=lambda: self.now)
        turns, end, idle_at = count(), monotonic() + 60.0, None

        def is_done():
            nonlocal idle_at
            turn = next(turns)
            assert monotonic() < end, "not worked off in time"
            if any(self.topics.lags(self.group).values()):
                idle_at = None
            elif idle_at is None:
                idle_at = turn
            return idle_at is not None and turn >= idle_at + 3 and until()

        worker.run(is_done)

    def answer(self, request, y, at):
        put(
            self.topics,
            Answer(
                answer_id=f"to {request.request_id}",
                request_id=request.request_id,
                event_id=request.event_id,
                key=request.key,
                y=y,
                answered_at=at,
            ),
        )

    def said(self, kind, topic="requests"):
        return [message for message in said(self.topics, topic) if isinstance(message, kind)]


@pytest.fixture(params=["memory", "files", pytest.param("kafka", marks=pytest.mark.nightly)])
def deployed(request, tmp_path, monkeypatch) -> Iterator[Deployment]:
    monkeypatch.setattr("connectors.worker.worker.LONGEST_WAIT_S", 0.05)
    if request.param == "memory":
        yield Deployment(MemoryTopics())
    elif request.param == "files":
        with closing(EmbeddedTopics(tmp_path / "topics")) as topics:
            topics.create()
            yield Deployment(topics)
    else:
        kafka, prefix = (request.getfixturevalue(name) for name in ("kafka", "kafka_prefix"))
        with opened(kafka, prefix, partitions=1) as topics:
            yield Deployment(topics, f"{prefix}g")


def teach(deployed, n=8):
    """Let it learn that much light is a hall, and little a den."""
    put(
        deployed.topics,
        *(event(i, y=("den", "hall")[i % 2], x={"light": 5.0 * (i % 2)}, at=0) for i in range(n)),
    )
    deployed.work()


def test_a_challenge_of_a_timely_answer_waits_for_its_annotator(deployed):
    teach(deployed)
    put(deployed.topics, event(20, x={"light": 5.0}, at=1.0))
    deployed.work()
    deployed.answer(deployed.said(LabelRequest)[-1], "den", at=50.0)
    deployed.now = 187.0  # it was away
    deployed.work()
    [challenge] = deployed.said(Challenge)
    assert (challenge.requested_at, challenge.expires_at) == (50.0, 247.0)
    assert deployed.said(Expired) == []
    deployed.answer(challenge, "hall", at=240.0)
    deployed.now = 260.0
    deployed.work()
    line = deployed.said(LabelledExample, "consensus")[-1]
    assert (line.event_id, line.y, line.origin) == ("e20", "hall", "revised")
    assert deployed.said(Expired) == []


def test_label_requests_about_a_backlog_can_be_answered(deployed):
    """Also about events that were beyond the horizon when the worker came back."""
    put(deployed.topics, event(1, at=0.0), event(2, at=300.0))
    deployed.now = 1000.0
    deployed.work()
    requests = deployed.said(LabelRequest)
    assert [request.expires_at for request in requests] == [1060.0, 1060.0]
    assert deployed.said(Expired) == []
    deployed.now = 1050.0
    deployed.work()  # a restart: what is open is open still
    desk = AnnotationInbox(answer_horizon_s=HORIZON_S)
    for request in requests:
        desk.take(request, at=1000.0)
        deployed.answer(request, "hall", at=1055.0)
    assert desk.n_open(1055.0, "ann") == 2
    assert desk.n_open(1060.1, "ann") == 0
    deployed.now = 1070.0
    deployed.work()
    assert [line.event_id for line in deployed.said(LabelledExample, "consensus")] == ["e1", "e2"]
    assert not any(line.late for line in deployed.said(LabelledExample, "consensus"))


def test_what_was_asked_before_the_pause_expires_in_its_time(deployed):
    put(deployed.topics, event(1, at=0.0))
    deployed.work()
    deployed.now = 1000.0
    deployed.work(until=lambda: deployed.said(Expired))
    assert [expired.request_id for expired in deployed.said(Expired)] == ["e1/label"]


def test_an_answer_that_waited_for_its_event_is_challenged_in_time(deployed):
    teach(deployed)
    deployed.now = 500.0
    early = Answer(answer_id="a", event_id="e20", key="ann", y="den", answered_at=2.0)
    put(deployed.topics, early, event(20, x={"light": 5.0}, at=1.0))
    deployed.work()
    [challenge] = deployed.said(Challenge)
    assert challenge.expires_at == 560.0
    assert [expired.request_id for expired in deployed.said(Expired)] == []
