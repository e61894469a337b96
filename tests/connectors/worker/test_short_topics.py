"""A topic that ends before a snapshot does: the snapshot is not used, and that is logged."""

import json
import logging
from contextlib import closing

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics, MemoryWorkerClient
from connectors.storage.snapshots import StateDirectory
from connectors.topics import Outgoing, ShortTopicError
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import isgp
from tests.helpers.topics import said

N = 6


def put(topics, start, n=N):
    """Write events that bring their labels, of keys that lie in all partitions."""
    writer = topics.writer("test")
    for i in range(start, start + n):
        value = {"event_id": f"e{i}", "x": {"light": 0.1 * i}, "y": "home", "occurred_at": float(i)}
        key = b"key%d" % (i % 4)
        writer.send(Outgoing(topic="events", key=key, value=json.dumps(value).encode()))
    writer.close()


def work(topics, path):
    """Work off everything; return what was logged about the beginning."""
    with closing(StateDirectory(path)) as state:
        settings = WorkerSettings(group="g", instance="w")
        loops = LoopSettings(model=isgp(seed=1))
        worker = Worker(topics, loops, settings, state=state, clock=lambda: 100.0)
        worker.run(lambda: not any(topics.lags("g").values()))


def predictions(topics):
    return said(topics, "predictions")


def fields(caplog, name):
    return [record.fields for record in caplog.records if record.message == name]


@pytest.fixture(autouse=True)
def everything_is_logged(caplog):
    caplog.set_level(logging.INFO, logger="streamgp.worker")


def test_only_the_partition_that_is_short_is_read_from_the_start(tmp_path, monkeypatch, caplog):
    topics, untouched = MemoryTopics(n_partitions=2), MemoryTopics(n_partitions=2)
    for each, path in ((topics, tmp_path / "a"), (untouched, tmp_path / "b")):
        put(each, 0)
        work(each, path)
    caplog.clear()
    history = MemoryWorkerClient.history_batches

    def short(self, starts, progress=None):
        if starts.get(1):
            raise ShortTopicError({1: "topic state ends at offset 2"})
        return history(self, starts, progress)

    monkeypatch.setattr(MemoryWorkerClient, "history_batches", short)
    put(topics, N)
    work(topics, tmp_path / "a")
    assert fields(caplog, "snapshot-unused") == [{"reason": "topic state ends at offset 2"}]
    [restored] = fields(caplog, "restored")
    assert (restored["partitions"], restored["from_snapshot"]) == ([0, 1], [0])
    monkeypatch.setattr(MemoryWorkerClient, "history_batches", history)
    put(untouched, N)
    work(untouched, tmp_path / "b")
    assert predictions(topics) == predictions(untouched)
    # What was saved then is used again.
    caplog.clear()
    put(topics, 2 * N)
    work(topics, tmp_path / "a")
    assert fields(caplog, "restored")[0]["from_snapshot"] == [0, 1]


def test_a_directory_of_topics_that_was_put_back_from_a_copy_is_worked_on(tmp_path, caplog):
    path = tmp_path / "topics"
    with closing(EmbeddedTopics(path)) as topics:
        topics.create()
        put(topics, 0)
        work(topics, tmp_path / "state")
    copied = {file: file.read_bytes() for file in path.iterdir() if file.is_file()}
    with closing(EmbeddedTopics(path)) as topics:
        put(topics, N)
        work(topics, tmp_path / "state")
    for file, data in copied.items():
        file.write_bytes(data)
    caplog.clear()
    with closing(EmbeddedTopics(path)) as topics:
        put(topics, N)
        work(topics, tmp_path / "state")
        assert len(predictions(topics)) == 2 * N
    [unused] = fields(caplog, "snapshot-unused")
    assert "topics.db ends at offset " in unused["reason"]
    assert fields(caplog, "restored")[0]["from_snapshot"] == []
