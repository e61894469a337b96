"""Commands, called in this process as a user calls them, and replays that are cut."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connectors.tables.log_source import LogSource
from streamgp.apps.replay.checkpoint import Cut, Keeper
from streamgp.cli.main import cli


def streamgp(*arguments: str | Path) -> Result:
    """Call a command."""
    return CliRunner().invoke(cli, list(map(str, arguments)))


replay = partial(streamgp, "replay")


def wrong(*arguments: str | Path) -> str:
    """Call what must fail with one line on stderr and nothing on stdout; return the line."""
    result = streamgp(*arguments)
    assert result.exit_code == 2, result.output
    assert (result.stdout, result.stderr.count("\n")) == ("", 1), result.stderr
    assert result.stderr.startswith("Error: ")
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def interrupt(monkeypatch: pytest.MonkeyPatch, n_polls: int) -> None:
    """Interrupt replays once, as Ctrl-C does, when they poll their log for the n-th time."""
    polled, calls = LogSource.poll, itertools.count(1)

    def poll(self: LogSource, timeout_s: float = 0.0) -> Any:
        if next(calls) == n_polls:
            signal.raise_signal(signal.SIGINT)
        return polled(self, timeout_s)

    monkeypatch.setattr(LogSource, "poll", poll)


def replay_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
    play: Callable[[], Result],
    *,
    saving_every: int,
    cutting_every: int,
) -> int:
    """Replay to the end, saving at every n-th chance, with a cut after every n-th time.

    Returns how often it was saved.
    """
    is_due = itertools.cycle([*[False] * (saving_every - 1), True])
    monkeypatch.setattr(Keeper, "is_due", lambda _self: next(is_due))
    n_saved, save = 0, Keeper.save

    def cut(self: Keeper, now: Callable[[], Cut]) -> None:
        nonlocal n_saved
        save(self, now)
        n_saved += 1
        if n_saved % cutting_every == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(Keeper, "save", cut)
    results = (play() for _ in range(20))
    assert any(result.exit_code == 0 for result in results)
    return n_saved
