"""Console of the programs: progress, signals, exit codes, text formatting.

Progress bars go to stderr, and only to a terminal: a hundred bars in a log file are of no use.

"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeAlias, cast

import click

from streamgp.common.printable import printable

if sys.platform == "win32":
    import io
    import queue
else:
    import select
    import termios
if TYPE_CHECKING:
    from rich.console import Console

Show: TypeAlias = Callable[[str, float | None], None]

# rich takes a lock for every update, so only one in this many calls updates the bar.
CALLS_PER_UPDATE = 20


@contextlib.contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Report warnings in the block as notes of one line, without their place in the code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_where: tell(f"note: {message}")
        yield


@contextlib.contextmanager
def progress(*, every: int = CALLS_PER_UPDATE) -> Iterator[Show]:
    """Show a bar on stderr while the block runs, if stderr is a terminal.

    Yields a function of a line of text and the share done, between 0 and 1, or None where nothing
    tells how much there is: the bar then has no percentage. One in `every` calls updates the bar.
    """
    if not sys.stderr.isatty():
        yield lambda _line, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        # No markup: the text may contain the name of a file or a learner.
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    console = Console(file=steady(sys.stderr))
    with (
        Progress(*columns, console=console, transient=True) as bar,
        cursor_back_while_suspended(console),
    ):
        task = bar.add_task("starting", total=None)
        calls = 0

        def show(line: str, share: float | None) -> None:
            nonlocal calls
            if calls % every == 0:
                total = None if share is None else 1.0
                bar.update(task, description=line, total=total, completed=share)
            calls += 1

        yield show


if sys.platform != "win32":

    @contextlib.contextmanager
    def cursor_back_while_suspended(console: Console) -> Iterator[None]:
        """Show the cursor, which rich hides on a terminal, while Ctrl-Z suspends the block."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        is_free = in_main_thread and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL
        if console.is_dumb_terminal or not is_free:  # a dumb one keeps its cursor
            yield
            return

        def write(control: bytes) -> None:
            with suppress(OSError):  # the terminal was closed
                os.write(console.file.fileno(), control)  # the stream's buffer may be in use

        def suspend(number: int, _frame: FrameType | None) -> None:
            write(b"\x1b[?25h")
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)  # returns when the program continues
            signal.signal(number, suspend)
            write(b"\x1b[?25l")

        signal.signal(signal.SIGTSTP, suspend)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)

else:

    @contextlib.contextmanager
    def cursor_back_while_suspended(console: Console) -> Iterator[None]:  # noqa: ARG001
        """Do nothing: Windows suspends no programs."""
        yield


