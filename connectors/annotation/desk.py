"""Desk of many annotators: cards are leased, answered, taken back and changed.

The core of every user interface for several people: one fold of the topics, with leases, so that
two annotators do not answer the same question, and with answer ids that make repeats harmless. An
answer's id on the wire is derived from the annotator's name and the id that the client chose: if
the same reply is sent again after a restart, it is found in the topics and not sent twice.

This module has no clock and does no I/O: the caller passes times, in POSIX seconds.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any
from urllib.parse import quote, unquote

from connectors.annotation.annotators import AnnotatorCounts, Progress
from connectors.annotation.cards import Card, CardMaker, card_id, request_of
from connectors.annotation.explain import Averages, Shares, shares_of
from connectors.annotation.inbox import AnnotationInbox
from connectors.annotation.open_questions import Order, Question, RequestKey
from connectors.annotation.own_answers import PAGE, CannotUndoError, derived_id
from connectors.annotation.question_budget import QuestionBudget
from connectors.annotation.replies import (
    Accepted,
    BadReplyError,
    CardGoneError,
    DifferentBodyError,
    Reply,
    check,
    details_of,
    label_of,
    read_label,
)
from connectors.annotation.timeline import is_same
from streamgp.base import Label
from streamgp.common.latest import Latest, LatestByKey
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    Input,
    LabelledExample,
    Message,
    Prediction,
    Request,
)
from streamgp.interactive.people import DEFAULT_PEOPLE, People

LEASE_S = 60.0
"""Duration of a lease."""
N_OTHERS = 50
"""Number of answers of others that a supervisor is shown."""
N_RESERVE = 8
"""Number of cards that a browser keeps for a time without a connection."""
_N_LOOKED = 100
N_PAST = 10
"""Number of answers in a history."""
N_ELSEWHERE = 100
"""The largest number of other keys' labels that a card offers."""
N_ANSWERS = 5_000
"""Number of answers whose ids are kept to recognize repeats, over all annotators."""
N_SHARES = 20_000
"""Number of events whose predictions are kept for questions about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A current answer, as shown in its annotator's history.

    Parameters
    ----------
    answer_id
        The id that its client chose, or its own; with it, it can be taken back or changed. For
        another annotator's answer an id that is unique among those of all annotators.
    annotator
        Who gave it.
    label
        The label; None if it was declined.
    at
        When it was given, POSIX seconds.
    can_change
        Whether it can be taken back and changed.
    why_not
        If not, a `code` (`answered_since`, `unknown`, `not_yours`, `forgotten`, `too_often`,
        `set_aside`) and the English `text`; otherwise None.

    """

    answer_id: str
    annotator: str | None
    card_id: str
    event_id: str
    key: str | None
    label: Label | None
    at: float
    can_change: bool
    why_not: Mapping[str, str] | None


