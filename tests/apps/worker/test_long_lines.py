"""An input that is far too long becomes a dead letter, and the worker goes on."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.wire.record_lines import input_of
from tests.helpers.worker_process import ENVIRONMENT, MAIN, Process

PATIENCE_S = 240.0
MIB = 2**20


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    (tmp_path / "worker.toml").write_text(
        f'broker = "file://{tmp_path}/topics"\n[worker]\nstate = "{tmp_path}/state"\n'
    )
    return tmp_path / "topics"


def run(topics: Path, *, until: str) -> list[dict[str, object]]:
    """Run a worker until an event with this name is predicted; return its log."""
    worker = Process(topics.parent / "worker.toml", "--create-topics", "--log-format", "json")
    worker.wait_for("started")
    deadline = time.monotonic() + PATIENCE_S
    with closing(EmbeddedTopics(topics).reader(["predictions"])) as reader:
        while f'"{until}"' not in str([record.value for record in reader.poll(0.1)]):
            assert worker.process.poll() is None, worker.end()
            assert time.monotonic() < deadline, "nothing was predicted in time"
    worker.process.send_signal(signal.SIGTERM)
    status, log = worker.end()
    assert status == 0
    return log


def put(topics: Path, *lines: bytes) -> None:
    made = EmbeddedTopics(topics)
    made.create()
    with closing(made.writer("test")) as writer:
        for line in lines:
            writer.send(input_of(line))


def event(name: str) -> bytes:
    return json.dumps({"event_id": name, "key": "ann", "x": {"light": 0.5}}).encode()


def dead_letters(topics: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "dead-letters", topics.parent / "worker.toml", *arguments],
        env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_line_of_70_mb_is_a_dead_letter_and_the_worker_goes_on_also_after_a_restart(
    topics: Path,
) -> None:
    long = b'{"key":"ann","x":{"' + b"x" * 70_000_000 + b'":1.0}}'
    put(topics, event("before"), long, event("after"))
    run(topics, until="after")
    put(topics, event("later"))
    run(topics, until="later")
    with closing(EmbeddedTopics(topics).reader(["dead-letters"])) as reader:
        [letter] = reader.poll(0.0)
    headers = {name: data.decode() for name, data in letter.headers}
    assert headers["dlq.truncated"] == str(len(long))
    assert headers["dlq.sha256"] == hashlib.sha256(long).hexdigest()
    assert headers["dlq.error"] == f"message must have at most 1048576 bytes, got {len(long)}"
    assert letter.value == long[:MIB]
    assert "1 dead letter" in dead_letters(topics, "list")


def test_the_longest_line_that_is_kept_as_it_is_can_be_listed_whatever_it_holds(
    topics: Path,
) -> None:
    put(topics, *(byte * (16 * MIB - 1) for byte in (b"\x01", b"\xff")), event("after"))
    run(topics, until="after")
    assert "2 dead letters" in dead_letters(topics, "list")