class _Steady:
    """A stream whose writes never fail."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def steady(stream: TextIO) -> TextIO:
    """Wrap a terminal so that it may be closed while something is drawn on it."""
    return cast(TextIO, _Steady(stream))


def tell(line: str) -> None:
    """Write a line to stderr; a closed stderr is no error.

    Control characters are made visible, since the line may quote outside data: a path, a column, a
    reason.
    """
    with contextlib.suppress(OSError):
        click.echo(printable(line), err=True)


def seen(text: str) -> str:
    """Return text for standard output, line by line.

    A file or a pipe gets the data unchanged; for a terminal, which would obey control characters,
    invisible characters are escaped.
    """
    if sys.stdout is None or not sys.stdout.isatty():  # None: closed by the shell, `>&-`
        return text
    return "\n".join(map(printable, text.split("\n")))


@contextlib.contextmanager
def in_one_line(*kinds: type[Exception]) -> Iterator[None]:
    """Let errors whose text says everything end the command, without a traceback."""
    try:
        yield
    except kinds as error:
        raise click.ClickException(str(error)) from None


def confirm(question: str) -> bool:
    """Ask on the terminal, or read the answer from wherever standard input comes from.

    Raises
    ------
    click.ClickException
        If no answer can be read.

    """
    if sys.stdin is None:
        raise click.ClickException(f"no terminal to ask on: {question} Give --yes")
    click.echo(f"{printable(question)} [y/N]: ", nl=False)
    answer = sys.stdin.readline()
    if not answer.endswith("\n") or not sys.stdin.isatty():
        click.echo()
    if not answer:
        raise click.ClickException("no answer; give --yes to go on without being asked")
    return answer.strip().lower() in ("y", "yes")


def agreed(question: str, *, yes: bool, otherwise: str = "changed nothing") -> bool:
    """Return whether to go on, as `--yes` says or the user; if not, report `otherwise`."""
    if yes or confirm(question):
        return True
    click.echo(otherwise)
    return False


# --- Input, as it arrives.


_CHUNK = 1 << 20


if sys.platform != "win32":

    class Incoming:
        """Bytes of a file, a pipe or a terminal, which are waited for no longer than wanted.

        Raises
        ------
        OSError, ValueError
            If the stream is none of these.

        """

        def __init__(self, stream: TextIO) -> None:
            self._fd = stream.fileno()

        def wait(self, timeout_s: float) -> bool:
            """Wait until there is something to read, or the end; return whether there is."""
            return bool(select.select([self._fd], [], [], timeout_s)[0])

        def read(self) -> bytes:
            """Return what has arrived, b"" at the end."""
            return os.read(self._fd, _CHUNK)

        def discard(self) -> None:
            """Discard what was typed and not read, a line without its end included."""
            termios.tcflush(self._fd, termios.TCIFLUSH)

else:

    class Incoming:
        """The same on Windows, which can wait for nothing but sockets: a thread reads ahead."""

        # _chunks  what was read, in the end b"" or an error; the thread waits while it is full
        # _next    taken out of it, but not returned yet
        def __init__(self, stream: TextIO) -> None:
            stream.fileno()
            self._chunks: queue.Queue[bytes | OSError] = queue.Queue(maxsize=2)
            self._next: bytes | OSError | None = None
            # Without its buffer, whose lock would be held when the program ends.
            raw = cast(io.BufferedReader, stream.buffer).raw
            threading.Thread(target=self._read_ahead, args=(raw,), daemon=True).start()

        def wait(self, timeout_s: float) -> bool:
            if self._next is None:
                with suppress(queue.Empty):
                    self._next = self._chunks.get(timeout_s > 0.0, timeout_s)
            return self._next is not None

        def read(self) -> bytes:
            found = self._chunks.get() if self._next is None else self._next
            self._next = None
            if isinstance(found, OSError):
                raise found
            return found

        def discard(self) -> None:
            """Discard what was typed and not read; a line without its end stays."""
            while self.wait(0.0) and self._next:  # not the end
                self._next = None

        def _read_ahead(self, raw: io.RawIOBase) -> None:
            data: bytes | OSError = b"-"
            while data and isinstance(data, bytes):
                try:
                    data = raw.read(_CHUNK) or b""
                except OSError as error:
                    data = error
                self._chunks.put(data)


# --- One status line of a long command: rewritten on a terminal, repeated in a log.


REWRITE_S = 0.2
REPEAT_S = 10.0
_CLEAR = "\r\x1b[K"


class StatusLine:
    """Writes progress to stderr."""

    def __init__(
        self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._is_terminal = self._stream.isatty()
        self._due = clock() + (0.0 if self._is_terminal else REPEAT_S)
        self._last = ""

    def show(self, text: Callable[[], str]) -> None:
        """Show the current status, if it is due."""
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
        """Write a permanent line, unless it repeats the current one."""
        if self._is_terminal:
            self._write(f"{_CLEAR}{text}\n")
        elif text != self._last:
            self._write(f"{text}\n")
        self._last = text

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal was closed: no reason to stop the command
            click.echo(text, self._stream, nl=False)  # knows how to clear a line on Windows


# --- Signals to a running command: the first one stops it gracefully, the second immediately.
#
# The first SIGTERM, SIGINT or SIGHUP (the terminal was closed) sets a flag, which the command
# checks between two batches. A second signal means: do not wait any longer. Windows has
# SIGBREAK (Ctrl-Break) in place of SIGHUP.


# A terminal sends Ctrl-C to all processes, and a supervisor may forward it: one request, two
# signals.
_SAME_WISH_S = 0.5
if sys.platform == "win32":
    _SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGBREAK)
else:
    _SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stop:
    """Tells whether to stop; handles signals within a `with` block.

    A signal that was ignored when the process started stays ignored, as for a background command of
    a script, or under `nohup`.

    Parameters
    ----------
    tell
        Called once with the name of the first signal, at the next check: a signal may arrive in the
        middle of any operation, where nothing can be written.

    Attributes
    ----------
    signal
        Name of the first signal, None if there was none.

    Examples
    --------
    >>> with Stop() as stop:
    ...     before = stop()
    ...     signal.raise_signal(signal.SIGTERM)
    ...     before, stop(), stop.signal
    (False, True, 'SIGTERM')

    """

    # _at    when it arrived, on the clock `monotonic`
    # _were  the previous signal handlers
    # _told  whether the signal has been reported
    # _ends  whether the first signal ends the block `ending`
    def __init__(self, tell: Callable[[str], None] = lambda _signal: None) -> None:
        self.signal: str | None = None
        self._tell = tell
        self._told = False
        self._ends = False
        self._at = 0.0
        self._were: dict[signal.Signals, Any] = {}

    def __call__(self) -> bool:
        """Whether to stop."""
        if self.signal is not None and not self._told:
            self._told = True
            self._tell(self.signal)
        return self.signal is not None

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """Let the first signal end the block by a `KeyboardInterrupt`: it leaves nothing undone."""
        self._ends = True
        try:
            if self.signal is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._ends = False

    def __enter__(self) -> Stop:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._were[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *error: object) -> None:
        for number, was in self._were.items():
            signal.signal(number, was)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.signal is None:
            self.signal, self._at = signal.Signals(number).name, now
            if self._ends:
                raise KeyboardInterrupt
        elif now - self._at > _SAME_WISH_S:
            os._exit(128 + number)


# --- Text for people: counts, durations, times, columns.


_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def number(n: int, what: str, several: str | None = None) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> number(1, "record"), number(2, "record"), number(0, "entity", "entities")
    ('1 record', '2 records', '0 entities')

    """
    return f"{n} {what if n == 1 else several or what + 's'}"


