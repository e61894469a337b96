"""Raw rows on a real broker, workers that are killed: each window comes out once and whole.

STREAMGP_KILLS says how often a worker is harmed in the long test, 30 times unless it is set.
"""

import math
import os
import random
import time

import pytest

from connectors.memory import MemoryTopics
from connectors.wire.codec import decode
from connectors.wire.outbound import Outbound
from connectors.worker.settings import WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.deployment.deployment import build_loops
from streamgp.config.load import load_worker
from streamgp.interactive.messages import Event
from tests.chaos.processes import HARMS, Workers
from tests.helpers.kafka_cases import opened
from tests.helpers.topics import everything

N_KILLS = int(os.environ.get("STREAMGP_KILLS", "30"))
KEYS = [f"user {n}" for n in range(6)]
TOML = """\
warm_up = 10
[broker]
url = "kafka://{servers}"
[topics]
prefix = "{prefix}"
[worker]
group = "{prefix}g"
state = "{state}"
batch = 200
save_every_s = 1.0
[windows]
length_s = 2.0
hop_s = 1.0
grace_s = 0.5
idle_s = 3600.0
features = ["basic", "dominant_frequency"]
vectors = [["ax", "ay"]]
"""


def rows(seconds):
    """Twenty rows a second of each key, out of order by up to half a second, in blocks."""
    rng = random.Random(7)
    log = []
    for key in KEYS:
        for i in range(20 * seconds):
            t = i / 20
            moves = int(t // 8) % 2
            x = {name: moves * math.sin(9.0 * t) + rng.gauss(0.0, 0.2) for name in ("ax", "ay")}
            at = 1_700_000_000.0 + t
            y = ("rest", "move")[moves] if i % 50 == 0 else None
            event = Event(event_id=f"{key}/{i}", key=key, x=x, occurred_at=at, y=y)
            log.append((t + rng.uniform(0.0, 0.4), event))
    return [event for _, event in sorted(log, key=lambda each: each[0])]


def told_by_key(topics):
    """Return what was predicted and learned of each key, in its order."""
    found = {}
    for name in ("predictions", "consensus"):
        for record in everything(topics, name):
            if record.value is not None:
                message = decode(record.value)
                found.setdefault((name, message.key), []).append(message)
    return found


def expected_of(log, config):
    topics = MemoryTopics(1)
    outbound, writer = Outbound("/test", keyed=True), topics.writer("test")
    for event in log:
        writer.send(outbound.message(event, None))
    writer.close()
    loops = build_loops(load_worker(config), source="test")
    settings = WorkerSettings(group="g", instance="w")
    Worker(topics, loops, settings).run(lambda: not any(topics.lags("g").values()))
    return told_by_key(topics)


def storm(servers, prefix, tmp_path, *, seconds, n_harms, pause_s):
    """Send rows while workers are harmed; compare with one worker that nothing ever befell."""
    config = tmp_path / "w.toml"
    config.write_text(TOML.format(servers=servers, prefix=prefix, state=tmp_path / "state"))
    log, rng = rows(seconds), random.Random(n_harms)
    with opened(servers, prefix, partitions=2) as topics:
        outbound, writer = Outbound("/test", keyed=True), topics.writer("test")
        workers = Workers(config, 2, tmp_path)
        try:
            size = -(-len(log) // (n_harms + 1))
            blocks = [log[i : i + size] for i in range(0, len(log), size)]
            for n, block in enumerate(blocks):
                for event in block:
                    writer.send(outbound.message(event, None))
                writer.flush()
                until = time.monotonic() + pause_s
                while time.monotonic() < until:
                    workers.watch()
                    time.sleep(0.05)
                if n < n_harms:
                    workers.hurt(HARMS[n % 3], rng, 8.0)
            until = time.monotonic() + 120.0
            while any(topics.lags(f"{prefix}g").get(("events", n), 1) for n in (0, 1)):
                assert time.monotonic() < until, workers.tail()
                workers.watch()
                time.sleep(0.2)
            assert workers.n_given_up == 0, workers.tail()
        finally:
            writer.close()
            workers.kill()
        expected = expected_of(log, config)
        found = told_by_key(topics)
        assert found.keys() == expected.keys()
        for name in expected:
            assert found[name] == expected[name], name
        assert not everything(topics, "dead-letters")
    return sum(workers.statuses.values())


# By day tests/connectors/worker/test_worker_windows.py restarts workers anywhere, and
# test_kafka_faults.py kills processes of any kind in their transactions.
@pytest.mark.nightly
def test_windows_are_exact_though_workers_are_killed(kafka, kafka_prefix, tmp_path):
    assert storm(kafka, kafka_prefix, tmp_path, seconds=30, n_harms=3, pause_s=3.0) >= 1


@pytest.mark.nightly
def test_windows_are_exact_in_a_storm(kafka, kafka_prefix, tmp_path):
    ended = storm(kafka, kafka_prefix, tmp_path, seconds=300, n_harms=N_KILLS, pause_s=4.0)
    assert ended >= N_KILLS // 3
