"""Answers on their way to the broker, in the background: an annotator need not wait for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from connectors.topics import BrokerError, Outgoing, Writer

PAUSE_S = 1.0
"""Seconds between two attempts to send."""


class AnswerSender:
    """Writes records in their order, and writes them again if it is not certain that they are safe.

    A record may be written twice; what is sent here has an id that counts once.

    Parameters
    ----------
    open_writer
        Opens a writer; called again when the last one has failed.
    pause_s
        Seconds between two attempts.

    """

    # _unsent   what is not safe yet, the oldest first, with what to call once it is
    # _trouble  why the last attempt failed
    # _failure  what ended the thread, where it was no trouble with the broker
    # _is_done  whether to leave as soon as nothing is unsent
    # _gives_up whether to leave at once
    def __init__(self, open_writer: Callable[[], Writer], *, pause_s: float = PAUSE_S) -> None:
        self._open_writer = open_writer
        self._pause_s = pause_s
        self._news = threading.Condition()
        self._unsent: deque[tuple[Outgoing, Callable[[], None] | None]] = deque()
        self._trouble: str | None = None
        self._failure: BaseException | None = None
        self._is_done = False
        self._gives_up = False
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        self._thread.start()

    @property
    def n_unsent(self) -> int:
        """Number of records that are not safe yet."""
        with self._news:
            self._check()
            return len(self._unsent)

    @property
    def trouble(self) -> str | None:
        """Trouble with the broker, None if there is none."""
        with self._news:
            self._check()
            return self._trouble

    def send(self, record: Outgoing, on_safe: Callable[[], None] | None = None) -> None:
        """Take a record.

        Parameters
        ----------
        record
            The record.
        on_safe
            Called in the sender's thread as soon as the broker has it.

        """
        with self._news:
            self._check()
            self._unsent.append((record, on_safe))
            self._news.notify()

    def finish(self, timeout_s: float) -> int:
        """Take no more, and wait until all is sent; return how many records were not in time."""
        with self._news:
            self._is_done = True
            self._news.notify()
        self._thread.join(timeout_s)
        return self.n_unsent

    def close(self) -> None:
        """Give up what is not sent."""
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
        """Return whether there is something to send, once that is known."""
        with self._news:
            self._news.wait_for(lambda: self._unsent or self._is_done or self._gives_up)
            return bool(self._unsent) and not self._gives_up

    def _work(self) -> None:
        """Send until there is trouble, or nothing is left and no more will be sent."""
        writer: Writer | None = None
        try:
            writer = self._open_writer()
            while self._wait():
                self._send_all(writer)
        except BrokerError as error:
            with self._news:
                self._trouble = str(error)
                self._news.wait_for(lambda: self._gives_up, self._pause_s)
        finally:
            if writer is not None:
                with suppress(BrokerError):
                    writer.close()

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