def span(seconds: float) -> str:
    """Return a duration as text for people.

    Examples
    --------
    >>> [span(s) for s in (0.4, 59, 250, 7500, 200_000)]
    ['0 s', '59 s', '4 min 10 s', '2 h 5 min', '2 d 7 h']

    """
    rest = int(seconds)
    words: list[str] = []
    for size, unit in _SPANS:
        n, rest = divmod(rest, size)
        if n or words:
            words.append(f"{n} {unit}")
        if len(words) == 2:
            break
    return " ".join(word for word in words if not word.startswith("0 ")) or "0 s"


def clock_time(at: float) -> str:
    """Return a time in the local time zone, or in POSIX seconds if it is beyond its calendar.

    With the zone's offset, options that take a time can be given it, and an hour that occurs twice
    in autumn is told apart. The time may be from outside: the first and last hours of the years 1
    to 9999 in UTC belong to other years elsewhere.
    """
    try:
        return datetime.fromtimestamp(at).astimezone().isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):
        return f"{at} s since 1970"


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Return rows as columns of text.

    Examples
    --------
    >>> print(aligned([["key", "labels"], ["ann", "7"], ["bob", "12"]], right=[1]))
    key  labels
    ann       7
    bob      12

    """
    from rich.cells import cell_len  # Chinese characters take two cells of a terminal, accents none

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]

    def padded(i: int, cell: str) -> str:
        gap = " " * (widths[i] - cell_len(cell))
        return gap + cell if i in right else cell + gap

    return "\n".join("  ".join(map(padded, count(), row)).rstrip() for row in rows)


# --- Exit statuses, for the supervisor of the process.
#
# 65, 70 and 75 are those of `sysexits.h`; 76 differs from 75 because it must not be
# answered by starting the worker again.


DONE = 0
NEEDS_OPERATOR = 1  # only of `streamgp check`
WRONG_USE = 2
TOO_MANY_BAD = 65
INTERNAL_ERROR = 70
LOST_BROKER = 75
FENCED = 76
HUNG_UP = 129  # 128 + SIGHUP, as shells report it
INTERRUPTED = 130  # 128 + SIGINT
UNREAD = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM


def status_of(signal: str | None) -> int:
    """Return the exit status of a command that a signal has ended early, 0 without a signal.

    Examples
    --------
    >>> status_of("SIGTERM"), status_of(None)
    (143, 0)

    """
    by_signal = {
        "SIGHUP": HUNG_UP,
        "SIGINT": INTERRUPTED,
        "SIGTERM": TERMINATED,
        "SIGBREAK": TERMINATED,
    }
    return DONE if signal is None else by_signal[signal]


def leave(status: int) -> NoReturn:
    """End the process now, after flushing its output.

    The client of an unreachable broker has threads and exit handlers that would delay the end, and
    nothing left to do.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(status)
