"""`streamgp replay --target number`: the same for targets that are numbers."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from streamgp.common.normal import Normal
from streamgp.metrics import CRPS, NPLL
from tests.helpers.commands import replay, streamgp

ANNOTATOR = "error_rate=0.15,noise=0.5,states_noise=true,delay=90"


def written(path: Path, n: int = 150) -> Path:
    rng = random.Random(1)
    lines = ["a,b,who,t,level"]
    for i in range(n):
        a, b = rng.uniform(-3.0, 3.0), rng.uniform(-3.0, 3.0)
        level = 20.0 + 10.0 * math.sin(a) + 3.0 * b
        lines.append(f"{a:.4f},{b:.4f},{'ab'[i % 2]},{30 * i},{'' if i == 7 else f'{level:.3f}'}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "levels.csv")


ASKING = "warm_up = 20\n[learner]\nnoise_variance = 0.05\n[budget]\nrule = 'unlimited'\n"


def config(tmp_path: Path, text: str = ASKING) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(text)
    return path


def read(directory: Path, name: str) -> list[Any]:
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]


def test_numbers_are_predicted_asked_for_and_contested(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = replay(
        log, "--label", "level", "--time", "t", "--ignore", "who", "--target", "number",
        "--annotator", ANNOTATOR, "--config", config(tmp_path), "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "mean abs." in result.stdout
    assert "NMSE" in result.stdout
    assert "accuracy" not in result.stdout
    summary = json.loads((out / "summary.json").read_text())
    results = summary["results"]
    assert summary["configuration"]["target"] == "number"
    assert summary["configuration"]["query"] == {"rule": "variance", "threshold": 0.0}
    assert summary["configuration"]["challenge"] == {"rule": "outside_interval", "level": 0.99}
    assert results["n_asked"] == 150
    assert results["n_declined"] == 1
    assert results["nmse"] < 0.5
    assert results["challenge_precision"] > 0.6
    assert results["n_repaired"] > 10
    assert "accuracy" not in results
    assert summary["curve"]["mae"][-1] == results["mae"]
    predictions = read(out, "predictions.jsonl")
    assert predictions[-1]["mean"] == predictions[-1]["y"]["float"]
    assert predictions[-1]["std"] > 0.0
    answers = read(out, "answers.jsonl")
    assert {answer.get("std") for answer in answers if not answer.get("declined")} == {0.5}


def test_the_error_is_that_of_the_predictions_written(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    replay(log, "--label", "level", "--target", "number", "--ignore", "who,t", "--out", out)
    truths = [line.split(",")[-1] for line in log.read_text().splitlines()[1:]]
    pairs = [
        (float(truths[int(p["event_id"]) - 1]), p["mean"])
        for p in read(out, "predictions.jsonl")
        if p.get("mean") is not None and truths[int(p["event_id"]) - 1]
    ]
    results = json.loads((out / "summary.json").read_text())["results"]
    mean = sum(truth for truth, _ in pairs) / len(pairs)
    squares = sum((truth - guess) ** 2 for truth, guess in pairs)
    assert results["n_scored"] == len(pairs)
    assert results["mae"] == pytest.approx(sum(abs(t - g) for t, g in pairs) / len(pairs))
    assert results["nmse"] == pytest.approx(squares / sum((t - mean) ** 2 for t, _ in pairs))


def test_the_scores_of_distributions_are_those_of_the_predictions_written(
    log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    replay(log, "--label", "level", "--target", "number", "--ignore", "who,t", "--out", out)
    truths = [line.split(",")[-1] for line in log.read_text().splitlines()[1:]]
    crps, npll = CRPS(), NPLL()
    for p in read(out, "predictions.jsonl"):
        truth = truths[int(p["event_id"]) - 1]
        if p.get("std") and truth:
            for metric in (crps, npll):
                metric.update(float(truth), Normal(mu=p["mean"], sigma=p["std"]))
    scores = json.loads((out / "summary.json").read_text())["distributions"]
    assert scores["crps"] == pytest.approx(crps.get())
    # Its unit is the standard deviation of all truths, the first one included.
    assert scores["npll"] == pytest.approx(npll.get(), abs=0.02)
    assert 0.5 < scores["coverage"] < 1.0


def test_every_key_has_its_own_line_and_the_page_shows_errors(log: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = replay(
        log, "--label", "level", "--key", "who", "--ignore", "t", "--target", "number",
        "--annotator", ANNOTATOR, "--report", page,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    table = result.stdout.splitlines()
    assert [line.split()[0] for line in table if line[:2] in ("a ", "b ")] == ["a", "b"]
    text = page.read_text()
    assert "Mean absolute error" in text
    assert "Confusion matrix" not in text
    assert "NPLL" in text
    assert "Macro F1" not in text


def test_a_replay_that_was_cut_ends_with_the_same_files(log: Path, tmp_path: Path) -> None:
    def run(name: str, *limits: int) -> Path:
        out = tmp_path / name
        for limit in limits:
            part = tmp_path / f"{name}.csv"
            part.write_text(log.read_text())
            state = tmp_path / f"{name}-state"
            result = replay(
                part, "--label", "level", "--ignore", "who", "--time", "t", "--target", "number",
                "--annotator", ANNOTATOR, "--out", out, "--state", state, "--limit", str(limit),
            )  # fmt: skip
            assert result.exit_code == 0, result.output
        return out

    whole, again = run("whole", 100), run("again", 100, 100)
    for name in ("predictions.jsonl", "requests.jsonl", "answers.jsonl", "consensus.jsonl"):
        assert (again / name).read_bytes() == (whole / name).read_bytes()


def test_a_label_that_is_no_number_is_a_row_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("a,level\n1,2.5\n2,many\n3,true\n4,7\n")
    result = replay(path, "--label", "level", "--target", "number")
    assert result.exit_code == 0
    assert "label 'level' must be a number or empty, got 'many'" in result.stderr
    assert "label 'level' must be a number, got 'true'" in result.stderr
    assert "2 events, 0 answers, 0 declined, 0 expired, 2 rejected" in result.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            'target = "numbers"',
            'target = "numbers" is not allowed, expected one of "label", "number"',
        ),
        ('preset = "paper"\ntarget = "number"', 'preset = "paper" is not allowed with target'),
        (
            'target = "number"\n[query]\nrule = "entropy"\nthreshold = 0.5',
            'query.rule = "entropy" is not allowed with target = "number", expected one of '
            '"always", "never", "random", "variance", "kl", "deterministic"',
        ),
        (
            'target = "number"\n[challenge]\nrule = "paper"',
            'challenge.rule = "paper" is not allowed with target = "number", expected one of '
            '"skeptical", "never", "outside_interval"',
        ),
        (
            'target = "number"\n[review]\nrule = "leave_one_out"\n[learner]\nname = "ensemble"',
            'review.rule = "leave_one_out" is not allowed with learner.name = "ensemble", which',
        ),
        (
            'target = "number"\n[reservoir]\nrule = "latest"',
            'reservoir.rule = "latest" is not allowed with target = "number", expected "never"',
        ),
        ('[challenge]\nrule = "outside_interval"', "is for numbers; it needs target"),
        ("[annotator]\nnoise = 0.5", "annotator.noise is for numbers; it needs target"),
        (
            'target = "number"\n[annotator]\nclasses = ["a"]',
            'annotator.classes is not allowed with target = "number"',
        ),
        (
            'target = "number"\n[annotators.ann]\ntiring_rate = 0.1',
            "annotators.ann.tiring_rate is not allowed",
        ),
        (
            'target = "number"\n[annotator]\nstates_noise = true',
            "annotator.states_noise needs a noise above 0",
        ),
        (
            'target = "number"\n[learner]\nname = "river.naive_bayes.GaussianNB"',
            "is not a River regressor",
        ),
        (
            '[learner]\nname = "river.tree.HoeffdingTreeRegressor"',
            "is not a River classifier",
        ),
    ],
)
def test_settings_for_the_other_kind_of_target_are_refused(
    log: Path, tmp_path: Path, text: str, reason: str
) -> None:
    result = replay(log, "--label", "level", "--config", config(tmp_path, text))
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_rules_of_the_file_are_judged_by_the_target_of_the_command_line(
    log: Path, tmp_path: Path
) -> None:
    text = '[challenge]\nrule = "outside_interval"\n[annotator]\nnoise = 0.5'
    options = (log, "--label", "level", "--limit", "20", "--config", config(tmp_path, text))
    assert replay(*options, "--target", "number").exit_code == 0
    refused = replay(*options)
    assert refused.exit_code == 2
    assert "annotator.noise is for numbers" in refused.stderr


def test_any_regressor_of_river_can_be_used(log: Path, tmp_path: Path) -> None:
    text = (
        'target = "number"\nwarm_up = 20\n[learner]\nname = "river.tree.HoeffdingTreeRegressor"\n'
        '[learner.options]\ngrace_period = 20\n[challenge]\nrule = "skeptical"\nthreshold = 0.5\n'
        '[budget]\nrule = "rate"\nrate = 0.2\n'
    )
    result = replay(log, "--label", "level", "--ignore", "who", "--config", config(tmp_path, text))
    assert result.exit_code == 0, result.output
    assert "HoeffdingTreeRegressor" in result.stdout


def test_hyperparameters_of_numbers_are_not_searched(log: Path) -> None:
    settings = config(log.parent, 'target = "number"')
    result = streamgp("tune", log, "--label", "level", "--config", settings)
    assert result.exit_code == 2
    assert 'tune works for labels only, got target = "number"' in result.stderr


@pytest.mark.parametrize(
    "rule", ['"variance"', '"kl"\nleast_weight = 0.01', '"deterministic"'], ids=lambda r: r[:4]
)
@pytest.mark.parametrize("target", ["number", "label"])
def test_an_ensemble_is_asked_about_by_its_rules_at_a_rate(
    rule: str, target: str, log: Path, tmp_path: Path
) -> None:
    text = f"""
    warm_up = 20
    target = "{target}"
    [learner]
    name = "ensemble"
    [learner.options]
    n_features = 10
    [query]
    rule = {rule}
    [budget]
    rule = "rate"
    rate = 0.3
    """
    out, label = tmp_path / "out", "level" if target == "number" else "who"
    result = replay(
        log, "--label", label, "--ignore", "t,who,level".replace(label, "t"),
        "--config", config(tmp_path, text), "--out", out, "--report", out / "page.html",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "skeptical ensemble" in result.stdout
    results = json.loads((out / "summary.json").read_text())["results"]
    assert results["n_asked"] == pytest.approx(45, abs=5)
    assert "ensemble of Gaussian processes" in (out / "page.html").read_text()
