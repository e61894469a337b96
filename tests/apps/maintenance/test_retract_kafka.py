"""Labels taken back on a real broker, by a worker that is at work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep, time

import pytest
from click.testing import CliRunner

from connectors.topics import Outgoing
from streamgp.apps.console import Stop
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.apps.worker.process import run_worker
from streamgp.cli.maintenance import retract
from tests.helpers.worker_process import Until

N = 24
N_AFTER = 9


def written(path: Path, url: str, prefix: str, group: str) -> Path:
    path.write_text(
        f'broker = "{url}"\nwarm_up = 0\nseed = 1\n[temporal]\nenabled = false\n'
        f'[challenge]\nrule = "never"\n[topics]\nprefix = "{prefix}"\npartitions = 2\n'
        f'replication = 1\n[worker]\ngroup = "{group}"\n'
        f"state = {json.dumps(str(path.parent / path.stem))}\nleave = true\n"
    )
    with closing(open_topics(load_deployed(path))) as topics:
        topics.create()
    return path


def work(config: Path, group: str, topic: str, values: list[dict[str, object]]) -> None:
    with closing(open_topics(load_deployed(config))) as topics:
        writer = topics.writer("test")
        for value in values:
            key = str(value["key"]).encode()
            writer.send(Outgoing(topic=topic, key=key, value=json.dumps(value).encode()))  # type: ignore[arg-type]
        writer.close()
        assert run_worker(config, Until(topics, group), instance="w") == 0


@contextmanager
def working(config: Path) -> Iterator[None]:
    """Run a worker in parallel with the block."""
    stop = Stop()
    thread = Thread(target=lambda: run_worker(config, stop, instance="w"))
    thread.start()
    try:
        with closing(open_topics(load_deployed(config))) as topics:
            end = monotonic() + 60.0
            while not topics.n_members(load_deployed(config).worker.group):
                assert monotonic() < end, "no worker has begun"
                sleep(0.1)
        yield
    finally:
        stop.signal = "SIGTERM"
        thread.join()


def predictions(config: Path) -> dict[str, object]:
    """Return what is predicted of the events after all; how doubtful it is depends on what is open.

    An event whose label was taken back has none, while its question is not open any longer.
    """
    found = {}
    with (
        closing(open_topics(load_deployed(config))) as topics,
        closing(topics.reader(["predictions"])) as reader,
    ):
        end = monotonic() + 60.0
        while len(found) < N_AFTER:  # the last ones may show later than the positions
            assert monotonic() < end, f"{len(found)} predictions, expected {N_AFTER}"
            for record in reader.poll(0.2):
                said = json.loads(record.value or b"")
                if said["event_id"].startswith("after"):
                    found[said["event_id"]] = said["y"], said["proba"], said["n_learned"]
    return found


def events(prefix: str, n: int, start: float) -> list[dict[str, object]]:
    return [
        {
            "event_id": f"{prefix}{i}",
            "key": f"key{i % 3}",
            "x": {"light": i % 7 + 0.1, "noise": float(i % 5)},
            "occurred_at": start + i,
        }
        for i in range(n)
    ]


def answers(start: float, *, with_bob: bool) -> list[dict[str, object]]:
    return [
        {
            "answer_id": f"a{i}",
            "event_id": f"e{i}",
            "key": f"key{i % 3}",
            "y": ("hall", "den")[i % 7 > 3],
            "annotator": ("ann", "bob")[i % 2],
            "answered_at": start + i + 1.0,
        }
        for i in range(N)
        if with_bob or i % 2 == 0
    ]


# By day test_retract_command.py sees it in a directory; test_kafka_rights.py runs the command.
@pytest.mark.nightly
def test_a_worker_goes_on_as_if_the_annotator_had_never_answered(
    kafka: str, kafka_prefix: str, tmp_path: Path
) -> None:
    group, start = f"{kafka_prefix}group", time() - 600.0
    found = []
    for name, url, prefix in (
        ("one", f"kafka://{kafka}", kafka_prefix),
        ("two", f"file://{tmp_path}/topics", ""),
    ):
        is_kafka = name == "one"
        config = written(tmp_path / f"{name}.toml", url, prefix, group)
        work(config, group, "events", events("e", N, start))
        work(config, group, "answers", answers(start, with_bob=is_kafka))
        if is_kafka:
            words = [str(config), "--annotator", "bob"]
            with working(config):
                for undo in ([], ["--undo"], []):
                    result = CliRunner().invoke(retract, [*words, *undo, "--yes"])
                    assert result.exit_code == 0, result.output
            assert "took back 12 labels of 'bob'" in result.output
        work(config, group, "events", events("after", N_AFTER, start + 100.0))
        found.append(predictions(config))
    assert len(found[0]) == N_AFTER
    assert found[0] == found[1]
