"""What an input does to the conversation about one event: the steps of the loop's table.

Inputs arrive here checked and found to concern the record; `loop.py` does that, keeps the records,
and holds the table that this module carries out.

"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streamgp.common.label_context import LabelContext
from streamgp.interactive.consensus_log import Consensus
from streamgp.interactive.conversation_record import Question, Record, Word
from streamgp.interactive.deadlines import Alarms
from streamgp.interactive.event_store import Memory
from streamgp.interactive.learner import SkepticalLearner, as_asking_back, as_reviewer
from streamgp.interactive.messages import Answer, Cancel, Expired, LabelRequest, Message, Origin
from streamgp.interactive.rollback import CallJournal
from streamgp.interactive.shared_budget import TotalBudget
from streamgp.interactive.validation import as_label

if TYPE_CHECKING:
    from streamgp.base import Decision, Doubt
    from streamgp.interactive.messages import Challenge, Request


class EndedError(Exception):
    """What an answer refers to has already ended, or was never open; the loop rejects it."""


class Moderator:
    """Conducts the conversation about each event; the only place where a record's state changes.

    Parameters
    ----------
    model
        The model that is taught.
    journal
        Makes every call that changes the model.
    memory
        Told of questions that are written late.
    expires_after_s
        Seconds after which an unanswered request expires; None for never.

    Attributes
    ----------
    deadlines
        Expiry of each open request that has one, by event id: set where a request opens, cleared
        where it ends.
    journal
        The same.
    consensus
        Writes the consensus log.
    total
        A budget for the questions of several loops together, beside the model's; None for none.
    written_at
        When the questions that the present input causes are written, if that is known and may be
        later than the input's own time; to be set before each input.

    """

    def __init__(
        self,
        model: SkepticalLearner,
        journal: CallJournal,
        memory: Memory,
        expires_after_s: float | None,
    ) -> None:
        self.written_at: float | None = None
        self._memory = memory
        self.deadlines: Alarms[str] = Alarms()
        self._model = model
        self.journal = journal
        self._reviewer = as_reviewer(model)
        self._asking_back = as_asking_back(model)
        self.consensus = Consensus(model, journal)
        self._expires_after_s = expires_after_s
        self.total: TotalBudget | None = None

    @property
    def waits_s(self) -> float:
        """Seconds for which a question waits for an answer, 0 if it has no expiry."""
        return self._expires_after_s or 0.0

    def ask(self, record: Record, decision: Decision, now: float) -> LabelRequest:
        """Open the label request of an event."""
        event = record.event
        request = LabelRequest(
            request_id=record.label_request_id,
            event_id=event.event_id,
            key=event.key,
            x=event.x,
            reason=decision.criterion,
            score=decision.score,
            threshold=decision.threshold,
            requested_at=now,
            expires_at=self._expiry(now),
            occurred_at=record.occurred_before(now),
        )
        record.state = "asked"
        record.was_asked = True
        self._open(record, request)
        return request

    def ask_back(self, record: Record, decision: Decision, now: float) -> LabelRequest:
        """Open the label request of an event that came earlier."""
        record.asked_back_at = now
        return self.ask(record, decision, now)

    def hear(self, record: Record, word: Word, now: float) -> Message:
        """Contest a first word, or learn it."""
        self._close(record)
        challenge = self.consensus.contest(record, word, now, self._expiry(now))
        if challenge is None:
            return self.consensus.settle(record, word, word, now, challenged=False)
        record.state = "challenged"
        record.word = word
        record.standing = word.answer_id
        record.n_challenges += 1
        self._open(record, challenge)
        return challenge

    def doubt(self, record: Record, doubt: Doubt, now: float) -> Challenge:
        """Contest the label of a learned event once more."""
        challenge = self.consensus.contest_again(record, doubt, now, self._expiry(now))
        record.state = "doubted"
        record.n_challenges += 1
        self._open(record, challenge)
        return challenge

    def label(self, record: Record, answer: Answer, now: float) -> list[Message]:
        """Take a label that supersedes nothing.

        Raises
        ------
        EndedError
            If the request that it answers has ended, or the event has its label.

        """
        state, request_id = record.state, answer.request_id
        last_challenge = record.challenge_id(record.n_challenges)
        if state in ("challenged", "doubted") and request_id in (None, last_challenge):
            return [self._resolve(record, answer, now)]
        if state == "kept" and request_id == last_challenge:
            return self._revise(record, answer, now)
        answers_request = request_id == record.label_request_id
        if state == "asked" or (answers_request and state in ("expired", "withdrawn")):
            return [self.hear(record, _word(record, answer, "asked"), now)]
        if request_id is not None:
            raise EndedError(f"request {request_id!r} has already ended; supersede the last answer")
        if record.word is not None:
            event_id = record.event.event_id
            raise EndedError(f"event {event_id!r} has its label; supersede the answer that gave it")
        return [self.hear(record, _word(record, answer, "volunteered"), now)]

    def decline(self, record: Record, answer: Answer, now: float) -> list[Message]:
        """Take an answer that gives no label and supersedes nothing.

        Raises
        ------
        EndedError
            If there is no open request that it declines.

        """
        request = record.open_request
        if request is None or answer.request_id not in (None, request.request_id):
            event_id = record.event.event_id
            raise EndedError(f"event {event_id!r} has no such open request to decline")
        if record.state == "challenged":
            return [self._keep_word(record, now)]
        if record.state == "doubted":
            self._end_doubt(record, now)
            return []
        self._end_unanswered(record, now)
        record.state = "declined"
        record.standing = answer.answer_id
        return []

    def correct(self, record: Record, answer: Answer, now: float) -> list[Message]:
        """Take an answer that supersedes the standing one."""
        word = record.word
        if record.is_learned:
            if answer.declined:
                self._close(record)
                return [self.consensus.withdraw(record, answer.answer_id, answer.annotator, now)]
            if record.state == "doubted":
                return [self._resolve(record, answer, now)]
            return self._revise(record, answer, now)
        if not answer.declined:
            if record.state == "challenged":
                return [self._resolve(record, answer, now)]
            origin: Origin = "asked" if record.was_asked else "volunteered"
            return [self.hear(record, _word(record, answer, origin), now)]
        if word is not None and word.origin == "asked":
            # Taken back while contested: the label request ends without an answer after all.
            self._end_unanswered(record, now)
        self._close(record)
        if record.state != "withdrawn":
            record.state = "declined"
        record.word = None
        record.standing = answer.answer_id
        return []

    def cancel(self, record: Record, why: str, now: float) -> list[Message]:
        """End the open request of an event because nobody needs the answer any more."""
        request = record.request
        assert request is not None  # an open request is kept in its record
        cancel = Cancel(request_id=request.request_id, key=record.event.key, why=why, at=now)
        if record.state == "challenged":
            return [cancel, self._keep_word(record, now)]
        if record.state == "doubted":
            self._end_doubt(record, now)
            return [cancel]
        self._end_unanswered(record, now)
        record.state = "cancelled"
        return [cancel]

    def erase(self, record: Record, now: float) -> list[Message]:
        """Withdraw a label of which somebody has deleted the line; nobody is asked about it."""
        messages: list[Message] = []
        if record.state == "doubted":
            messages = self.cancel(record, "the label was deleted", now)
        return [*messages, self.consensus.withdraw(record, record.standing, None, now)]

    def expire(self, record: Record, now: float) -> list[Message]:
        """End the open request of an event because nobody answered it in time."""
        request = record.request
        assert request is not None  # an open request is kept in its record
        event = record.event
        expired = Expired(
            request_id=request.request_id, event_id=event.event_id, key=event.key, at=now
        )
        if record.state == "challenged":
            message = self._keep_word(record, now)
            if record.word is not None:
                record.state = "kept"
            return [expired, message]
        if record.state == "doubted":
            self._end_doubt(record, now)
            record.state = "kept"
            return [expired]
        self._end_unanswered(record, now)
        record.state = "expired"
        return [expired]

    def abandon(self, record: Record, now: float) -> Expired:
        """End the open request of an event without the model, which has failed over its end."""
        request = record.request
        assert request is not None  # an open request is kept in its record
        self._close(record)
        if record.state == "challenged":
            record.state, record.word = "refused", None
        else:
            record.state = "kept" if record.state == "doubted" else "expired"
        event = record.event
        return Expired(
            request_id=request.request_id, event_id=event.event_id, key=event.key, at=now
        )

    def _resolve(self, record: Record, answer: Answer, now: float) -> Message:
        """Take the second answer, which is final."""
        given = record.word
        assert given is not None  # a contested event has a label
        self._close(record)
        final = _word(record, answer, "upheld" if answer.y == given.y else "revised")
        if record.state == "doubted":
            record.state = "learned"
            return self.consensus.revise(record, final, now)
        return self.consensus.settle(record, given, final, now, challenged=True)

    def _revise(self, record: Record, answer: Answer, now: float) -> list[Message]:
        """Replace a learned label, unless the new one is the same."""
        assert record.word is not None  # a learned event has a label
        if answer.y == record.word.y:
            record.state = "learned"
            # Somebody stands by it: it is not doubted again.
            record.word = replace(record.word, origin="upheld")
            record.standing = answer.answer_id
            return []
        return [self.consensus.revise(record, _word(record, answer, "revised"), now)]

    def _keep_word(self, record: Record, now: float) -> Message:
        """Learn a contested label as it was given: nobody answered the challenge."""
        word = record.word
        assert word is not None  # a challenged event has the word that is contested
        self._close(record)
        return self.consensus.settle(record, word, word, now, challenged=False)

    def _end_doubt(self, record: Record, now: float) -> None:
        """End the challenge of a learned label, which stays: nobody answered."""
        self._close(record)
        if self._reviewer is not None:  # another model may have taken over since
            self.journal.call(self._reviewer.note_review_unanswered, now)
        record.state = "learned"

    def _end_unanswered(self, record: Record, now: float) -> None:
        """End the label request of an event; what allowed it gets it back, once."""
        self._close(record)
        if record.is_given_back:
            return
        record.is_given_back = True
        asked_at = record.asked_back_at
        if asked_at is None:
            asked_at = record.event.occurred_at
            known = self.consensus.accepted.of("note_unanswered", LabelContext(asked_at=asked_at))
            self.journal.call(self._model.note_unanswered, now, **known)
        elif self._asking_back is not None:  # another model may have taken over since
            unanswered_back = self._asking_back.note_reservoir_unanswered
            self.journal.call(unanswered_back, now, asked_at=asked_at)
        if self.total is not None:
            self.total.refund(now, asked_at)

    def _expiry(self, now: float) -> float | None:
        """Return when a question expires: whoever is asked has all the time from its writing on."""
        if self._expires_after_s is None:
            return None
        return max(now, now if self.written_at is None else self.written_at) + self._expires_after_s

    def _delay_s(self, now: float) -> float:
        return 0.0 if self.written_at is None else max(0.0, self.written_at - now)

    def _open(self, record: Record, request: Request) -> None:
        self._memory.hold(record, self._delay_s(request.requested_at))
        record.request = Question(request_id=request.request_id, expires_at=request.expires_at)
        if request.expires_at is not None:
            self.deadlines.set(record.event.event_id, request.expires_at)

    def _close(self, record: Record) -> None:
        self.deadlines.clear(record.event.event_id)


def _word(record: Record, answer: Answer, origin: Origin) -> Word:
    """Read an answer as the label of an event whose state has not changed yet."""
    contested = record.word if record.state in ("challenged", "doubted") else None
    privileged = answer.privileged
    if privileged is None and record.word is not None:
        # Of a corrected label nothing else is known than of the one before it.
        privileged = record.word.privileged
    return Word(
        y=as_label(answer.y),
        origin=origin,
        answer_id=answer.answer_id,
        annotator=answer.annotator,
        # A second answer cannot repair the lateness of the first. Corrections are never late:
        # the request that they go back to was answered.
        late=(contested is not None and contested.late)
        or (record.state in ("expired", "kept") and record.is_late(answer.answered_at)),
        privileged=privileged,
        std=answer.std,
    )
