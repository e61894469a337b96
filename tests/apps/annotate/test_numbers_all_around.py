"""Numbers all around, in a directory and on a real broker: sent, asked about, answered, learned."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.apps.worker.process import build_loops
from tests.helpers.round_trip import run, work
from tests.helpers.topics import said

N_ROWS, N_ASKED = 30, 20


# By day test_annotate_kafka.py does the same with labels.
@pytest.fixture(params=["file", pytest.param("kafka", marks=pytest.mark.nightly)])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A deployment that asks about numbers, twenty of all keys together, and a log."""
    prefix, broker = "", f"file://{tmp_path}/topics"
    if request.param == "kafka":
        broker = f"kafka://{request.getfixturevalue('kafka')}"
        prefix = request.getfixturevalue("kafka_prefix")
    path = tmp_path / "worker.toml"
    path.write_text(
        f'broker = "{broker}"\nwarm_up = 0\ntarget = "number"\n'
        f'[topics]\nprefix = "{prefix}"\npartitions = 1\nreplication = 1\n'
        f'[worker]\ngroup = "{prefix}group"\n'
        f'[budget]\nrule = "unlimited"\n[total_budget]\nrule = "at_most"\nn = {N_ASKED}\n'
        '[log]\nlabel = "level"\nkey = "who"\n'
    )
    rows = [f"{i % 7},k{i % 3},{20.5 + i % 7}" for i in range(N_ROWS)]
    (tmp_path / "rows.csv").write_text("\n".join(["wap,who,level", *rows]) + "\n")
    with closing(open_topics(load_deployed(path))) as topics:
        topics.create()
    return path


def test_numbers_are_sent_asked_about_answered_and_learned(config: Path) -> None:
    assert run("send", config, str(config.parent / "rows.csv")).startswith("30 events sent")
    work(config, lambda topics: len(said(topics, "predictions")) == N_ROWS)
    told = run("annotate", config, "--as", "ann", lines="20.5 +- 0.25\nd\n")
    assert "2 answers given" in told
    run("annotate", config, "--simulate", "noise=0.1", "--stop-when-idle", "3")
    # What was declined is given back, and nothing more comes that could be asked about.
    work(config, lambda topics: len(said(topics, "consensus")) == N_ASKED - 1)
    with closing(open_topics(load_deployed(config))) as topics:
        requests, answers = said(topics, "requests"), said(topics, "answers")
        learned, predictions = said(topics, "consensus"), said(topics, "predictions")
        events = said(topics, "events")
        assert said(topics, "dead-letters") == []
    assert len(requests) == len(answers) == N_ASKED
    assert {p.decision.budget for p in predictions} == {None, "total AtMost"}
    truths = {event.event_id: event.truth for event in events}
    assert set(map(type, truths.values())) == {float}
    assert [(line.y, line.std) for line in learned if line.annotator == "ann"] == [(20.5, 0.25)]
    assert all(abs(line.y - truths[line.event_id]) < 1.0 for line in learned)


def test_a_configuration_without_keys_has_no_budget_for_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "worker.toml"
    path.write_text(
        'broker = "file://t"\n[worker]\nkeyed = false\n[total_budget]\nrule = "at_most"\nn = 3\n'
    )
    with pytest.raises(ValueError, match=r"total_budget needs a learner for each key"):
        build_loops(load_deployed(path), source="worker.toml")
