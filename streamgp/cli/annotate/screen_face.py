"""Questions on a terminal: one at a time on the whole screen, answered by single keys."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.screen import Screen
from rich.text import Text

from streamgp.cli.annotate import prompts
from streamgp.cli.annotate import question as looks
from streamgp.cli.annotate.choices import shown_label
from streamgp.cli.annotate.commands import COMMANDS, Command, label_of_key, typed_label
from streamgp.cli.annotate.confidence import CONFIDENCES
from streamgp.cli.annotate.keys import Key, Keys
from streamgp.cli.annotate.stopwatch import Stopwatch
from streamgp.printable import JOINERS

if TYPE_CHECKING:
    from streamgp.cli.annotate.question import View

# A key that was meant for a question which has just vanished must not answer the next one.
DEAF_S = 0.7
_LINES_BESIDE_FEATURES = 18
_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[H"
_LEAVE = b"\x1b[?1049l\x1b[?25h"


class ScreenFace:
    """Shows one question at a time.

    Parameters
    ----------
    fd, out
        The terminal, for reading and for writing.
    console
        The terminal, for drawing.
    watch
        Measures how long questions are shown; None for one of its own.

    """

    # _pressed     keys not looked at yet
    # _typed       the label being typed, None if none is
    # _unrated     the answer of which it is being asked how sure it is, None if it is not
    # _start       the first feature shown, of the question `_of`
    # _remark      what was wrong with the last key
    # _deaf_until  until when keys about the question do not count
    # _drawn       what the picture on the screen was made of
    # _was         who handled Ctrl-Z before
    def __init__(self, fd: int, out: int, console: Console, watch: Stopwatch | None = None) -> None:
        self._watch = watch or Stopwatch()
        self._keys = Keys(fd, out)
        self._out = out
        self._console = console
        self._pressed: deque[Key] = deque()
        self._typed: str | None = None
        self._unrated: Command | None = None
        self._helps = False
        self._start = 0
        self._of: object = None
        self._remark: str | None = None
        self._deaf_until = 0.0
        self._drawn: object = None
        self._is_held = False
        self._was: Any = None

    def __enter__(self) -> ScreenFace:
        if threading.current_thread() is threading.main_thread():
            self._was = signal.signal(signal.SIGTSTP, self._pause)
        self._watch.listen()
        self._hold()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
        self._watch.close()
        if self._was is not None:
            signal.signal(signal.SIGTSTP, self._was)

    def show(self, view: View) -> None:
        """Draw the screen, if anything has changed."""
        of = None if view.question is None else view.question.request
        if of is not self._of:
            self._of, self._start, self._typed, self._remark = of, 0, None, None
            self._unrated = None
        self._draw(view)
        self._watch.look(of if view.n_read is None and not self._helps else None)

    def _draw(self, view: View) -> None:
        drawn = (
            view.question,
            len(view.choices),
            (view.n_open, view.n_answered, view.n_unsent, view.n_read),
            (view.note, view.trouble, int(view.now)),
            (self._typed, self._unrated, self._helps, self._start, self._remark),
            self._console.size,
        )
        if drawn == self._drawn or not self._is_held:
            return
        self._drawn = drawn
        try:
            self._console.control(Control.home())
            self._console.print(Screen(self._picture(view)), end="")
            self._console.file.flush()
        except OSError:  # the terminal is gone
            self._pressed.append(Key("end"))

    def read(self, view: View, timeout_s: float) -> Command | None:
        """Return what a key says; what it only changes on the screen is done here."""
        if not self._pressed:
            self._pressed.extend(self._keys.read(timeout_s))
        while self._pressed:
            command = self._take(self._pressed.popleft(), view)
            if command is not None:
                return command
        return None

    def question_ended(self) -> None:
        """Drop keys that were meant for the question that has ended."""
        self._pressed.clear()
        self._keys.discard()
        self._typed = self._unrated = None
        self._deaf_until = time.monotonic() + DEAF_S

    def release(self) -> None:
        """Give the terminal back as it was."""
        if self._is_held:
            self._is_held = False
            with suppress(OSError):  # the terminal is gone
                os.write(self._out, _LEAVE)
            self._keys.release()

    def _hold(self) -> None:
        self._keys.hold()
        os.write(self._out, _ENTER)
        self._is_held = True
        self._drawn = None

    def _pause(self, number: int, _frame: FrameType | None) -> None:
        """Go to sleep with the terminal as it was, and come back after `fg`."""
        was_held = self._is_held
        self.release()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        signal.signal(number, self._pause)
        if was_held:
            self._hold()

    def _take(self, key: Key, view: View) -> Command | None:
        self._remark = None
        if key.kind == "end":
            return Command(kind="quit")
        if self._helps:
            self._helps = False
            return None
        if self._typed is not None:
            return self._type(key, self._typed, view)
        if self._unrated is not None:
            return self._rate(key, self._unrated)
        if key.kind == "paste":
            self._remark = "what is pasted is no answer; press n first to give it as a label"
        if key.kind != "text":
            return None
        character = key.text.lower()
        if character == "?":
            self._helps = True
        elif character in ("q", "u"):
            return COMMANDS[character]
        elif view.question is not None and time.monotonic() >= self._deaf_until:
            return self._answer(character, view)
        return None

    def _answer(self, character: str, view: View) -> Command | None:
        assert view.question is not None
        if character == "n":
            self._typed = ""
        elif view.of_numbers and character in "0123456789.-+":
            self._typed = character
        elif character == "m":
            self._start += self._most(view)
            if self._start >= len(view.question.request.x):
                self._start = 0
        else:
            command = COMMANDS.get(character) or label_of_key(character, view.choices)
            if command is None:
                self._remark = f"{character} stands for nothing; ? tells what there is"
                return None
            return self._choose(command, view)
        return None

    def _choose(self, command: Command, view: View) -> Command | None:
        """Return what was chosen, unless it is to be asked first how sure it is."""
        command = self._watch.timed(command)
        if view.asks_confidence and command.kind == "label" and command.confidence is None:
            self._unrated = command
            return None
        return self._give(command)

    def _rate(self, key: Key, unrated: Command) -> Command | None:
        """Take a key while it is asked how sure an answer is."""
        # What is pasted is no key, also where it is a single character.
        character = key.text.lower() if key.kind == "text" else ""
        if key.kind == "escape" or character == "u":
            self._unrated = None
        elif key.kind == "enter" or character == " ":
            return self._give(unrated)
        elif character in CONFIDENCES:
            return self._give(replace(unrated, confidence=CONFIDENCES[character]))
        elif character == "?":
            self._helps = True
        elif character == "q":
            return COMMANDS[character]
        elif key.kind != "backspace":
            self._remark = "how sure is 1 to 5; Enter leaves it out, Esc goes back"
        return None

    def _give(self, command: Command) -> Command:
        self._unrated = None
        if command.response_s is not None:
            self._watch.stop()
        return command

    def _type(self, key: Key, typed: str, view: View) -> Command | None:
        """Take a key while a label is being typed."""
        if key.kind in ("text", "paste"):
            self._typed = typed + "".join(c for c in key.text if c.isprintable() or c in JOINERS)
        elif key.kind == "backspace":
            self._typed = typed[:-1]
        elif key.kind == "escape":
            self._typed = None
        elif key.kind == "enter":
            try:
                command = typed_label(typed, view)
            except ValueError as error:
                self._remark = str(error)
                return None
            self._typed = None
            return self._choose(command, view)
        return None

    def _most(self, view: View) -> int:
        """Return how many features there is room for."""
        width, height = self._console.size
        n_label_lines = sum(len(shown_label(c.label)) + 16 for c in view.choices) // width
        return max(3, height - _LINES_BESIDE_FEATURES - n_label_lines)

    def _picture(self, view: View) -> RenderableType:
        if self._helps:
            return Text(looks.HELP + "\nany key: back")
        parts: list[RenderableType] = []
        if view.n_read is None:
            below = None if self._unrated is None else prompts.how_sure(self._unrated)
            parts += [looks.whole(view, start=self._start, most=self._most(view), below=below)]
            parts.append(Text())
        parts.append(looks.status(view))
        if self._typed is not None:
            parts.append(prompts.typing(self._typed, view))
        for text in (view.note, self._remark):
            if text is not None:
                parts.append(Text(looks.printable_lines(text), style="yellow"))
        return Group(*parts)
