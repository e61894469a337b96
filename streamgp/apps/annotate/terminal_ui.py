"""Full-screen terminal interface: one question at a time, answered by single keys."""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import threading
import time
import tty
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any, Literal, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.screen import Screen
from rich.segment import Segment, Segments
from rich.text import Text

from connectors.annotation.label_text import near_duplicate, search, shown_label
from streamgp.apps.annotate import question_view as looks
from streamgp.apps.annotate.choices import ANOTHER, CONFIDENCES, WORDS
from streamgp.apps.annotate.commands import (
    COMMANDS,
    Command,
    answer_to_challenge,
    label_of_key,
    renaming,
    said,
    typed_label,
)
from streamgp.apps.annotate.question_view import Legend, View, cut
from streamgp.apps.annotate.stopwatch import Stopwatch
from streamgp.base import Label
from streamgp.common.printable import JOINERS
from streamgp.interactive.messages import Challenge

# --- Single keys from a terminal, without Enter; pasted text stays in one piece.


_ESCAPE = "\x1b"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O\x1b])", re.DOTALL)
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_PASTE_ON, _PASTE_OFF = b"\x1b[?2004h", b"\x1b[?2004l"
_MAX_UNREAD = 1 << 16
# How long the rest of a key's bytes may take; after that, Escape alone was pressed.
_REST_S = 0.05

KeyKind = Literal["text", "paste", "enter", "backspace", "escape", "end"]


class Key(NamedTuple):
    """A pressed key, or pasted text; `text` is the key or the pasted text."""

    kind: KeyKind
    text: str = ""


class KeyParser:
    """Parser of a terminal's input into keys.

    Arrows, function keys and the like are ignored.

    Examples
    --------
    >>> [key.text or key.kind for key in KeyParser().feed("a\\x1b[A1\\r")]
    ['a', '1', 'enter']
    >>> KeyParser().feed("\\x1b[200~two words\\x1b[201~")
    [Key(kind='paste', text='two words')]

    """

    # _unread  the start of an incomplete sequence
    def __init__(self) -> None:
        self._unread = ""

    @property
    def is_waiting(self) -> bool:
        """Whether the rest of a key is still to come."""
        return bool(self._unread)

    def feed(self, text: str) -> list[Key]:
        """Add input; return the complete keys."""
        self._unread += text
        keys = []
        while self._unread:
            key, length = self._first()
            if not length:
                break
            self._unread = self._unread[length:]
            if key is not None:
                keys.append(key)
        if len(self._unread) > _MAX_UNREAD:
            self._unread = ""
        return keys

    def finish(self) -> list[Key]:
        """Return the remaining keys if no more input comes: Escape, or nothing."""
        if self._unread.startswith(_PASTE_BEGINS):
            return []
        unread, self._unread = self._unread, ""
        return [Key("escape")] if unread == _ESCAPE else []

    def _first(self) -> tuple[Key | None, int]:
        """Return the first key and its length, 0 if it is incomplete."""
        text = self._unread
        if text[0] == _ESCAPE:
            if text.startswith(_PASTE_BEGINS):
                end = text.find(_PASTE_ENDS)
                pasted = text[len(_PASTE_BEGINS) : end]
                return (None, 0) if end < 0 else (Key("paste", pasted), end + len(_PASTE_ENDS))
            sequence = _SEQUENCE.match(text)
            return None, 0 if sequence is None else sequence.end()
        if text[0] in "\r\n":
            return Key("enter"), 1
        if text[0] in "\x7f\b":
            return Key("backspace"), 1
        if text[0] == "\x04":
            return Key("end"), 1
        return (Key("text", text[0]) if text[0].isprintable() or text[0] in JOINERS else None), 1


class Keys:
    """Keys of a terminal, while it is held.

    Parameters
    ----------
    fd
        The terminal, for reading.
    out
        The terminal, for writing.

    """

    # _were  the terminal settings to restore; None while it is not held
    def __init__(self, fd: int, out: int) -> None:
        self._fd = fd
        self._out = out
        self._were: list[object] | None = None
        self._parser = KeyParser()
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def hold(self) -> None:
        """Take the terminal: keys arrive at once and without echo. Ctrl-C and Ctrl-Z still work."""
        if self._were is None:
            self._were = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd, termios.TCSADRAIN)
            os.write(self._out, _PASTE_ON)

    def release(self) -> None:
        if self._were is not None:
            with suppress(OSError, termios.error):  # the terminal is gone
                os.write(self._out, _PASTE_OFF)
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._were)  # type: ignore[arg-type]
            self._were = None

    def read(self, timeout_s: float) -> list[Key]:
        """Return the keys pressed; an empty list if none came in time."""
        if not self._is_ready(timeout_s):
            return []
        keys = self._take()
        if self._parser.is_waiting:
            keys += self._take() if self._is_ready(_REST_S) else self._parser.finish()
        return keys

    def discard(self) -> None:
        """Discard pressed keys that were not read."""
        termios.tcflush(self._fd, termios.TCIFLUSH)
        self._parser = KeyParser()

    def _is_ready(self, timeout_s: float) -> bool:
        return bool(select.select([self._fd], [], [], timeout_s)[0])

    def _take(self) -> list[Key]:
        try:
            data = os.read(self._fd, 4096)
        except OSError:  # the terminal is gone
            data = b""
        return self._parser.feed(self._decoder.decode(data)) if data else [Key("end")]


