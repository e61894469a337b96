"""A log that several replays read."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click
import pytest

from connectors.broker import Source
from streamgp.apps.recorded_logs import Notes, RepeatedLog
from streamgp.apps.replay.run import play_log
from streamgp.config.settings import Config, Log, Windows
from streamgp.evaluation import RunStatistics
from streamgp.interactive.messages import Event

ROWS = Config(log=Log(label="room", time="t"))
WINDOWS = Config(log=Log(label="room", time="t"), windows=Windows(length_s=5.0))
N_ROWS = 600  # more than are polled at once


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a log of a row per second, with another room every minute and a row without time."""
    path = tmp_path / "log.csv"
    rows = [f"{t},{t // 60 % 2 + 0.01 * (t % 7)},{'ab'[t // 60 % 2]}" for t in range(N_ROWS)]
    path.write_text("\n".join(["t,v,room", *rows, ",0.5,a"]) + "\n")
    return path


def read(source: Source) -> list[object]:
    messages: list[object] = []
    with closing(source):
        while not source.exhausted:
            messages += [received.message for received in source.poll()]
    return messages


def test_windows_are_cut_once(path: Path) -> None:
    log, notes = RepeatedLog(path, source="own.toml"), Notes()
    first = read(log.open(WINDOWS, notes))
    assert len(first) == N_ROWS / 5 + 1  # and the row that is rejected
    # They would be most of what stays in memory.
    assert {m.excerpt for m in first if isinstance(m, Event)} == {None}
    path.unlink()
    for _ in range(2):
        again = log.open(WINDOWS, notes)
        assert not again.exhausted
        assert read(again) == first
        assert again.progress == 1.0


def test_windows_of_a_log_that_was_left_halfway_are_cut_again(path: Path) -> None:
    log = RepeatedLog(path, source="own.toml")
    with closing(log.open(WINDOWS, Notes())) as source:
        assert source.poll()
    assert len(read(log.open(WINDOWS, Notes()))) == N_ROWS / 5 + 1


def test_rows_are_read_from_the_file_again(path: Path) -> None:
    log = RepeatedLog(path, source="own.toml")
    assert len(read(log.open(ROWS, Notes()))) == N_ROWS + 1
    path.unlink()
    with pytest.raises(click.ClickException, match="does not exist"):
        log.open(ROWS, Notes())


def test_a_replay_is_the_same_with_windows_that_were_cut_before(path: Path) -> None:
    log = RepeatedLog(path, source="own.toml")
    shares: list[float] = []

    def played() -> RunStatistics:
        return play_log(log, WINDOWS, on_event=lambda _n, share: shares.append(share)).statistics

    first = played()
    assert first.n_asked > 0
    assert shares[-1] == 1.0
    shares.clear()
    assert played().summary() == first.summary()
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
