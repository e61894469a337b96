"""Inbox of annotators: the topics of a deployment, folded into a list of open questions.

Requests, answers and the consensus log may be read in any relative order: an answer may come before
its request. A question that any annotator has answered is not shown again. Settled questions are
remembered only for a while, so that a program can run for months.

The open questions are shared by all annotators; in addition, each annotator has answers that can be
taken back and skipped questions.

This module has no clock and does no I/O: the caller reads the topics and passes the messages.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import merge, nlargest
from itertools import chain
from math import inf, nextafter
from typing import Any

from connectors.annotation.annotators import QuarantinedAnnotators
from connectors.annotation.open_questions import (
    OpenQuestions,
    Order,
    Question,
    Rank,
    RequestKey,
    rank_of,
)
from connectors.annotation.own_answers import (
    N_KEPT,
    CannotUndoError,
    OwnAnswers,
    Undone,
    derived_id,
)
from connectors.annotation.timeline import Moment, Timeline
from streamgp.base import Label
from streamgp.interactive.conversation_record import event_id_of
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    EventKey,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Request,
    second_ids,
)
from streamgp.interactive.people import DEFAULT_PEOPLE, People


class AnnotationInbox:
    """The open questions, the answers by annotator, and the known labels.

    Challenges come first, since a label waits for each of them; then label requests in the
    configured order. Skipped questions come after all others.

    Parameters
    ----------
    is_for_reading
        Whether no annotator answers here: then neither answers nor labels are kept.
    answer_horizon_s
        As in `streamgp.interactive.InteractiveLoop`; None for no limit.
    with_classes
        Whether labels are names of classes, which are offered again; not if they are numbers.
    people
        Who may answer for whom; the same as for the workers.
    keyed
        Whether the workers have a learner for each key.
    order
        Order of the label requests, see `connectors.annotation.open_questions.OpenQuestions`; for
        `useful`, pass predictions too.
    labels
        Labels that are offered from the start, for every key, in this order.

    Attributes
    ----------
    timeline
        The labels of the events of each key, and those to choose from.
    quarantined
        The annotators in quarantine.

    Examples
    --------
    >>> inbox = AnnotationInbox()
    >>> inbox.take(
    ...     LabelRequest(
    ...         request_id="e1/label", event_id="e1", x={"light": 0.5}, reason="SkepticalAsk",
    ...         score=0.3, threshold=0.1, requested_at=100.0,
    ...     )
    ... )
    >>> [question] = inbox.questions(130.0, "ann")
    >>> answer = inbox.answer(question, "hall", 130.0, annotator="ann")
    >>> answer.answer_id, answer.y
    ('e1/label/answer/ann/1', 'hall')
    >>> undone = inbox.undo(131.0, annotator="ann")
    >>> undone.message.supersedes, inbox.next(132.0, "ann").supersedes
    ('e1/label/answer/ann/1', 'e1/label/answer/ann/2')

    """

    # _waiting    the questions that wait for an answer
    # _keeps      whether answers and labels are kept
    # _own        for each annotator, the answers that they can take back
    # _about      for each event, those of the annotators who have answered about it, by annotator
    # _skipped    by annotator: the skipped requests, numbered in the order of skipping
    # _forgotten  forgotten keys, and the time up to which
    def __init__(
        self,
        *,
        is_for_reading: bool = False,
        answer_horizon_s: float | None = None,
        with_classes: bool = True,
        people: People = DEFAULT_PEOPLE,
        keyed: bool = True,
        order: Order = "oldest",
        labels: Iterable[Label] = (),
    ):
        self._people = people
        self._horizon_s = inf if answer_horizon_s is None else answer_horizon_s
        self._order = order
        self._keeps = not is_for_reading
        self._waiting = OpenQuestions(
            keep_over=self._keeps,
            may_answer=self._is_authorised,
            order=order,
        )
        self._own: dict[str, OwnAnswers] = {}
        self._about: dict[EventKey, dict[str, OwnAnswers]] = {}
        self.timeline = Timeline(labels, with_classes=with_classes)
        self._skipped: dict[str | None, dict[RequestKey, int]] = {}
        self._forgotten: dict[str | None, float] = {}
        self.quarantined = QuarantinedAnnotators(people, keyed=keyed)

    # --- what the topics hold

    def take(
        self, message: Input | Message, *, partition: int | None = None, at: float = 0.0
    ) -> None:
        """Process a message from one of the topics; irrelevant messages change nothing.

        Parameters
        ----------
        at
            When it was written to the topic, POSIX seconds.

        """
        if self.is_forgotten(message.key, at):
            return
        if isinstance(message, LabelRequest | Challenge):
            delayed_s = max(0.0, at - message.requested_at)
            question = Question(request=message, partition=partition, delayed_s=delayed_s)
            self._take_request(question, at)
        elif isinstance(message, Answer):
            # Workers refuse more of them, and each costs the time of all before it.
            if self._takes_more(message) and not self._is_foreign(message):
                self._take_answer(message, at)
        elif isinstance(message, LabelledExample):
            event = (message.key, message.event_id)
            if self._keeps:
                self.timeline.label(
                    *event, message.y, at=message.learned_at, annotator=message.annotator, got=at
                )
            self._waiting.settle(event, before=message.learned_at, taught=True, at=at)
        elif isinstance(message, Prediction):
            if message.decision.ask:
                self._waiting.note_prediction((message.key, message.event_id), message.y)
        elif isinstance(message, Expired | Cancel):
            why = message.why if isinstance(message, Cancel) else None
            self._waiting.end(message.key, message.request_id, at=at, why=why)

    def is_forgotten(self, key: str | None, at: float) -> bool:
        """Return whether what was written about a key at a time is forgotten."""
        return at <= self._forgotten.get(key, -inf)

    def forget(self, key: str | None, at: float) -> None:
        """Forget everything about a key that was written up to a time, already read or not."""
        self._forgotten[key] = max(at, self._forgotten.get(key, -inf))
        at = self._forgotten[key]
        self._waiting.forget(key, at)
        self.timeline.forget(key, at)
        self.quarantined.forget(key)
        for event in [event for event in self._about if event[0] == key]:
            for own in list(self._about[event].values()):
                if own.forget(event, at):
                    self._drop(event, own)

    def turn_over(self) -> None:
        """Forget what was settled before the last turn; call it about once a minute.

        A request that is read two turns after its answer counts as new.
        """
        self._waiting.turn_over()
        waiting = {question.request_key for question in self._waiting}
        for annotator, skipped in list(self._skipped.items()):
            theirs = waiting.union(q.request_key for q in self._reopened(-inf, annotator))
            self._skipped[annotator] = {key: n for key, n in skipped.items() if key in theirs}
            if not self._skipped[annotator]:
                del self._skipped[annotator]

    # --- open questions: those that an annotator may answer, or, with None, all

    def questions(
        self,
        now: float,
        annotator: str | None,
        *,
        only_key: str | None = None,
        where: Callable[[Question], bool] = lambda _: True,
        most: int | None = None,
    ) -> list[Question]:
        """Return the open questions of an annotator that match, the next one first.

        Parameters
        ----------
        most
            The largest number of questions, None for all; the cost of the first ones is small.

        """
        skipped = self._skipped.get(annotator, {})
        found: list[Question] = []
        later: list[Question] = []
        for question in filter(where, self._open(now, annotator, only_key)):
            (later if question.request_key in skipped else found).append(question)
            if len(found) == most:
                return found
        later.sort(key=lambda q: skipped[q.request_key])
        return (found + later)[:most]

    def next(
        self,
        now: float,
        annotator: str | None,
        *,
        only_key: str | None = None,
        where: Callable[[Question], bool] = lambda _: True,
    ) -> Question | None:
        """Return the next question among those that match; None if there is none."""
        found = self.questions(now, annotator, only_key=only_key, where=where, most=1)
        return found[0] if found else None

    def n_open(self, now: float, annotator: str | None, *, only_key: str | None = None) -> int:
        """Return the number of open questions, of one key or of all."""
        n_theirs = sum(1 for _ in self._reopened(now, annotator, only_key))
        return self._waiting.count(now, only_key, annotator) + n_theirs

    def oldest_at(
        self, now: float, annotator: str | None, *, only_key: str | None = None
    ) -> float | None:
        """Return when the oldest of the open questions was asked, None if there is none."""
        asked_at = [q.request.requested_at for q in self._reopened(now, annotator, only_key)]
        oldest = min([self._waiting.oldest_at(now, only_key, annotator), *asked_at])
        return None if oldest == inf else oldest

    def why_ended(self, key: str | None, request_id: str) -> str | None:
        """Return the reason why a question was cancelled; None if none is known."""
        return self._waiting.why_ended(key, request_id)

    def find(self, request: LabelRequest | Challenge) -> Question | None:
        """Return the question of a request that waits for its first answer, or None."""
        return self._waiting.get(request.key, request.event_id, request.request_id)

    def question_of(
        self, key: str | None, request_id: str, now: float, annotator: str | None
    ) -> Question | None:
        """Return the open question of a request, by its id; None if it is not open."""
        event_id = event_id_of(request_id)
        if event_id is None:
            return None
        waiting = self._waiting.get(key, event_id, request_id)
        if waiting is not None:
            is_theirs = self.may_answer(waiting, annotator)
            return waiting if is_theirs and now <= self._answerable_until(waiting) else None
        theirs = self._reopened(now, annotator)
        return next((q for q in theirs if q.request_key == (key, request_id)), None)

    def is_open(self, question: Question, now: float, annotator: str | None) -> bool:
        """Return whether a question still waits for an answer."""
        waiting = self.find(question.request)
        if waiting is not None:
            return now <= self._answerable_until(waiting)
        theirs = self._reopened(now, annotator)
        return any(each.request_key == question.request_key for each in theirs)

    def may_answer(self, question: Question, annotator: str | None) -> bool:
        """Return whether an annotator may answer a question; a program that only reads sees all."""
        return annotator is None or self._is_authorised(question.request, annotator)

    def _is_authorised(self, request: Request, annotator: str | None) -> bool:
        """Return whether the workers accept an annotator's answer to a request."""
        if isinstance(request, LabelRequest):
            return request.may_answer(annotator)
        return self._people.may_overrule(annotator, request.annotator)

    # --- actions of an annotator

    def skip(self, question: Question, annotator: str) -> None:
        """Move a question behind all others."""
        skipped = self._skipped.setdefault(annotator, {})
        skipped.pop(question.request_key, None)
        skipped[question.request_key] = next(reversed(skipped.values()), 0) + 1

    def unskip(self, annotator: str) -> Question | None:
        """Undo an annotator's last skip; return the question, None if none was skipped."""
        skipped = self._skipped.get(annotator, {})
        while skipped:
            key, request_id = skipped.popitem()[0]
            question = self.question_of(key, request_id, -inf, annotator)
            if question is not None:
                return question
        return None

    def answer(
        self,
        question: Question,
        y: Label | None,
        now: float,
        *,
        annotator: str,
        answer_id: str | None = None,
        **details: Any,
    ) -> Answer | None:
        """Answer a question.

        Parameters
        ----------
        y
            The label; None to decline.
        annotator
            The annotator who answers.
        answer_id
            Id of the answer; None to derive it from the request.
        details
            Further fields of the `Answer`: `std`, `privileged` and so on.

        Returns
        -------
        The answer to send. None if nothing has to be sent: the annotator had taken back declining,
        and declines again.

        """
        answer = self.own(annotator).answer(question, y, now, answer_id=answer_id, **details)
        if answer is not None:
            self._take_answer(answer, now)
        return answer

    def undo(
        self,
        now: float,
        answer: Answer | None = None,
        *,
        annotator: str,
        answer_id: str | None = None,
    ) -> Undone:
        """Take back an answer, and reopen its question.

        Parameters
        ----------
        answer
            The answer; None for the annotator's last one.
        annotator
            The annotator who gave it.
        answer_id
            Id of the message that takes it back; None to derive it from the request.

        Raises
        ------
        CannotUndoError
            If there is none, if another annotator has answered since, or if it is too old.

        """
        own = self.own(annotator)
        last = answer or next(iter(own.latest(1)), None)
        if last is not None:
            self._check_used(last, n_more=2)  # the second one for the label that replaces it
        undone = own.undo(now, answer, answer_id=answer_id)
        if undone.message is not None:
            self._take_answer(undone.message, now)
        self._skipped.get(annotator, {}).pop(undone.question.request_key, None)
        return undone

    def change(self, answer: Answer, now: float) -> Question:
        """Return the question of one of the annotator's answers, so that a new answer replaces it.

        Raises
        ------
        CannotUndoError
            If it cannot be replaced; the text says why.

        """
        assert answer.annotator is not None  # it is one of theirs
        self._check_used(answer)
        question = self.own(answer.annotator).change(answer)
        if now > self._horizon_of(question):
            raise _forgotten(answer)
        return question

    def rename(
        self,
        key: str | None,
        old: Label,
        new: Label,
        now: float,
        *,
        annotator: str,
        of_everyone: bool = False,
    ) -> list[tuple[Answer, int | None]]:
        """Rename a label in all its examples.

        Parameters
        ----------
        old, new
            The labels; the new one may exist already.
        annotator
            The annotator who renames.
        of_everyone
            Whether labels that others gave are replaced too.

        Returns
        -------
        One answer, with its partition, for each example whose event the workers remember and of
        which they take another correction. A label that no event has any more is no longer offered.

        """
        renamed = []
        for standing in self.timeline.standing(key, old):
            is_theirs = of_everyone or standing.annotator == annotator
            is_theirs = is_theirs and not self.quarantined.holds(annotator, key)
            if not is_theirs or now > self._horizon_of(standing):
                continue
            answer_id = derived_id(f"{standing.answer_id}/rename")
            answer = _correction(key, standing, new, annotator, now, answer_id)
            if not self._takes_more(answer):
                continue
            self._take_answer(answer, now)
            renamed.append((answer, standing.partition))
        return renamed

    def of_others(self, annotator: str, n: int, *, only_key: str | None = None) -> list[Answer]:
        """Return the answers of other annotators whose labels stand, the newest first, at most `n`.

        They are among the last ones that each of them can take back.
        """

        def stands(answer: Answer) -> bool:
            moment = self.timeline.find(answer.key, answer.event_id)
            return moment is not None and moment.answer_id == answer.answer_id

        theirs = (
            answer
            for name, own in self._own.items()
            if name != annotator
            for answer in own.latest(N_KEPT)
            if only_key in (None, answer.key) and stands(answer)
        )
        return nlargest(n, theirs, key=lambda answer: answer.answered_at)

    def check_overrule(self, answer: Answer, annotator: str, now: float) -> Moment:
        """Return the label that an answer gave, if an annotator may take it back from another.

        Raises
        ------
        CannotUndoError
            If they may not, or if the workers would refuse it; the text says why.

        """
        about = f"event {answer.event_id}"
        if not self._people.may_overrule(annotator, answer.annotator):
            raise CannotUndoError(f"the label of {about} is not yours", "not_yours")
        moment = self.timeline.find(answer.key, answer.event_id)
        if moment is None or moment.answer_id != answer.answer_id:
            raise CannotUndoError(f"the label of {about} is another one now", "answered_since")
        if now > self._horizon_of(moment):
            raise _forgotten(answer)
        self._check_used(replace(answer, annotator=annotator))
        return moment

    def overrule(self, answer: Answer, now: float, *, annotator: str, answer_id: str) -> Answer:
        """Take back an answer of another annotator; its question is not reopened.

        Raises
        ------
        CannotUndoError
            As `check_overrule` does.

        """
        moment = self.check_overrule(answer, annotator, now)
        taken_back = _correction(answer.key, moment, None, annotator, now, answer_id)
        self._take_answer(taken_back, now)
        return taken_back

    def own(self, annotator: str) -> OwnAnswers:
        """Return the answers that an annotator can take back; changes nothing."""
        return self._own.get(annotator) or OwnAnswers(annotator)

    # --- internal

    def _check_used(self, answer: Answer, *, n_more: int = 1) -> None:
        """Check that the workers accept so many corrections from who gave an answer."""
        if not self._takes_more(answer, n_more):
            raise CannotUndoError(
                f"the label of event {answer.event_id} was changed too often", "too_often"
            )
        if self.quarantined.holds(answer.annotator, answer.key):
            raise CannotUndoError(
                f"the answers of {answer.annotator} are set aside for now; nothing is changed",
                "set_aside",
            )

    def _takes_more(self, answer: Answer, n_more: int = 1) -> bool:
        """Return whether the workers take so many more answers like one about its event."""
        event = (answer.key, answer.event_id)
        threads = (own.said(event) for own in self._about.get(event, {}).values())
        said = (each.annotator for each in max(threads, key=len, default=()))
        n_said = self._people.n_said(
            [name for name in said if not self.quarantined.holds(name, answer.key)],
            answer.annotator,
            is_second=answer.request_id in second_ids(answer.event_id),
        )
        return n_said + n_more <= 1 + self._people.max_corrections

    def _take_request(self, question: Question, at: float) -> None:
        request = question.request
        event = (request.key, request.event_id)
        if isinstance(request, Challenge):
            self._note_challenge(request, at)
            self._waiting.settle(event, before=request.requested_at, taught=True, at=at)
        else:
            self.quarantined.note(request)
        if self._keeps:
            self.timeline.occurred(
                *event,
                question.occurred_at,
                partition=question.partition,
                delayed_s=question.delayed_s,
                got=at,
            )
            # An earlier question may have prolonged the horizon of the event.
            question = replace(question, delayed_s=self.timeline.longest_delay_s(*event))
        request_id = request.request_id
        theirs = [
            own
            for own in self._about.get(event, {}).values()
            if own.wants(event, request_id) and self._is_authorised(request, own.annotator)
        ]
        if not theirs:
            self._waiting.ask(question, at, self._answerable_until(question))
        for own in theirs:
            if self._waiting.may_be_first(event, request, own.annotator):
                own.keep(question)

    def _take_answer(self, answer: Answer, at: float) -> None:
        event, request_id = (answer.key, answer.event_id), answer.request_id
        self._keep_answer(event, answer, at)
        first = answer.annotator
        counts = True
        if answer.supersedes is not None or request_id is None:
            taught = answer.supersedes is not None
            self._waiting.settle(event, before=answer.answered_at, taught=taught, at=at)
        else:
            noted = self._waiting.note_answer(event, request_id, answer.annotator, at=at)
            # If it is still open, the workers have refused the answers before this one.
            first = noted if self._waiting.get(*event, request_id) is None else answer.annotator
            counts = first == answer.annotator
        # The first answer to a question counts; declining one neither gives nor removes a label.
        # The consensus log tells the outcome of an answer to a second question.
        counts = counts and request_id not in second_ids(answer.event_id)
        if self._keeps and counts and (answer.y is not None or answer.supersedes is not None):
            self.timeline.label(
                *event,
                answer.y,
                at=answer.answered_at,
                annotator=answer.annotator,
                answer_id=answer.answer_id,
                request_id=request_id,
                got=at,
            )
        own = None if first is None else self._about.get(event, {}).get(first)
        if request_id is not None and (own is not None or answer.supersedes is None):
            question = self._waiting.remove(event, request_id)
            if question is not None and own is not None:
                own.keep(question)

    def _keep_answer(self, event: EventKey, answer: Answer, at: float) -> None:
        """Keep an answer for annotators who can take back one about its event."""
        annotator = answer.annotator
        if annotator is not None and self._keeps:
            own = self._own[annotator] = self.own(annotator)
            self._about.setdefault(event, {})[annotator] = own
        for own in list(self._about.get(event, {}).values()):
            dropped = own.take(answer, at)
            if dropped is not None:
                self._drop(dropped, own)

    def _drop(self, event: EventKey, own: OwnAnswers) -> None:
        del self._about[event][own.annotator]
        if not self._about[event]:
            del self._about[event]

    def _open(
        self, now: float, annotator: str | None, only_key: str | None = None
    ) -> Iterator[Question]:
        """Yield an annotator's open questions in order, without moving skipped ones to the end."""
        waiting = self._waiting
        mine = sorted(self._reopened(now, annotator, only_key), key=_rank)
        challenges = [q for q in mine if isinstance(q.request, Challenge)]
        yield from merge(challenges, waiting.challenges(now, only_key, annotator), key=_rank)
        again = mine[len(challenges) :]
        label_requests = waiting.label_requests(now, only_key, annotator)
        if self._order == "oldest":
            yield from merge(again, label_requests, key=_rank)
        else:  # reopened questions come first
            yield from chain(again, label_requests)

    def _is_foreign(self, answer: Answer) -> bool:
        """Return whether the workers refuse an answer because it concerns another annotator's."""
        event = (answer.key, answer.event_id)
        owner = None
        if answer.supersedes is not None:
            said = (own.said(event) for own in self._about.get(event, {}).values())
            names = {a.answer_id: a.annotator for answers in said for a in answers}
            owner = names.get(answer.supersedes)
        elif answer.request_id is not None:
            question = self._waiting.get(*event, answer.request_id)
            return question is not None and not self._is_authorised(
                question.request, answer.annotator
            )
        return not self._people.may_overrule(answer.annotator, owner)

    def _reopened(
        self, now: float, annotator: str | None, only_key: str | None = None
    ) -> Iterator[Question]:
        for question in () if annotator is None else self.own(annotator).reopened():
            key = question.request.key
            is_theirs = only_key in (None, key) and not self.quarantined.holds(annotator, key)
            # A correction is never late while the event is remembered.
            if is_theirs and now <= self._horizon_of(question):
                yield question

    def _answerable_until(self, question: Question) -> float:
        expires_at = question.request.expires_at
        return min(inf if expires_at is None else expires_at, self._horizon_of(question))

    def _horizon_of(self, one: Question | Moment) -> float:
        """Return until when the workers remember the event of a question or a label."""
        return one.occurred_at + self._horizon_s + one.delayed_s

    def _note_challenge(self, request: Challenge, at: float) -> None:
        if not self._keeps:
            return
        mentioned: list[tuple[Label, str | None]] = [
            (request.given, request.event_id),
            (request.suggested, None),
            *((near.y, near.event_id) for near in request.neighbours),
        ]
        for label, event_id in mentioned:
            self.timeline.mention(
                request.key, label, at=request.requested_at, event_id=event_id, got=at
            )


def _correction(
    key: str | None, standing: Moment, y: Label | None, annotator: str, now: float, answer_id: str
) -> Answer:
    """Return the answer by which an annotator replaces a label, or takes it back (None)."""
    return Answer(
        answer_id=answer_id,
        request_id=standing.request_id,
        event_id=standing.event_id,
        key=key,
        y=y,
        declined=y is None,
        annotator=annotator,
        # Answers about one event keep their order, whatever the clock does.
        answered_at=max(now, nextafter(standing.answered_at, inf)),
        supersedes=standing.answer_id,
    )


def _forgotten(answer: Answer) -> CannotUndoError:
    return CannotUndoError(
        f"event {answer.event_id} is too long ago: the workers have forgotten it", "forgotten"
    )


def _rank(question: Question) -> Rank:
    return rank_of(question.request)
