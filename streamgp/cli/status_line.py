"""One line about what a long command does: rewritten on a terminal, repeated in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

REWRITE_S = 0.2
REPEAT_S = 10.0
_CLEAR = "\r\x1b[K"


class StatusLine:
    """Writes to stderr how far something is.

    Parameters
    ----------
    stream
        Where to write; stderr if None.
    clock
        Seconds that never go back.

    """

    def __init__(
        self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._is_terminal = self._stream.isatty()
        self._due = clock() + (0.0 if self._is_terminal else REPEAT_S)
        self._last = ""

    def show(self, text: Callable[[], str]) -> None:
        """Show how it is now, if it is time to."""
        now = self._clock()
        if now < self._due:
            return
        line = text()
        if self._is_terminal:
            self._due = now + REWRITE_S
            self._write(f"{_CLEAR}{line}")
        else:
            self._due = now + REPEAT_S
            if line != self._last:
                self._write(f"{line}\n")
        self._last = line

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self._write(f"{_CLEAR if self._is_terminal else ''}{text}\n")

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal was closed: no reason to stop what it tells of
            self._stream.write(text)
            self._stream.flush()
