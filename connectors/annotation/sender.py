"""Background sender of answers, so that annotators need not wait for the broker."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from connectors.topics import BrokerError, Outgoing, RefusedError, Writer

PAUSE_S = 1.0
"""Seconds between two attempts to send."""


class AnswerSender:
    """Writes records in order, and writes them again if it is not certain that they are stored.

    A record may be written twice; the messages sent here have ids, so that they count once.

    Parameters
    ----------
    open_writer
        Opens a writer; called again when the last one has failed.
    pause_s
        Seconds between two attempts.

    """

    # _unsent   records not stored yet, the oldest first, with their callbacks
    # _trouble  why the last attempt failed
    # _failure  the error that ended the thread, if the broker did not cause it
    # _is_done  whether to end once nothing is unsent
    # _gives_up whether to end at once
    def __init__(self, open_writer: Callable[[], Writer], *, pause_s: float = PAUSE_S) -> None:
        self._open_writer = open_writer
        self._pause_s = pause_s
        self._news = threading.Condition()
        self._unsent: deque[tuple[Outgoing, Callable[[], None] | None]] = deque()
        self._trouble: BrokerError | None = None
        self._failure: BaseException | None = None
        self._is_done = False
        self._gives_up = False
        self._thread = threading.Thread(
            target=self._run, name="streamgp: answer sender", daemon=True
        )
        self._thread.start()

    @property
    def n_unsent(self) -> int:
        """Number of records that are not stored yet."""
        with self._news:
            self._check()
            return len(self._unsent)

    @property
    def trouble(self) -> str | None:
        """The current problem with the broker, None if there is none."""
        with self._news:
            self._check()
            return None if self._trouble is None else str(self._trouble)

    @property
    def refusal(self) -> RefusedError | None:
        """The current problem if the broker refuses the records, as it will again."""
        with self._news:
            return self._trouble if isinstance(self._trouble, RefusedError) else None

    def send(self, record: Outgoing, on_safe: Callable[[], None] | None = None) -> None:
        """Take a record.

        Parameters
        ----------
        on_safe
            Called in the sender's thread once the broker has stored it.

        """
        with self._news:
            self._check()
            self._unsent.append((record, on_safe))
            self._news.notify()

    def finish(self, timeout_s: float) -> int:
        """Accept no more records, and wait until all are sent; return how many were not."""
        with self._news:
            self._is_done = True
            self._news.notify()
        self._thread.join(timeout_s)
        return self.n_unsent

    def close(self) -> None:
        """End without sending the remaining records."""
        with self._news:
            self._gives_up = True
            self._news.notify()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while self._wait():
                self._work()
        except BaseException as failure:  # raised again in the caller's thread
            with self._news:
                self._failure = failure

    def _wait(self) -> bool:
        """Wait for records to send, or for the end; return whether there are any."""
        with self._news:
            self._news.wait_for(lambda: self._unsent or self._is_done or self._gives_up)
            return bool(self._unsent) and not self._gives_up

    def _work(self) -> None:
        """Send until the broker fails, or until everything is sent and nothing more will come."""
        writer: Writer | None = None
        try:
            writer = self._open_writer()
            while self._wait():
                self._send_all(writer)
            return
        except BrokerError as error:
            with self._news:
                self._trouble = error
        finally:
            # Before the pause: it flushes, and after that all would often be written twice.
            if writer is not None:
                with suppress(BrokerError):
                    writer.close()
        with self._news:
            self._news.wait_for(lambda: self._gives_up, self._pause_s)

    def _send_all(self, writer: Writer) -> None:
        with self._news:
            unsent = list(self._unsent)
        for record, _ in unsent:
            writer.send(record)
        writer.flush()
        with self._news:
            for _ in unsent:
                self._unsent.popleft()
            self._trouble = None
        for _, on_safe in unsent:
            if on_safe is not None:
                on_safe()
