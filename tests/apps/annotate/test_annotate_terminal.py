"""`streamgp annotate` on a terminal, where a person types lines."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.annotation.open_questions import Question
from connectors.embedded.topics import EmbeddedTopics
from connectors.wire.outbound import Outbound
from streamgp.apps.annotate.commands import Command
from streamgp.apps.annotate.line_ui import DEAF_S, LineFace, Lines
from streamgp.apps.annotate.question_view import View
from tests.helpers.deskwork import challenge, label_request, view
from tests.helpers.topics import said

TESTS = Path(__file__).parents[2]
PROGRAM = "import sys; from tests.helpers.deskwork import program; program.main(sys.argv[1:])"
ROWS, COLUMNS = 30, 70


class Terminal:
    """A terminal with the program in it, and what a person sees and does there."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.person, program = pty.openpty()
        self._program = program
        self.has_columns(COLUMNS)
        self._seen = b""
        environment = {
            **os.environ,
            "TERM": "xterm",
            "PYTHONPATH": str(TESTS.parent),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "annotate", "w.toml", "--as", "ann", *options],
            cwd=directory,
            stdin=program,
            stdout=program,
            stderr=program,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def has_columns(self, n: int) -> None:
        fcntl.ioctl(self._program, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, n, 0, 0))

    def types(self, keys: str) -> None:
        os.write(self.person, keys.encode())

    def sees(self, text: str, seconds: float = 60.0) -> str:
        """Wait until a text is printed; return it with what came before, since the last call."""
        end = time.monotonic() + seconds
        while text.encode() not in self._seen:
            assert time.monotonic() < end, self._seen
            if select.select([self.person], [], [], 0.05)[0]:
                self._seen += os.read(self.person, 65536)
        before, _, self._seen = self._seen.partition(text.encode())
        return before.decode() + text

    def leaves(self) -> int:
        """Wait until the program has ended; return its status."""
        return self.process.wait(60.0)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.person)
        os.close(self._program)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A configuration, and topics in files with two questions."""
    (tmp_path / "w.toml").write_text('broker = "file://topics"\n')
    EmbeddedTopics(tmp_path / "topics").create()
    ask(tmp_path, label_request("e1"), challenge("e2", requested_at=1001.0))
    return tmp_path


def ask(directory: Path, *requests: Any) -> None:
    """Write requests, as a worker does."""
    outbox = Outbound("/streamgp/test", keyed=True)
    topics = EmbeddedTopics(directory / "topics")
    link = topics.client(group="streamgp", instance="test", max_records=10)
    link.poll(0.0)
    link.commit([outbox.message(request, 0) for request in requests])
    link.close()
    topics.close()


@pytest.fixture
def terminal(directory: Path) -> Iterator[Terminal]:
    terminal = Terminal(directory)
    yield terminal
    terminal.close()


def answers(directory: Path) -> list[tuple[Any, ...]]:
    return [(answer.request_id, answer.y, answer.supersedes) for answer in given_in(directory)]


def given_in(directory: Path) -> list[Any]:
    return said(EmbeddedTopics(directory / "topics"), "answers")


def test_lines_answer_question_after_question(terminal: Terminal, directory: Path) -> None:
    shown = terminal.sees("ann: 2 wait, 0 answers given")
    assert "Are you sure?" in shown
    assert "k keep den   c change to hall" in shown
    terminal.types("1\n")  # the key of a label answers no challenge
    terminal.sees("'1' is the key of a label, which does not answer a challenge")
    terminal.types("c\n")
    terminal.sees("Which is it?")
    terminal.types("spa\n")
    terminal.sees("'spa' is neither a key nor a known label; write n LABEL for a new one")
    terminal.types("n spa\n")
    terminal.sees("no question is open; new ones appear here")
    terminal.types("u\n")
    terminal.sees("taken back: spa, about event e1")
    terminal.sees("Which is it?")  # what is typed before is not read
    terminal.types("1\n")
    terminal.sees("no question is open")
    ask(directory, label_request("e3"))
    terminal.sees("event e3 of k")
    terminal.types("q\n")
    terminal.sees("3 answers given; 1 question left")
    assert terminal.leaves() == 0
    assert answers(directory) == [
        ("e2/challenge/1", "hall", None),
        ("e1/label", "spa", None),
        ("e1/label", None, "e1/label/answer/ann/1"),
        ("e1/label", "den", "e1/label/answer/ann/2"),
    ]


def test_empty_line_prints_the_question_again_as_wide_as_the_terminal_is_now(
    terminal: Terminal, directory: Path
) -> None:
    first = terminal.sees("ann: 2 wait, 0 answers given")
    terminal.has_columns(50)
    terminal.types("\n")
    again = terminal.sees("ann: 2 wait, 0 answers given")
    assert [max(map(len, shown.splitlines())) for shown in (first, again)] == [COLUMNS, 50]
    assert all("Are you sure?" in shown for shown in (first, again))
    terminal.types("\x04")  # the end of what is typed
    terminal.sees("0 answers given; 2 questions left")
    assert terminal.leaves() == 0
    assert answers(directory) == []


def test_pasted_lines_answer_no_question_that_was_not_shown(
    terminal: Terminal, directory: Path
) -> None:
    terminal.sees("ann: 2 wait")
    terminal.types("c\n1\n1\n")
    terminal.sees("what was typed before this question was shown is not read")
    terminal.sees("Which is it?")
    terminal.sees("ann: 1 waits")
    terminal.process.send_signal(signal.SIGTERM)
    terminal.sees("1 answer given; 1 question left")
    assert terminal.leaves() == 0
    assert answers(directory) == [("e2/challenge/1", "hall", None)]


def test_line_typed_while_nothing_is_asked_is_in_the_way_of_no_other(
    terminal: Terminal, directory: Path
) -> None:
    terminal.sees("ann: 2 wait")
    terminal.types("k\n")
    terminal.sees("ann: 1 waits")
    terminal.types("1\n")
    terminal.sees("no question is open; new ones appear here")
    terminal.types("hall\n")
    terminal.sees("no question is open; new ones appear here")
    terminal.types("hall\n" * 50 + "u\n")
    seen = terminal.sees("taken back: den, about event e1")
    assert seen.count("no question is open") < 10  # 0, unless the lines come slowly
    terminal.sees("ann: 1 waits")
    terminal.types("1\n")
    terminal.sees("no question is open; new ones appear here")
    terminal.types("1\nq\n")
    assert terminal.leaves() == 0
    assert [y for _, y, _ in answers(directory)] == ["den", "den", None, "den"]


def test_time_asleep_is_no_time_of_an_answer(terminal: Terminal, directory: Path) -> None:
    terminal.sees("ann: 2 wait")
    start = time.monotonic()
    terminal.types("c\n")
    terminal.sees("ann: 1 waits")
    terminal.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED)
    asleep_since = time.monotonic()
    select.select([], [], [], 1.0)
    asleep_s = time.monotonic() - asleep_since
    terminal.process.send_signal(signal.SIGCONT)
    terminal.types("d\n")
    terminal.sees("event e1: don't know")
    seconds = time.monotonic() - start
    terminal.types("q\n")
    assert terminal.leaves() == 0
    answer = given_in(directory)[-1]
    assert answer.declined
    assert 0.0 <= answer.privileged["response_s"] < seconds - asleep_s


@pytest.mark.parametrize(
    ("keys", "number", "status"),
    [
        ("\x03", None, 130),
        pytest.param("", signal.SIGINT, 130, marks=pytest.mark.nightly),  # what Ctrl-C sends
    ],
)
def test_an_interrupt_ends_it_in_order(
    terminal: Terminal, directory: Path, keys: str, number: int | None, status: int
) -> None:
    terminal.sees("ann: 2 wait")
    if number is None:
        terminal.types(keys)
    else:
        terminal.process.send_signal(number)
    terminal.sees("0 answers given; 2 questions left")
    assert terminal.leaves() == status
    assert answers(directory) == []


def test_what_was_typed_for_a_question_that_has_just_ended_does_not_answer_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("streamgp.apps.annotate.line_ui.time.monotonic", lambda: now)
    person, program = pty.openpty()
    with open(program) as stream, LineFace(Lines(stream), io.StringIO()) as face:

        def said(typed: bytes, shown: View) -> Command | None:
            face.show(shown)
            os.write(person, typed)
            return face.read(shown, 1.0)

        assert said(b"1\n", about("e1")) is not None
        os.write(person, b"1\n2")
        face.question_ended()
        assert face.read(about("e2"), 0.0) is None
        assert said(b"1\n", about("e2")) is None  # typed at once, for the question before
        assert said(b"q\n", about("e2")) == Command(kind="quit")
        now += DEAF_S
        command = said(b"2\n", about("e2"))
        assert command is not None
        assert command.label == "hall"
    os.close(person)


def about(event_id: str) -> View:
    return view(Question(request=label_request(event_id)))
