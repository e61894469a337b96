"""A backup of a real broker with a worker under load, restored on Kafka and in a directory."""

from __future__ import annotations

import json
import random
import signal
import threading
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep, time

from click.testing import CliRunner

from connectors.kafka.client import Connection
from connectors.storage.backups import MANIFEST
from connectors.topics import ALL_TOPICS, Outgoing, Record, TopicName, partition_of
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.apps.worker.process import run_worker
from streamgp.cli.maintenance import backup, restore
from tests.helpers.kafka_cases import extend
from tests.helpers.topics import everything, wait_until, write
from tests.helpers.worker_process import Process, Until

N_KEYS = 9
N_AFTER = 150


def work_off(config: Path, group: str) -> None:
    """Wait until nothing waits for the workers of a group."""
    with closing(open_topics(load_deployed(config))) as topics:
        until = Until(topics, group)
        while not until():
            sleep(0.2)


def written(path: Path, url: str, prefix: str, n_partitions: int, group: str) -> Path:
    path.write_text(
        f'broker = "{url}"\nwarm_up = 5\nseed = 1\n'
        f'[topics]\nprefix = "{prefix}"\npartitions = {n_partitions}\nreplication = 1\n'
        f'[worker]\ngroup = "{group}"\nstate = {json.dumps(str(path.parent / path.stem))}\n'
        "leave = true\n"
    )
    with closing(open_topics(load_deployed(path))) as topics:
        topics.create()
    return path


def records(config: Path, name: TopicName) -> list[Record]:
    with closing(open_topics(load_deployed(config))) as topics:
        return everything(topics, name)


def predictions(config: Path, n: int) -> dict[str, bytes]:
    """Read `n` predictions: a broker may show the last ones later than the positions."""
    end = monotonic() + 60.0
    while len(found := records(config, "predictions")) < n:
        assert monotonic() < end, f"{len(found)} predictions, expected {n}"
        sleep(0.2)
    return {json.loads(r.value or b"")["event_id"]: r.value or b"" for r in found}


def called(*words: object) -> str:
    command = backup if words[0] == "backup" else restore
    result = CliRunner().invoke(command, [str(word) for word in words[1:]])
    assert result.exit_code == 0, result.output
    return result.output


def send(config: Path, is_over: threading.Event) -> None:
    """Send events, 200 a second, until told to end."""
    rng = random.Random(3)
    with closing(open_topics(load_deployed(config))) as topics:
        writer = topics.writer("test")
        i, start = 0, time()
        n_last = None
        while n_last is None or i < n_last:
            if n_last is None and is_over.is_set():
                n_last = i + N_AFTER
            key = f"key{i % N_KEYS}"
            x = {"light": rng.random(), "noise": rng.random()}
            value = {"event_id": f"e{i}", "key": key, "x": x, "occurred_at": start + i / 1e3}
            if i < 40 * N_KEYS:
                value["y"] = ("hall", "den")[x["light"] > 0.5]
            data = json.dumps(value).encode()
            writer.send(Outgoing(topic="events", key=key.encode(), value=data))
            writer.flush()
            i += 1
            sleep(0.005)
        writer.close()


def test_a_backup_under_load_is_restored_on_kafka_and_in_a_directory(
    kafka: str, kafka_prefix: str, tmp_path: Path
) -> None:
    group = f"{kafka_prefix}group"
    config = written(tmp_path / "one.toml", f"kafka://{kafka}", kafka_prefix, 3, group)
    is_over = threading.Event()
    sender = threading.Thread(target=send, args=(config, is_over))
    sender.start()
    worker = Process(config)
    try:
        worker.wait_for("batch")
        wait_until(
            lambda: len({r.key for r in records(config, "predictions")}) == N_KEYS, pause_s=0.2
        )
        start = monotonic()
        said = called("backup", config, tmp_path / "backup")
        assert f"{N_KEYS} learners with" in said
        print(f"{said.strip()}, in {monotonic() - start:.1f} s")
    finally:
        is_over.set()
        sender.join()
        work_off(config, group)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.end()[0] == 0
    events = records(config, "events")
    expected = predictions(config, len(events))
    positions = json.loads((tmp_path / "backup" / MANIFEST).read_text())["positions"]["events"]
    left = [r for r in events if r.offset >= positions[str(r.partition)]]
    assert N_AFTER <= len(left) < len(expected)

    for name, url, prefix, n_partitions in (
        ("two", f"kafka://{kafka}", f"{kafka_prefix}two-", 2),
        ("three", f"file://{tmp_path}/topics", "", 1),
    ):
        other = written(tmp_path / f"{name}.toml", url, prefix, n_partitions, group)
        assert "now start the workers" in called("restore", other, tmp_path / "backup", "--yes")
        with closing(open_topics(load_deployed(other))) as topics:
            write(topics, *(Outgoing(topic="events", key=r.key, value=r.value) for r in left))
            assert run_worker(other, Until(topics, group), instance="w") == 0
        found = predictions(other, len(left))
        assert len(found) == len(left)
        assert found == {event_id: expected[event_id] for event_id in found}


def test_more_partitions_change_nothing_in_a_backup(
    kafka: str, kafka_prefix: str, tmp_path: Path
) -> None:
    """Workers refuse such topics; what was learned moves into new ones."""
    group = f"{kafka_prefix}group"
    url = f"kafka://{kafka}"
    config = written(tmp_path / "one.toml", url, kafka_prefix, 2, group)
    with closing(open_topics(load_deployed(config))) as topics:
        values = [
            {"event_id": f"e{i}", "x": {"light": i / 20}, "y": "hall", "occurred_at": time()}
            for i in range(20)
        ]
        keys = [f"key{i % N_KEYS}".encode() for i in range(20)]
        for key, value in zip(keys, values, strict=True):
            write(topics, Outgoing(topic="events", key=key, value=json.dumps(value).encode()))
        assert run_worker(config, Until(topics, group), instance="w") == 0
    called("backup", config, tmp_path / "before")
    admin = Connection(kafka).admin()
    extend(admin, 3, *(f"{kafka_prefix}{name}" for name in ALL_TOPICS))
    admin.close()
    called("backup", config, tmp_path / "after")
    before, after = (
        json.loads((tmp_path / name / MANIFEST).read_text()) for name in ("before", "after")
    )
    same = ("n_partitions", "positions", "files", "configuration")
    assert [after[name] for name in same] == [before[name] for name in same]

    other = written(tmp_path / "two.toml", url, f"{kafka_prefix}two-", 3, group)
    assert "restored to 3 partitions" in called("restore", other, tmp_path / "after", "--yes")
    assert {
        (r.key.split(b"\x1f")[0], r.partition) for r in records(other, "consensus") if r.key
    } == {(key, partition_of(key, 3)) for key in keys}
