"""Drives a loop: poll a source, pass inputs on, send the results, flush, commit.

Only this module knows the time. With a clock, timers follow the clock, even when
nothing comes in. Without one they follow the records: before a record of time t, whatever was due
before t ends, a millisecond after it was due; after the last record nothing more happens.

"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Any

from connectors.broker import Received, Sink, Source
from streamgp.interactive.messages import Answer, Cancel, Event, Message, Rejected, Retraction
from streamgp.simulation.driver import Driver, Loop, just_after

LONGEST_WAIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Counts of a run.

    Attributes
    ----------
    n_events, n_answers, n_cancels
        Number of inputs passed to the loop.
    n_rejected
        Number of inputs that could not be passed on; the loop's own rejections are among those
        sent.
    n_sent
        Number of messages sent.
    loop_s
        Seconds spent inside the loop, all inputs and timers together.
    last_at
        The latest time of any record passed on, None if there was none.
    interrupted
        Whether the user interrupted it (Ctrl-C).
    whole
        Whether everything passed on was sent and committed: false only after a second Ctrl-C.

    """

    n_events: int
    n_answers: int
    n_cancels: int
    n_rejected: int
    n_sent: int
    loop_s: float
    last_at: float | None
    interrupted: bool
    whole: bool = True

    @property
    def microseconds_per_event(self) -> float | None:
        """Time inside the loop divided by events, None without events."""
        return 1e6 * self.loop_s / self.n_events if self.n_events else None


def run(
    loop: Loop,
    source: Source,
    sink: Sink,
    *,
    clock: Callable[[], float] | None = None,
    on_input: Callable[[Received], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    last_at: float | None = None,
) -> RunResult:
    """Drive a loop until the source is exhausted, or until it is stopped.

    Records that were polled together are processed, flushed and committed together. Ctrl-C finishes
    these records, flushes, commits, and returns with `interrupted`; a second Ctrl-C returns at
    once, without a commit. Any other error is raised: what was not committed comes again.

    Parameters
    ----------
    loop
        The loop.
    source
        Source of the inputs.
    sink
        Receives the messages.
    clock
        Returns the time, such as `time.time`; None to use the time of the records.
    on_input
        Called with every record before it is passed on.
    should_stop
        Called before every poll.
    last_at
        `last_at` of the run that this one continues.

    Raises
    ------
    TypeError
        If the source delivers anything but lists of inputs of a loop, each as `Received`.

    """
    drive = _Run(loop, sink, on_input, last_at)
    with _ctrl_c() as pressed:
        try:
            while not (pressed() or source.exhausted or (should_stop and should_stop())):
                now = None if clock is None else clock()
                if now is not None:
                    drive.end_before(now)
                received = source.poll(_wait(loop, clock))
                if not isinstance(received, Iterable):
                    raise TypeError(
                        "source.poll must return a list of Received, empty if nothing came, "
                        f"got {type(received).__name__}"
                    )
                for one in received:
                    drive.take(one, written_at=now)
                if received or drive.unflushed:
                    drive.flush()
                    source.commit()
            if clock is None and source.exhausted and drive.last_at is not None:
                drive.end_before(drive.last_at)  # what was due earlier in a log out of order
                if drive.unflushed:
                    drive.flush()
                    source.commit()
        except KeyboardInterrupt:
            drive.flush()
            return drive.result(interrupted=True, whole=False)
        return drive.result(interrupted=pressed())


class _Run:
    """The loop, the sink and the counts of one run."""

    # _cause  the current input, None for a timer
    def __init__(
        self,
        loop: Loop,
        sink: Sink,
        on_input: Callable[[Received], None] | None,
        last_at: float | None,
    ) -> None:
        self._driver = _MeasuredDriver(loop, self._send)
        self._sink = sink
        self._on_input = on_input
        self._counts = dict.fromkeys((Event, Answer, Cancel, Rejected), 0)
        self._n_sent = 0
        self._cause: Received | None = None
        self.last_at = last_at
        self.unflushed = False

    def take(self, received: Received, *, written_at: float | None) -> None:
        """Process one record and send the results; without a clock they have the log's time."""
        if not isinstance(received, Received):
            raise TypeError(
                f"source must deliver Received(message=..., at=...), got {type(received).__name__}"
            )
        message, at = received.message, received.at
        if self._on_input is not None:
            self._on_input(received)
        if isinstance(message, Event | Answer | Cancel):
            if written_at is None:
                self.end_before(at)
            self._cause = received
            self._driver.hand_over(message, at, written_at=written_at)
            self.last_at = at if self.last_at is None else max(self.last_at, at)
        elif isinstance(message, Rejected):
            self._cause = received
            self._send(message, at)
        else:
            raise TypeError(
                f"source must deliver Event, Answer, Cancel or Rejected, "
                f"got {type(message).__name__}"
            )
        self._counts[type(message)] += 1

    def end_before(self, now: float) -> None:
        """End everything that was due before `now`, in turn, and pass the time on."""
        self._cause = None
        self._driver.end_before(now)

    def _send(self, message: Message, _now: float) -> None:
        self._sink.send(message, cause=self._cause)
        self._n_sent += not isinstance(message, Retraction)
        self.unflushed = True

    def flush(self) -> None:
        """Flush everything sent."""
        self._sink.flush()
        self.unflushed = False

    def result(self, *, interrupted: bool, whole: bool = True) -> RunResult:
        """Return the counts."""
        return RunResult(
            n_events=self._counts[Event],
            n_answers=self._counts[Answer],
            n_cancels=self._counts[Cancel],
            n_rejected=self._counts[Rejected],
            n_sent=self._n_sent,
            loop_s=self._driver.loop_s,
            last_at=self.last_at,
            interrupted=interrupted,
            whole=whole,
        )


class _MeasuredDriver(Driver):
    """A driver that counts the seconds spent inside the loop."""

    loop_s = 0.0

    def _call(
        self, function: Callable[..., list[Message]], *arguments: Any, **options: Any
    ) -> list[Message]:
        start = perf_counter()
        messages = function(*arguments, **options)
        self.loop_s += perf_counter() - start
        return messages


def _wait(loop: Loop, clock: Callable[[], float] | None) -> float:
    """Return how long to wait for input: at most until the next deadline, and not too long."""
    if clock is None:
        return LONGEST_WAIT_S
    deadline = loop.next_deadline()
    if deadline is None:
        return LONGEST_WAIT_S
    return min(LONGEST_WAIT_S, max(0.0, just_after(deadline) - clock()))


@contextmanager
def _ctrl_c() -> Iterator[Callable[[], bool]]:
    """Record the first Ctrl-C instead of raising, so that no record is left half done.

    The second one raises. If signals belong to other code (another thread, or a handler
    of the program's own), nothing is changed.
    """
    pressed = threading.Event()
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )

    def note(_signal: int, _frame: FrameType | None) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
