"""`streamgp annotate` on a terminal, keys pressed and all."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
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
from rich.console import Console

from connectors.annotation.explain import Averages
from connectors.annotation.open_questions import Question
from connectors.embedded.topics import EmbeddedTopics
from connectors.wire.outbound import Outbound
from streamgp.apps.annotate import session
from streamgp.apps.annotate.choices import Choices
from streamgp.apps.annotate.commands import Command
from streamgp.apps.annotate.question_view import View
from streamgp.apps.annotate.terminal_ui import DEAF_S, ScreenFace
from streamgp.base import Neighbour
from tests.helpers.deskwork import challenge, label_request, on_screen
from tests.helpers.topics import said

TESTS = Path(__file__).parents[2]
PROGRAM = "import sys; from tests.helpers.deskwork import program; program.main(sys.argv[1:])"
ROWS, COLUMNS = 30, 90


class Terminal:
    """A terminal with the program in it, and what a person sees and does there."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.person, program = pty.openpty()
        fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(program)
        self._program = program
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

    def press(self, keys: str) -> None:
        os.write(self.person, keys.encode())

    def sees(self, text: str, seconds: float = 60.0) -> str:
        """Wait until a text is on the screen; return the screen."""
        end = time.monotonic() + seconds
        while text not in self.screen():
            assert time.monotonic() < end, self.screen()
            if select.select([self.person], [], [], 0.05)[0]:
                self._seen += os.read(self.person, 65536)
        self._read_rest()
        return self.screen()

    def screen(self) -> str:
        return on_screen(self._seen.decode(errors="replace"))

    def leaves(self) -> int:
        """Wait until the program has ended; return its status."""
        status = self.process.wait(60.0)
        self._read_rest()
        return status

    def _read_rest(self) -> None:
        while select.select([self.person], [], [], 0.05)[0]:
            self._seen += os.read(self.person, 65536)

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal is left as it was: settings, screen, cursor."""
        shown = self._seen.decode(errors="replace")
        return (
            termios.tcgetattr(self._program) == self.before
            and shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") >= 1
            and shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")
            and shown.rfind("\x1b[?2004l") > shown.rfind("\x1b[?2004h")
        )

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


def test_keys_answer_question_after_question(terminal: Terminal, directory: Path) -> None:
    screen = terminal.sees("q quit")
    assert "Are you sure?" in screen
    assert "k keep den   c change to hall   o another" in screen
    assert "ann: 2 wait, 0 answers given" in screen
    terminal.press("2c")
    terminal.sees("Which is it?")
    terminal.press("nspa")
    terminal.sees("new label: spa_")
    terminal.press("\r")
    terminal.sees("no question is open")
    terminal.press("u")
    terminal.sees("taken back: spa, about event e1")
    terminal.press("1")
    terminal.sees("nothing waits, 3 answers given")
    terminal.press("q")
    assert terminal.leaves() == 0
    assert terminal.is_as_before
    assert answers(directory) == [
        ("e2/challenge/1", "hall", None),
        ("e1/label", "spa", None),
        ("e1/label", None, "e1/label/answer/ann/1"),
        ("e1/label", "den", "e1/label/answer/ann/2"),
    ]


def test_answers_say_how_sure_they_are_and_how_long_they_took(directory: Path) -> None:
    terminal = Terminal(directory, "--confidence")
    try:
        start = time.monotonic()
        terminal.sees("q quit")
        terminal.press("c")
        screen = terminal.sees("How sure are you of hall?")
        assert "1 guessed   2 doubtful   3 rather sure   4 sure   5 certain" in screen
        terminal.press("\x1b")
        terminal.sees("o another")
        terminal.press("k")
        terminal.sees("How sure are you of den?")
        terminal.press("4")
        terminal.sees("event e2: den, sure")
        terminal.press("u")
        terminal.sees("taken back: den, about event e2")
        terminal.press("c q")
        assert terminal.leaves() == 0
        seconds = time.monotonic() - start
    finally:
        terminal.close()
    found = [(answer.y, answer.privileged) for answer in given_in(directory)]
    times = [None if known is None else known.pop("response_s") for _, known in found]
    assert found == [("den", {"confidence": 0.75}), (None, None), ("hall", {})]
    assert 0.0 < times[0] + times[2] < seconds
    assert times[1] is None


def test_time_asleep_is_no_time_of_an_answer(terminal: Terminal, directory: Path) -> None:
    terminal.sees("q quit")
    start = time.monotonic()
    terminal.press("c")
    terminal.sees("Which is it?")
    terminal.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED)
    asleep_since = time.monotonic()
    select.select([], [], [], 1.0)
    asleep_s = time.monotonic() - asleep_since
    terminal.process.send_signal(signal.SIGCONT)
    terminal.press("d")
    terminal.sees("event e1: don't know")
    seconds = time.monotonic() - start
    terminal.press("q")
    assert terminal.leaves() == 0
    answer = given_in(directory)[-1]
    assert answer.declined
    assert 0.0 <= answer.privileged["response_s"] < seconds - asleep_s


@pytest.mark.parametrize(
    ("keys", "number", "status"),
    [
        ("\x03", None, 130),
        ("\x04", None, 0),
        ("", signal.SIGTERM, 0),
        ("", signal.SIGHUP, 0),
        ("", signal.SIGINT, 130),
    ],
)
def test_terminal_is_given_back_however_it_ends(
    terminal: Terminal, directory: Path, keys: str, number: int | None, status: int
) -> None:
    terminal.sees("q quit")
    if number is None:
        terminal.press(keys)
    else:
        terminal.process.send_signal(number)
    assert terminal.leaves() == status
    assert terminal.is_as_before
    assert answers(directory) == []


def test_going_to_sleep_gives_the_terminal_back_until_it_wakes(terminal: Terminal) -> None:
    terminal.sees("q quit")
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.sees("q quit")  # no shell takes care of this process group: it wakes at once
    terminal.press("q")
    assert terminal.leaves() == 0
    assert terminal.is_as_before


def test_questions_that_come_meanwhile_are_counted_and_shown(
    terminal: Terminal, directory: Path
) -> None:
    terminal.sees("2 wait")
    ask(directory, label_request("e3"))
    terminal.sees("3 wait")
    terminal.press("q")
    assert terminal.leaves() == 0


# --- the face alone


@pytest.fixture
def face() -> Iterator[tuple[int, ScreenFace]]:
    person, program = pty.openpty()
    console = Console(file=io.StringIO(), force_terminal=True, width=90, height=30)
    with ScreenFace(program, program, console) as face:
        yield person, face
    os.close(program)
    os.close(person)


def view(request: Any = None, **fields: Any) -> View:
    question = Question(request=label_request() if request is None else request)
    given: dict[str, Any] = {
        "annotator": "ann",
        "question": question,
        "choices": Choices().offer("k", ["den", "hall"], []),
        "averages": Averages(),
        "n_open": 1,
        "n_answered": 0,
        "n_unsent": 0,
        "n_read": None,
        "note": None,
        "trouble": None,
        "now": 1000.0,
    }
    return View(**{**given, **fields})


def pressed(face: tuple[int, ScreenFace], keys: str, shown: View) -> list[Command]:
    """Press keys; return the commands that come of them, in their order."""
    person, screen = face
    os.write(person, keys.encode())
    commands = []
    screen.show(shown)
    command = screen.read(shown, 1.0)
    while command is not None or screen._pressed:
        commands += [] if command is None else [command]
        screen.show(shown)
        command = screen.read(shown, 0.0)
    return commands


def kinds(face: tuple[int, ScreenFace], keys: str, shown: View) -> list[Any]:
    return [c.label if c.kind == "label" else c.kind for c in pressed(face, keys, shown)]


def test_keys_mean_labels_and_commands_large_or_small(face: tuple[int, ScreenFace]) -> None:
    assert kinds(face, "1D2SuQ", view()) == ["den", "decline", "hall", "skip", "undo", "quit"]


def test_keys_that_mean_nothing_do_nothing(face: tuple[int, ScreenFace]) -> None:
    assert kinds(face, "9z\x1b[A\r\x7f\x1b", view()) == []
    assert face[1]._remark is None


def test_key_that_stands_for_nothing_is_reported(face: tuple[int, ScreenFace]) -> None:
    assert kinds(face, "9", view()) == []
    assert face[1]._remark == "9 is not a key; ? shows all keys"


def test_pasted_text_answers_nothing(face: tuple[int, ScreenFace]) -> None:
    assert kinds(face, "\x1b[200~1212\x1b[201~", view()) == []
    assert "pasted text is not an answer" in (face[1]._remark or "")


def test_label_is_typed_corrected_pasted_and_given_up(face: tuple[int, ScreenFace]) -> None:
    assert kinds(face, "nspax\x7f\r", view()) == ["spa"]
    assert kinds(face, "n\x1b[200~spa room\x1b[201~\r", view()) == ["spa room"]
    shown = view()
    assert kinds(face, "nspa", shown) == []
    assert face[1]._typed == "spa"
    assert kinds(face, "\x1b", shown) == []
    assert face[1]._typed is None
    assert kinds(face, "n\r", shown) == []
    assert face[1]._remark == "a label has at least one character"


def test_typed_label_is_dropped_when_the_question_changes(face: tuple[int, ScreenFace]) -> None:
    assert kinds(face, "nspa", view()) == []
    face[1].show(view(label_request("e2")))
    assert face[1]._typed is None


def test_help_is_left_by_any_key(face: tuple[int, ScreenFace]) -> None:
    assert kinds(face, "?1", view()) == []
    assert kinds(face, "1", view()) == ["den"]


def test_more_features_are_shown_page_by_page(face: tuple[int, ScreenFace]) -> None:
    shown = view(label_request(x={f"f{i}": i for i in range(25)}))
    starts = []
    for _ in range(4):
        starts.append(face[1]._start)
        assert kinds(face, "m", shown) == []
    assert starts == [0, 16, 0, 16]


def test_challenge_takes_only_keys_of_its_own(face: tuple[int, ScreenFace]) -> None:
    shown = view(challenge(given="den", suggested="hall"))
    assert kinds(face, "12n/r9zy\r", shown) == []
    assert face[1]._remark is None
    assert face[1]._typed is None
    assert kinds(face, "kcds", shown) == ["den", "hall", "decline", "skip"]
    assert kinds(face, "o2", shown) == ["hall"]
    assert kinds(face, "o", shown) == []
    assert kinds(face, "\x1b", shown) == []
    assert kinds(face, "2", shown) == []


def test_another_number_at_a_challenge_is_typed(face: tuple[int, ScreenFace]) -> None:
    shown = view(challenge(given=3.0, suggested=4.0), of_numbers=True, choices=[])
    assert kinds(face, "35", shown) == []
    assert kinds(face, "o3.5\r", shown) == [3.5]
    assert kinds(face, "o3,5\r", shown) == [3.5]


def places() -> list[str]:
    """Return 105 labels, each with three first letters of its own."""
    letters = "abcdefghijklmno"
    return [f"{a}{b}x place {a}{b}" for a in letters for b in letters[:7]]


def test_any_of_105_labels_is_five_keys_away(face: tuple[int, ScreenFace]) -> None:
    shown = view(choices=Choices().offer("k", places(), []))
    for label in places():
        keys = f"/{label[:3]}\r"
        assert len(keys) == 5
        assert kinds(face, keys, shown) == [label]


@pytest.mark.parametrize("purpose", ["", "/", "/a", "n", "naax plae aa\r", "r", "?", "x"])
@pytest.mark.parametrize("is_challenge", [False, True])
def test_all_there_is_fits_a_small_terminal(purpose: str, is_challenge: bool) -> None:
    person, program = pty.openpty()
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=24)
    x = {f"feature{i}": float(i) for i in range(40)}
    near = (Neighbour(event_id="e0", x={}, y="den", distance=1.0),)
    request = challenge(x=x, neighbours=near) if is_challenge else label_request(x=x)
    shown = view(
        request, choices=Choices().offer("k", places(), ["elsewhere"]), note="event e0: den"
    )
    with ScreenFace(program, program, console) as screen:
        kinds((person, screen), ("o" if is_challenge else "") + purpose, shown)
        screen.show(shown)
        lines = console.render_lines(screen._picture(shown), pad=False)
    assert len(lines) <= 24
    if purpose != "?":
        text = "\n".join("".join(part.text for part in line) for line in lines)
        assert "event e0: den" in text
        assert "feature" in text
    os.close(program)
    os.close(person)


def test_only_what_changes_is_written() -> None:
    person, program = pty.openpty()
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=90, height=5)

    def written(shown: View) -> list[str]:
        """Show it; return the rows that are written."""
        file.truncate(file.seek(0))
        screen.show(shown)
        return re.findall(r"\x1b\[(\d+);1H", file.getvalue())

    with ScreenFace(program, program, console) as screen:
        assert written(view(now=1000.0)) == ["1", "2", "3", "4", "5"]
        assert written(view(now=1003.0)) == ["2"]  # how long ago it was asked
        assert written(view(now=1003.0, n_answered=1)) == []  # below the fifth row
        assert written(view(question=None, now=1003.0)) != []
        assert written(view(question=None, now=1004.0)) == []
    os.close(program)
    os.close(person)


def test_label_much_like_a_known_one_is_asked_about(face: tuple[int, ScreenFace]) -> None:
    shown = view(choices=Choices().offer("k", ["kitchen", "hall"], []))
    assert kinds(face, "nkithcen\r", shown) == []
    assert kinds(face, "x1", shown) == []
    assert kinds(face, "y", shown) == ["kitchen"]
    assert kinds(face, "nkithcen\rn", shown) == ["kithcen"]
    assert kinds(face, "nkithcen\r\x1b", shown) == []
    assert kinds(face, "ngarden\r", shown) == ["garden"]


def test_label_is_renamed(face: tuple[int, ScreenFace]) -> None:
    shown = view(choices=Choices().offer("k", ["kithcen", "hall"], []))
    [command] = pressed(face, "rkit\rkitchen\r", shown)
    assert (command.kind, command.old, command.label) == ("rename", "kithcen", "kitchen")
    assert pressed(face, "rzzz\r", shown) == []
    assert face[1]._remark == "no label has these letters in this order"


def test_without_a_question_only_undo_help_and_quit_count(face: tuple[int, ScreenFace]) -> None:
    assert kinds(face, "1dsnmr/uq", view(question=None)) == ["undo", "quit"]


def test_keys_for_a_question_that_has_just_vanished_do_not_answer_the_next(
    face: tuple[int, ScreenFace], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("streamgp.apps.annotate.terminal_ui.time.monotonic", lambda: now)
    person, screen = face
    os.write(person, b"1")
    screen.question_ended()
    assert kinds(face, "1d", view(label_request("e2"))) == []
    now += DEAF_S
    assert kinds(face, "1", view(label_request("e2"))) == ["den"]


def test_terminal_that_goes_away_ends_it() -> None:
    person, program = pty.openpty()
    console = Console(file=io.StringIO(), force_terminal=True)
    screen = ScreenFace(program, program, console)
    os.close(person)
    assert screen.read(view(), 1.0) == Command(kind="quit")
    os.close(program)


def test_second_signal_gives_the_terminal_back_before_it_ends_the_process(
    face: tuple[int, ScreenFace], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[tuple[int, bool]] = []
    screen = face[1]
    monkeypatch.setattr("os._exit", lambda status: ended.append((status, screen._is_held)))
    monkeypatch.setattr("streamgp.apps.console._SAME_WISH_S", -1.0)
    with session._Stop(screen) as stop:
        signal.raise_signal(signal.SIGTERM)
        assert (stop(), ended, screen._is_held) == (True, [], True)
        signal.raise_signal(signal.SIGTERM)
    assert ended == [(143, False)]
