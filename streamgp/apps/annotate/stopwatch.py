"""Response times: how long a question was shown to the annotator.

All the time during which it was shown counts, also before it was skipped or before an outage of the
broker. Time during which it was not shown does not count: while something else was on the screen,
or while the program (Ctrl-Z) or the computer was suspended.

"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgp.apps.annotate.commands import Command
    from streamgp.interactive.messages import Request


N_KEPT = 1000
"""Number of postponed questions whose time so far is kept."""


class Stopwatch:
    """Measures how long each question is shown.

    Parameters
    ----------
    clock
        Returns seconds. The default is monotonic, and stands still while the computer sleeps.

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
        self._spent: dict[tuple[str | None, str], float] = {}
        self._looked_at = 0.0
        self._was: Any = None

    def listen(self) -> None:
        """Start to notice when the program was suspended and continues."""
        if threading.current_thread() is threading.main_thread():
            self._was = signal.signal(signal.SIGCONT, self._wake)

    def close(self) -> None:
        """Restore the previous signal handler."""
        if self._was is not None:
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
            spent = self._spent.pop(self._front, 0.0)  # the last one looked at comes last
            self._spent[self._front] = spent + max(0.0, now - self._looked_at)
            if len(self._spent) > N_KEPT:
                del self._spent[next(iter(self._spent))]
        self._looked_at = max(now, self._looked_at)

    def _wake(self, _number: int, _frame: FrameType | None) -> None:
        """Leave out the time since the last look: the program was suspended."""
        self._looked_at = self._clock()