class AnnotationDesk:
    """The questions of a deployment, for many annotators.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    answer_horizon_s
        As in `streamgp.interactive.InteractiveLoop`; None for no limit.
    of_numbers
        Whether numbers are asked for, not names of classes.
    unit, value_range
        Of numbers: their unit, and the lowest and highest one; None if not known.
    budget
        Counts how many questions are left; None if that is not known.
    people
        Who may answer for whom; the same as for the workers.
    order
        Order of the label requests, see `connectors.annotation.open_questions.OpenQuestions`.
    labels
        Labels that are offered from the start, for every key.

    Attributes
    ----------
    averages
        What is usual in each class.
    timeline
        The labels of the events of each key, and those to choose from.
    quarantined
        The annotators in quarantine.
    times
        When each annotator has replied to questions.

    Examples
    --------
    >>> from streamgp.interactive import LabelRequest
    >>> desk = AnnotationDesk(keyed=False)
    >>> desk.take(
    ...     LabelRequest(
    ...         request_id="e1/label", event_id="e1", x={"light": 0.5}, reason="SkepticalAsk",
    ...         score=0.3, threshold=0.1, requested_at=100.0,
    ...     )
    ... )
    >>> card = desk.next("ann", 130.0)
    >>> card.id, card.why["text"], card.lease_until
    ('e1/label', 'the prediction is uncertain', 190.0)
    >>> desk.next("bob", 131.0) is None
    True
    >>> reply = Reply(card=card.id, answer_id="c1", action="label", label="hall")
    >>> accepted = desk.reply("ann", reply, 132.0)
    >>> accepted.answer.answer_id, accepted.answer.y, desk.reply("ann", reply, 133.0).again
    ('page/ann/c1', 'hall', True)

    """

    # _inbox       the open questions, and all annotators' answers
    # _cards       builds cards
    # _leases      the holder of each leased question, and the end of the lease
    # _answers     the last answers by their public ids (see `_public_id`), with their partition
    # _shares      predictions of events with questions, the latest at the end
    # _counts      counts of each annotator
    # _budget      counts how many questions are left
    def __init__(
        self,
        *,
        keyed: bool = True,
        answer_horizon_s: float | None = None,
        of_numbers: bool = False,
        unit: str | None = None,
        value_range: tuple[float, float] | None = None,
        budget: QuestionBudget | None = None,
        people: People = DEFAULT_PEOPLE,
        order: Order = "useful",
        labels: Iterable[Label] = (),
    ) -> None:
        self.averages = Averages()
        self._keyed = keyed
        self._of_numbers = of_numbers
        self._max_labels = people.max_labels
        self._inbox = AnnotationInbox(
            answer_horizon_s=answer_horizon_s,
            with_classes=not of_numbers,
            people=people,
            keyed=keyed,
            order=order,
            labels=labels,
        )
        self.timeline, self.quarantined = self._inbox.timeline, self._inbox.quarantined
        self._cards = CardMaker(
            keyed=keyed,
            of_numbers=of_numbers,
            averages=self.averages,
            timeline=self.timeline,
            unit=unit,
            value_range=value_range,
        )
        self._leases: dict[RequestKey, tuple[str, float]] = {}
        self._answers: Latest[tuple[str | None, str], tuple[Answer, int | None]] = Latest(N_ANSWERS)
        self._shares: LatestByKey[str | None, Shares] = LatestByKey(N_SHARES)
        self._counts = AnnotatorCounts()
        self.times = self._counts.times
        self._budget = QuestionBudget() if budget is None else budget

    # --- messages from the topics

    def take(
        self, message: Input | Message, *, partition: int | None = None, at: float = 0.0
    ) -> None:
        """Process a message from one of the topics; irrelevant messages change nothing.

        Predictions are optional; with them, a card shows how certain the learner was. Only
        predictions of events with questions are kept.

        Parameters
        ----------
        at
            When it was written to the topic, POSIX seconds.

        """
        if self._inbox.is_forgotten(message.key, at):
            return
        if isinstance(message, Prediction):
            if message.decision.ask:
                event = (message.key, message.event_id)
                self._shares.put(event, shares_of(message))
                self._inbox.take(message, partition=partition, at=at)
            return
        self._inbox.take(message, partition=partition, at=at)
        if isinstance(message, Answer):
            self._note_answer(message, partition)
        else:
            self._budget.take(message)
        if isinstance(message, Challenge):
            self._counts.note_challenge(message)
        elif isinstance(message, LabelledExample) and not self._of_numbers:
            self.averages.learn(message)

    def forget(self, key: str | None, at: float) -> None:
        """Forget everything about a key that was written up to a time, already read or not."""
        self._inbox.forget(key, at)
        self.averages.forget(key)
        self._counts.forget(key)
        self._budget.forget(key)
        self._shares.forget(key)
        self._leases = {name: lease for name, lease in self._leases.items() if name[0] != key}
        for name in [name for name, (answer, _) in self._answers.items() if answer.key == key]:
            del self._answers[name]

    def turn_over(self) -> None:
        """Forget what was settled before the last turn; call it about once a minute."""
        self._inbox.turn_over()

    # --- cards

    def next(self, annotator: str, now: float, *, only_key: str | None = None) -> Card | None:
        """Return the card that an annotator should answer next, and lease it to them.

        A card that is already leased to them is returned again, with a new lease.

        Parameters
        ----------
        only_key
            Restricts the questions to one key; None for all.

        """
        self._counts.saw(annotator, now)
        self._leases = {name: lease for name, lease in self._leases.items() if lease[1] > now}

        def is_free(question: Question) -> bool:
            return self._holder(question, now) in (None, annotator)

        question = self._leased_to(annotator, now, only_key)
        question = question or self._inbox.next(now, annotator, only_key=only_key, where=is_free)
        if question is None:
            return None
        self._leases[question.request_key] = (annotator, now + LEASE_S)
        return self._card(question, annotator, now, only_key)

    def peek(
        self,
        annotator: str,
        now: float,
        *,
        after: str | None = None,
        only_key: str | None = None,
    ) -> Card | None:
        """Return the card after another one, for prefetching; it is not leased."""

        def is_free(question: Question) -> bool:
            holder = self._holder(question, now)
            return holder in (None, annotator) and self._id_of(question) != after

        question = self._inbox.next(now, annotator, only_key=only_key, where=is_free)
        return None if question is None else self._card(question, annotator, now, only_key)

    def reserve(self, annotator: str, now: float, *, only_key: str | None = None) -> list[str]:
        """Return the ids of the next cards, for an annotator who may lose the connection.

        They include the current card, and none is leased. While other annotators are active, only
        cards that are this one's: challenges and questions that name them, and those whose answer
        they took back. Another annotator would answer the others in the meantime.
        """
        is_alone = not self.others(now, than=annotator)
        found = self._inbox.questions(now, annotator, only_key=only_key, most=_N_LOOKED)
        assigned = [
            question
            for question in found
            if is_alone or question.request.annotator == annotator or question.supersedes
        ]
        return [self._id_of(question) for question in assigned[:N_RESERVE]]

    def card(
        self, annotator: str, card_id: str, now: float, *, only_key: str | None = None
    ) -> Card | None:
        """Return a card by its id, None if it does not wait for an answer from this annotator."""
        question = self._open_question(annotator, card_id, now)
        return None if question is None else self._card(question, annotator, now, only_key)

    def is_open(self, annotator: str, card_id: str, now: float) -> bool:
        """Return whether a card waits for an answer from this annotator."""
        return self._open_question(annotator, card_id, now) is not None

    def why_ended(self, card_id: str) -> str | None:
        """Return the reason why a card's question was cancelled; None if none is known."""
        return self._inbox.why_ended(*request_of(card_id, keyed=self._keyed))

    # --- replies of annotators

    def reply(
        self, annotator: str, reply: Reply, now: float, *, only_key: str | None = None
    ) -> Accepted:
        """Process a reply.

        Parameters
        ----------
        reply
            The reply. It also counts if the card is leased to another annotator who has not
            answered.
        only_key
            The only key that the annotator may see, None for all. What is typed is then not
            compared with the labels of other keys, which its result would reveal.

        Raises
        ------
        BadReplyError
            If it cannot be an answer to this card.
        CardGoneError
            If the card no longer waits for an answer.
        DifferentBodyError
            If another reply had the same id.

        """
        self._counts.saw(annotator, now)
        check(reply)
        key, request_id = request_of(reply.card, keyed=self._keyed)
        answer_id = _wire_id(annotator, reply.answer_id)
        known = self._answers.get((annotator, answer_id))
        if known is not None:
            self._check_same(annotator, known[0], reply, (key, request_id))
            return Accepted(answer=known[0], partition=known[1], again=True)
        question = self._waiting_question(annotator, reply.card, now)
        y = self._label_of(reply, question.request, only_key)
        return self._answer(question, y, annotator, now, answer_id, **details_of(reply))

    def undo(self, annotator: str, answer_id: str, now: float) -> Accepted:
        """Take back an answer of an annotator, and reopen its question for them.

        Raises
        ------
        CannotUndoError
            If there is none, if another annotator has answered since, or if it is too old.

        """
        self._counts.saw(annotator, now)
        answer = self._own_answer(annotator, answer_id)
        undo_id = derived_id(f"{answer.answer_id}/undo")
        known = self._answers.get((annotator, self._public_id(answer.key, undo_id)))
        if known is not None:
            return Accepted(answer=known[0], partition=known[1], again=True)
        self._inbox.change(answer, now)
        undone = self._inbox.undo(now, answer, annotator=annotator, answer_id=undo_id)
        return self._accepted(undone.message, undone.question.partition)

    def overrule(
        self,
        supervisor: str,
        annotator: str,
        answer_id: str,
        now: float,
        *,
        only_key: str | None = None,
    ) -> Accepted:
        """Take back an answer of another annotator; its question is not reopened.

        Parameters
        ----------
        annotator, answer_id
            Who gave it, and its id as in `answers_of_others`.
        only_key
            The only key that the supervisor may see, None for all.

        Raises
        ------
        CannotUndoError
            If it is not known, no longer stands, or may not be changed by the supervisor.

        """
        self._counts.saw(supervisor, now)
        answer, partition = self._answers.get((annotator, answer_id), (None, None))
        if answer is None or only_key not in (None, answer.key):
            raise CannotUndoError(f"answer {answer_id:.80} of {annotator} is not known here")
        undo_id = derived_id(f"{answer.answer_id}/undo/{quote(supervisor, safe='')}")
        known = self._answers.get((supervisor, self._public_id(answer.key, undo_id)))
        if known is not None:
            return Accepted(answer=known[0], partition=known[1], again=True)
        taken_back = self._inbox.overrule(answer, now, annotator=supervisor, answer_id=undo_id)
        return self._accepted(taken_back, partition)

    def revise(self, annotator: str, answer_id: str, label: Label, now: float) -> Accepted:
        """Replace an annotator's answer by another label or number.

        Parameters
        ----------
        annotator
            Who gave the answer.
        answer_id
            Its id, as in `Accepted` or `history`; the new answer has an id of its own.
        label
            The label, or the number.

        Raises
        ------
        CannotUndoError
            If it can no longer be replaced; the text says why.
        DifferentBodyError
            If it has already been replaced by another label.

        """
        self._counts.saw(annotator, now)
        answer = self._own_answer(annotator, answer_id)
        revision_id = derived_id(f"{answer.answer_id}/revise")
        y = self._read_label(label, answer.key)
        known = self._answers.get((annotator, self._public_id(answer.key, revision_id)))
        if known is not None:
            if not is_same(known[0].y, y):
                raise DifferentBodyError(f"answer {answer_id} was changed to another label already")
            return Accepted(answer=known[0], partition=known[1], again=True)
        question = self._inbox.change(answer, now)
        return self._answer(question, y, annotator, now, revision_id)

    def skip(self, annotator: str, card_id: str, now: float) -> None:
        """Move a card behind all others of an annotator, and release it for other annotators.

        Raises
        ------
        CardGoneError
            If it no longer waits for an answer.

        """
        self._counts.saw(annotator, now)
        question = self._waiting_question(annotator, card_id, now)
        self._inbox.skip(question, annotator)
        if self._holder(question, now) == annotator:
            del self._leases[question.request_key]

    def rename(
        self,
        annotator: str,
        key: str | None,
        old: Label,
        new: Label,
        now: float,
        *,
        of_everyone: bool = False,
    ) -> list[Accepted]:
        """Rename a label in all its examples; if the new label exists already, the two merge.

        Parameters
        ----------
        annotator
            The annotator who renames.
        of_everyone
            Whether labels that others gave are replaced too.

        Returns
        -------
        The answers to send, one for each example whose event the workers remember. A label that no
        event has any more is no longer offered.

        Raises
        ------
        BadReplyError
            If the old label is not known, or the new one is invalid or the same.

        """
        self._counts.saw(annotator, now)
        if not any(is_same(old, label) for label in self.timeline.classes(key)):
            raise BadReplyError(
                f"old is {old!r:.80}", "one of the labels of this key", "unknown_label"
            )
        y = self._read_label(new, key)
        if is_same(old, y):
            raise BadReplyError(f"new is the old label, {y!r:.80}", "another label", "same_label")
        renamed = self._inbox.rename(key, old, y, now, annotator=annotator, of_everyone=of_everyone)
        return [self._accepted(answer, partition) for answer, partition in renamed]

    # --- views beside the cards

    def labels_elsewhere(self, key: str | None) -> list[Label]:
        """Return the labels that only other keys have, numbers first; at most the first ones.

        Labels that read like one of this key are left out, as the text "2" beside the number.
        """
        if not self._keyed:
            return []
        here = {str(label) for label in self.timeline.classes(key)}
        return [y for y in self.timeline.all_classes() if str(y) not in here][:N_ELSEWHERE]

    def history(self, annotator: str, now: float) -> list[Past]:
        """Return the last ten current answers of an annotator, the newest first."""
        return [self._past(answer, now) for answer in self._inbox.own(annotator).latest(N_PAST)]

    def answers_of_others(
        self, supervisor: str, now: float, *, only_key: str | None = None
    ) -> list[Past]:
        """Return the last labels given by other annotators, as far as they stand, newest first."""
        answers = self._inbox.of_others(supervisor, N_OTHERS, only_key=only_key)
        return [self._past(answer, now, seen_by=supervisor) for answer in answers]

    def past(self, annotator: str, answer_id: str, now: float) -> Past | None:
        """Return an answer of an annotator by its id, None if it is not known here."""
        try:
            return self._past(self._own_answer(annotator, answer_id), now)
        except CannotUndoError:
            return None

    def progress(
        self,
        annotator: str,
        now: float,
        *,
        only_key: str | None = None,
        day_start: float | None = None,
    ) -> Progress:
        """Return the counts of an annotator.

        Parameters
        ----------
        only_key
            Restricts the waiting questions to one key; None for all.
        day_start
            When the annotator's day began, POSIX seconds; None for the last midnight in UTC.

        """
        # If each key has its own budget, its rest is shown on the key's cards.
        is_one = only_key is not None or not self._keyed
        return self._counts.progress(
            annotator,
            now,
            day_start=day_start,
            waiting=self._inbox.n_open(now, annotator, only_key=only_key),
            oldest_at=self._inbox.oldest_at(now, annotator, only_key=only_key),
            budget_left=self._budget.left(only_key, now) if is_one else None,
        )

    def n_open(self, now: float) -> int:
        """Return the number of open questions, of any annotator."""
        return self._inbox.n_open(now, None)

    def others(self, now: float, *, than: str) -> list[str]:
        """Return the other annotators who were active in the last two minutes, by name."""
        return self._counts.others(now, than=than)

    # --- internal

    def _leased_to(self, annotator: str, now: float, only_key: str | None) -> Question | None:
        """Return an open question that is leased to an annotator, None if there is none."""
        for (key, request_id), (holder, _) in self._leases.items():
            if holder == annotator and only_key in (None, key):
                question = self._inbox.question_of(key, request_id, now, annotator)
                if question is not None:
                    return question
        return None

    def _holder(self, question: Question, now: float) -> str | None:
        """Return the annotator to whom a question is leased, None if it is not leased."""
        holder, until = self._leases.get(question.request_key, (None, -inf))
        return holder if until > now else None

    def _id_of(self, question: Question) -> str:
        return card_id(*question.request_key, keyed=self._keyed)

    def _public_id(self, key: str | None, answer_id: str) -> str:
        """Return the id of an answer across all keys; the id of a reply is already unique."""
        if answer_id.startswith(PAGE):
            return answer_id
        return card_id(key, answer_id, keyed=self._keyed)

    def _client_id(self, answer: Answer) -> str:
        """Return the id that the client chose for an answer, or its public id."""
        start = _wire_id(answer.annotator or "", "")
        rest = answer.answer_id.removeprefix(start)
        if answer.answer_id.startswith(start) and "/" not in rest:
            return unquote(rest)
        return self._public_id(answer.key, answer.answer_id)

    def _open_question(self, annotator: str, card_id: str, now: float) -> Question | None:
        key, request_id = request_of(card_id, keyed=self._keyed)
        return self._inbox.question_of(key, request_id, now, annotator)

    def _waiting_question(self, annotator: str, card_id: str, now: float) -> Question:
        question = self._open_question(annotator, card_id, now)
        if question is None:
            raise CardGoneError(f"card {card_id} waits for no answer any more")
        return question

    def _card(self, question: Question, annotator: str, now: float, only_key: str | None) -> Card:
        request = question.request
        is_mine = self._holder(question, now) == annotator

        def changeable(event_id: str) -> str | None:
            answer = self._inbox.own(annotator).standing((request.key, event_id))
            past = None if answer is None else self._past(answer, now)
            return past.answer_id if past is not None and past.can_change else None

        return self._cards.card(
            question,
            annotator,
            labels=self.timeline.classes(request.key),
            labels_elsewhere=self.labels_elsewhere(request.key) if only_key is None else (),
            shares=self._shares.get((request.key, request.event_id)),
            budget_left=self._budget.left(request.key, now),
            lease_until=self._leases[question.request_key][1] if is_mine else None,
            changeable=changeable,
        )

    def _own_answer(self, annotator: str, answer_id: str) -> Answer:
        """Return an answer by its public id, or by the one that the client chose."""
        for name in (_wire_id(annotator, answer_id), answer_id):
            known = self._answers.get((annotator, name))
            if known is not None:
                return known[0]
        raise CannotUndoError(f"answer {answer_id:.80} of {annotator} is not known here")

    def _answer(
        self,
        question: Question,
        y: Label | None,
        annotator: str,
        now: float,
        answer_id: str,
        **details: Any,
    ) -> Accepted:
        answer = self._inbox.answer(
            question, y, now, annotator=annotator, answer_id=answer_id, **details
        )
        self._leases.pop(question.request_key, None)
        if answer is None:
            self._note_stands_again(question, annotator, answer_id, details)
        return self._accepted(answer, question.partition)

    def _note_stands_again(
        self, question: Question, annotator: str, answer_id: str, details: Mapping[str, Any]
    ) -> None:
        """Let the reply's id name the answer that stands again: it may be repeated or undone."""
        event = question.request.key, question.request.event_id
        if (standing := self._inbox.own(annotator).standing(event)) is not None:
            again = replace(standing, **details), question.partition
            self._answers.put((annotator, answer_id), again)

    def _accepted(self, answer: Answer | None, partition: int | None) -> Accepted:
        if answer is not None:
            self._note_answer(answer, partition)
        return Accepted(answer=answer, partition=partition)

    def _label_of(
        self, reply: Reply, request: Request, only_key: str | None = None
    ) -> Label | None:
        known = self.timeline.classes(request.key)
        if only_key is None:
            known += self.labels_elsewhere(request.key)
        label = label_of(reply, request, known, of_numbers=self._of_numbers)
        if label is None or not reply.gives_value:
            return label
        return self._among_few(label, request.key)

    def _read_label(self, value: Label, key: str | None) -> Label:
        label = read_label(value, self.timeline.classes(key), of_numbers=self._of_numbers)
        return self._among_few(label, key)

    def _among_few(self, label: Label, key: str | None) -> Label:
        """Return a label, unless it would be one more than the workers take."""
        if self._of_numbers:
            return label
        known = self.timeline.classes(key)
        if len(known) >= self._max_labels and not any(is_same(label, each) for each in known):
            raise BadReplyError(
                f"label is new, and there are {len(known)} already",
                "one of the labels there are",
                "many_labels",
            )
        return label

    def _check_same(self, annotator: str, answer: Answer, reply: Reply, asked: RequestKey) -> None:
        """Check that an answer with a reply's id was made from the same reply."""
        details = details_of(reply)
        is_repeat = (answer.key, answer.request_id) == asked and all(
            getattr(answer, name) == value for name, value in details.items()
        )
        if is_repeat:
            question = self._inbox.own(annotator).question_of(answer)
            if reply.gives_value:
                value = reply.number if self._of_numbers else reply.label
                is_repeat = value is not None and is_same(
                    self._read_label(value, answer.key), answer.y
                )
            elif reply.action == "decline" or question is None:
                is_repeat = answer.declined == (reply.action == "decline")
            else:
                is_repeat = is_same(self._label_of(reply, question.request), answer.y)
        if not is_repeat:
            raise DifferentBodyError(f"another reply came with answer_id {reply.answer_id!r}")

    def _past(self, answer: Answer, now: float, *, seen_by: str | None = None) -> Past:
        """Return an answer as its annotator sees it, or as a supervisor does."""
        why_not, answer_id = None, self._client_id(answer)
        try:
            if seen_by is None:
                self._inbox.change(answer, now)
            else:
                answer_id = self._public_id(answer.key, answer.answer_id)
                self._inbox.check_overrule(answer, seen_by, now)
        except CannotUndoError as error:
            why_not = {"code": error.code, "text": str(error)}
        return Past(
            answer_id=answer_id,
            annotator=answer.annotator,
            card_id=card_id(answer.key, answer.request_id or "", keyed=self._keyed),
            event_id=answer.event_id,
            key=answer.key,
            label=answer.y,
            at=answer.answered_at,
            can_change=why_not is None,
            why_not=why_not,
        )

    def _note_answer(self, answer: Answer, partition: int | None) -> None:
        name = answer.annotator, self._public_id(answer.key, answer.answer_id)
        if name not in self._answers:
            self._answers.put(name, (answer, partition))
            self._counts.note_answer(answer)
            self._budget.take(answer)


def _wire_id(annotator: str, answer_id: str) -> str:
    """Return the id of a reply on the wire, derived from its cause."""
    return derived_id(f"{PAGE}{quote(annotator, safe='')}/{quote(answer_id, safe='')}")
