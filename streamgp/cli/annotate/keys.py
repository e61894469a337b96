"""Single keys from a terminal, without Enter; what is pasted stays in one piece."""

from __future__ import annotations

import os
import re
import select
import termios
import tty
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import Literal, NamedTuple

from streamgp.printable import JOINERS

_ESCAPE = "\x1b"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O\x1b])", re.DOTALL)
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_PASTE_ON, _PASTE_OFF = b"\x1b[?2004h", b"\x1b[?2004l"
_MAX_UNREAD = 1 << 16
# How long the rest of a key's bytes may take; after that Escape was pressed by itself.
_REST_S = 0.05

KeyKind = Literal["text", "paste", "enter", "backspace", "escape", "end"]


class Key(NamedTuple):
    """A key that was pressed; `text` tells which, or what was pasted."""

    kind: KeyKind
    text: str = ""


class KeyParser:
    """Makes keys of what a terminal sends.

    Arrows, function keys and the like are no keys here: nothing comes of them.

    Examples
    --------
    >>> [key.text or key.kind for key in KeyParser().feed("a\\x1b[A1\\r")]
    ['a', '1', 'enter']
    >>> KeyParser().feed("\\x1b[200~two words\\x1b[201~")
    [Key(kind='paste', text='two words')]

    """

    # _unread  the beginning of a sequence that has not come whole
    def __init__(self) -> None:
        self._unread = ""

    @property
    def is_waiting(self) -> bool:
        """Whether the rest of a key is to come."""
        return bool(self._unread)

    def feed(self, text: str) -> list[Key]:
        """Return the keys that are whole."""
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
        """Return what has come if nothing more will: Escape, or nothing."""
        if self._unread.startswith(_PASTE_BEGINS):
            return []
        unread, self._unread = self._unread, ""
        return [Key("escape")] if unread == _ESCAPE else []

    def _first(self) -> tuple[Key | None, int]:
        """Return the first key and its length, 0 if it is not whole."""
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
    """The keys of a terminal, for as long as it is held.

    Parameters
    ----------
    fd
        The terminal, for reading.
    out
        The same, for writing.

    """

    # _were  the settings of the terminal to go back to; None while it is not held
    def __init__(self, fd: int, out: int) -> None:
        self._fd = fd
        self._out = out
        self._were: list[object] | None = None
        self._parser = KeyParser()
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def hold(self) -> None:
        """Take the terminal: keys come at once, and are not shown. Ctrl-C and Ctrl-Z stay."""
        if self._were is None:
            self._were = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd, termios.TCSADRAIN)
            os.write(self._out, _PASTE_ON)

    def release(self) -> None:
        """Give the terminal back as it was."""
        if self._were is not None:
            with suppress(OSError, termios.error):  # the terminal is gone
                os.write(self._out, _PASTE_OFF)
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._were)  # type: ignore[arg-type]
            self._were = None

    def read(self, timeout_s: float) -> list[Key]:
        """Return the keys pressed; an empty list if none were in time."""
        if not self._is_ready(timeout_s):
            return []
        keys = self._take()
        if self._parser.is_waiting:
            keys += self._take() if self._is_ready(_REST_S) else self._parser.finish()
        return keys

    def discard(self) -> None:
        """Forget what was pressed and not read."""
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
