"""`streamgp replay` with a rule that learns, over a cut; what the probabilities were worth."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from streamgp.metrics import CalibrationError, Overconfidence
from tests.helpers import commands

CONFIG = """
[query]
rule = "equal_error"
at_least = 0.2
[learner]
name = "{}"
[annotator]
error_rate = 0.1
delay = 3
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    rows = [f"{i % 11 + i % 3},{i % 7},{'ab'[i % 2]},{'up' if i % 11 > 5 else 'down'}"
            for i in range(240)]  # fmt: skip
    path.write_text("\n".join(["x,z,who,y", *rows]) + "\n")
    return path


def replay(log: Path, learner: str, *options: str | Path) -> Result:
    config = log.with_name("my.toml")
    config.write_text(CONFIG.format(learner))
    return commands.replay(log, "--label", "y", "--key", "who", "--config", config, *options)


def predictions(out: Path) -> list[Any]:
    return [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "learner", ["gp", pytest.param("river.naive_bayes.GaussianNB", marks=pytest.mark.nightly)]
)
def test_a_rule_that_learns_goes_on_where_a_replay_was_cut(
    learner: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = replay(log, learner, "--out", tmp_path / "whole")
    assert whole.exit_code == 0, whole.output
    out, state = tmp_path / "out", tmp_path / "state"
    play = partial(replay, log, learner, "--out", out, "--state", state)
    assert commands.replay_in_pieces(monkeypatch, play, saving_every=10, cutting_every=9) > 18
    for name in ("predictions.jsonl", "requests.jsonl", "consensus.jsonl", "summary.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    criteria = {p["decision"]["criterion"] for p in predictions(out)}
    assert criteria == {"EqualErrorAsk"}
    n_asked = sum(p["decision"]["ask"] for p in predictions(out))
    assert 20 < n_asked < 200


def test_the_numbers_are_those_of_the_predictions_written(log: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out", tmp_path / "page.html"
    replay(log, "gp", "--out", out, "--report", page)
    truths = [line.split(",")[-1] for line in log.read_text().splitlines()[1:]]
    over, error = Overconfidence(), CalibrationError()
    for p in predictions(out):
        proba = dict(p["proba"])
        for metric in (over, error):
            metric.update(truths[int(p["event_id"]) - 1], proba)
    found = json.loads((out / "summary.json").read_text())["calibration"]
    assert found["overconfidence"] == pytest.approx(over.get())
    assert found["calibration_error"] == pytest.approx(error.get())
    assert "Calibration error" in page.read_text()


def test_a_run_from_before_there_were_such_numbers_has_a_page(log: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out", tmp_path / "page.html"
    replay(log, "gp", "--out", out)
    summary = json.loads((out / "summary.json").read_text())
    del summary["calibration"]
    (out / "summary.json").write_text(json.dumps(summary))
    result = commands.streamgp("report", out, page)
    assert result.exit_code == 0, result.output
    assert "Calibration error" not in page.read_text()
