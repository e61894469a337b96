"""Answers of one annotator that can still be taken back.

The table in `streamgp/interactive/transitions.py` determines which answer a correction supersedes:
the last label given or, if a label request was declined, that answer.

"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from heapq import nlargest
from math import inf, nextafter
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from connectors.annotation.open_questions import Question
from connectors.wire.inbound import MAX_NAME
from streamgp.base import Label
from streamgp.interactive.messages import Answer, Challenge, EventKey, Request

PAGE = "page/"
"""Prefix of answer ids that a desk's clients have chosen."""
N_KEPT = 200
"""Number of events whose answers are kept; older ones cannot be taken back."""


CannotUndo: TypeAlias = Literal[
    "none", "answered_since", "unknown", "not_yours", "forgotten", "too_often", "set_aside"
]


class CannotUndoError(Exception):
    """An answer cannot be taken back or changed; the text says why.

    Parameters
    ----------
    code
        The reason, for programs: `none` (there is no such answer), `answered_since`, `unknown` (its
        question is not known), `not_yours` (another annotator's label stands), `forgotten`,
        `too_often` (the workers take no more corrections of its event), or `set_aside` (its
        annotator is in quarantine).

    """

    def __init__(self, text: str, code: CannotUndo = "none") -> None:
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
        The reopened question.
    message
        The message to send; None if there is none, as nothing was learned from the answer.

    """

    answer: Answer
    question: Question
    message: Answer | None


@dataclass(slots=True)
class _Thread:
    """The answers about one event, starting with the annotator's first."""

    # said      all annotators' answers, in order, each once
    # at        when each of them was written to the topic
    # bodies    the questions that can be shown again, by request id
    # reopened  the answer that a new one would supersede, if declining was taken back
    said: list[Answer] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    bodies: dict[str, Question] = field(default_factory=dict)
    reopened: dict[str, str] = field(default_factory=dict)


