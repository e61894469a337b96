"""The circle on a real broker: a log is sent, a worker asks, a person and a simulation answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from deskwork import program

from connectors.records import TopicName, Topics
from connectors.wire.codec import decode
from connectors.worker.worker import Worker, WorkerSettings
from streamgp.cli.deployment.deployed import load_deployed, open_topics
from streamgp.cli.worker.running import build_loops

N_ROWS, N_KEYS = 24, 4


@pytest.fixture
def config(kafka: str, kafka_prefix: str, tmp_path: Path) -> Path:
    """A deployment that asks about everything, and a log."""
    path = tmp_path / "worker.toml"
    state = json.dumps(str(tmp_path / "state"))
    path.write_text(
        f'broker = "kafka://{kafka}"\nwarm_up = 0\n'
        f'[topics]\nprefix = "{kafka_prefix}"\npartitions = 2\nreplication = 1\n'
        f'[worker]\ngroup = "{kafka_prefix}group"\nstate = {state}\n'
        '[query]\nrule = "always"\n[challenge]\nrule = "never"\n'
        '[log]\nlabel = "room"\nkey = "who"\n'
    )
    rows = [f"{i % 5},k{i % N_KEYS},{('den', 'hall')[i % 5 > 2]}" for i in range(N_ROWS)]
    (tmp_path / "rooms.csv").write_text("\n".join(["wap,who,room", *rows]) + "\n")
    with closing(open_topics(load_deployed(path))) as topics:
        topics.create()
    return path


def run(command: str, config: Path, *options: str, lines: str = "") -> str:
    result = CliRunner().invoke(program, [command, str(config), *options], input=lines)
    assert result.exit_code == 0, result.output
    return result.stderr


def said(topics: Topics, name: TopicName) -> list[Any]:
    with closing(topics.reader([name])) as reader:
        records = []
        while not reader.caught_up:
            records += reader.poll(0.5)
    return [(record.partition, decode(record.value)) for record in records if record.value]


def work(config: Path, is_done: Callable[[Topics], bool]) -> None:
    """Let a worker work until something is so."""
    found = load_deployed(config)
    with closing(open_topics(found)) as topics:
        settings = WorkerSettings(group=found.worker.group, instance="one")
        worker = Worker(topics, build_loops(found, source="worker.toml"), settings)
        worker.run(lambda: is_done(topics))


def test_log_is_sent_asked_about_answered_and_learned(config: Path) -> None:
    assert run("send", config, str(config.parent / "rooms.csv")).startswith("24 events sent")
    work(config, lambda topics: len(said(topics, "requests")) == N_ROWS)
    assert "2 answers given" in run("annotate", config, "--as", "ann", lines="n spa\nd\n")
    told = run("annotate", config, "--simulate", "", "--stop-when-idle", "3")
    assert told.splitlines()[-1].startswith(f"{N_ROWS - 2} answers, 0 of them to challenges")
    work(config, lambda topics: len(said(topics, "consensus")) == N_ROWS - 1)
    with closing(open_topics(load_deployed(config))) as topics:
        requests, answers = said(topics, "requests"), said(topics, "answers")
        learned = [line for _, line in said(topics, "consensus")]
        assert said(topics, "dead-letters") == []
    home = {(request.key, request.event_id): partition for partition, request in requests}
    assert all(home[answer.key, answer.event_id] == partition for partition, answer in answers)
    assert sorted(line.y for line in learned if line.annotator == "ann") == ["spa"]
    assert all(
        line.y == ("den" if (int(line.event_id) - 1) % 5 < 3 else "hall")
        for line in learned
        if line.annotator == "simulated"
    )
