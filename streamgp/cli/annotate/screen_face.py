"""Questions on a terminal: one at a time on the whole screen, answered by single keys."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.screen import Screen
from rich.text import Text

from streamgp.cli.annotate import question as looks
from streamgp.cli.annotate.choices import shown_label
from streamgp.cli.annotate.commands import COMMANDS, Command, label_of_key, typed_label
from streamgp.cli.annotate.keys import Key, Keys

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

    """

    # _pressed     keys not looked at yet
    # _typed       the label being typed, None if none is
    # _start       the first feature shown, of the question `_of`
    # _remark      what was wrong with the last key
    # _deaf_until  until when keys about the question do not count
    # _drawn       what the picture on the screen was made of
    # _was         who handled Ctrl-Z before
    def __init__(self, fd: int, out: int, console: Console) -> None:
        self._keys = Keys(fd, out)
        self._out = out
        self._console = console
        self._pressed: deque[Key] = deque()
        self._typed: str | None = None
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
        self._hold()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
        if self._was is not None:
            signal.signal(signal.SIGTSTP, self._was)

    def show(self, view: View) -> None:
        """Draw the screen, if anything has changed."""
        of = None if view.question is None else view.question.request
        if of is not self._of:
            self._of, self._start, self._typed, self._remark = of, 0, None, None
        drawn = (
            view.question,
            len(view.choices),
            (view.n_open, view.n_answered, view.n_unsent, view.n_read),
            (view.note, view.trouble, int(view.now)),
            (self._typed, self._helps, self._start, self._remark),
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
        self._typed = None
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
            return command
        return None

    def _type(self, key: Key, typed: str, view: View) -> Command | None:
        """Take a key while a label is being typed."""
        if key.kind in ("text", "paste"):
            self._typed = typed + "".join(c for c in key.text if c.isprintable())
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
            return command
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
            parts += [looks.whole(view, start=self._start, most=self._most(view)), Text()]
        parts.append(looks.status(view))
        if self._typed is not None:
            parts.append(self._prompt(self._typed, view))
        for said in (view.note, self._remark):
            if said is not None:
                parts.append(Text(looks.printable_lines(said), style="yellow"))
        return Group(*parts)

    def _prompt(self, typed: str, view: View) -> Text:
        what = "number: " if view.of_numbers else "new label: "
        text = Text.assemble((what, "bold"), typed, ("_", "blink"))
        if view.of_numbers:
            return text.append("   as 21.5 or 21.5 +- 0.5; Enter: give it, Esc: back", style="dim")
        near = [shown_label(choice.label) for choice in view.choices]
        near = [label for label in near if typed and label.casefold().startswith(typed.casefold())]
        if near:
            text.append(f"   known: {', '.join(near[:5])}", style="dim")
        return text.append("   Enter: give it, Esc: back", style="dim")
