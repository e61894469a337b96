"""How a running command is asked to stop: politely by one signal, at once by a second.

The first SIGTERM, SIGINT or SIGHUP (the terminal was closed) sets a flag, which the command looks
at between two batches. Whoever sends another one does not want to wait any longer.

"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

# A terminal sends Ctrl-C to all processes, and a supervisor may pass it on: one wish, two signals.
_SAME_WISH_S = 0.5
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stop:
    """Tells whether to stop; listens to signals inside of a `with` block.

    A signal that was ignored when the process began stays so, as for a command in the background
    of a script, or under `nohup`.

    Parameters
    ----------
    tell
        Told the name of the first signal, once, where somebody asks whether to stop: a signal comes
        in the middle of anything, where nothing can be written.

    Attributes
    ----------
    signal
        Name of the signal that asked first, None while there was none.

    Examples
    --------
    >>> with Stop() as stop:
    ...     before = stop()
    ...     signal.raise_signal(signal.SIGTERM)
    ...     before, stop(), stop.signal
    (False, True, 'SIGTERM')

    """

    # _at    when it was asked, by the clock of `monotonic`
    # _were  who handled the signals before
    # _told  whether the signal has been told
    def __init__(self, tell: Callable[[str], None] = lambda _signal: None) -> None:
        self.signal: str | None = None
        self._tell = tell
        self._told = False
        self._at = 0.0
        self._were: dict[signal.Signals, Any] = {}

    def __call__(self) -> bool:
        """Whether to stop."""
        if self.signal is not None and not self._told:
            self._told = True
            self._tell(self.signal)
        return self.signal is not None

    def __enter__(self) -> Stop:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._were[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, was in self._were.items():
            signal.signal(number, was)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.signal is None:
            self.signal, self._at = signal.Signals(number).name, now
        elif now - self._at > _SAME_WISH_S:
            os._exit(128 + number)
