"""The circle on a real broker: a log is sent, a worker asks, a person and a simulation answer."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from streamgp.apps.deployment.deployment import load_deployed, open_topics
from tests.helpers.round_trip import placed, run, work
from tests.helpers.topics import said

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


def test_log_is_sent_asked_about_answered_and_learned(config: Path) -> None:
    assert run("send", config, str(config.parent / "rooms.csv")).startswith("24 events sent")
    work(config, lambda topics: len(said(topics, "requests")) == N_ROWS)
    assert "2 answers given" in run("annotate", config, "--as", "ann", lines="n spa\nd\n")
    told = run("annotate", config, "--simulate", "", "--stop-when-idle", "3")
    assert told.splitlines()[-1].startswith(f"{N_ROWS - 2} answers, 0 of them to challenges")
    work(config, lambda topics: len(said(topics, "consensus")) == N_ROWS - 1)
    with closing(open_topics(load_deployed(config))) as topics:
        requests, answers = placed(topics, "requests"), placed(topics, "answers")
        learned = said(topics, "consensus")
        assert said(topics, "dead-letters") == []
    home = {(request.key, request.event_id): partition for partition, request in requests}
    assert all(home[answer.key, answer.event_id] == partition for partition, answer in answers)
    assert sorted(line.y for line in learned if line.annotator == "ann") == ["spa"]
    assert all(
        line.y == ("den" if (int(line.event_id) - 1) % 5 < 3 else "hall")
        for line in learned
        if line.annotator == "simulated"
    )
