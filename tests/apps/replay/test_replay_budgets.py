"""`streamgp replay` with several budgets: for each key and for all together, and over a cut."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.helpers import commands

PER_KEY = 'rule = "at_most_per"\nn = 2\nspan_s = 50\n'
CONFIG = (
    f'[query]\nrule = "always"\n[budget]\n{PER_KEY}[total_budget]\nrule = "all_of"\n'
    '[[total_budget.budgets]]\nrule = "at_most_per"\nn = 7\nspan_s = 50\n'
    '[[total_budget.budgets]]\nrule = "at_most"\nn = 30\ngives_back = false\n'
    "[annotator]\ndecline_rate = 0.3\ndelay = 5\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    rows = [
        f"{i % 11},{i % 7},{'abcd'[i % 4]},{'up' if i % 11 > 5 else 'down'}" for i in range(240)
    ]
    path.write_text("\n".join(["x,z,who,y", *rows]) + "\n")
    return path


def replay(log: Path, text: str, *options: str | Path) -> Result:
    config = log.with_name("my.toml")
    config.write_text(text)
    return commands.replay(log, "--label", "y", "--config", config, *options)


def predictions(out: Path) -> list[Any]:
    return [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]


def test_no_key_and_not_all_of_them_are_asked_more_than_allowed(log: Path, tmp_path: Path) -> None:
    result = replay(log, CONFIG, "--key", "who", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    asked = [(p["key"], p["at"]) for p in predictions(tmp_path / "out") if p["decision"]["ask"]]
    assert len(asked) == 30
    for limit, who in ((2, "a"), (2, "b"), (7, "abcd")):
        times = [at for key, at in asked if key in who]
        assert max(sum(t <= at < t + 50 for at in times) for t in times) <= limit
    refusals = {p["decision"].get("budget") for p in predictions(tmp_path / "out")}
    assert refusals == {None, "AtMostPer", "total AtMostPer", "total AtMost"}
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["configuration"]["total_budget"]["rule"] == "all_of"
    assert summary["results"]["n_asked"] == 30


def test_limits_of_questions_are_shown_once_as_the_budget(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = replay(log, "[questions]\nper_day = 3\n", "--limit", "20", "--out", out)
    assert result.exit_code == 0, result.output
    settings = json.loads((out / "summary.json").read_text())["configuration"]
    assert settings["budget"] == {"rule": "paced", "n": 3, "span_s": 86400.0, "at_start": 0}
    assert "per_day" not in settings["questions"]


def test_budgets_go_on_where_a_replay_was_cut(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = CONFIG + "[loop]\nmax_keys = 2\n"
    whole = replay(log, text, "--key", "who", "--out", tmp_path / "whole")
    assert whole.exit_code == 0, whole.output
    out, state = tmp_path / "out", tmp_path / "state"
    play = partial(replay, log, text, "--key", "who", "--out", out, "--state", state)
    assert commands.replay_in_pieces(monkeypatch, play, saving_every=5, cutting_every=18) > 36
    for name in ("predictions.jsonl", "requests.jsonl", "consensus.jsonl"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_budget_for_all_keys_needs_keys(log: Path) -> None:
    result = replay(log, CONFIG)
    assert result.exit_code == 2
    assert "total_budget needs a learner for each key, but there is no key column" in result.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[budget]\nrule = "all_of"', "budget.budgets is missing, expected sections"),
        ('[budget]\nrule = "all_of"\nbudgets = []', "budget.budgets = [] is not allowed"),
        (
            '[budget]\nrule = "all_of"\n[[budget.budgets]]\nrule = "all_of"\n',
            'budget.budgets[0].rule = "all_of" is not allowed, expected one of "at_most", '
            '"at_most_per", "rate"',
        ),
        (
            '[budget]\nrule = "all_of"\n[[budget.budgets]]\nrule = "at_most"\nn = -1\n',
            "budget.budgets[0].n = -1 is not allowed, expected a whole number >= 0",
        ),
        ('[total_budget]\nrule = "most"', 'total_budget.rule = "most" is not allowed'),
    ],
)
def test_a_wrong_budget_is_reported_in_one_line(log: Path, text: str, reason: str) -> None:
    result = replay(log, text)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
