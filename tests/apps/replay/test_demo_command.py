"""`streamgp demo`: five learners, one table, a picture if it can be drawn."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from streamgp.apps.replay import demo as rooms
from streamgp.apps.replay import demo as walks
from streamgp.apps.replay.demo import LEARNERS, raw_demo, room_events, run_learners
from streamgp.apps.replay.engine import EventSource
from streamgp.datasets import WiFiRooms
from tests.helpers.commands import streamgp

demo = partial(streamgp, "demo")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of 60 readings, for what does not depend on the numbers."""
    monkeypatch.setattr(rooms, "room_events", lambda _n: room_events(60))


def hide_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        return None if name == "matplotlib" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)


@pytest.mark.usefixtures("short")  # that of the whole log is in the tutorial
def test_table_fits_80_columns_and_cuts_no_name() -> None:
    result = demo()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(cell_len, lines)) <= 80
    for name in LEARNERS:
        assert sum(line.startswith(name) for line in lines) == 1
    assert "…" not in result.stdout
    assert result.stderr == ""


def test_skeptical_gp_reaches_what_it_must() -> None:
    runs = run_learners(seed=1, learners=dict(list(LEARNERS.items())[:2])).values()
    skeptical, never = (run.statistics for run in runs)
    assert skeptical.accuracy is not None
    assert never.accuracy is not None
    assert skeptical.accuracy >= 0.93
    assert skeptical.n_asked <= 300
    assert skeptical.accuracy >= never.accuracy + 0.02
    questions = skeptical.n_asked + skeptical.n_challenges
    assert questions <= 1.3 * (never.n_asked + never.n_challenges)
    assert skeptical.wrong_kept is not None
    assert skeptical.wrong_kept <= 0.08
    assert (never.n_challenges, never.challenge_precision) == (0, None)


def test_events_are_the_whole_log_in_recorded_order() -> None:
    events = room_events()
    assert [(event.x, event.truth) for event in events] == list(WiFiRooms())
    assert [event.occurred_at for event in events] == [float(i) for i in range(1, 2001)]


def test_same_seed_gives_the_same_runs() -> None:
    first, second = (run_learners(seed=3, n_events=150) for _ in range(2))
    assert list(first) == list(second)
    for one, other in zip(first.values(), second.values(), strict=True):
        assert one.points.summary() == other.points.summary()
        assert one.statistics.n_asked == other.statistics.n_asked


def test_curve_ends_with_the_numbers_of_the_table() -> None:
    first = dict(list(LEARNERS.items())[:1])
    [run] = run_learners(seed=1, n_events=600, learners=first).values()
    curve = run.points.curve("skeptical GP")
    assert curve.n_events[-1] == 600
    assert curve.accuracy[-1] == run.statistics.accuracy
    questions = run.statistics.n_asked + run.statistics.n_challenges
    # What the last event itself brings about is asked after the point is drawn.
    assert questions - 2 <= curve.questions[-1] <= questions


def test_progress_grows_to_one() -> None:
    seen: list[tuple[str, float]] = []
    run_learners(n_events=30, on_progress=lambda name, share: seen.append((name, share)))
    assert [share for _, share in seen] == sorted(share for _, share in seen)
    assert seen[-1][1] == 1.0
    assert list(dict.fromkeys(name for name, _ in seen)) == list(LEARNERS)


@pytest.mark.usefixtures("short")
def test_picture_is_drawn_where_it_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = demo("--picture", "curves.svg")
    assert result.exit_code == 0
    assert "Learning curves: curves.svg" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["curves.svg"]


@pytest.mark.usefixtures("short")
def test_nothing_is_written_unasked(tmp_path: Path) -> None:
    assert demo().exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_picture_without_matplotlib_is_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hide_matplotlib(monkeypatch)
    result = demo("--picture", "curves.png")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "Error: --picture needs matplotlib; install it with: pip install matplotlib\n"
    )


def test_picture_of_unknown_format_is_refused_before_the_work() -> None:
    result = demo("--picture", "curves.gif")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--picture must end in one of .png, .svg, .pdf, got 'curves.gif'" in result.stderr


def test_picture_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = demo("--picture", "missing/curves.png")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"Error: cannot write missing/curves.png: there is no directory {tmp_path / 'missing'}\n"
    )


