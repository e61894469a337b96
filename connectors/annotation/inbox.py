"""Inbox of an annotator: the topics of a deployment, folded into a list of open questions.

The requests, the answers and the consensus log may be read in any order among each other: an answer
may come before its request. A question that anybody has answered is not shown again. What is
settled leaves no trace but for a while, so that a program can stay for months.

No clock and no I/O here: who reads topics hands over what they hold.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from math import inf
from typing import Any, TypeAlias

from connectors.annotation.open_questions import OpenQuestions, Question
from connectors.annotation.own_answers import CannotUndoError, OwnAnswers, Undone
from streamgp.base import Label
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
)

__all__ = ["AnnotationInbox", "CannotUndoError", "Question", "Undone"]

RequestKey: TypeAlias = tuple[str | None, str]
"""A key and a request id."""


class AnnotationInbox:
    """The open questions, who answered what, and which labels there are.

    Challenges come first, since a label waits for each of them; otherwise the oldest question is
    first. A question that was skipped comes after all others.

    Parameters
    ----------
    annotator
        Who sits at the desk: their answers can be taken back. None for one who only looks.
    answer_horizon_s
        As in `streamgp.interactive.InteractiveLoop`; None for no limit.
    with_classes
        Whether labels are names of classes, to be given once more; not if they are numbers.

    Examples
    --------
    >>> desk = AnnotationInbox("ann")
    >>> desk.take(
    ...     LabelRequest(
    ...         request_id="e1/label", event_id="e1", x={"light": 0.5}, reason="SkepticalAsk",
    ...         score=0.3, threshold=0.1, requested_at=100.0,
    ...     )
    ... )
    >>> [question] = desk.questions(now=130.0)
    >>> answer = desk.answer(question, "hall", now=130.0)
    >>> answer.answer_id, answer.y
    ('e1/label/answer/ann/1', 'hall')
    >>> undone = desk.undo(now=131.0)
    >>> undone.message.supersedes, desk.next(now=132.0).supersedes
    ('e1/label/answer/ann/1', 'e1/label/answer/ann/2')

    """

    # _waiting    the questions that wait for an answer
    # _own        the annotator's answers
    # _classes    labels of each key, with their type; when each was last seen
    # _skipped    number of each request that was skipped, in the order of skipping
    # _forgotten  keys that were forgotten, and until when
    def __init__(
        self,
        annotator: str | None = None,
        *,
        answer_horizon_s: float | None = None,
        with_classes: bool = True,
    ):
        self.annotator = annotator
        self._horizon_s = inf if answer_horizon_s is None else answer_horizon_s
        self._waiting = OpenQuestions(keep_over=annotator is not None)
        self._own = None if annotator is None else OwnAnswers(annotator)
        self._with_classes = with_classes
        self._classes: dict[str | None, dict[tuple[str, Label], float]] = {}
        self._skipped: dict[RequestKey, int] = {}
        self._forgotten: dict[str | None, float] = {}

    # --- what the topics hold

    def take(
        self, message: Input | Message, *, partition: int | None = None, at: float = 0.0
    ) -> None:
        """Take what stands in one of the topics; what does not concern a desk changes nothing.

        Parameters
        ----------
        message
            The message.
        partition
            Where it was found.
        at
            When the topic got it, POSIX seconds.

        """
        if message.key in self._forgotten and at <= self._forgotten[message.key]:
            return
        if isinstance(message, LabelRequest | Challenge):
            delayed_s = max(0.0, at - message.requested_at)
            question = Question(request=message, partition=partition, delayed_s=delayed_s)
            self._take_request(question, at)
        elif isinstance(message, Answer):
            self._take_answer(message, at)
        elif isinstance(message, LabelledExample):
            self._note_label(message.key, message.y, at)
            event = (message.key, message.event_id)
            self._waiting.settle(event, before=message.learned_at, taught=True, at=at)
        elif isinstance(message, Expired | Cancel):
            self._waiting.end(message.key, message.request_id, at=at)

    def forget(self, key: str | None, at: float) -> None:
        """Forget everything about a key that the topics got until a moment, read or not."""
        self._forgotten[key] = max(at, self._forgotten.get(key, -inf))
        at = self._forgotten[key]
        self._waiting.forget(key, at)
        classes = self._classes.get(key, {})
        self._classes[key] = {label: seen for label, seen in classes.items() if seen > at}
        if self._own is not None:
            self._own.forget(key, at)

    def turn_over(self) -> None:
        """Forget what is settled, in two turns; call it once a minute or so.

        A request is taken for new if it is read two turns after its answer.
        """
        self._waiting.turn_over()
        waiting = {_key_of(question) for question in self._waiting}
        waiting.update(_key_of(question) for question in self._reopened(-inf))
        self._skipped = {key: n for key, n in self._skipped.items() if key in waiting}

    # --- what is open

    def questions(self, now: float) -> list[Question]:
        """Return the open questions, the next one first."""
        return sorted(self._open(now), key=self._rank)

    def next(self, now: float) -> Question | None:
        """Return the question to be asked next, or None."""
        return min(self._open(now), key=self._rank, default=None)

    def n_open(self, now: float) -> int:
        """Return the number of open questions."""
        return sum(1 for _ in self._open(now))

    def find(self, request: LabelRequest | Challenge) -> Question | None:
        """Return the question of a request that waits for its first answer, or None."""
        return self._waiting.get(request)

    def is_open(self, question: Question, now: float) -> bool:
        """Say whether a question still waits for an answer."""
        waiting = self._waiting.get(question.request)
        if waiting is not None:
            return self._is_in_time(waiting, now)
        return _key_of(question) in map(_key_of, self._reopened(now))

    def classes(self, key: str | None) -> list[Label]:
        """Return the labels known for a key, numbers first."""
        return [label for _, label in sorted(self._classes.get(key, ()), key=_by_label)]

    def all_classes(self) -> list[Label]:
        """Return the labels known for any key, numbers first."""
        every = set(chain.from_iterable(self._classes.values()))
        return [label for _, label in sorted(every, key=_by_label)]

    # --- what the annotator says

    def skip(self, question: Question) -> None:
        """Put a question behind all others."""
        self._skipped.pop(_key_of(question), None)
        last = next(reversed(self._skipped.values()), 0)
        self._skipped[_key_of(question)] = last + 1

    def answer(
        self,
        question: Question,
        y: Label | None,
        now: float,
        *,
        std: float | None = None,
        privileged: Mapping[str, Any] | None = None,
    ) -> Answer | None:
        """Answer a question.

        Parameters
        ----------
        question
            The question.
        y
            The label; None declines.
        now
            The time, POSIX seconds.
        std
            How exact a number is, as a standard deviation.
        privileged
            What is known of the answer beside the label.

        Returns
        -------
        The answer to be sent. None where nothing has to be sent: declining was taken back, and
        the question is declined once more.

        """
        answer = self._whose().answer(question, y, now, std=std, privileged=privileged)
        if answer is not None:
            self._take_answer(answer, now)
        return answer

    def undo(self, now: float) -> Undone:
        """Take the annotator's last answer back, and open its question again.

        Raises
        ------
        CannotUndoError
            If there is none, or somebody has answered since, or it is too long ago.

        """
        undone = self._whose().undo(now)
        if undone.message is not None:
            self._take_answer(undone.message, now)
        self._skipped.pop(_key_of(undone.question), None)
        return undone

    # --- inside

    def _whose(self) -> OwnAnswers:
        if self._own is None:
            raise ValueError("nobody sits at this desk; give it an annotator")
        return self._own

    def _take_request(self, question: Question, at: float) -> None:
        request = question.request
        event = (request.key, request.event_id)
        if isinstance(request, Challenge):
            labels = [request.given, request.suggested, *(n.y for n in request.neighbours)]
            for label in labels:
                self._note_label(request.key, label, at)
            self._waiting.settle(event, before=request.requested_at, taught=True, at=at)
        own, request_id = self._own, request.request_id
        if own is not None and own.wants(event, request_id):
            if self._waiting.first_is_own(event, request_id) is not False:
                own.keep(question)
        else:
            self._waiting.ask(question, at)

    def _take_answer(self, answer: Answer, at: float) -> None:
        self._note_label(answer.key, answer.y, at)
        event, request_id = (answer.key, answer.event_id), answer.request_id
        keep = self._own is not None and answer.annotator == self.annotator
        if self._own is not None:
            self._own.take(answer, at)
        if answer.supersedes is not None or request_id is None:
            taught = answer.supersedes is not None
            self._waiting.settle(event, before=answer.answered_at, taught=taught, at=at)
        else:
            keep = self._waiting.note_answer(event, request_id, is_own=keep, at=at)
        if request_id is not None and (keep or answer.supersedes is None):
            question = self._waiting.remove(event, request_id)
            if question is not None and keep and self._own is not None:
                self._own.keep(question)

    def _open(self, now: float) -> Iterator[Question]:
        for question in self._waiting:
            if self._is_in_time(question, now):
                yield question
        yield from self._reopened(now)

    def _reopened(self, now: float) -> Iterator[Question]:
        if self._own is not None:
            for question in self._own.reopened():
                # A correction is never late, as long as the event is remembered.
                if now <= self._horizon_of(question):
                    yield question

    def _is_in_time(self, question: Question, now: float) -> bool:
        expires_at = question.request.expires_at
        return now <= min(inf if expires_at is None else expires_at, self._horizon_of(question))

    def _horizon_of(self, question: Question) -> float:
        return _event_time(question.request) + self._horizon_s + question.delayed_s

    def _rank(self, question: Question) -> tuple[int, bool, float, str, str]:
        request = question.request
        skipped = self._skipped.get(_key_of(question), 0)
        is_first = isinstance(request, LabelRequest)
        return skipped, is_first, request.requested_at, request.key or "", request.request_id

    def _note_label(self, key: str | None, label: Label | None, at: float) -> None:
        if label is not None and self._with_classes:
            classes = self._classes.setdefault(key, {})
            # With its type: in Python 1, 1.0 and True are one label, on the wire they are not.
            typed = (type(label).__name__, label)
            classes[typed] = max(at, classes.get(typed, -inf))


def _event_time(request: LabelRequest | Challenge) -> float:
    """Return the time of the event, after which it is remembered for a while."""
    return request.requested_at if request.occurred_at is None else request.occurred_at


def _key_of(question: Question) -> RequestKey:
    return question.request.key, question.request.request_id


def _by_label(typed: tuple[str, Label]) -> tuple[bool, float, str, str]:
    kind, label = typed
    if isinstance(label, str):
        return True, 0.0, label.casefold(), label
    return False, float(label), kind, ""
