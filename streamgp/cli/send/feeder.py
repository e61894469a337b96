"""Rows on their way into the events topic, at their pace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from connectors.records import Writer
from connectors.tables.streams import TableError
from connectors.wire.outbox import Outbox
from streamgp.cli.configuration.logs import N_REASONS_SHOWN
from streamgp.interactive.messages import Event, Rejected

SOURCE = "/streamgp/send"
MOST_IN_FLIGHT = 1000
"""Rows sent and not known to be safe."""
UNSAFE_FOR_S = 0.25
_NAP_S = 0.05

Say: TypeAlias = Callable[[str, float], None]
"""Called with a line about how far it is, and the share that is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When rows are sent, and when they are said to have happened.

    Parameters
    ----------
    speed
        How many times faster than they happened; None for as fast as possible.
    keep_times
        Whether the events keep the times of the log; else they happen when they are sent.

    """

    speed: float | None = None
    keep_times: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRead:
    """A row of a log.

    Parameters
    ----------
    number
        Its number over all logs, from 1.
    message
        The event, or why there is none.
    share
        How much of all logs has been read, between 0 and 1.

    """

    number: int
    message: Event | Rejected
    share: float


class Feeder:
    """Sends rows to the events topic.

    Parameters
    ----------
    writer
        Writes to the topics.
    pace
        When rows are sent.
    keyed
        Whether the workers have a learner for each key.
    n_taught
        The first rows that bring their label to be learned.
    clock
        Tells the time, POSIX seconds.
    sleep
        Waits for so many seconds.

    Attributes
    ----------
    n_sent, n_rejected
        Rows sent, and rows that cannot be.
    reasons
        Why not, of the first.
    last, safe
        The last row that was looked at; the last one of which all before are safe with the broker.

    """

    # _n_unsafe  rows sent since the last flush, at _flushed_at
    # _start     time of the first row in the log, and when it was sent
    def __init__(
        self,
        writer: Writer,
        pace: Pace,
        *,
        keyed: bool,
        n_taught: int = 0,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.n_sent = 0
        self.n_rejected = 0
        self.reasons: list[str] = []
        self.last = 0
        self.safe = 0
        self._writer = writer
        self._pace = pace
        self._outbox = Outbox(SOURCE, keyed=keyed)
        self._n_taught = n_taught
        self._clock = clock
        self._sleep = sleep
        self._n_unsafe = 0
        self._flushed_at = clock()
        self._start: tuple[float, float] | None = None

    def run(self, rows: Iterator[RowRead], should_stop: Callable[[], bool], say: Say) -> None:
        """Send rows until there are no more, or somebody wants an end.

        Raises
        ------
        LinkError
            If the broker is lost; what is safe is told by `safe`.
        TableError
            If a log is damaged; what came before is sent.

        """
        try:
            for row in rows:
                if should_stop() or not self._wait_for(row, should_stop):
                    break
                self._send(row)
                self.last = row.number
                now = self._clock()
                if self._n_unsafe >= MOST_IN_FLIGHT or now - self._flushed_at >= UNSAFE_FOR_S:
                    self._flush()
                say(f"{self.n_sent} events sent", row.share)
        except TableError:
            self._flush()
            raise
        self._flush()

    def _wait_for(self, row: RowRead, should_stop: Callable[[], bool]) -> bool:
        """Wait until it is a row's turn; return whether it is."""
        speed, event = self._pace.speed, row.message
        if speed is None or isinstance(event, Rejected):
            return True
        if self._start is None:
            self._start = (event.occurred_at, self._clock())
        first_at, started_at = self._start
        due = started_at + (event.occurred_at - first_at) / speed
        while (wait_s := due - self._clock()) > 0.0:
            if should_stop():
                return False
            if wait_s > _NAP_S and self._n_unsafe:
                self._flush()
            self._sleep(min(wait_s, _NAP_S))
        return True

    def _send(self, row: RowRead) -> None:
        message = row.message
        if isinstance(message, Rejected):
            self._reject(f"{message.subject}: {message.reason}")
            return
        if not self._pace.keep_times:
            message = replace(message, occurred_at=self._clock())
        if row.number <= self._n_taught:
            message = replace(message, y=message.truth)
        try:
            record = self._outbox.message(message, None)
        except ValueError as error:
            self._reject(f"row {row.number}: {error}")
            return
        self._writer.send(record)
        self.n_sent += 1
        self._n_unsafe += 1

    def _reject(self, reason: str) -> None:
        self.n_rejected += 1
        if len(self.reasons) < N_REASONS_SHOWN:
            self.reasons.append(reason)

    def _flush(self) -> None:
        if self._n_unsafe:
            self._writer.flush()
        self.safe, self._n_unsafe = self.last, 0
        self._flushed_at = self._clock()