def test_raw_rows_are_played_as_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "raw_demo", partial(raw_demo, n_windows=70))
    result = demo("--raw", "--seed", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("17501 rows of acceleration, 50 a second, make 70 windows")
    lines = result.stdout.splitlines()
    assert max(map(cell_len, lines)) <= 80
    rows = [(line[:10].strip(), line[10:]) for line in lines if "truth" in line or "pred" in line]
    assert [(name, len(letters)) for name, letters in rows] == [
        ("truth", 60),
        ("predicted", 60),
        ("truth", 10),
        ("predicted", 10),
    ]
    truth, predicted = ("".join(letters for _, letters in rows[i::2]) for i in (0, 1))
    assert sum(map(str.__eq__, truth, predicted)) > 0.6 * 70
    n_asked = sum(line.count("?") for line in lines if line.startswith("asked"))
    assert re.search(rf"^skeptical GP +[\d.]+ +[\d.]+ +{n_asked} ", result.stdout, re.M)


@pytest.mark.parametrize("option", ["--picture=x.png", "--write=x.csv"])
def test_what_the_raw_demo_has_not_is_refused(option: str) -> None:
    result = demo("--raw", option)
    assert result.exit_code == 2
    assert f"--raw plays a walk; leave out {option.partition('=')[0]}" in result.stderr


@pytest.mark.parametrize("seed", ["-1", "x", "1.5", "99999999999"])
def test_wrong_seed_is_one_line(seed: str) -> None:
    result = demo("--seed", seed)
    assert result.exit_code == 2
    assert "Invalid value for '--seed'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_ctrl_c_shows_what_was_done_and_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    events = room_events(60)
    calls = 0

    class Interrupting(EventSource):
        def poll(self, timeout_s: float = 0.0) -> Any:
            nonlocal calls
            calls += 1
            if calls == 90:  # in the second learner's run
                signal.raise_signal(signal.SIGINT)
            return super().poll(timeout_s)

    monkeypatch.setattr(rooms, "room_events", lambda _n: events)
    monkeypatch.setattr(rooms, "EventSource", Interrupting)
    result = demo()
    assert result.exit_code == 130
    names = list(LEARNERS)
    assert names[1] in result.stdout
    assert names[2] not in result.stdout
    assert "interrupted" in result.stderr


# --- the log for oneself


def test_the_log_is_written_once_and_whose_it_is_is_said(tmp_path: Path) -> None:
    result = demo("--write", "rooms.csv")
    assert (result.exit_code, result.stdout) == (0, "2000 readings in 4 rooms: rooms.csv\n")
    assert "Rajen Bhatt" in result.stderr
    assert "CC BY 4.0" in result.stderr
    header, first, *_ = Path("rooms.csv").read_text().splitlines()
    assert header == "time,wap1,wap2,wap3,wap4,wap5,wap6,wap7,room"
    assert first == "0,-64,-56,-61,-66,-71,-82,-81,kitchen"
    assert [path.name for path in tmp_path.iterdir()] == ["rooms.csv"]
    assert demo("--write", "rooms.csv").exit_code == 0  # it is there already
    written = demo("--write", "-")
    assert written.stdout == Path("rooms.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("own.csv",), "own.csv exists and has other content; name another file"),
        ((".",), ". is a directory; name a file"),
        (("/dev/full",), "cannot write /dev/full: No space left on device; free some space"),
        (
            ("no/rooms.csv",),
            "cannot write no/rooms.csv: No such file or directory; create its directory, or name "
            "another place",
        ),
        (
            ("own.csv/rooms.csv",),
            "cannot write own.csv/rooms.csv: Not a directory; name another place",
        ),
        (
            ("rooms.csv", "--seed", "3"),
            "--write only writes the log; leave out --seed (see `cli demo --help`)",
        ),
        (
            ("rooms.csv", "--picture=x.png"),
            "--write only writes the log; leave out --picture (see `cli demo --help`)",
        ),
    ],
)
def test_a_log_that_cannot_be_written_is_one_line(arguments: tuple[str, ...], error: str) -> None:
    own = Path("own.csv")
    own.write_text("mine\n")
    result = demo("--write", *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {error}\n")
    assert own.read_text() == "mine\n"
    assert not Path("rooms.csv").exists()


def test_the_log_is_written_without_loading_a_learner(tmp_path: Path) -> None:
    program = """
import sys
from streamgp.cli.main import cli
try:
    cli(["demo", "--write", "rooms.csv"])
finally:
    print("loaded:", *({name.split(".")[0] for name in sys.modules} & {"river", "numpy", "scipy"}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == b"loaded:"
    assert (tmp_path / "rooms.csv").is_file()


def test_the_log_goes_into_a_pipe_and_says_so_where_that_is_closed_or_full() -> None:
    command = [sys.executable, "-c", "from streamgp.cli.main import main; main()", "demo"]
    for redirect, status, error in (
        (">&-", 2, "Error: standard output is closed; name a file\n"),
        ("> /dev/full", 2, "Error: cannot write the results: No space left on device\n"),
    ):
        done = subprocess.run(
            ["bash", "-c", f'"$@" --write - {redirect}', "bash", *command],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (status, error)
