"""A deployment used as people use it: commands that succeed, a worker, and contents of topics."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from connectors.storage.snapshots import StateDirectory
from connectors.topics import TopicName, Topics
from connectors.wire.codec import decode
from connectors.worker.settings import WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.apps.worker.process import build_loops
from tests.helpers.deskwork import program
from tests.helpers.topics import everything


def run(command: str, config: Path, *options: str, lines: str = "") -> str:
    """Run a command, with lines typed at its prompts, and return its output."""
    result = CliRunner().invoke(program, [command, str(config), *options], input=lines)
    assert result.exit_code == 0, result.output
    return result.stderr


def placed(topics: Topics, name: TopicName) -> list[tuple[int, Any]]:
    """Return the messages of a topic, each with its partition."""
    records = everything(topics, name)
    return [(record.partition, decode(record.value)) for record in records if record.value]


def work(config: Path, is_done: Callable[[Topics], bool], patience_s: float = 120.0) -> None:
    """Run a worker until a condition holds; each starts from what the last one left."""
    found, latest = load_deployed(config), time.monotonic() + patience_s

    def is_over() -> bool:
        assert time.monotonic() < latest, f"the condition does not hold after {patience_s} s"
        return is_done(topics)

    with closing(open_topics(found)) as topics:
        settings = WorkerSettings(group=found.worker.group, instance="one")
        state = StateDirectory(config.parent / "state")
        try:
            worker = Worker(topics, build_loops(found, source="worker.toml"), settings, state=state)
            worker.run(is_over)
        finally:
            state.close()
