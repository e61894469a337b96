"""The table of labels from a real broker, while a worker is at work and afterwards."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from time import time
from typing import Any

from click.testing import CliRunner

from connectors.topics import Outgoing
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.cli.maintenance import labels
from tests.apps.maintenance.test_retract_kafka import N, answers, events, work, working, written
from tests.helpers.topics import write


def rows(config: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(labels, [str(config), "--format", "jsonl"])
    assert (result.exit_code, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_the_table_is_the_same_beside_a_worker_and_after_it(
    kafka: str, kafka_prefix: str, tmp_path: Path
) -> None:
    config = written(
        tmp_path / "kafka.toml", f"kafka://{kafka}", kafka_prefix, f"{kafka_prefix}group"
    )
    start = time() - 600.0
    given = answers(start, with_bob=True)
    work(config, f"{kafka_prefix}group", "events", events("e", N, start))
    work(config, f"{kafka_prefix}group", "answers", given)
    with working(config):
        beside = rows(config)
    assert rows(config) == beside
    assert [(row["event_id"], row["key"], row["label"], row["annotator"]) for row in beside] == [
        (answer["event_id"], answer["key"], answer["y"], answer["annotator"]) for answer in given
    ]
    assert [row["learned_at"] for row in beside] == [answer["answered_at"] for answer in given]
    with closing(open_topics(load_deployed(config))) as topics:
        write(topics, Outgoing(topic="consensus", key=b"key1", value=None))
    assert rows(config) == [row for row in beside if row["key"] != "key1"]
