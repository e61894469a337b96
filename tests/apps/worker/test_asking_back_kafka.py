"""A label request about an earlier event, on a real broker."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from pathlib import Path
from time import monotonic, time
from typing import Any

import pytest

from connectors.topics import Outgoing, TopicName
from connectors.wire.codec import encode
from streamgp.apps import console
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.interactive import Answer, Event, LabelledExample, LabelRequest
from tests.helpers.topics import said
from tests.helpers.worker_process import Process


class Deployment:
    """A configuration, its topics, and its workers."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self) -> Process:
        worker = Process(self.path, "--create-topics", "--instance", "w")
        worker.wait_for("restored")
        return worker

    def send(self, topic: TopicName, *messages: Event | Answer) -> None:
        with closing(open_topics(load_deployed(self.path))) as topics:
            writer = topics.writer("test")
            for message in messages:
                writer.send(Outgoing(topic=topic, key=b"ann", value=encode(message)))
            writer.close()

    def said(self, topic: TopicName, n: int) -> list[Any]:
        """Return what is committed in a topic, once there are enough records."""
        until, found = monotonic() + 60.0, []
        while len(found) < n and monotonic() < until:
            with closing(open_topics(load_deployed(self.path))) as topics:
                found = said(topics, topic)
        return found


@pytest.fixture
def deployment(kafka: str, kafka_prefix: str, tmp_path: Path) -> Deployment:
    path = tmp_path / "worker.toml"
    state = json.dumps(str(tmp_path / "state"))
    path.write_text(
        f'broker = "kafka://{kafka}"\nwarm_up = 0\n'
        f'[topics]\nprefix = "{kafka_prefix}"\npartitions = 2\nreplication = 1\n'
        f'[worker]\ngroup = "{kafka_prefix}group"\nstate = {state}\n'
        "[loop]\nexpires_after_s = 600\nanswer_horizon_s = 6000\n"
        '[query]\nrule = "never"\n[reservoir]\nrule = "latest"\nevery = 5\n'
    )
    return Deployment(path)


# By day test_worker_asking_back.py ends workers anywhere, and test_kafka_faults.py kills them.
@pytest.mark.nightly
def test_an_answer_about_an_event_of_an_earlier_transaction_survives_a_kill(
    deployment: Deployment,
) -> None:
    worker, begun = deployment.start(), time() - 300.0

    def events(*lights: float, first: int = 0) -> list[Event]:
        return [
            Event(event_id=f"e{i}", key="ann", x={"light": light}, occurred_at=begun + i)
            for i, light in enumerate(lights, start=first)
        ]

    # Three are alike, and the one between them tells most of the others.
    deployment.send("events", *events(0.1, 0.0))
    assert len(deployment.said("predictions", 2)) == 2
    deployment.send("events", *events(-0.1, 5.0, 9.0, first=2))
    [request] = deployment.said("requests", 1)
    assert isinstance(request, LabelRequest)
    assert (request.event_id, request.reason) == ("e1", "ReservoirAsk")
    assert (request.occurred_at, request.requested_at) == (begun + 1, begun + 4)

    worker.process.kill()
    worker.end()
    answer = Answer(
        answer_id="a1",
        request_id="e1/label",
        event_id="e1",
        key="ann",
        y="home",
        annotator="ann",
        answered_at=begun + 200.0,
    )
    deployment.send("answers", answer)
    worker = deployment.start()
    [line] = deployment.said("consensus", 1)
    assert isinstance(line, LabelledExample)
    assert (line.event_id, line.y, line.origin, line.late) == ("e1", "home", "asked", False)

    # The next look continues from the last one, and asks no question twice.
    deployment.send("events", *events(0.0, 0.0, 0.0, 0.0, 0.0, first=5))
    first, second = deployment.said("requests", 2)
    assert first == request
    assert second.requested_at == begun + 9
    assert second.event_id != "e1"
    worker.process.send_signal(signal.SIGTERM)
    status, _ = worker.end()
    assert status == console.DONE
