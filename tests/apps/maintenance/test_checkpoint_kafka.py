"""Checkpoints of a group at work: what it has written is what it has read, in each of them."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest

from connectors.topics import Checkpoint, Outgoing, Record
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from tests.apps.maintenance.test_backup_kafka import records, work_off, written
from tests.helpers.worker_process import Process

N_KEYS = 30
N_PARTITIONS = 6
STORM_S = 60.0


def send(config: Path, is_over: threading.Event) -> None:
    """Send events as fast as the broker takes them one by one, with short pauses."""
    rng = random.Random(3)
    with closing(open_topics(load_deployed(config))) as topics:
        writer = topics.writer("test")
        i = 0
        while not is_over.is_set():
            key = f"key{i % N_KEYS}"
            value = {"event_id": f"e{i}", "key": key, "x": {"light": rng.random()}}
            if i % 20 == 0:
                value["y"] = "hall"
            data = json.dumps(value).encode()
            writer.send(Outgoing(topic="events", key=key.encode(), value=data))
            writer.flush()
            i += 1
            sleep(rng.choice([0.0, 0.0, 0.002, 0.01]))
        writer.close()


@contextmanager
def busy_machine(n: int) -> Iterator[None]:
    """Have others take the processor meanwhile: what is asked is answered late then."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def unlike(checkpoint: Checkpoint, events: list[Record], state: list[Record]) -> list[str]:
    """Return the keys of which a checkpoint has other events read than are in what was written."""
    read: Counter[str] = Counter()
    for record in events:
        if record.offset < checkpoint.positions.get(("events", record.partition), 0):
            read[(record.key or b"").decode()] += 1
    known: Counter[str] = Counter()
    for record in state:
        if record.value is None or record.offset >= checkpoint.ends["state", record.partition]:
            continue
        line = json.loads(record.value)
        if line["name"] == "head":
            known[line["key"]] = line["value"]["events"]
    return [key for key in read | known if read[key] != known[key]]


@pytest.mark.nightly
def test_no_checkpoint_has_read_other_events_than_it_has_written(
    kafka: str, kafka_prefix: str, tmp_path: Path
) -> None:
    group = f"{kafka_prefix}group"
    config = written(tmp_path / "w.toml", f"kafka://{kafka}", kafka_prefix, N_PARTITIONS, group)
    is_over = threading.Event()
    sender = threading.Thread(target=send, args=(config, is_over))
    sender.start()
    workers = [Process(config, "--instance", f"w{i}") for i in range(2)]
    checkpoints: list[Checkpoint] = []
    try:
        workers[0].wait_for("batch")
        with busy_machine(4), closing(open_topics(load_deployed(config))) as topics:
            end = monotonic() + STORM_S
            while monotonic() < end:
                checkpoints.append(topics.checkpoint(group))
    finally:
        is_over.set()
        sender.join()
        work_off(config, group)
        for worker in workers:
            worker.process.send_signal(signal.SIGTERM)
        assert [worker.end()[0] for worker in workers] == [0, 0]
    events, state = records(config, "events"), records(config, "state")
    found = [key for one in checkpoints for key in unlike(one, events, state)]
    print(f"{len(checkpoints)} checkpoints, {len(events)} events, {len(found)} keys unlike")
    assert len(checkpoints) > 10
    assert found == []
