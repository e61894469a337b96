"""`streamgp replay --seeds N`: means over seeds, compared with baselines."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from click.testing import Result

from tests.helpers.commands import replay


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = random.Random(1)
    path = tmp_path / "rooms.csv"
    lines = ["a,b,room"]
    for i in range(120):
        room = (i // 12) % 3
        lines.append(f"{rng.gauss(3.0 * room, 1.0):.3f},{rng.gauss(-room, 1.0):.3f},{'xyz'[room]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def cells(result: Result) -> dict[str, list[str]]:
    """Return the cells of each line of a table, by the name of the line."""
    names = ("skeptical GP", "asked at random", "all labels, clean", "no change", "majority class")
    return {
        name: line.removeprefix(name).split()
        for line in result.stdout.splitlines()
        for name in names
        if line.startswith(name)
    }


def test_one_seed_shows_what_a_replay_shows_and_what_others_do_on_the_same_log(log: Path) -> None:
    options = [log, "--label", "room", "--annotator", "error_rate=0.2"]
    once, seeds = cells(replay(*options)), cells(replay(*options, "--seeds", "1"))
    accuracy, macro_f1, asked, challenges, *_ = seeds["skeptical GP"]
    assert [accuracy, macro_f1, asked, challenges] == once["skeptical GP"][:4]
    for name in ("no change", "majority class"):
        assert seeds[name][:3] == once[name][:3]
    assert seeds["all labels, clean"][2:] == ["120", "0", "0.000"]
    assert 0.5 * float(asked) < float(seeds["asked at random"][2]) < 2.0 * float(asked)
    assert float(seeds["no change"][0]) == pytest.approx(110 / 119, abs=1e-3)


def test_drifts_are_told_for_each_seed(tmp_path: Path) -> None:
    rng, log = random.Random(1), tmp_path / "log.csv"
    lines = ["light,is"]
    for n in range(600):
        light = rng.uniform(-1.0, 1.0)
        lines.append(f"{light:.3f},{('day', 'night')[(light > 0.0) ^ (n >= 300)]}")
    log.write_text("\n".join(lines) + "\n")
    result = replay(log, "--label", "is", "--seeds", "2")
    once = [replay(log, "--label", "is", "--seed", str(seed)).stdout for seed in (1, 2)]
    n_found = [int("1 concept drift found" in said) for said in once]
    assert any(n_found)
    told = f"concept drifts found by skeptical GP, with each seed: {n_found[0]}, {n_found[1]}\n"
    assert told in result.stdout


def test_several_seeds_have_intervals(log: Path) -> None:
    result = replay(
        log,
        "--label",
        "room",
        "--seeds",
        "2",
        "--seed",
        "7",
        "--annotator",
        "error_rate=0.2,seed=1",
    )
    assert result.exit_code == 0, result.output
    found = cells(result)
    accuracies = [
        float(
            cells(replay(log, "--label", "room", "--seed", seed, "--annotator", "error_rate=0.2"))[
                "skeptical GP"
            ][0]
        )
        for seed in ("7", "8")
    ]
    mean, _, half = found["skeptical GP"][:3]
    assert float(mean) == pytest.approx(sum(accuracies) / 2, abs=1e-3)
    # The quantile of Student's distribution with one degree of freedom is 12.7.
    assert float(half) == pytest.approx(12.706 * abs(accuracies[0] - accuracies[1]) / 2, abs=0.01)
    assert "means of 2 seeds" in result.stdout


def test_rows_that_make_no_window_are_refused_with_the_reason(tmp_path: Path) -> None:
    log, windows = tmp_path / "raw.csv", tmp_path / "windows.toml"
    log.write_text("t,a,room\n1,2,x\n2,2,y\n")
    windows.write_text("[windows]\nlength_s = 5\nmin_rows = 4\n[log]\ntime = 't'\n")
    result = replay(log, "--label", "room", "--config", windows, "--seeds", "2")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "make no window: the time must be in seconds, and a window has at least" in result.stderr
    assert f"Error: the rows of {log} make no window; see the notes above" in result.stderr


def test_rejected_rows_are_told_once(log: Path) -> None:
    log.write_text(log.read_text() + "much,0.5,x\n")
    result = replay(log, "--label", "room", "--seeds", "2")
    assert (result.exit_code, result.stderr.count("rejected ")) == (0, 1)
    assert "'a' must be a number or empty, got 'much'" in result.stderr


def test_the_last_seed_is_one_that_a_run_can_have(log: Path) -> None:
    result = replay(log, "--label", "room", "--seed", "4294967295", "--seeds", "2")
    assert result.exit_code == 2
    assert "the last of 2 seeds starting at 4294967295 exceeds 4294967295" in result.stderr


def test_seeds_write_no_files(log: Path, tmp_path: Path) -> None:
    for option in ("--out", "--report", "--state"):
        result = replay(log, "--label", "room", "--seeds", "2", option, tmp_path / "there")
        assert result.exit_code == 2
        assert "leave out --out, --report and --state" in result.output


def test_a_log_that_can_be_read_only_once_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = replay(pipe, "--label", "room", "--seeds", "2")
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {pipe} cannot be read a second time, which --seeds needs; save it to a file "
        "first\n"
    )
