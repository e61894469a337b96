"""Executor of the transition table: applies an input to the conversation about one event.

Inputs arrive here checked and assigned to a record; `loop.py` does that and keeps the
records. The next state and the messages are defined in `transitions.py`.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamgp.common.budget_account import SharedBudget
from streamgp.common.label_context import LabelContext
from streamgp.common.signatures import narrowed, parameters
from streamgp.interactive.consensus_log import HeldLines, last_answer, settled_answer
from streamgp.interactive.consensus_writer import Consensus
from streamgp.interactive.conversation_record import (
    Conversation,
    GivenLabel,
    MisfitError,
    SecondQuestion,
    SentRequest,
    input_of,
    is_of_second,
    label_given,
    owner_of,
    why_foreign,
    why_uninvited,
    why_unusable,
)
from streamgp.interactive.deadlines import DeadlineQueue
from streamgp.interactive.event_store import EventStore
from streamgp.interactive.learner import (
    AsksBack,
    ComparesAnswers,
    CountsPending,
    HearsOutcomes,
    KnowsNames,
    Reviews,
    SkepticalLearner,
)
from streamgp.interactive.limits import UnaskedLabels
from streamgp.interactive.messages import (
    ASKED_AGAIN,
    SAME_ANNOTATOR,
    SECOND_ANNOTATOR,
    Answer,
    Cancel,
    Challenge,
    Expired,
    LabelledExample,
    LabelRequest,
    Message,
    Rejected,
)
from streamgp.interactive.people import LoopRules
from streamgp.interactive.quarantine import Quarantine
from streamgp.interactive.rollback import CallJournal, Rollback
from streamgp.interactive.transitions import CELLS, Cell, Input
from streamgp.interactive.validation import as_label, plain_excerpt

if TYPE_CHECKING:
    from streamgp.base import Decision, Doubt
    from streamgp.interactive.messages import Event, Request


# A label that is upheld although it is wrong with more than this probability is also put to a
# second annotator.
_IMPROBABLE: Final = 0.9
# Number of labels learned before an annotator is asked about an event again: by then the answer is
# one of many.
LATER: Final = 20
# Number of open second questions beyond which there is none about a label that was not asked for:
# nothing else bounds them if no one answers.
_MOST_WAITING: Final = 10
# Inputs that end an open question without an answer to it.
_UNANSWERED: Final = frozenset(("decline", "cancel", "deadline", "horizon", "erase"))
# Inputs that tell whether the annotator was there for a label request.
_WAS_THERE: Final = {
    "label": True, "unasked": True, "decline": True, "deadline": False, "horizon": False,
}  # fmt: skip


class SavedModerator:
    """The part of a moderator that survives a restart: all that a loop must not forget.

    Parameters
    ----------
    model
        The model that is taught.
    memory
        The conversations.

    Attributes
    ----------
    model, memory
        What was passed in.
    journal
        Makes all calls that change the model; of it, the credit survives.
    lines
        The lines of the consensus log that define the current labels.
    deadlines
        Expiry of each open request that has one, by event id: set when a request opens, cleared
        when it ends.
    quarantine
        Annotators whose answers are not learned.
    unasked
        Number of labels that each annotator has recently given unasked.

    """

    def __init__(self, model: SkepticalLearner, memory: EventStore) -> None:
        self.model = model
        self.memory = memory
        self.journal = CallJournal(model)
        self.lines = HeldLines()
        self.deadlines: DeadlineQueue[str] = DeadlineQueue()
        self.quarantine = Quarantine()
        self.unasked = UnaskedLabels()


class Moderator(SavedModerator):
    """Executes the transition table; nothing else changes a record's state.

    Parameters
    ----------
    model
        The model that is taught.
    memory
        The conversations. It holds the events of requests that are written late longer.
    rules
        Rules of the loop. With `open_at_most` the threshold of a label request is kept, so that the
        request can be taken back once the doubt has fallen below it.

    Attributes
    ----------
    consensus
        Writes the consensus log.
    rollback
        Undoes the current input; told of each conversation before it changes.
    knows_names
        The model, if it tells which names it knows; else None.
    shared_budget
        A budget for the questions of several loops together, besides the model's; None for none.
    written_at
        When the questions caused by the present input are written, if that is known and may be
        later than the input's own time; set before each input.

    """

    def __init__(self, model: SkepticalLearner, memory: EventStore, rules: LoopRules) -> None:
        super().__init__(model, memory)
        self._people = rules.people
        self.written_at: float | None = None
        self._open_at_most = rules.open_at_most
        self._reviewer = narrowed(model, Reviews)
        asking_back = narrowed(model, AsksBack)
        has_reach = asking_back is not None and asking_back.reservoir is not None
        self._asking_back = asking_back if has_reach else None
        self._counting = narrowed(model, CountsPending)
        self._hears_outcomes = narrowed(model, HearsOutcomes)
        self._comparing = narrowed(model, ComparesAnswers)
        self.knows_names = narrowed(model, KnowsNames)
        self.consensus = Consensus(model, self.journal, self.lines)
        self.rollback = Rollback(self)
        self._expires_after_s = rules.expires_after_s
        self.shared_budget: SharedBudget | None = None

    @property
    def quarantined(self) -> tuple[str, ...]:
        """Annotators in quarantine whom the rules do not exempt by now, in the order named."""
        return self.quarantine.in_force(self._people)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for one more open question.

        An annotator who answers no challenge must not keep all others from being asked. Challenges
        of labels that were asked for therefore count for half of the limit at most, and those of
        labels that were not asked for, of which one annotator may cause any number, for nothing.
        """
        most = self._open_at_most
        if most is None:
            return False
        found = self.memory.open_ones()
        n_others = sum(record.state in ("asked", "compared") for record in found)
        n_challenges = sum(
            record.was_asked and record.state in ("challenged", "doubted") for record in found
        )
        return n_others + min(n_challenges, (most + 1) // 2) >= most

    def wish(self, event: Event, now: float) -> Decision:
        """Return whether the model wants to ask about an event, given the open questions."""
        x, event_id, counting = event.x, event.event_id, self._counting
        pending = () if counting is None else self.memory.pending()
        if counting is None or not pending:
            return self.model.query_one(x, event_id=event_id, now=now)
        shared = self.shared_budget
        scores_all = shared is not None and shared.compares_scores
        return counting.query_one(
            x, event_id=event_id, now=now, pending=pending, scores_all=scores_all
        )

    def ask(
        self, record: Conversation, decision: Decision, now: float, *, back: bool = False
    ) -> LabelRequest:
        """Open the label request of an event; `back` is set if the event came earlier."""
        event = record.event
        request = self._request(
            record, record.label_request_id, decision.criterion, now, self._expiry(now), decision
        )
        outcome = CELLS[record.state, "back"][""] if back else CELLS["unknown", "event"]["?"]
        record.state = outcome.next
        record.was_asked = True
        if back:
            record.asked_back_at = now
        # The score of a request about an earlier event is of another kind.
        kept = self._open_at_most is not None and not back
        pending = None if self._counting is None else self._counting.pending_one(event.x)
        self._open(record, request, decision.threshold if kept else None, pending)
        return request

    def excluded(self, record: Conversation) -> tuple[str, ...]:
        """Return the annotators whose answers to the question about an event are not taken."""
        second = record.second
        if second is None or record.state != "compared" or second.to is not None:
            return self.quarantined
        return tuple(dict.fromkeys((*self.quarantined, *record.speakers, *second.barred)))

    def ask_again(self, record: Conversation, now: float) -> LabelRequest:
        """Return the open label request of an event, for all who are not excluded by now."""
        request = record.request
        assert request is not None  # it is open
        return self._request(record, request.request_id, ASKED_AGAIN, now, request.expires_at)

    def compare(self, record: Conversation, messages: list[Message], now: float) -> list[Message]:
        """Ask a second question about an event if an answer, or who gave it, gives reason to.

        `messages` are those after the answer. A question for the same annotator is only recorded,
        to be asked later; see `ask_later`.
        """
        people, label, request = self._people, record.label, record.request
        if self._comparing is None or record.second is not None or record.state != "learned":
            return []
        if self.is_full:
            return []
        assert label is not None  # it was learned
        lines = [line for line in messages if isinstance(line, LabelledExample)]
        if not lines or label.annotator is None:
            return []
        answer = settled_answer(lines[-1])
        if answer is not None and self._may_verify:
            barred = self._barred(record, label.annotator, was_asked=answer.was_asked)
            if barred is not None:
                record.second = SecondQuestion(barred=barred)
                return [self._ask_second(record, now)]
        if not people.asks_twice:
            return []
        is_drawn = answer is not None and record.was_asked
        draw = self._comparing.draw_one(record.event.event_id, "second") if is_drawn else 1.0
        is_improbable = request is not None and request.is_improbable and label.origin == "upheld"
        if is_improbable or draw < people.overlap:
            record.second = SecondQuestion()
            return [self._ask_second(record, now)]
        # If a supervisor has answered as well, this is not the same annotator's label alone.
        if draw < people.overlap + people.repeat and record.speakers == [label.annotator]:
            record.second = SecondQuestion(to=label.annotator, after=self.lines.sequence + LATER)
            self.memory.note_waiting(record)
        return []

    @property
    def _may_verify(self) -> bool:
        """Whether one more second question leaves half of the open questions to label requests.

        Otherwise a suspected annotator who is alone for a while would no longer be asked anything.
        """
        if self._open_at_most is None:
            return True
        return 2 * (self._n_second_open + 1) <= self._open_at_most

    @property
    def _n_second_open(self) -> int:
        """Number of open second questions."""
        return sum(record.state == "compared" for record in self.memory.open_ones())

    def _barred(
        self, record: Conversation, annotator: str, *, was_asked: bool
    ) -> tuple[str, ...] | None:
        """Return who is not asked about a first label; None if no one is to be asked."""
        if self.knows_names is None or not self._people.may_be_quarantined(annotator):
            return None
        names = self.knows_names.annotators()
        among = [name for name in names if name is not None and name not in self.quarantined]
        if was_asked:
            return self.quarantine.barred(annotator, among)
        if self._n_second_open >= _MOST_WAITING:
            return None
        assert self._comparing is not None  # it compares
        draw = self._comparing.draw_one(record.event.event_id, "unasked")
        return self.quarantine.barred(annotator, among, draw)

    def ask_later(self, now: float) -> list[Message]:
        """Ask an annotator again about an earlier event, if that is due and still useful."""
        if not self._people.repeat or self.is_full:
            return []
        record = self.memory.due(self.lines.sequence)
        if record is None:
            return []
        self.rollback.touch(record)
        second = record.second
        assert second is not None  # it waits to be asked
        record.second = None
        if record.state != "learned" or second.to in self.quarantined:
            return []
        if record.labelled_by != second.to:  # it was corrected, or taken back and given again
            return []
        record.second = replace(second, after=None)
        return [self._ask_second(record, now)]

    def _ask_second(self, record: Conversation, now: float) -> LabelRequest:
        """Open the second question about an event."""
        second, request_id = record.second, record.second_request_id
        assert second is not None
        assert request_id is not None
        reason = SECOND_ANNOTATOR if second.to is None else SAME_ANNOTATOR
        record.state = CELLS[record.state, "compare"][""].next
        request = self._request(record, request_id, reason, now, self._expiry(now))
        self._open(record, request)
        return request

    def _request(
        self,
        record: Conversation,
        request_id: str,
        reason: str,
        now: float,
        expires_at: float | None,
        decision: Decision | None = None,
    ) -> LabelRequest:
        """Return a label request, with score and threshold 0 unless a rule has decided."""
        event, second = record.event, record.second
        return LabelRequest(
            request_id=request_id,
            event_id=event.event_id,
            key=event.key,
            x=event.x,
            reason=reason,
            score=0.0 if decision is None else decision.score,
            threshold=0.0 if decision is None else decision.threshold,
            requested_at=now,
            expires_at=expires_at,
            occurred_at=record.occurred_before(now),
            excerpt=plain_excerpt(event.excerpt),
            excluded=self.excluded(record),
            annotator=None if second is None or record.state != "compared" else second.to,
        )

    def begin(self, record: Conversation, label: GivenLabel, now: float) -> Message:
        """Contest or learn the label that came with a new event."""
        return self._weigh(record, CELLS["unknown", "event+"], label, now)

    def process_answer(self, record: Conversation, answer: Answer, now: float) -> list[Message]:
        """Process an answer.

        Raises
        ------
        MisfitError
            If the request that it answers has ended, or the event has its label, or another
            annotator's answer is concerned.

        """
        given = input_of(record, answer)
        fault = CELLS[record.state, given][""].fault
        if fault is not None:
            raise MisfitError(fault, why_unusable(record, answer))
        if is_of_second(record, given):
            if not self._may_speak(record, given, answer.annotator):
                raise MisfitError("unauthorised", why_uninvited(record, answer))
            return self._weigh_second(record, given, answer, now)
        owner = owner_of(record, given)
        if not self._people.may_overrule(answer.annotator, owner):
            raise MisfitError("unauthorised", why_foreign(record, answer, owner))
        return self.apply(record, given, now, answer)

    def apply(
        self,
        record: Conversation,
        given: Input,
        now: float,
        answer: Answer | None = None,
        why: str = "",
    ) -> list[Message]:
        """Process an input that the transition table does not reject, second answers aside.

        `answer` is the answer, if the input is one; `why` is the reason for a `Cancel`.
        """
        before, cell = record.state, CELLS[record.state, given]
        outcome = cell[""]
        label = None if answer is None or answer.y is None else label_given(record, answer, given)
        messages: list[Message] = []
        if "Cancel" in outcome.messages:
            messages.append(_cancel_of(record, why or "the label was taken back", now))
        elif "Expired" in outcome.messages:
            messages.append(_expired_of(record, now))
        if outcome.next != before:
            self._end_question(record, given, now)
        if outcome.next == "withdrawn" and outcome.messages:
            messages.append(self.consensus.withdraw(record, answer, now))
            record.second = _put_aside(record.second)
        elif "LabelledExample" in outcome.messages:
            line = self._weigh(record, cell, label, now)
            second = record.second
            if (
                isinstance(line, LabelledExample)
                and second is not None
                and second.first is not None
            ):
                # Its answer is weighed against this label from now on.
                record.second = replace(second, first=record.label)
            return [*messages, line]
        elif label is not None and record.label is not None:
            # An annotator confirms the label: it is not doubted again.
            record.stand(label, replace(record.label, origin="upheld"))
        elif answer is not None and not record.is_learned:
            record.stand(answer, None)
        record.state = outcome.next
        return messages

    def _weigh_second(
        self, record: Conversation, given: Input, answer: Answer, now: float
    ) -> list[Message]:
        """Weigh the label that stands against an answer to the second question.

        The first annotator's answer that may be superseded stays the same.
        """
        second, label, cell = record.second, record.label, CELLS[record.state, given]
        assert second is not None  # it was asked
        assert label is not None  # and its label was learned
        is_late = record.state == "uncompared" and record.is_late(answer.answered_at)
        if record.open_request is not None:
            self._end_question(record, given, now)
        answered = replace(second, answer_id=answer.answer_id, annotator=answer.annotator)
        if given == "decline":
            record.state, record.second = cell[""].next, answered
            return []
        second_label = None
        if answer.y is not None:
            second_label = GivenLabel(
                y=as_label(answer.y),
                origin="aggregated",
                answer_id=answer.answer_id,
                annotator=answer.annotator,
                late=is_late,
                privileged=answer.privileged,
            )
        stood = second.first or label
        # For the error estimates, a corrected answer counts as it was first given.
        is_evidence = second.first is None and second.to is None
        line = self.consensus.aggregate(record, stood, second_label, now, is_evidence=is_evidence)
        if not isinstance(line, Rejected):
            record.second = replace(answered, first=stood)
        record.state = cell["#" if isinstance(line, Rejected) else ""].next
        return [line]

    def _may_speak(self, record: Conversation, given: Input, annotator: str | None) -> bool:
        """Whether an annotator may give this input about the second question on an event."""
        second = record.second
        assert second is not None
        if given in ("amend", "revoke"):
            return self._people.may_overrule(annotator, second.annotator)
        if second.to is not None:
            return annotator == second.to
        return annotator is not None and annotator not in (*record.speakers, *second.barred)

    def follow(
        self,
        record: Conversation,
        line: LabelledExample,
        lines: Sequence[LabelledExample],
        now: float,
        why: str,
    ) -> list[Cancel]:
        """Make a conversation agree with a log from which lines were removed, or put back.

        A challenge of the label that stood is cancelled. The annotator of what stands can correct
        it.

        Parameters
        ----------
        record
            The conversation.
        line
            The last line about the event.
        lines
            The lines about it that were learned, in order.
        now
            The time, in seconds.
        why
            Reason for the `Cancel`.

        """
        cancels = []
        if record.open_request is not None and record.label is not None:
            cancels.append(_cancel_of(record, why, now))
            self._end_question(record, "erase", now)
        second = next((each for each in reversed(lines) if each.origin == "aggregated"), None)
        if second is None or line.y is None:
            record.second = _put_aside(record.second)
        answer = last_answer(lines) or line
        if line.y is not None and record.standing_by != answer.annotator:
            record.standing = record.last_answer_of(answer.annotator)
        record.agree_with(line, answer.annotator)
        if record.label is None or answer.y is None:
            return cancels
        if record.second is not None and second is not None:
            by, answer_id = record.second.annotator, record.second.answer_id
            if second.annotator not in (None, by):
                by, answer_id = second.annotator, record.last_answer_of(second.annotator)
            first = replace(record.label, y=answer.y, origin=answer.origin)
            record.second = replace(record.second, answer_id=answer_id, annotator=by, first=first)
        return cancels

    def disregard(self, record: Conversation, now: float, why: str) -> Cancel:
        """Cancel the challenge of a label that was not learned yet; the label is not learned."""
        cancel = _cancel_of(record, why, now)
        self._end_question(record, "erase", now)
        record.state, record.label = "cancelled", None
        return cancel

    def abandon(self, record: Conversation, now: float) -> Expired:
        """End the open request of an event without the model, which has failed at its end."""
        expired = _expired_of(record, now)
        self.deadlines.clear(record.event.event_id)
        cell = CELLS[record.state, "deadline"]
        if "#" in cell:  # what it should have learned counts as refused
            record.label = None
        record.state = cell.get("#", cell[""]).next
        return expired

    def _weigh(
        self, record: Conversation, cell: Cell, label: GivenLabel | None, now: float
    ) -> Message:
        """Contest a first label, or learn the final one: `label` or, if None, the standing one.

        The record still has the state for which the cell is defined.
        """
        given = record.label
        if label is not None and "!" in cell:
            challenge = self.consensus.contest(record, label, now, self._expiry(now))
            if challenge is not None:
                record.stand(label, label)
                record.n_challenges += 1
                pending = record.pending
                record.state = cell["!"].next
                self._open(record, challenge, pending=pending)
                return challenge
        if label is not None and record.is_learned:
            line = self.consensus.revise(record, label, now)
        else:
            final = given if label is None else label
            assert final is not None  # a question about a label has this label when it ends
            first = final if given is None else given
            challenged = label is not None and given is not None
            n_since = self.memory.n_added - record.serial
            line = self.consensus.settle(
                record, first, final, now, challenged=challenged, n_since=n_since
            )
        record.state = cell["#" if isinstance(line, Rejected) else ""].next
        return line

    def _end_question(self, record: Conversation, given: Input, now: float) -> None:
        """End the question about an event, if one is open, and refund it if no answer came."""
        if record.open_request is None:
            return
        self.deadlines.clear(record.event.event_id)
        label = record.label
        if record.state == "compared":
            return  # no budget was charged for it
        if record.state == "doubted":
            # Another model may have taken over in the meantime.
            if given in _UNANSWERED and self._reviewer is not None:
                self.journal.call(self._reviewer.note_review_unanswered, now)
        elif record.state == "asked":
            if given in _WAS_THERE:
                self._note_outcome(record, answered=_WAS_THERE[given])
            if given in _UNANSWERED:
                self._give_back(record, now)
        elif given == "takeback" and label is not None and label.origin == "asked":
            # Taken back while contested: so the label request ends without an answer.
            self._give_back(record, now)

    def _note_outcome(self, record: Conversation, *, answered: bool) -> None:
        """Report that a label request has ended to those that learn when questions are answered."""
        if self._hears_outcomes is not None:
            note = self._hears_outcomes.note_outcome
            self.journal.call(note, asked_at=record.asked_at, answered=answered)
        if self.shared_budget is not None:
            self.shared_budget.note_outcome(asked_at=record.asked_at, answered=answered)

    def _give_back(self, record: Conversation, now: float) -> None:
        """Refund a label request, once: it ended without an answer."""
        if record.is_given_back:
            return
        record.is_given_back = True
        asked_at = record.asked_at
        if not record.was_asked_back:
            context = LabelContext(asked_at=asked_at, event_id=record.event.event_id)
            known = self.consensus.accepted.of("note_unanswered", context)
            self.journal.call(self.model.note_unanswered, now, **known)
        elif self._asking_back is not None:  # another model may have taken over in the meantime
            unanswered_back = self._asking_back.note_reservoir_unanswered
            self.journal.call(unanswered_back, now, asked_at=asked_at)
        if self.shared_budget is not None:
            self.shared_budget.refund(now, asked_at)

    def _expiry(self, now: float) -> float | None:
        """Return the expiry of a request, counted from when it is written."""
        if self._expires_after_s is None:
            return None
        return max(now, now if self.written_at is None else self.written_at) + self._expires_after_s

    def _open(
        self,
        record: Conversation,
        request: Request,
        threshold: float | None = None,
        pending: float | None = None,
    ) -> None:
        if self.written_at is not None:
            self.memory.hold(record, self.written_at - request.requested_at)
        record.request = SentRequest(
            request_id=request.request_id,
            expires_at=request.expires_at,
            threshold=threshold,
            pending=pending,
            is_improbable=(
                self._people.overlap > 0.0
                and isinstance(request, Challenge)
                and request.probability_wrong > _IMPROBABLE
            ),
        )
        self.memory.note_open(record)
        if request.expires_at is not None:
            self.deadlines.set(record.event.event_id, request.expires_at)

    # --- Questions about earlier events: labels that are doubted, and events that have none.
    #
    # The model decides when to look, what is doubtful and whose label tells most. The events are
    # those that the loop remembers anyway: nothing else has to be stored.

    def look_through(self, now: float) -> list[Message]:
        """Let the model review the labels that it has learned, when that is due.

        Returns
        -------
        The challenge of the most doubtful label, if there is one.

        """
        model, memory = self._reviewer, self.memory
        if model is None or not model.review_due:
            return []
        records: dict[str, Conversation] = {}
        annotators: dict[str, str | None] = {}
        stds: dict[str, float] = {}
        # Loop over the examples, which are few, and not over the events that are remembered.
        for example in model.examples():
            record = memory.get(example.event_id or "")
            if record is None or record.label is None or memory.is_beyond(record, now):
                continue
            if record.may_be_doubted:
                records[record.event.event_id] = record
                annotators[record.event.event_id] = record.label.annotator
                if record.label.std is not None:
                    stds[record.event.event_id] = record.label.std
        # A learner of a user may be about classes only.
        stated = {"stds": stds} if stds and "stds" in parameters(model.review_one) else {}
        doubt = model.review_one(annotators, now=now, **stated)
        self.journal.call(model.note_review, doubt, now=now)
        if doubt is None or not doubt.decision.ask:
            return []
        record = records[doubt.event_id]
        self.rollback.touch(record)
        return [self._doubt(record, doubt, now)]

    def ask_back(self, now: float) -> list[Message]:
        """Let the model choose among the latest events without a request, if due and not full.

        Returns
        -------
        The request for the label of the chosen event, if there is one.

        """
        model = self._asking_back
        if model is None or not model.reservoir_due or self.is_full:
            return []
        reach, waits_s = model.reservoir, self._expires_after_s or 0.0
        assert reach is not None  # otherwise it never asks back
        records = self.memory.latest_seen(reach.size, now, reach.max_age_s, waits_s)
        found = model.ask_among_one({r.event.event_id: r.event.x for r in records}, now=now)
        decision = None if found is None else found[1]
        if self.shared_budget is not None and decision is not None:
            decision = self.shared_budget.checked(decision, now)
        self.journal.call(model.note_reservoir, decision, now=now)
        if found is None or decision is None or not decision.ask:
            return []
        record = self.memory[found[0]]
        self.rollback.touch(record)
        return [self.ask(record, decision, now, back=True)]

    def _doubt(self, record: Conversation, doubt: Doubt, now: float) -> Challenge:
        """Contest the label of a learned event again."""
        challenge = self.consensus.contest_again(record, doubt, now, self._expiry(now))
        record.state = CELLS[record.state, "review"][""].next
        record.n_challenges += 1
        self._open(record, challenge)
        return challenge


def _cancel_of(record: Conversation, why: str, now: float) -> Cancel:
    """Return the message that the open request of an event is taken back."""
    event, request = record.event, record.request
    assert request is not None  # an open request is kept in its record
    return Cancel(request_id=request.request_id, key=event.key, why=why, at=now)


def _expired_of(record: Conversation, now: float) -> Expired:
    """Return the message that the open request of an event has expired."""
    event, request = record.event, record.request
    assert request is not None  # an open request is kept in its record
    return Expired(request_id=request.request_id, event_id=event.event_id, key=event.key, at=now)


def _put_aside(second: SecondQuestion | None) -> SecondQuestion | None:
    """Return a second question after the line about its answer was removed."""
    return second and replace(second, answer_id=None, annotator=None, first=None)