class OwnAnswers:
    """The answers of one annotator about the last events that they answered.

    Parameters
    ----------
    n_kept
        Number of events to keep.

    """

    # _threads  by event; those with the latest answers, at most `n_kept`
    def __init__(self, annotator: str, n_kept: int = N_KEPT) -> None:
        self.annotator = annotator
        self._n_kept = n_kept
        self._threads: dict[EventKey, _Thread] = {}

    def take(self, answer: Answer, at: float) -> EventKey | None:
        """Record an answer of any annotator; a known one changes nothing.

        Returns
        -------
        The event whose answers are no longer kept, None if there is none.

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
        """Return all annotators' answers about an event that this one has answered."""
        return self._about(event).said

    def wants(self, event: EventKey, request_id: str) -> bool:
        """Return whether the annotator has answered a request."""
        return any(a.request_id == request_id for a in self._own(self._about(event)))

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
        """Create the answer to a question.

        Parameters
        ----------
        question, y, now
            See `AnnotationInbox.answer`.
        answer_id
            Its id; None to derive it from the request and the number of answers to it.
        details
            Further fields of the `Answer`.

        Returns
        -------
        The answer, or None if nothing has to be sent: the annotator declined the question, reopened
        it and declines again, without a remark.

        """
        request = question.request
        reopened = self._about((request.key, request.event_id)).reopened
        if y is None and request.request_id in reopened:
            del reopened[request.request_id]
            # Declining once more changes nothing, so that a remark can be sent, except where it
            # would take back a label that is in force.
            has_label = isinstance(request, Challenge) or request.is_second
            if has_label or not any(details.get(name) for name in ("flag", "note", "reason")):
                return None
        supersedes = question.supersedes
        answer = self._say(request, y, now, supersedes=supersedes, answer_id=answer_id)
        return replace(answer, **details)

    def reopened(self) -> Iterator[Question]:
        """Return the questions whose answers the annotator has taken back."""
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
        """Take back an answer, by default the last one.

        Taking back a label needs a message; taking back declining does not: the question is only
        reopened.

        Parameters
        ----------
        answer
            The answer, one of the annotator's own.
        answer_id
            Id of the message that takes it back; None to derive it like those of answers.

        Raises
        ------
        CannotUndoError
            If there is none, if it is no longer current, or if it is not known what to supersede.

        """
        thread = self._last_thread() if answer is None else self._thread_of(answer)
        answer, question = self._changeable(thread, answer)
        request, supersedes = question.request, self._standing(thread, answer, question.request)
        message = None
        if answer.y is None:
            thread.reopened[request.request_id] = supersedes
        else:
            message = self._say(request, None, now, supersedes=supersedes, answer_id=answer_id)
            supersedes = message.answer_id
        reopened = replace(question, supersedes=supersedes)
        return Undone(answer=answer, question=reopened, message=message)

    def change(self, answer: Answer) -> Question:
        """Return the question of an own answer, so that a new reply replaces that answer.

        Raises
        ------
        CannotUndoError
            As `undo` does.

        """
        thread = self._thread_of(answer)
        answer, question = self._changeable(thread, answer)
        return replace(question, supersedes=self._standing(thread, answer, question.request))

    def question_of(self, answer: Answer) -> Question | None:
        """Return the question to which an answer was given, None if it is not known here."""
        return self._about((answer.key, answer.event_id)).bodies.get(answer.request_id or "")

    def latest(self, n: int) -> list[Answer]:
        """Return the current answers, one per event, the newest first, at most `n`."""
        lasts = [self._own(t)[-1] for t in self._threads.values() if not self._is_undone(t)]
        return nlargest(n, lasts, key=lambda answer: answer.answered_at)

    def standing(self, event: EventKey) -> Answer | None:
        """Return the current answer about an event, None if there is none."""
        thread = self._threads.get(event)
        return None if thread is None or self._is_undone(thread) else self._own(thread)[-1]

    def forget(self, event: EventKey, at: float) -> bool:
        """Forget answers about an event written up to a time; return whether none are left."""
        if max(self._threads[event].at) <= at:
            del self._threads[event]
            return True
        return False

    def _about(self, event: EventKey) -> _Thread:
        """Return the answers about an event, which may be none."""
        return self._threads.get(event) or _Thread()

    def _last_thread(self) -> _Thread:
        threads = [t for t in self._threads.values() if not self._is_undone(t)]
        if not threads:
            raise CannotUndoError("there is no answer to take back")
        return max(threads, key=lambda thread: self._own(thread)[-1].answered_at)

    def _thread_of(self, answer: Answer) -> _Thread:
        thread = self._about((answer.key, answer.event_id))
        if all(known.answer_id != answer.answer_id for known in self._own(thread)):
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
        own = self._own(self._about((request.key, request.event_id)))
        n = 1 + sum(answer.request_id == request.request_id for answer in own)
        if own:
            # Answers about one event keep their order, whatever the clock does.
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
        """Return the id of the answer that is current after the annotator's last one."""
        is_label = answer.y is not None
        if is_label or not isinstance(request, Challenge) or answer.supersedes is not None:
            return answer.answer_id
        # The challenge was not answered: the label first given remains current.
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
    """Return an id that is short enough for the wire: its cause, or the hash of it.

    Examples
    --------
    >>> short_id("e1/label/answer/ann/1"), len(short_id(2000 * "x"))
    ('e1/label/answer/ann/1', 64)

    """
    return cause if len(cause) <= MAX_NAME else sha256(cause.encode()).hexdigest()


def derived_id(cause: str) -> str:
    """Return the id of a client's reply, or of a message that takes back or changes an answer.

    The hash of a very long id has the prefix of replies' ids: it is unique across keys too.
    """
    return cause if len(cause) <= MAX_NAME else PAGE + short_id(cause)


def _takes_back(thread: _Thread, answer: Answer) -> bool:
    """Return whether an answer takes back the label before it, not just declines to give one."""
    if not answer.declined or answer.supersedes is None:
        return False
    n_before = thread.said.index(answer)
    if not n_before:  # the label of another annotator, or one that is no longer kept
        return True
    before = thread.said[n_before - 1]
    return before.y is not None and answer.supersedes == before.answer_id
