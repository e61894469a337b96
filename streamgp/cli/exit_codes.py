"""How a command ends, for whoever watches over the process.

65, 70 and 75 are those of `sysexits.h`; 76 is told apart from 75 because it must not be answered
by starting the worker again.

"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn

DONE = 0
NEEDS_OPERATOR = 1  # of `streamgp check` alone
WRONG_USE = 2
TOO_MANY_BAD = 65
INTERNAL_ERROR = 70
LOST_BROKER = 75
FENCED = 76
HUNG_UP = 129  # 128 + SIGHUP, as shells report it
INTERRUPTED = 130  # 128 + SIGINT
UNREAD = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM

MEANING: dict[int, str] = {
    DONE: "stopped by SIGTERM, SIGINT or SIGHUP; the last batch is committed",
    WRONG_USE: "wrong use, configuration or topics; starting again does not help",
    TOO_MANY_BAD: "too many inputs could not be used; look at the dead letters",
    INTERNAL_ERROR: "an error of streamgp itself; nothing of that batch is committed",
    LOST_BROKER: "lost the broker or a transaction; nothing is lost, start again",
    FENCED: "another worker with the same instance name took over; do not start again",
    HUNG_UP: "a second SIGHUP; nothing of the last batch is committed",
    INTERRUPTED: "a second SIGINT; nothing of the last batch is committed",
    TERMINATED: "a second SIGTERM; nothing of the last batch is committed",
}
"""What each exit status of `streamgp run` means."""


def status_of(signal: str | None) -> int:
    """Return the exit status of a command that a signal has ended before it was done.

    Examples
    --------
    >>> status_of("SIGTERM"), status_of(None)
    (143, 0)

    """
    by_signal = {"SIGHUP": HUNG_UP, "SIGINT": INTERRUPTED, "SIGTERM": TERMINATED}
    return DONE if signal is None else by_signal[signal]


def leave(status: int) -> NoReturn:
    """End the process now, with everything written that was said so far.

    A client whose broker is gone has threads and exit handlers that would keep the process for a
    while; there is nothing left for them to do.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(status)
