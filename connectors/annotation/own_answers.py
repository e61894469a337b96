"""Answers of one annotator that can still be taken back.

Which answer a correction supersedes follows from the table in
`streamgp/interactive/transitions.py`: the last label that was given, or, where a label request was
declined, that answer.

"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from heapq import nlargest
from math import inf, nextafter
from typing import Any
from urllib.parse import quote

from connectors.annotation.open_questions import EventKey, Question
from connectors.wire.inbound import MAX_NAME
from streamgp.base import Label
from streamgp.interactive.messages import Answer, Challenge, Request

PAGE = "page/"
"""How ids of answers begin that clients of a desk have chosen."""
N_KEPT = 200
"""Events whose answers are kept; older ones cannot be taken back."""


class CannotUndoError(Exception):
    """An answer cannot be taken back or changed; the text says why.

    Parameters
    ----------
    text
        The reason, in words.
    code
        The reason, for programs: `none` (there is no such answer), `answered_since`, `unknown` (its
        question is not known), `not_yours` (another annotator's label stands), `forgotten`, or
        `set_aside` (its annotator is in quarantine).

    """

    def __init__(self, text: str, code: str = "none") -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """Effect of taking back an answer.

    Parameters
    ----------
    answer
        The answer that was taken back.
    question
        The question, open again.
    message
        What has to be sent; None where nothing has to, as nothing was learned from the answer.

    """

    answer: Answer
    question: Question
    message: Answer | None


class _Thread:
    """The answers about one event, from the annotator's first one on."""

    # said      answers, everybody's, in their order, each once
    # at        when the topic got each of them
    # bodies    the questions among them that can be shown again, by request id
    # reopened  what answering them would supersede, where declining was taken back
    __slots__ = ("at", "bodies", "reopened", "said")

    def __init__(self) -> None:
        self.said: list[Answer] = []
        self.at: list[float] = []
        self.bodies: dict[str, Question] = {}
        self.reopened: dict[str, str] = {}


class OwnAnswers:
    """The answers of one annotator about the last events they answered.

    Parameters
    ----------
    annotator
        How they sign.
    n_kept
        Number of events to keep.

    """

    # _threads  by event; at most `n_kept`, those with the latest answers
    def __init__(self, annotator: str, n_kept: int = N_KEPT) -> None:
        self.annotator = annotator
        self._n_kept = n_kept
        self._threads: dict[EventKey, _Thread] = {}

    def take(self, answer: Answer, at: float) -> EventKey | None:
        """Take note of an answer, of whichever annotator; a known one changes nothing.

        Returns
        -------
        The event whose answers are kept no longer, None if there is none.

        """
        event = (answer.key, answer.event_id)
        thread = self._threads.get(event)
        if thread is None:
            if not self._is_own(answer):
                return None
            thread = self._threads[event] = _Thread()
        name = answer.annotator, answer.answer_id
        if any(name == (known.annotator, known.answer_id) for known in thread.said):
            return None
        thread.said.append(answer)
        thread.at.append(at)
        thread.reopened.clear()
        if len(self._threads) <= self._n_kept:
            return None
        dropped = min(self._threads, key=self._last_at)
        del self._threads[dropped]
        return dropped

    def said(self, event: EventKey) -> list[Answer]:
        """Return what all annotators have said about an event that this one has answered."""
        thread = self._threads.get(event)
        return [] if thread is None else thread.said

    def wants(self, event: EventKey, request_id: str) -> bool:
        """Say whether the annotator has answered a request."""
        thread = self._threads.get(event)
        return thread is not None and any(a.request_id == request_id for a in self._own(thread))

    def keep(self, question: Question) -> None:
        """Keep a question that the annotator has answered, to show it again."""
        request = question.request
        event = (request.key, request.event_id)
        if self.wants(event, request.request_id):
            self._threads[event].bodies[request.request_id] = question

    def answer(
        self,
        question: Question,
        y: Label | None,
        now: float,
        *,
        answer_id: str | None = None,
        **details: Any,
    ) -> Answer | None:
        """Make the answer to a question.

        Parameters
        ----------
        question, y, now
            See `AnnotationInbox.answer`.
        answer_id
            Its id; None for one that is derived from the request and the number of answers to it.
        details
            Further fields of the `Answer`.

        Returns
        -------
        The answer, or None where nothing has to be sent: a question that the annotator declined,
        wanted back and declines again.

        """
        request = question.request
        thread = self._threads.get((request.key, request.event_id))
        if y is None and thread is not None and request.request_id in thread.reopened:
            del thread.reopened[request.request_id]
            return None
        supersedes = question.supersedes
        answer = self._say(request, y, now, supersedes=supersedes, answer_id=answer_id)
        return replace(answer, **details)

    def reopened(self) -> Iterator[Question]:
        """Return the questions that the annotator has taken an answer back from."""
        for thread in self._threads.values():
            last = thread.said[-1]
            if not self._is_own(last):
                continue
            body = thread.bodies.get(last.request_id or "")
            if body is not None and _takes_back(thread, last):
                yield replace(body, supersedes=last.answer_id)
            for request_id, supersedes in thread.reopened.items():
                yield replace(thread.bodies[request_id], supersedes=supersedes)

    def undo(
        self, now: float, answer: Answer | None = None, *, answer_id: str | None = None
    ) -> Undone:
        """Take an answer back, the last one if none is named.

        A label is taken back by a message; declining is not: the question is only open again.

        Parameters
        ----------
        now
            The time, POSIX seconds.
        answer
            The answer, one of the annotator's own.
        answer_id
            Id of the message that takes it back; None for one derived as those of answers are.

        Raises
        ------
        CannotUndoError
            If there is none, or it no longer stands, or it cannot be known what to supersede.

        """
        thread = self._last_thread() if answer is None else self._thread_of(answer)
        answer, question = self._changeable(thread, answer)
        request = question.request
        if answer.y is not None:
            supersedes = answer.answer_id
            message = self._say(request, None, now, supersedes=supersedes, answer_id=answer_id)
            reopened = replace(question, supersedes=message.answer_id)
            return Undone(answer=answer, question=reopened, message=message)
        supersedes = self._standing(thread, answer, request)
        thread.reopened[request.request_id] = supersedes
        reopened = replace(question, supersedes=supersedes)
        return Undone(answer=answer, question=reopened, message=None)

    def change(self, answer: Answer) -> Question:
        """Return the question of an own answer, such that a reply to it replaces that answer.

        Raises
        ------
        CannotUndoError
            As `undo` does.

        """
        thread = self._thread_of(answer)
        answer, question = self._changeable(thread, answer)
        if answer.y is not None:
            return replace(question, supersedes=answer.answer_id)
        return replace(question, supersedes=self._standing(thread, answer, question.request))

    def question_of(self, answer: Answer) -> Question | None:
        """Return the question that an answer was given to, None if it is not known here."""
        thread = self._threads.get((answer.key, answer.event_id))
        return None if thread is None else thread.bodies.get(answer.request_id or "")

    def latest(self, n: int) -> list[Answer]:
        """Return the answers that stand, one per event, the newest first, `n` at most."""
        lasts = [self._own(t)[-1] for t in self._threads.values() if not self._is_undone(t)]
        return nlargest(n, lasts, key=lambda answer: answer.answered_at)

    def standing(self, event: EventKey) -> Answer | None:
        """Return the last answer about an event, None if there is none that stands."""
        thread = self._threads.get(event)
        return None if thread is None or self._is_undone(thread) else self._own(thread)[-1]

    def forget(self, event: EventKey, at: float) -> bool:
        """Forget what was said about an event until a moment; return whether that was all."""
        if max(self._threads[event].at) <= at:
            del self._threads[event]
            return True
        return False

    def _last_thread(self) -> _Thread:
        threads = [t for t in self._threads.values() if not self._is_undone(t)]
        if not threads:
            raise CannotUndoError("there is no answer to take back")
        return max(threads, key=lambda thread: self._own(thread)[-1].answered_at)

    def _thread_of(self, answer: Answer) -> _Thread:
        thread = self._threads.get((answer.key, answer.event_id))
        if thread is None or all(
            known.answer_id != answer.answer_id for known in self._own(thread)
        ):
            raise CannotUndoError(
                f"only the answers about the last {self._n_kept} events can be taken back",
                "forgotten",
            )
        return thread

    def _changeable(self, thread: _Thread, named: Answer | None) -> tuple[Answer, Question]:
        """Return the annotator's last answer about an event, and its question."""
        answer, last = self._own(thread)[-1], thread.said[-1]
        if _takes_back(thread, answer):
            raise CannotUndoError(f"the answer about event {answer.event_id} is taken back already")
        if named is not None and named.answer_id != answer.answer_id:
            raise CannotUndoError(
                f"you have answered about event {answer.event_id} since", "answered_since"
            )
        if last is not answer:
            who = last.annotator or "another annotator"
            raise CannotUndoError(
                f"{who} has answered about event {answer.event_id} since", "answered_since"
            )
        question = thread.bodies.get(answer.request_id or "")
        if question is None:
            raise CannotUndoError(
                f"the question about event {answer.event_id} is not known here", "unknown"
            )
        return answer, question

    def _say(
        self,
        request: Request,
        y: Label | None,
        now: float,
        *,
        supersedes: str | None,
        answer_id: str | None = None,
    ) -> Answer:
        n = 1
        thread = self._threads.get((request.key, request.event_id))
        if thread is not None:
            own = self._own(thread)
            n += sum(answer.request_id == request.request_id for answer in own)
            # What is said about one event has an order, whatever the clock does.
            now = max(now, nextafter(own[-1].answered_at, inf))
        # Derived from its cause: the same answer sent twice counts once.
        cause = f"{request.request_id}/answer/{quote(self.annotator, safe='')}/{n}"
        answer_id = short_id(cause) if answer_id is None else answer_id
        return Answer(
            answer_id=answer_id,
            request_id=request.request_id,
            event_id=request.event_id,
            key=request.key,
            y=y,
            declined=y is None,
            annotator=self.annotator,
            answered_at=now,
            supersedes=supersedes,
        )

    def _standing(self, thread: _Thread, answer: Answer, request: Request) -> str:
        """Return the answer that stands after the annotator declined."""
        if not isinstance(request, Challenge) or answer.supersedes is not None:
            return answer.answer_id
        # The challenge was not answered: the label stands as it was first given.
        given = thread.said[-2:-1]
        if not (given and self._is_own(given[0]) and given[0].y is not None):
            who = request.annotator or "another annotator"
            raise CannotUndoError(
                f"the label {request.given!r} of event {request.event_id} stands now, and only "
                f"{who}, who gave it, can change it",
                "not_yours",
            )
        return given[0].answer_id

    def _is_own(self, answer: Answer) -> bool:
        return answer.annotator == self.annotator

    def _own(self, thread: _Thread) -> list[Answer]:
        return [answer for answer in thread.said if self._is_own(answer)]

    def _is_undone(self, thread: _Thread) -> bool:
        return bool(thread.reopened) or _takes_back(thread, self._own(thread)[-1])

    def _last_at(self, event: EventKey) -> float:
        return self._own(self._threads[event])[-1].answered_at


def short_id(cause: str) -> str:
    """Return an id that is no longer than the wire allows: its cause, or the hash of it.

    Examples
    --------
    >>> short_id("e1/label/answer/ann/1"), len(short_id(2000 * "x"))
    ('e1/label/answer/ann/1', 64)

    """
    return cause if len(cause) <= MAX_NAME else sha256(cause.encode()).hexdigest()


def derived_id(cause: str) -> str:
    """Return the id of a reply of a client, or of what takes an answer back or changes it.

    The hash of a very long one begins as ids of replies do: it is unique among all keys, too.
    """
    return cause if len(cause) <= MAX_NAME else PAGE + short_id(cause)


def _takes_back(thread: _Thread, answer: Answer) -> bool:
    """Say whether an answer takes back the label before it, rather than declines to give one."""
    n_before = thread.said.index(answer)
    before = thread.said[n_before - 1] if n_before else None
    return (
        answer.declined
        and before is not None
        and before.y is not None
        and answer.supersedes == before.answer_id
    )
