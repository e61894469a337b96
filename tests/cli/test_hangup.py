"""A terminal whose window is closed: what runs there finishes, and ends without a traceback."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from connectors.embedded.topics import EmbeddedTopics

MAIN = "from streamgp.cli.main import main; main()"
# Buffered, as streams are where nothing else is set: what could not be written is written at exit.
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0", "TERM": "xterm", "PYTHONUNBUFFERED": ""}
LOG = "time,light,room\n" + "".join(f"{i},{i % 7},den\n" for i in range(10_000))
BY_NIGHT = pytest.mark.nightly
COMMANDS = {
    "annotate w.toml --as ann": ("no question is open", 0),
    "watch w.toml --interval 0.1": ("streamgp watch", 0),
    "send w.toml log.csv --label room --time time --speed 5": ("events sent", 129),
    "run w.toml": ("assigned", 0),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "w.toml").write_text('broker = "file://topics"\n[worker]\nstate = "state"\n')
    (tmp_path / "log.csv").write_text(LOG)
    EmbeddedTopics(tmp_path / "topics").create()
    return tmp_path


@pytest.mark.parametrize(
    ("is_closed", "command"),
    # By day each command, and each way: programs that read a terminal see it closed.
    [
        pytest.param(
            is_closed,
            command,
            id=f"{'closed' if is_closed else 'signalled'}-{command}",
            marks=() if is_closed == command.startswith(("annotate", "watch")) else BY_NIGHT,
        )
        for is_closed in (True, False)
        for command in COMMANDS
    ],
)
def test_hangup_ends_it_in_order(command: str, is_closed: bool, directory: Path) -> None:
    words, status = COMMANDS[command]
    person, program = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *command.split()],
        cwd=directory,
        stdin=program,
        stdout=program,
        stderr=program,
        env=ENVIRONMENT,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(program)
    seen = b""
    try:
        until = time.monotonic() + 60.0
        while words.encode() not in seen:
            assert select.select([person], [], [], until - time.monotonic())[0], seen
            seen += os.read(person, 65536)
        if is_closed:
            os.close(person)  # which the kernel tells all processes of the terminal
        else:
            process.send_signal(signal.SIGHUP)
            seen += _rest(person)
        assert process.wait(60.0) == status
    finally:
        process.kill()
        process.wait()
        if not is_closed:
            os.close(person)
    assert b"Traceback" not in seen


def _rest(person: int) -> bytes:
    """Read what is written until no process has the terminal any more."""
    seen = b""
    while True:
        try:
            data = os.read(person, 65536)
        except OSError:
            return seen
        if not data:
            return seen
        seen += data
