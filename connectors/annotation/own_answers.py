"""Answers of one annotator that can still be taken back.

Which answer a correction supersedes follows from the table in `streamgp/interactive/loop.py`: the
last label that was given, or, where a label request was declined, that answer.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from math import inf, nextafter
from typing import Any
from urllib.parse import quote

from connectors.annotation.open_questions import EventKey, Question
from connectors.wire.inbound import MAX_NAME
from streamgp.base import Label
from streamgp.interactive.messages import Answer, Challenge, Request

N_KEPT = 200
"""Events whose answers are kept; older ones cannot be taken back."""


class CannotUndoError(Exception):
    """The last answer cannot be taken back; the text says why."""


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

    def take(self, answer: Answer, at: float) -> None:
        """Take note of anybody's answer; one that is known already changes nothing."""
        event = (answer.key, answer.event_id)
        thread = self._threads.get(event)
        if thread is None:
            if not self._is_own(answer):
                return
            thread = self._threads[event] = _Thread()
        if any(answer.answer_id == known.answer_id for known in thread.said):
            return
        thread.said.append(answer)
        thread.at.append(at)
        thread.reopened.clear()
        if len(self._threads) > self._n_kept:
            del self._threads[min(self._threads, key=self._last_at)]

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
        std: float | None = None,
        privileged: Mapping[str, Any] | None = None,
    ) -> Answer | None:
        """Make the answer to a question; see `AnnotationInbox.answer`.

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
        answer = self._say(request, y, now, supersedes=question.supersedes)
        return replace(answer, std=std, privileged=privileged)

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

    def undo(self, now: float) -> Undone:
        """Take the last answer back.

        A label is taken back by a message; declining is not: the question is only open again.

        Raises
        ------
        CannotUndoError
            If there is none, or it no longer stands, or it cannot be known what to supersede.

        """
        threads = [t for t in self._threads.values() if not self._is_undone(t)]
        if not threads:
            raise CannotUndoError("there is no answer to take back")
        thread = max(threads, key=lambda thread: self._own(thread)[-1].answered_at)
        answer, last = self._own(thread)[-1], thread.said[-1]
        question = thread.bodies.get(answer.request_id or "")
        if last is not answer:
            who = last.annotator or "somebody"
            raise CannotUndoError(f"{who} has answered about event {answer.event_id} since")
        if question is None:
            raise CannotUndoError(f"the question about event {answer.event_id} is not known here")
        request = question.request
        if answer.y is not None:
            message = self._say(request, None, now, supersedes=answer.answer_id)
            reopened = replace(question, supersedes=message.answer_id)
            return Undone(answer=answer, question=reopened, message=message)
        supersedes = self._standing(thread, answer, request)
        thread.reopened[request.request_id] = supersedes
        reopened = replace(question, supersedes=supersedes)
        return Undone(answer=answer, question=reopened, message=None)

    def forget(self, key: str | None, at: float) -> None:
        """Forget what was said about a key until a moment."""
        for event in [event for event in self._threads if event[0] == key]:
            if max(self._threads[event].at) <= at:
                del self._threads[event]

    def _say(
        self, request: Request, y: Label | None, now: float, *, supersedes: str | None
    ) -> Answer:
        n = 1
        thread = self._threads.get((request.key, request.event_id))
        if thread is not None:
            own = self._own(thread)
            n += sum(answer.request_id == request.request_id for answer in own)
            # What is said about one event has an order, whatever the clock does.
            now = max(now, nextafter(own[-1].answered_at, inf))
        # Derived from its cause: the same answer sent twice counts once.
        answer_id = f"{request.request_id}/answer/{quote(self.annotator, safe='')}/{n}"
        if len(answer_id) > MAX_NAME:
            answer_id = sha256(answer_id.encode()).hexdigest()
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
        # Nobody answered the challenge: the label stands as it was first given.
        given = thread.said[-2:-1]
        if not (given and self._is_own(given[0]) and given[0].y is not None):
            who = request.annotator or "somebody else"
            raise CannotUndoError(
                f"the label {request.given!r} of event {request.event_id} stands now, and only "
                f"{who}, who gave it, can change it"
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
