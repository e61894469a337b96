"""What a command writes of people's answers is its owner's alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.commands import streamgp
from tests.helpers.worker_process import ENVIRONMENT, MAIN


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rooms = ("hall", "den")
    lines = [f"{i % 7 + 4 * (i // 5 % 2)},{i % 3},{rooms[i // 5 % 2]}" for i in range(60)]
    path = tmp_path / "rooms.csv"
    path.write_text("\n".join(["near,far,room", *lines]) + "\n")
    return path


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def done(*arguments: str | Path) -> None:
    result = streamgp(*arguments)
    assert result.exit_code == 0, result.output


def modes(top: Path) -> dict[str, str]:
    found = {path: path.stat().st_mode & 0o777 for path in top.rglob("*")}
    return {str(path.relative_to(top)): f"{mode:o}" for path, mode in found.items()}


@pytest.mark.parametrize(("mask", "file", "folder"), [(0, 0o600, 0o700), (0o277, 0o400, 0o500)])
def test_everything_written_is_its_owners_alone_and_a_strict_umask_stays_strict(
    log: Path, tmp_path: Path, mask: int, file: int, folder: int
) -> None:
    if mask and os.getuid():
        pytest.skip("needs to write into a directory that its mode forbids")
    pytest.importorskip("matplotlib")
    top = tmp_path / "new"
    top.mkdir()
    best = top / "best.toml"
    replay = ["replay", log, "--label", "room", "--state", top / "state" / "deep"]
    with umask(mask):
        done(*replay, "--out", top / "a" / "out", "--report", top / "b" / "page.html")
        done("tune", log, "--label", "room", "--length-scales", "1", "--output", best)
        compare = ["tune", log, "--label", "room", "--compare", best]
        done(*compare, "--picture", top / "curves.svg")
    found = modes(top)
    assert {"a/out/predictions.jsonl", "b/page.html", "best.toml", "curves.svg"} <= found.keys()
    for name, mode in found.items():
        assert mode == f"{folder if (top / name).is_dir() else file:o}", name


def test_a_file_that_is_there_keeps_its_permissions(log: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out", tmp_path / "page.html"
    command = ["replay", log, "--label", "room", "--out", out, "--report", page]
    done(*command)
    for path in (*out.iterdir(), page):
        path.chmod(0o640)
    out.chmod(0o750)
    with umask(0o022):
        done(*command)
    assert set(modes(out).values()) == {"640"}
    assert modes(tmp_path)["page.html"] == "640"
    assert modes(tmp_path)["out"] == "750"


def test_a_report_may_go_to_a_device_or_a_pipe(log: Path) -> None:
    command = ["replay", log, "--label", "room", "--report"]
    done(*command, "/dev/null")
    run = subprocess.run(
        [sys.executable, "-c", MAIN, *command, "/dev/stdout"],
        env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "<!doctype html>" in run.stdout.lower()
