"""Signals: the first asks, the second does not wait."""

from __future__ import annotations

import signal

import pytest

from streamgp.apps import console
from streamgp.apps.console import Stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_first_signal_asks_and_is_told_once(number: signal.Signals) -> None:
    told: list[str] = []
    with Stop(told.append) as stop:
        assert not stop()
        signal.raise_signal(number)
        assert told == []  # in the middle of anything: nothing is written from there
        assert stop()
        assert stop()
    assert told == [number.name] == [stop.signal]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_second_signal_ends_at_once(
    number: signal.Signals, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    times = iter([10.0, 10.4, 10.6])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(times))
    with Stop():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(number)  # the same wish, passed on by another process
        assert ended == []
        signal.raise_signal(number)
    assert ended == [status]


def test_first_signal_ends_what_leaves_nothing_undone() -> None:
    with Stop() as stop:
        with pytest.raises(KeyboardInterrupt), stop.ending():
            signal.raise_signal(signal.SIGTERM)
        assert stop.signal == "SIGTERM"
        with pytest.raises(KeyboardInterrupt), stop.ending():
            raise AssertionError("it came before")


def test_handlers_are_put_back() -> None:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with Stop():
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert [signal.getsignal(number) for number in numbers] == before


def test_signal_that_is_ignored_stays_so() -> None:
    was = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stop() as stop:
            signal.raise_signal(signal.SIGINT)
            assert not stop()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, was)
