"""Line interface: questions are printed as text, answered by one line each, and timed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from streamgp.apps.annotate import question_view as looks
from streamgp.apps.annotate.choices import IN_A_LINE
from streamgp.apps.annotate.commands import Command, UnclearLineError, line_of
from streamgp.apps.console import Incoming
from streamgp.common.latest import Latest

if TYPE_CHECKING:
    from connectors.annotation.open_questions import Question
    from streamgp.apps.annotate.question_view import View
    from streamgp.interactive.messages import Request


_WIDTH = 100  # in a pipe; a terminal may be narrower
# A line typed or pasted for an earlier question must not answer the next one.
DEAF_S = 0.7


class Lines:
    """The lines of a stream, as they arrive.

    Parameters
    ----------
    stream
        A file, a pipe or a terminal; anything else is read to its end immediately.

    Attributes
    ----------
    n_dropped
        Number of lines dropped.
    is_typed
        Whether a person types them at a terminal.

    """

    # _input   what is read; None if nothing more comes
    # _unread  lines read from the stream, but not used yet
    def __init__(self, stream: TextIO) -> None:
        self.n_dropped = 0
        self.is_typed = stream.isatty()
        self._unread = b""
        self._input: Incoming | None = None
        try:
            self._input = Incoming(stream)
        except (OSError, ValueError):
            self._unread = stream.read().encode()

    @property
    def has_ended(self) -> bool:
        """Whether there is no line left, and none will come."""
        return self._input is None and not self._unread

    @property
    def is_waiting(self) -> bool:
        """Whether a line can be read without waiting."""
        return bool(self._unread) or self.is_waiting_in_pipe

    @property
    def is_waiting_in_pipe(self) -> bool:
        """Whether the pipe holds unread data, or has ended."""
        return self._input is not None and self._input.wait(0.0)

    def first(self, timeout_s: float) -> str | None:
        """Return the first line that was not dropped, None if none arrives in time."""
        while b"\n" not in self._unread and self._input is not None:
            if not self._input.wait(timeout_s):
                return None
            self._fill()
        line = self._unread.partition(b"\n")[0]
        return line.decode(errors="replace") if self._unread else None

    @property
    def is_at_end(self) -> bool:
        """Whether no further line will come."""
        if self.is_waiting_in_pipe:
            self._fill()
        return self._input is None

    def _fill(self) -> None:
        assert self._input is not None
        try:
            data = self._input.read()
        except OSError:  # the terminal is gone
            data = b""
        self._unread += data
        if not data:
            self._input = None

    def drop(self) -> None:
        self._unread = self._unread.partition(b"\n")[2]
        self.n_dropped += 1

    def discard(self) -> None:
        """Discard what was typed and not read, a line without its end included."""
        self._unread = b""
        if self._input is not None:
            self._input.discard()


# --- Response times: how long a question was the last one shown.
#
# All the time counts, also before it was skipped or before an outage of the broker. Time does not
# count while another question is shown, or while the program (Ctrl-Z) or the computer is suspended.


N_KEPT = 1000
"""Number of postponed questions whose time so far is kept."""


class Stopwatch:
    """Measures how long each question is shown.

    Parameters
    ----------
    clock
        Returns seconds. The default is monotonic, and stands still while the computer sleeps,
        except on Windows.

    Examples
    --------
    >>> from streamgp.interactive import LabelRequest
    >>> ask = LabelRequest(
    ...     request_id="e1/label", event_id="e1", x={}, reason="", score=1.0, threshold=0.0,
    ...     requested_at=0.0,
    ... )
    >>> moments = iter([10.0, 13.0, 20.0, 22.5])
    >>> watch = Stopwatch(clock=lambda: next(moments))
    >>> watch.look(ask)
    >>> watch.look(None)  # it was shown for 3 seconds
    >>> watch.look(ask)
    >>> watch.seconds()
    5.5

    """

    # _front      the question shown, by key and request id; None if there is none
    # _spent      how long questions had been shown at the last look
    # _looked_at  time of the last look
    # _was        the previous handler of SIGCONT
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._front: tuple[str | None, str] | None = None
        self._spent: Latest[tuple[str | None, str], float] = Latest(N_KEPT)
        self._looked_at = 0.0
        self._was: Any = None

    def listen(self) -> None:
        """Start to notice when the program was suspended and continues."""
        if sys.platform == "win32":  # no program is suspended there
            return
        if threading.current_thread() is threading.main_thread():
            self._was = signal.signal(signal.SIGCONT, self._wake)

    def close(self) -> None:
        """Restore the previous signal handler."""
        if sys.platform != "win32" and self._was is not None:
            signal.signal(signal.SIGCONT, self._was)
            self._was = None

    def look(self, request: Request | None) -> None:
        """Record the question that is shown from now on, or still is; None for none.

        Call it often: a suspension is measured from the last look before it.
        """
        self._count()
        self._front = None if request is None else (request.key, request.request_id)

    def seconds(self) -> float:
        """Return how long the current question has been shown, 0 if there is none."""
        self._count()
        return 0.0 if self._front is None else self._spent.get(self._front, 0.0)

    def timed(self, command: Command) -> Command:
        """Return an answer with its response time, to the millisecond; other commands unchanged."""
        if command.kind not in ("label", "decline"):
            return command
        return replace(command, response_s=round(self.seconds(), 3))

    def stop(self) -> None:
        """Forget the current question, which is answered. If shown again, it starts at zero."""
        if self._front is not None:
            self._spent.pop(self._front, None)
            self._front = None

    def _count(self) -> None:
        now = self._clock()  # before the last look if the program wakes right after this line
        if self._front is not None:
            spent = self._spent.get(self._front, 0.0)
            self._spent.put(self._front, spent + max(0.0, now - self._looked_at))
        self._looked_at = max(now, self._looked_at)

    def _wake(self, _number: int, _frame: FrameType | None) -> None:
        """Leave out the time since the last look: the program was suspended."""
        self._looked_at = self._clock()


# --- The interface.


class LineFace:
    """Prints every question once; a line answers the last question printed.

    Parameters
    ----------
    lines
        Source of the answers.
    out
        Stream to which the questions are printed.
    watch
        Measures how long questions are shown; None for a new one.

    """

    # _shown        the last question printed; None to print it again
    # _was_written  whether a line was already waiting, so that its response time is meaningless
    # _said         the last note and trouble printed, and whether answers are set aside
    # _is_idle      whether there was no question at the last look
    # _deaf_until   until when typed lines are ignored, but for q
    def __init__(self, lines: Lines, out: TextIO, watch: Stopwatch | None = None) -> None:
        from rich.console import Console

        self._lines = lines
        self._watch = watch or Stopwatch()
        self._console = Console(
            file=out, width=_WIDTH, color_system=None, force_terminal=False, highlight=False
        )
        self._shown: Question | None = None
        self._was_written = False
        self._said: tuple[str | None, ...] = (None, None, None)
        self._is_idle = False
        self._deaf_until = 0.0

    def __enter__(self) -> LineFace:
        self._watch.listen()
        return self

    def __exit__(self, *error: object) -> None:
        self._watch.close()

    def show(self, view: View) -> None:
        self._fit_terminal()
        aside = looks.SET_ASIDE if view.is_set_aside and view.n_read is None else None
        news = (view.note, view.trouble, aside)
        for new, old in zip(news, self._said, strict=True):
            if new is not None and new != old:
                self._print(new)
        self._said = news
        if view.n_read is None and view.question is not None and view.question != self._shown:
            if self._lines.is_typed and self._lines.is_waiting:
                self.question_ended()
                self._print("what was typed before this question was shown is not read")
            self._was_written = self._lines.is_waiting
            self._console.print()
            self._console.print(looks.whole(view, most=looks.MOST_IN_LINES))
            if view.asks_confidence:
                self._print(IN_A_LINE)
            self._console.print(looks.status(view))
        was_idle, self._is_idle = self._is_idle, view.n_read is None and view.question is None
        if self._is_idle and not was_idle and self._lines.is_typed:
            self._console.print(looks.whole(view))
        self._shown = view.question
        request = None if view.question is None else view.question.request
        self._watch.look(request if view.n_read is None else None)

    def read(self, view: View, timeout_s: float) -> Command | None:
        """Parse the next line. In a pipe, lines for which there is no question yet are kept.

        Raises
        ------
        UnclearLineError
            If it is invalid and was not typed: the lines after it were written for later questions,
            and would answer this one.

        """
        if view.n_read is not None:
            return None
        line = self._lines.first(timeout_s)
        if line is None:
            return Command(kind="quit") if self._lines.has_ended else None
        word = line.strip()
        while view.question is None and word not in ("", "?", "q", "u"):
            if not self._lines.is_typed:
                # The input was prepared in advance and has ended: end too, unless told to wait.
                done = self._lines.is_at_end and not view.is_patient
                return Command(kind="quit") if done else None
            # Kept, it would come before the "q" that is typed next.
            self._lines.drop()
            line = self._lines.first(0.0)
            if line is None:
                self._console.print(looks.whole(view))
                return None
            word = line.strip()
        self._lines.drop()
        if word != "q" and time.monotonic() < self._deaf_until:
            return None
        if word == "?":
            self._print(looks.help_text(view))
        elif word == "m" and view.question is not None:
            self._console.print(looks.features(view))
        elif word == "x" and view.question is not None:
            self._print(looks.expert(view))
        elif word:
            try:
                command = line_of(line, view)
            except ValueError as error:
                if not self._lines.is_typed:
                    n = self._lines.n_dropped
                    raise UnclearLineError(
                        f"line {n} of the input: {error}; nothing after it was read"
                    ) from None
                self._print(str(error))
                return None
            return self._timed(command)
        elif self._lines.is_typed:
            self._shown = None
        return None

    def _fit_terminal(self) -> None:
        """Adapt the width of what is printed to the terminal, which may have been resized."""
        with suppress(OSError, ValueError):  # no terminal
            columns = os.get_terminal_size(self._console.file.fileno()).columns
            self._console.width = min(columns or _WIDTH, _WIDTH)  # some terminals say 0

    def _timed(self, command: Command) -> Command:
        if self._was_written:
            return command
        command = self._watch.timed(command)
        if command.response_s is not None:
            self._watch.stop()
        return command

    def question_ended(self) -> None:
        """Discard what was typed for it. In a pipe, the next line is about the next question."""
        if self._lines.is_typed:
            self._lines.discard()
            self._deaf_until = time.monotonic() + DEAF_S

    def _print(self, text: str) -> None:
        self._console.print(looks.printable_lines(text), markup=False)
