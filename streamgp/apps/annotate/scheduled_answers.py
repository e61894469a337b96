"""Scheduled answers of a simulated annotator: held until they are due, then sent to the broker."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from connectors.annotation.inbox import AnnotationInbox, Question
from connectors.topics import Writer
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import Signatures
from streamgp.interactive.messages import Answer, Challenge

SOURCE = "/streamgp/annotate"
PROGRAM = "annotate"
"""Program name in answers given here."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counts of a simulated annotator's answers.

    Parameters
    ----------
    n_answered
        Number of answers sent, of all kinds.
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


class ScheduledAnswers:
    """Answers that have been decided, but are not stored by the broker yet.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    signatures
        Signs the answers; None to leave them unsigned.

    Attributes
    ----------
    counts
        Counts of the answers.

    """

    # _waiting  heap of (answered_at, number, question, answer); numbers order equal times
    # _unsure   answers that may not be stored, with their partition
    def __init__(self, *, keyed: bool, signatures: Signatures | None = None) -> None:
        self.counts = Counts()
        self._outbox = Outbound(SOURCE, keyed=keyed, signatures=signatures)
        self._waiting: list[tuple[float, int, Question, Answer]] = []
        self._unsure: list[tuple[Answer, int | None]] = []
        self._n_added = 0

    def __len__(self) -> int:
        """Return the number of answers that are not due yet."""
        return len(self._waiting)

    @property
    def next_at(self) -> float | None:
        """Time of the next answer, None if there is none."""
        return self._waiting[0][0] if self._waiting else None

    def add(self, question: Question, answer: Answer) -> None:
        """Add an answer, to be sent when it is due if the question is still open then."""
        self._n_added += 1
        heapq.heappush(self._waiting, (answer.answered_at, self._n_added, question, answer))

    def start_over(self, desk: AnnotationInbox) -> None:
        """Forget waiting answers, which will be drawn again; tell the desk those possibly sent."""
        self._waiting.clear()
        for answer, partition in self._unsure:
            desk.take(answer, partition=partition, at=answer.answered_at)

    def send(self, writer: Writer, desk: AnnotationInbox, now: float) -> int:
        """Send the answers that are due; return their number.

        Raises
        ------
        BrokerError
            If the broker cannot be used; they are sent again next time.

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