# A key meant for a question that has just vanished must not answer the next one.
DEAF_S = 0.7
# Lines around the features: a heading of two lines, and the number of further features.
_LINES_OF_TABLE = 3
_MOST_LABEL_LINES = 4
_N_RECENT = 100

Purpose = Literal["new", "search", "old", "renamed"]
"""What is being typed: a new label, a search, a label to rename, or its new name."""
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
        Measures how long questions are shown; None for a new one.

    """

    # _pressed     keys not processed yet
    # _typed       the label being typed, None if none is
    # _purpose     what it is typed for
    # _old         the label to rename, as typed
    # _near        the known label that a new one may mean, and the command for the new one
    # _lists       whether a challenge lists the labels
    # _is_expert   whether the rule is shown with its numbers
    # _recent      labels given here, the latest first
    # _unrated     the answer whose confidence is being asked for, None if there is none
    # _start       the first feature shown, of the question `_of`
    # _remark      the problem with the last key
    # _deaf_until  until when keys about the question are ignored
    # _drawn       the contents from which the screen was drawn
    # _rows        the rows on the screen; only those that change are written
    # _was         the previous handler of Ctrl-Z
    def __init__(self, fd: int, out: int, console: Console, watch: Stopwatch | None = None) -> None:
        self._watch = watch or Stopwatch()
        self._keys = Keys(fd, out)
        self._out = out
        self._console = console
        self._pressed: deque[Key] = deque()
        self._typed: str | None = None
        self._purpose: Purpose = "new"
        self._old = ""
        self._near: tuple[Label, Command] | None = None
        self._lists = False
        self._is_expert = False
        self._recent: deque[Label] = deque(maxlen=_N_RECENT)
        self._unrated: Command | None = None
        self._helps = False
        self._start = 0
        self._of: object = None
        self._remark: str | None = None
        self._deaf_until = 0.0
        self._drawn: object = None
        self._rows: list[list[Segment]] = []
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
        """Draw what has changed on the screen."""
        of = None if view.question is None else view.question.request
        if of is not self._of:
            self._of, self._start, self._remark, self._lists = of, 0, None, False
            self._drop_entry()
        self._draw(view)
        self._watch.look(of if view.n_read is None and not self._helps else None)

    def _draw(self, view: View) -> None:
        drawn = (
            view.question,
            len(view.choices),
            (view.n_open, view.n_answered, view.n_unsent, view.n_read),
            (view.note, view.trouble, int(view.now)),
            (self._typed, self._purpose, self._near, self._unrated),
            (self._helps, self._lists, self._is_expert, self._start, self._remark),
            self._console.size,
        )
        if drawn == self._drawn or not self._is_held:
            return
        self._drawn = drawn
        before, self._rows = self._rows, self._console.render_lines(Screen(self._picture(view)))
        changed = [
            part
            for y, row in enumerate(self._rows)
            if before[y : y + 1] != [row]
            for part in (Control.move_to(0, y).segment, *row)
        ]
        if not changed:  # a second has passed, and no time is on the screen
            return
        try:
            self._console.print(Segments(changed), end="", crop=False)
            self._console.file.flush()
        except OSError:  # the terminal is gone
            self._pressed.append(Key("end"))

    def read(self, view: View, timeout_s: float) -> Command | None:
        """Return the command of a key; keys that only change the screen are handled here."""
        if not self._pressed:
            self._pressed.extend(self._keys.read(timeout_s))
        while self._pressed:
            command = self._take(self._pressed.popleft(), view)
            if command is not None:
                return command
        return None

    def question_ended(self) -> None:
        """Drop keys meant for the question that has ended."""
        self._pressed.clear()
        self._keys.discard()
        self._lists = False
        self._drop_entry()
        self._deaf_until = time.monotonic() + DEAF_S

    def _drop_entry(self) -> None:
        self._typed = self._near = self._unrated = None

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            with suppress(OSError):  # the terminal is gone
                os.write(self._out, _LEAVE)
            self._keys.release()

    def _hold(self) -> None:
        self._keys.hold()
        os.write(self._out, _ENTER)
        self._is_held = True
        self._drawn, self._rows = None, []

    def _pause(self, number: int, _frame: FrameType | None) -> None:
        """Suspend with the terminal restored, and take it again after `fg`."""
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
        if self._near is not None:
            return self._settle(key, *self._near, view)
        if self._typed is not None:
            return self._type(key, self._typed, view)
        if self._unrated is not None:
            return self._rate(key, self._unrated)
        if key.kind == "paste":
            self._remark = "pasted text is not an answer; press n first to enter it as a label"
        if key.kind == "escape":
            self._lists = False
        if key.kind != "text":
            return None
        character = key.text.lower()
        if character == "?":
            self._helps = True
        elif character == "x":
            self._is_expert = not self._is_expert
        elif character in ("q", "u"):
            return COMMANDS[character]
        elif view.question is not None and time.monotonic() >= self._deaf_until:
            return self._answer(character, view)
        return None

    def _answer(self, character: str, view: View) -> Command | None:
        assert view.question is not None
        if character == "m":
            self._start += self._most(view)
            if self._start >= len(view.question.request.x):
                self._start = 0
            return None
        if isinstance(view.question.request, Challenge) and not self._lists:
            return self._reconsider(character, view)
        if character == "n":
            self._begin("new")
        elif character == "/" and view.choices:
            self._begin("search")
        elif character == "r" and view.choices:
            self._begin("old")
        elif view.of_numbers and character in "0123456789.-+":
            self._begin("new", character)
        else:
            command = COMMANDS.get(character) or label_of_key(character, view.choices)
            if command is None:
                self._remark = f"{character} is not a key; ? shows all keys"
                return None
            return self._choose(command, view)
        return None

    def _reconsider(self, character: str, view: View) -> Command | None:
        """Process a key at a challenge, whose answer is final: only a few keys are valid."""
        if character == ANOTHER:
            self._lists = not view.of_numbers
            if view.of_numbers:
                self._begin("new")
            return None
        command = answer_to_challenge(character, view) or COMMANDS.get(character)
        return None if command is None else self._choose(command, view)

    def _begin(self, purpose: Purpose, typed: str = "") -> None:
        self._purpose, self._typed = purpose, typed

    def _choose(self, command: Command, view: View) -> Command | None:
        """Return the chosen command, unless its confidence must be asked for first."""
        command = self._watch.timed(command)
        if view.asks_confidence and command.kind == "label" and command.confidence is None:
            self._unrated = command
            return None
        return self._give(command)

    def _rate(self, key: Key, unrated: Command) -> Command | None:
        """Process a key while the confidence of an answer is asked for."""
        # Pasted text is no key, even if it is a single character.
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
            self._remark = "how sure: 1 to 5; Enter leaves it out, Esc goes back"
        return None

    def _give(self, command: Command) -> Command:
        self._drop_entry()
        if command.label is not None:
            if command.label in self._recent:
                self._recent.remove(command.label)
            self._recent.appendleft(command.label)
        if command.response_s is not None:
            self._watch.stop()
        return command

    def _type(self, key: Key, typed: str, view: View) -> Command | None:
        """Process a key while a label is being typed."""
        if key.kind in ("text", "paste"):
            self._typed = typed + "".join(c for c in key.text if c.isprintable() or c in JOINERS)
        elif key.kind == "backspace":
            self._typed = typed[:-1]
        elif key.kind == "escape":
            self._typed = None
        elif key.kind == "enter":
            try:
                return self._enter(typed, view)
            except ValueError as error:
                self._remark = str(error)
        return None

    def _enter(self, typed: str, view: View) -> Command | None:
        """Process the typed text; raise ValueError if it is invalid."""
        known = [choice.label for choice in view.choices]
        if self._purpose == "search":
            found = search(typed, known, recent=self._recent)
            if not found:
                raise ValueError("no label has these letters in this order; Esc, then n: a new one")
            self._typed = None
            return self._choose(Command(kind="label", label=found[0]), view)
        if self._purpose == "old":
            found = search(typed, known, recent=self._recent)
            if not found:
                raise ValueError("no label has these letters in this order")
            self._old = shown_label(found[0])
            self._begin("renamed")
            return None
        if self._purpose == "renamed":
            command = renaming(self._old, typed, view.choices)
            self._typed = None
            return command
        command = typed_label(typed, view)
        near = None if command.label in known else near_duplicate(str(command.label), known)
        if near is not None and isinstance(command.label, str):
            self._typed, self._near = None, (near, command)
            return None
        self._typed = None
        return self._choose(command, view)

    def _settle(self, key: Key, near: Label, command: Command, view: View) -> Command | None:
        """Process a key while asking whether a new label was meant to be a known one."""
        character = key.text.lower() if key.kind == "text" else ""
        if character == "y":
            self._near = None
            return self._choose(replace(command, label=near), view)
        if character == "n":
            self._near = None
            return self._choose(command, view)
        if key.kind == "escape":
            self._near = None
        return None

    def _most(self, view: View) -> int:
        around = Group(*self._parts(view, most=0))
        n_lines = len(self._console.render_lines(around, pad=False))
        return max(1, self._console.size.height - n_lines - _LINES_OF_TABLE)

    def _picture(self, view: View) -> RenderableType:
        if self._helps:
            return Text(looks.HELP + "\nany key: back")
        most = 0 if view.question is None else self._most(view)
        return Group(*self._parts(view, most=most))

    def _parts(self, view: View, *, most: int) -> list[RenderableType]:
        """Return the contents of the screen, with at most this many features."""
        parts: list[RenderableType] = []
        if view.n_read is None:
            below = self._entry(view)
            if below is None and view.question is not None:
                below = looks.labels(view, is_list=self._lists, most_lines=_MOST_LABEL_LINES)
            parts.append(
                looks.whole(
                    view, start=self._start, most=most, below=below, is_expert=self._is_expert
                )
            )
            parts.append(Text())
        parts.append(looks.status(view))
        for text in (view.note, self._remark):
            if text is not None:
                parts.append(Text(looks.printable_lines(text), style="yellow"))
        return parts

    def _entry(self, view: View) -> RenderableType | None:
        """Return what replaces the keys during an unfinished entry."""
        if self._near is not None:
            near, command = self._near
            return did_you_mean(near, command)
        if self._unrated is not None:
            return how_sure(self._unrated)
        if self._typed is not None:
            return typing(self._typed, self._purpose, view, self._recent, self._old)
        return None


# --- Contents of the screen while a label is typed, and while its confidence is asked for.


_MOST_FOUND = 12


def typing(
    typed: str, purpose: Purpose, view: View, recent: Sequence[Label], old: str
) -> RenderableType:
    """Return the typed text, and the labels that it may become."""
    titles = {
        "new": "new label",
        "search": "search",
        "old": "rename",
        "renamed": f"rename {old} to",
    }
    title = "number" if view.of_numbers else titles[purpose]
    text = Text.assemble((f"{title}: ", "bold"), typed, ("_", "blink"))
    if view.of_numbers:
        return text.append("   as 21.5 or 21.5 +- 0.5; Enter: give it, Esc: back", style="dim")
    known = [choice.label for choice in view.choices]
    found = search(typed, known, recent=recent) if typed or purpose in ("search", "old") else []
    takes_first = purpose in ("search", "old")
    entries = [
        Text(cut(shown_label(label)), style="bold" if takes_first and not i else "")
        for i, label in enumerate(found[:_MOST_FOUND])
    ]
    more = "{n} more"
    title = "" if takes_first else "known: "
    parts = [Legend(entries=entries, title=title, most_lines=2, more=more)] if entries else []
    what = "the first one" if takes_first else "give it" if purpose == "new" else "rename it"
    return Group(text, *parts, Text(f"Enter: {what}, Esc: back", style="dim"))


def did_you_mean(near: Label, command: Command) -> RenderableType:
    """Return the question about a new label that is similar to a known one."""
    keys = {"y": shown_label(near), "n": f"no, {said(command)} is a new label", "Esc": "back"}
    return Group(
        Text.assemble("Did you mean ", (shown_label(near), "bold"), "?"),
        Legend(entries=[Text.assemble((k, "bold cyan"), f" {what}") for k, what in keys.items()]),
    )


def how_sure(unrated: Command) -> RenderableType:
    """Return the question about the confidence of an answer, with the keys."""
    keys = [Text.assemble((key, "bold cyan"), f" {word}") for key, word in WORDS.items()]
    others = {"Enter": "leave it out", "Esc": "back", "?": "help", "q": "quit"}
    rest = [Text.assemble((key, "bold cyan"), (f" {what}", "dim")) for key, what in others.items()]
    return Group(
        Text.assemble("How sure are you of ", (said(unrated), "bold"), "?"),
        Legend(entries=keys),
        Legend(entries=rest),
    )
