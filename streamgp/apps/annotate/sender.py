"""Answers on their way to the broker, in the background: whoever answers need not wait for it."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from connectors.annotation.inbox import AnnotationInbox, Question
from connectors.topics import BrokerError, Outgoing, Writer
from connectors.wire.outbound import Outbound
from streamgp.interactive.messages import Answer, Challenge

PAUSE_S = 1.0
SOURCE = "/streamgp/annotate"
PROGRAM = "annotate"
"""How answers are marked as coming from here."""


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

    # _unsent   what is not safe yet, the oldest first
    # _trouble  why the last attempt failed
    # _failure  what ended the thread, where it was no trouble with the broker
    # _is_done  whether to leave as soon as nothing is unsent
    # _gives_up whether to leave at once
    def __init__(self, open_writer: Callable[[], Writer], *, pause_s: float = PAUSE_S) -> None:
        self._open_writer = open_writer
        self._pause_s = pause_s
        self._news = threading.Condition()
        self._unsent: deque[Outgoing] = deque()
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

    def send(self, record: Outgoing) -> None:
        """Take a record."""
        with self._news:
            self._check()
            self._unsent.append(record)
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
        except BaseException as failure:  # raised again where somebody sees it
            with self._news:
                self._failure = failure

    def _wait(self) -> bool:
        """Return whether there is something to send, once that is known."""
        with self._news:
            self._news.wait_for(lambda: self._unsent or self._is_done or self._gives_up)
            return bool(self._unsent) and not self._gives_up

    def _work(self) -> None:
        """Send until there is trouble, or nothing is left and nobody will send any more."""
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
            records = list(self._unsent)
        for record in records:
            writer.send(record)
        writer.flush()
        with self._news:
            for _ in records:
                self._unsent.popleft()
            self._trouble = None


# --- The answers of a simulated annotator on their way: to their moment, then to the broker.


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counts of a simulated annotator's answers.

    Parameters
    ----------
    n_answered
        Answers sent, of all kinds.
    n_challenges
        How many of them were about challenges.
    n_declined
        How many of them gave no label.

    """

    n_answered: int = 0
    n_challenges: int = 0
    n_declined: int = 0

    def note(self, answer: Answer, *, is_challenge: bool) -> None:
        """Count an answer."""
        self.n_answered += 1
        self.n_challenges += is_challenge
        self.n_declined += answer.declined


class UnderWay:
    """Answers that have been thought of, and are not safe with the broker.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.

    Attributes
    ----------
    counts
        What was done.

    """

    # _waiting  heap of (answered_at, number, question, answer); numbers keep equal moments apart
    # _unsure   answers of which it is not certain that they are safe, with their partition
    def __init__(self, *, keyed: bool) -> None:
        self.counts = Counts()
        self._outbox = Outbound(SOURCE, keyed=keyed)
        self._waiting: list[tuple[float, int, Question, Answer]] = []
        self._unsure: list[tuple[Answer, int | None]] = []
        self._n_added = 0

    def __len__(self) -> int:
        """Return the number of answers whose moment has not come."""
        return len(self._waiting)

    @property
    def next_at(self) -> float | None:
        """Time of the next answer, None if none is due."""
        return self._waiting[0][0] if self._waiting else None

    def add(self, question: Question, answer: Answer) -> None:
        """Take an answer, to be sent at its moment if the question is still open then."""
        self._n_added += 1
        heapq.heappush(self._waiting, (answer.answered_at, self._n_added, question, answer))

    def start_over(self, desk: AnnotationInbox) -> None:
        """Forget what waits: it will be thought of anew. What may have been sent, a desk knows."""
        self._waiting.clear()
        for answer, partition in self._unsure:
            desk.take(answer, partition=partition, at=answer.answered_at)

    def send(self, writer: Writer, desk: AnnotationInbox, now: float) -> int:
        """Send what is due; return how many answers that were.

        Raises
        ------
        BrokerError
            If the broker cannot be worked with; they are sent again the next time.

        """
        while self._waiting and self._waiting[0][0] <= now:
            _, _, question, answer = heapq.heappop(self._waiting)
            if not desk.is_open(question, now):
                continue
            desk.take(answer, partition=question.partition, at=now)
            self._unsure.append((answer, question.partition))
            self.counts.note(answer, is_challenge=isinstance(question.request, Challenge))
        n = len(self._unsure)
        if n:
            for answer, partition in self._unsure:
                writer.send(self._outbox.message(answer, partition))
            writer.flush()
            self._unsure.clear()
        return n
