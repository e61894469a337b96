"""Progress is shown on a terminal, and nowhere else."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import time

import pytest
from rich.cells import cell_len

from connectors.tables.cells import time_of
from connectors.wire.cloudevents import EARLIEST, LATEST
from streamgp.apps.console import (
    CALLS_PER_UPDATE,
    StatusLine,
    aligned,
    clock_time,
    progress,
    seen,
    steady,
    tell,
)
from tests.helpers.topics import PATIENCE_S


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bar_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with progress() as show:
        for i in range(CALLS_PER_UPDATE + 1):
            show("[reading] rooms", i / CALLS_PER_UPDATE)
    assert "[reading] rooms" in screen.getvalue()
    assert "100%" in screen.getvalue()


def test_bar_has_no_percentage_where_the_end_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with progress(every=1) as show:
        show("200 records", None)
    assert "200 records" in screen.getvalue()
    assert "%" not in screen.getvalue()


def test_nothing_is_shown_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    with progress() as show:
        show("rooms", 0.5)
    assert file.getvalue() == ""


class Gone(Terminal):
    """A terminal whose window was closed."""

    def write(self, text: str) -> int:  # noqa: ARG002
        raise OSError(5, "Input/output error")

    def flush(self) -> None:
        raise OSError(5, "Input/output error")


def test_terminal_that_was_closed_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Gone())
    monkeypatch.setenv("TERM", "xterm")
    tell("over")
    StatusLine().say("over")
    assert steady(Gone()).write("over") == 4
    with progress() as show:
        show("rooms", 0.5)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows suspends no programs")
def test_cursor_is_shown_while_a_program_with_a_bar_is_suspended() -> None:
    screen, terminal = os.openpty()
    program = (
        "import sys\n"
        "from streamgp.apps.console import progress\n"
        "with progress(every=1) as show:\n"
        "    show('rooms', 0.5)\n"
        "    sys.stdin.read()\n"
    )
    shown = b""

    def read_until(what: bytes) -> None:
        nonlocal shown
        while what not in shown:
            assert select.select([screen], [], [], PATIENCE_S)[0], f"no {what!r} in {shown!r}"
            shown += os.read(screen, 10_000)
        shown = shown.rpartition(what)[2]

    show, hide = b"\x1b[?25h", b"\x1b[?25l"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm"},
        process_group=0,  # suspended alone, and not in the group of a session's leader
    ) as process:
        assert process.stdin is not None
        try:
            read_until(hide)
            read_until(b"rooms")
            for _ in range(2):
                process.send_signal(signal.SIGTSTP)
                assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
                read_until(show)
                assert hide not in shown
                process.send_signal(signal.SIGCONT)
                read_until(hide)
            process.stdin.close()
            read_until(show)
            assert process.wait() == 0
        finally:
            process.kill()
    os.close(screen)
    os.close(terminal)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows suspends no programs")
@pytest.mark.parametrize(("name", "is_default"), [("xterm", False), ("dumb", True)])
def test_a_dumb_terminal_whose_cursor_nothing_hides_gets_no_escapes_on_suspension(
    monkeypatch: pytest.MonkeyPatch, name: str, is_default: bool
) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("TERM", name)
    with progress():
        assert (signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL) == is_default
    assert signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL


def test_data_are_written_out_on_a_terminal_and_as_they_are_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = 'e1,"\x1b]0;title\x07"\ne2,kit\u200bchen\ne3,k\xfcche'
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert seen(data) == data
    monkeypatch.setattr("sys.stdout", Terminal())
    assert seen(data) == 'e1,"\\x1b]0;title\\x07"\ne2,kit\\u200bchen\ne3,k\xfcche'


LORD_HOWE = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"


@pytest.mark.parametrize(
    ("zone", "at", "text"),
    [
        ("EST5", 1.7e9, "2023-11-14 17:13:20-05:00"),
        ("<+0545>-5:45", 1.7e9, "2023-11-15 03:58:20+05:45"),
        # An hour of this night in autumn occurs twice, half of it in Lord Howe's.
        (LORD_HOWE, 1775313900.0, "2026-04-05 01:45:00+11:00"),
        (LORD_HOWE, 1775315700.0, "2026-04-05 01:45:00+10:30"),
        ("EST5", EARLIEST, "-62135596800.0 s since 1970"),
        ("CET-1", LATEST, "253402300799.0 s since 1970"),
        ("CET-1", 1e17, "1e+17 s since 1970"),
        ("CET-1", -1e300, "-1e+300 s since 1970"),
    ],
)
def test_times_are_shown_with_their_offset_and_beyond_the_local_calendar_too(
    zone: str, at: float, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        with monkeypatch.context() as patched:
            patched.setenv("TZ", zone)
            time.tzset()
            assert clock_time(at) == text
            if "since" not in text:  # as `--since` takes it
                assert time_of(text) == at
    finally:
        time.tzset()


def test_columns_stand_below_each_other_on_a_terminal_whatever_the_script() -> None:
    """There, a Chinese character takes two cells, and an accent of its own none."""
    rows = [["key", "labels"], ["\u82b1\u5b50", "7"], ["e\u0301ve", "12"]]
    lines = aligned(rows, right=[1]).splitlines()
    assert lines == ["key   labels", "\u82b1\u5b50       7", "e\u0301ve       12"]
    assert len({cell_len(line) for line in lines}) == 1
