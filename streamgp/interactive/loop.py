"""The interactive loop: one conversation about each event, as a state machine without I/O.

Events, answers, the time and cancellations go in; messages come out. Files, brokers and tests
drive the same object. What an input does depends on the state of the conversation about its event:
see the transition table in `transitions.py`, which `moderator.py` executes.

Not in the table
----------------
A request that was never made is unknown in every state, and any request before the last has ended.
If the model fails on an input, with any error except those by which it refuses features or an
example, the input is `failed` and changes nothing. The end of a request by time takes place even
then, but teaches nothing. Before an answer is weighed, the time passes for its event: an answer
given after the expiry of an open request first ends it, with the same messages in the same call,
and an answer given after the horizon is rejected as late.

Quarantine
----------
Before an answer is weighed, its annotator may be judged by the labels of the others. While an
annotator is in quarantine, all their inputs are `quarantined` in every state, and change nothing; a
question stays open to the others. Label requests name who is in quarantine, and those that are open
when a quarantine begins are made again, under their ids. What was learned from the annotator is
retracted when it begins, as by `retract`: a `Retraction` says so, and is followed by the lines that
replace what was retracted. See `quarantine.py`.

Owners
------
An answer to what another annotator has said, whether a correction or the answer to a challenge, is
`unauthorised` in every state unless it comes from a supervisor, and changes nothing; see
`people.py`.

Reviews
-------
Some models doubt labels that they have learned. When such a model is due to review them, the next
event or answer that is accepted, whatever it is about, ends with a challenge of the label that has
become the least probable: the `review` of that event. A label that an annotator has upheld,
corrected or superseded is not doubted again, nor is an event after two challenges.

Requests about earlier events
-----------------------------
Some models ask about earlier events. When such a model is due to review the latest ones, an
accepted event that is not asked about itself ends with a label request about the one of them whose
label would tell most: `back`. That comes before a challenge. Only events that have neither a label
nor ever had a question are considered, so that no annotator is asked twice about one. Such a
request is like any other.

Open questions
--------------
Some models take pending answers into account. For each open label request the loop keeps the value
that the model, when the request is made, assigns to the answer, until a label is learned or the
request ends without one. The model is told of these requests when it decides about an event.

With `open_at_most`, a label request beyond that number of open questions is made only in place of
an open label request whose event the query strategy now scores lower, which is cancelled. An open
label request is also cancelled once its event scores no more than the threshold it had to exceed,
because of labels learned since. Challenges are always made. They count for half of the limit at
most, rounded up, and not at all if their labels were not asked for.

Second questions
----------------
With `overlap` and `repeat` of `People` some events are asked about a second time, after their label
was learned: to another annotator at once, to the same one later. Which events is drawn from the
seed of the model and the event's id. So is an event whose label was given by an annotator who is
suspected to mislead: to annotators with less evidence against them (see `quarantine.py`). The
request does not tell what was said before. The answer is weighed against the label that stands,
which the model may revise. It does not replace the answer that may be superseded; its own annotator
may correct it and take it back. From any annotator who is not asked it is `unauthorised`. There is
at most one second question about an event: none if the limit of open questions is reached, and it
ends when the label is withdrawn.

Deletions
---------
A deletion need not be about the current conversation: an example outlives its conversation, and
can be erased whatever the state of another conversation with the same event id. An open question
stays open: nothing that it asks about is in the log.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

from msgspec import Struct

from streamgp.common.budget_account import SharedBudget
from streamgp.common.label_context import LabelContext
from streamgp.common.signatures import narrowed
from streamgp.interactive.conversation_record import Conversation, GivenLabel, MisfitError
from streamgp.interactive.learner import (
    ComparesAnswers,
    FoundDrift,
    PredictedTarget,
    SkepticalLearner,
    as_finding_drifts,
    predicted_target,
)
from streamgp.interactive.limits import (
    excess_of_answer,
    excess_of_features,
    excess_of_label,
    excess_of_unasked,
    is_unasked,
)
from streamgp.interactive.messages import (
    CLEAR_SINCE,
    MORE_USEFUL,
    SET_ASIDE,
    Answer,
    Event,
    LabelledExample,
    Message,
    Prediction,
    Rejected,
    Retraction,
    Stage,
)
from streamgp.interactive.moderator import Moderator
from streamgp.interactive.people import DEFAULT_PEOPLE, People
from streamgp.interactive.quarantine import JudgesAnnotators, judged
from streamgp.interactive.retract import (
    Relearned,
    disregarded,
    known_lines,
    leave_out,
    put_back,
    take_back,
    take_back_known,
)
from streamgp.interactive.rollback import reason_of, stage_of
from streamgp.interactive.state.restartable_loop import RestartableLoop
from streamgp.interactive.transitions import Input
from streamgp.interactive.validation import (
    as_label,
    check_now,
    checked_writing,
    flaw_of_answer,
    flaw_of_event,
    refusal_of,
    rejected,
)

if TYPE_CHECKING:
    from streamgp.base import Decision

_TEXTS = frozenset((str,))


def _in_quarantine(annotator: str | None) -> str:
    return (
        f"annotator {annotator!r} is in quarantine: by the labels of the others most of the latest "
        "answers are wrong; to hear the annotator again, add the name to trusted"
    )


def _prediction_of(
    event: Event, predicted: PredictedTarget, decision: Decision, n_learned: int, now: float
) -> Prediction:
    return Prediction(
        event_id=event.event_id,
        key=event.key,
        y=predicted.y,
        proba=predicted.proba,
        decision=decision,
        n_learned=n_learned,
        at=now,
        mean=predicted.mean,
        std=predicted.std,
        start=event.start,
        end=event.end,
    )


class _RefusedError(Exception):
    """The features of an event cannot be used; the text says why."""


class _Accepted(Struct, frozen=True, gc=False):
    """An accepted input: what a rejection repeats of it, and the messages due before it."""

    subject: str
    key: str | None
    at: float
    before: Sequence[Message] = ()


class InteractiveLoop(RestartableLoop):
    """Predict every event, ask for labels, contest doubtful ones, learn what remains.

    Each method takes one input, and `now`: the record's own time for events and answers, the wall
    clock (or log time) for `on_time`. It returns the messages to be sent, in order, and does
    nothing else: no I/O, no clock. The time may go backwards between events, as it does in real
    logs. Unanswered questions expire, and events are forgotten, when `on_time` tells the time.

    `written_at` is when the output is written, for a caller that lags behind. Decisions do not
    depend on it: a request expires `expires_after_s` after it was written, and its event is kept
    correspondingly longer.

    The loop keeps a reference to every event until its answer horizon has passed: do not change an
    event's `x` after passing it in. A label request may concern an earlier event.

    Parameters
    ----------
    model
        A skeptical learner, such as `SkepticalClassifier`. Must be trained by the loop only.
    expires_after_s
        Seconds after which an unanswered request expires; None for never. An answer at the exact
        time of expiry is in time; a later one is still learned, and marked as late.
    answer_horizon_s
        Seconds after its occurrence for which an event is remembered. Then it is forgotten, an
        open request about it expires, and answers to it are rejected. None remembers every event
        for ever: the memory grows with the stream.
    open_at_most
        Number of open questions beyond which a label request replaces a less useful one, or is not
        made. It also enables taking back label requests whose answer has become clear. None for no
        limit, and no such cancellation.
    people
        Who may supersede, withdraw and uphold which answers, and the limits of what is learned.

    Attributes
    ----------
    model
        The model.

    Examples
    --------
    >>> from streamgp import isgp
    >>> from streamgp.interactive import Answer, Event, InteractiveLoop
    >>> loop = InteractiveLoop(isgp(seed=1), expires_after_s=60.0)
    >>> event = Event(event_id="e1", x={"wap1": -64.0}, occurred_at=100.0, y="kitchen")
    >>> prediction, example = loop.on_event(event, now=100.0)
    >>> prediction.y, example.y, example.origin, example.sequence
    (None, 'kitchen', 'volunteered', 1)
    >>> answer = Answer(
    ...     answer_id="a1", event_id="e1", supersedes="e1", y="hall", answered_at=105.0
    ... )
    >>> [example] = loop.on_answer(answer, now=105.0)
    >>> example.y, example.origin, example.sequence, example.revision
    ('hall', 'revised', 2, 1)

    """

    # Those of `RestartableLoop`, and:
    # _judging    the model, if its examples tell which annotators mislead
    # _rollback   undoes the current input if it fails
    # _segments   where conversations were published; knows whether anything has changed since
    # _drifting   the model, if it finds concept drifts
    # _n_drifts   drifts that were told of, or found before the first input here; None before that
    _last: _Accepted | None
    _moderator: Moderator

    def __init__(
        self,
        model: SkepticalLearner,
        *,
        expires_after_s: float | None = None,
        answer_horizon_s: float | None = None,
        open_at_most: int | None = None,
        people: People = DEFAULT_PEOPLE,
    ) -> None:
        if not isinstance(model, SkepticalLearner):
            raise TypeError(
                "model must be a skeptical learner, such as SkepticalClassifier(...), "
                f"got {type(model).__name__}"
            )
        super().__init__(
            model,
            expires_after_s=expires_after_s,
            answer_horizon_s=answer_horizon_s,
            open_at_most=open_at_most,
            people=people,
        )
        if people.asks_twice and narrowed(model, ComparesAnswers) is None:
            raise TypeError(
                "overlap and repeat need a learner that compares answers, such as "
                f"SkepticalClassifier(...), got {type(model).__name__}"
            )
        self._rollback = self._moderator.rollback
        self._segments = self._memory.segments
        self._drifting = as_finding_drifts(model)
        self._n_drifts: int | None = None
        self._judging = narrowed(model, JudgesAnnotators)

    def _new_moderator(self) -> Moderator:
        return Moderator(self.model, self._memory, self.rules)

    def share(self, shared_budget: SharedBudget | None) -> Self:
        """Ask only what a budget shared with other loops allows; return this loop.

        The owner of the budget saves it; it is not part of the loop.
        """
        self._moderator.shared_budget = shared_budget
        return self

    def on_event(
        self,
        event: Event,
        now: float,
        *,
        written_at: float | None = None,
        is_checked: bool = False,
    ) -> list[Message]:
        """Predict an event, and ask for its label or learn the label that came with it.

        Parameters
        ----------
        event
            The event.
        now
            The event's own time, in seconds.
        written_at
            When the resulting output is written, in seconds; None for the event's own time.
        is_checked
            Whether every field is known to be of its type, finite and plain JSON, as in an event
            decoded from bytes: then that is not checked again.

        Returns
        -------
        For an accepted event exactly one `Prediction`, then its consequences; if the model asks
        about an earlier event, that request; last, if the model doubts a label that it has learned,
        the challenge of that label. (An event that reuses the id of an event beyond the horizon
        first ends the old conversation.)

        """
        if not isinstance(event, Event):
            raise TypeError(f"on_event takes an Event, got {event!r}")
        check_now(now)
        self._last = None
        self._moderator.written_at = checked_writing(written_at)
        flaw = flaw_of_event(event, is_checked=is_checked)
        if flaw is not None:
            return [rejected(event.event_id, event.key, "malformed", flaw, now)]
        event_id = event.event_id
        messages: list[Message] = []
        known = self._memory.get(event_id)
        if known is not None:
            if not self._memory.is_beyond(known, event.occurred_at):
                reason = f"event {event_id!r} was seen before; give every event an id of its own"
                return [rejected(event_id, event.key, "duplicate", reason, now)]
            messages = self._forget(known, now)
        return self._attempt(
            _Accepted(event_id, event.key, now, messages),
            lambda: self._process_event(event, now, is_checked=is_checked),
        )

    def _process_event(self, event: Event, now: float, *, is_checked: bool) -> list[Message]:
        """Predict an event that was accepted, and process it.

        The model predicts and decides before it learns the label that came with the event. What
        concerns other events comes after that.
        """
        event_id, x, model = event.event_id, event.x, self.model
        try:
            # Before anything changes: a new name would be a feature from then on.
            excess = excess_of_features(self._moderator.knows_names, x, self.people)
            excess = excess or excess_of_label(model, x, event.y, self.people)
            if excess is not None:
                return [rejected(event_id, event.key, "excessive", excess, now)]
            self._moderator.journal.call(model.observe_one, x)
            predicted = predicted_target(model, x)
        except (ValueError, TypeError) as error:
            raise _RefusedError(refusal_of(error, x)) from error
        self._segments.has_changed = True
        decision, replaced = self._decide(event, now)
        messages: list[Message] = [_prediction_of(event, predicted, decision, model.n_learned, now)]
        # Before a label is learned: the model is told to await it, and counts the event as asked.
        self._note_decision(event, decision, now)
        record = self._memory.add(event)
        # All values are plain: only a name that is not a text has to be converted for writing.
        record.is_plain = is_checked and _TEXTS.issuperset(map(type, x))
        if event.y is not None:
            label = GivenLabel(
                y=as_label(event.y),
                origin="volunteered",
                answer_id=event_id,
                annotator=None,
                late=False,
                privileged=None,
            )
            messages.append(self._moderator.begin(record, label, now))
        elif decision.ask:
            if replaced is not None:  # first: there are never more open questions than allowed
                why = f"{MORE_USEFUL}, about event {event_id!r}"
                messages += self._apply(replaced, "cancel", now, why)
            messages.append(self._moderator.ask(record, decision, now))
        # Before further questions: each one that is taken back makes room for one of these.
        messages += self._cancel_if_clear(messages, now)
        back = [] if decision.ask else self._moderator.ask_back(now)
        messages += back
        messages += self._moderator.ask_later(now)
        shared_budget = self._moderator.shared_budget
        if shared_budget is not None:
            # Once per event: at most one label is asked for after it, perhaps that of another
            # event.
            shared_budget.note(decision, decision.ask or bool(back), now)
        return [*messages, *self._moderator.look_through(now)]

    def _decide(self, event: Event, now: float) -> tuple[Decision, Conversation | None]:
        """Return whether to ask about an event, and which conversation to end for the question.

        What the model wants is refused by the first of these that applies: the label has come
        along, the shared budget is spent, or no other open question is less useful. The budget is
        only told later what has come of it.
        """
        moderator = self._moderator
        decision, shared_budget = moderator.wish(event, now), moderator.shared_budget
        if event.y is not None and decision.ask:
            decision = decision.refused_by("volunteered")
        elif shared_budget is not None:
            decision = shared_budget.checked(decision, now)
        if not (decision.ask and moderator.is_full):
            return decision, None
        asked = [record for record in self._memory.open_ones() if record.state == "asked"]
        scored = [(self._score_of(record, now), record) for record in asked]
        # The earliest of equal ones: it has waited longest without an answer.
        least, record = min(scored, key=lambda each: each[0], default=(math.inf, None))
        if least < decision.score:
            return decision, record
        return decision.refused_by("open_at_most"), None

    def _note_decision(self, event: Event, decision: Decision, now: float) -> None:
        """Tell the model whether an event is asked about, and if its label is awaited."""
        known = {}
        if decision.ask or event.y is not None:  # not always: a context takes a microsecond
            context = LabelContext(event_id=event.event_id)
            known = self._moderator.consensus.accepted.of("note_query", context)
        self._moderator.journal.call(
            self.model.note_query, decision, asked=decision.ask, now=now, **known
        )

    def on_answer(
        self,
        answer: Answer,
        now: float,
        *,
        written_at: float | None = None,
        is_checked: bool = False,
    ) -> list[Message]:
        """Learn from an answer, contest it, or tell why it cannot be used.

        An answer that names no request answers the open one, or volunteers a label. To supersede a
        label that came with its event, name the event's id. Superseding a label with itself changes
        nothing and yields no message.

        Parameters
        ----------
        answer
            The answer.
        now
            The answer's own time, in seconds.
        written_at
            When the resulting output is written, in seconds; None for the answer's own time.
        is_checked
            Whether it was decoded from bytes, as in `on_event`.

        """
        if not isinstance(answer, Answer):
            raise TypeError(f"on_answer takes an Answer, got {answer!r}")
        check_now(now)
        self._last = None
        self._moderator.written_at = checked_writing(written_at)
        answer_id = answer.answer_id
        flaw = flaw_of_answer(answer, is_checked=is_checked)
        if flaw is not None:
            return [rejected(answer_id, answer.key, "malformed", flaw, now)]
        record = self._memory.get(answer.event_id)
        if record is not None and self._memory.is_beyond(record, answer.answered_at):
            after_s = answer.answered_at - record.event.occurred_at
            reason = (
                f"answered {after_s} s after the event, expected at most "
                f"{self.rules.answer_horizon_s} s"
            )
            late = rejected(answer_id, answer.key, "late", reason, now)
            return [*self._forget(record, now), late]
        try:
            record = self._memory.record_for(answer)
        except MisfitError as misfit:
            return [rejected(answer_id, answer.key, misfit.fault, misfit.reason, now)]
        messages: list[Message] = []
        if record.open_request is not None and record.is_late(answer.answered_at):
            messages = self._expire(record, now)
        return self._attempt(
            _Accepted(answer_id, answer.key, now, messages),
            lambda: self._process_answer(answer, record, now),
        )

    def _process_answer(self, answer: Answer, record: Conversation, now: float) -> list[Message]:
        """Process an answer that fits a conversation."""
        excess = excess_of_answer(
            self.model, self._moderator.knows_names, record, answer, self.people, self.quarantined
        )
        if excess is not None:
            return [rejected(answer.answer_id, answer.key, "excessive", excess, now)]
        named = self._moderator.quarantine.names
        before = self._judge_annotator(answer.annotator, now)
        barred = self._moderator.excluded(record) if record.state == "compared" else None
        try:
            messages = self._weigh_answer(answer, record, now)
        except MisfitError as misfit:
            refused = rejected(answer.answer_id, answer.key, misfit.fault, misfit.reason, now)
            return [*before, refused, *self._repeat_open(named, now)]
        self._memory.accept(answer, record)
        self._segments.note(record)
        second = self._moderator.compare(record, messages, now)
        messages += self._cancel_if_clear(messages, now)
        fresh = record if second else None
        again = self._repeat_open(named, now, fresh) or self._repeat_second(record, barred, now)
        messages = [*before, *messages, *again, *second, *self._moderator.ask_later(now)]
        return [*messages, *self._moderator.look_through(now)]

    def _weigh_answer(self, answer: Answer, record: Conversation, now: float) -> list[Message]:
        """Let the moderator process an answer of an annotator who may give it.

        Raises
        ------
        MisfitError
            If the annotator is in quarantine, or gives too many labels unasked, or the moderator
            rejects the answer.

        """
        if answer.annotator in self.quarantined:
            raise MisfitError("quarantined", _in_quarantine(answer.annotator))
        unasked, at = self._moderator.unasked, max(now, record.event.occurred_at)
        counts = is_unasked(record, answer)
        if counts:
            excess = excess_of_unasked(unasked, answer.annotator, at, self.people)
            if excess is not None:
                raise MisfitError("excessive", excess)
        self._rollback.save(record)
        messages = self._moderator.process_answer(record, answer, now)
        if counts:
            self._moderator.unasked = unasked.plus(answer.annotator, at)
        return messages

    def _judge_annotator(self, annotator: str | None, now: float) -> list[Message]:
        """Judge an annotator before an answer, if it is time.

        What a newly quarantined annotator has taught is retracted; contested labels are never
        learned.
        """
        if self._judging is None or annotator is None or not self.people.quarantine:
            return []
        moderator, judge = self._moderator, self._judging.annotator_judge()
        before = moderator.quarantine
        moderator.quarantine = after = judged(before, judge, annotator, self.people)
        self._segments.has_changed |= after is not before
        messages: list[Message] = []
        for name in after.names[len(before.names) :]:
            messages += disregarded(moderator, name, now, SET_ASIDE)
            messages += take_back_known(moderator, annotator=name, now=now)
        return messages

    def _repeat_open(
        self, named: tuple[str, ...], now: float, fresh: Conversation | None = None
    ) -> list[Message]:
        """Ask open questions again if more annotators are in quarantine than those in `named`.

        A question for one of these annotators alone is taken back, and so is one that some are
        barred from: perhaps no one is left to answer it. That of `fresh` was asked just now, and
        without them.
        """
        if self._moderator.quarantine.names == named:
            return []
        messages: list[Message] = []
        for record in list(self._memory.open_ones()):
            second = record.second
            if record is fresh:
                continue
            if record.state == "compared" and second is not None and (second.to or second.barred):
                if second.barred or second.to in self.quarantined:
                    messages += self._apply(record, "cancel", now, SET_ASIDE)
            elif record.state in ("asked", "compared"):
                messages.append(self._moderator.ask_again(record, now))
        return messages

    def _repeat_second(
        self, record: Conversation, barred: tuple[str, ...] | None, now: float
    ) -> list[Message]:
        """Ask a second question again if an annotator not in `barred` has answered since.

        `barred` is None if no second question was open.
        """
        if barred is None or record.state != "compared":
            return []
        if self._moderator.excluded(record) == barred:
            return []
        return [self._moderator.ask_again(record, now)]

    def on_time(self, now: float) -> list[Message]:
        """End the requests that expired, and forget the events beyond the horizon, before `now`.

        Parameters
        ----------
        now
            The wall clock, or log time in a replay, in seconds. What is due exactly then is not
            ended yet.

        """
        check_now(now)
        self._last = None
        messages: list[Message] = []
        deadlines, horizons = self._moderator.deadlines, self._memory.horizons
        while True:
            deadline, horizon = deadlines.first(), horizons.first()
            if deadline is not None and deadline < now and (horizon is None or deadline <= horizon):
                messages += self._expire(self._memory[deadlines.pop()], now)
            elif horizon is not None and horizon < now:
                messages += self._forget(self._memory[horizons.pop()], now)
            else:
                return messages

    def on_cancel(
        self,
        request_id: str,
        now: float,
        *,
        key: str | None = None,
        why: str = "cancelled by the caller",
    ) -> list[Message]:
        """Take an open question back; a contested label is then learned as it was given.

        Parameters
        ----------
        request_id
            The request.
        now
            The time, in seconds.
        key
            Key of the request; only repeated in a rejection.
        why
            Reason, shown to the annotator.

        """
        check_now(now)
        self._last = None
        if not isinstance(request_id, str):
            reason = f"request_id must be a string, got {request_id!r}"
            return [rejected(request_id, key, "malformed", reason, now)]
        record = self._memory.of_request(request_id)
        if record is None:
            reason = f"request {request_id!r} was never made, or its event is forgotten"
            return [rejected(request_id, key, "unknown", reason, now)]
        request = record.open_request
        if request is None or request.request_id != request_id:
            reason = f"request {request_id!r} has already ended"
            return [rejected(request_id, key, "ended", reason, now)]
        return self._attempt(
            _Accepted(request_id, key, now),
            lambda: self._apply(record, "cancel", now, why),
            always=True,
        )

    def withdraw(
        self, event_id: str, now: float, *, revision: int | None = None, key: str | None = None
    ) -> list[Message]:
        """Retract an example whose line was deleted from the consensus log.

        Parameters
        ----------
        event_id
            Event of the example.
        now
            The time, in seconds.
        revision
            Revision of the line that was deleted: the example is removed only if this one is in
            force. If a later one is, its label stays, and the learner is taught the log again
            without the deleted line. None for the one in force.
        key
            Key of the example; only repeated in the message if the event is forgotten.

        Returns
        -------
        The line of the withdrawal, after a `Cancel` if a request about the label is open; nothing
        if there is nothing to retract.

        """
        check_now(now)
        self._last = None
        record, consensus = self._memory.get(event_id), self._moderator.consensus
        if revision is not None and self.has_replaced(event_id, revision):
            self._segments.has_changed = True
            return self._attempt(
                _Accepted(event_id, key, now),
                lambda: leave_out(self._moderator, event_id, revision),
                always=True,
            )
        if record is not None and record.is_learned:
            if revision not in (None, record.revision):
                return []
            return self._attempt(
                _Accepted(event_id, key, now),
                lambda: self._apply(record, "erase", now, "the label was deleted"),
                always=True,
            )
        # Even if nothing is found: a worker that resumes from an older snapshot, which still
        # contains the example, must see from the head that it is gone.
        self._segments.has_changed = True
        example = consensus.held(event_id)
        if example is None:
            return []
        event = Event(event_id=event_id, key=key, x=example.x, occurred_at=now)
        return self._attempt(
            _Accepted(event_id, key, now),
            lambda: [consensus.forget(event, (revision or 0) + 1, None, now)],
            always=True,
        )

    def lines(self) -> list[LabelledExample] | None:
        """Return the lines of the consensus log on which the current labels rest, in their order.

        None if they do not tell all that the model was taught, because it cannot be taught again or
        some were missing in the log from which the loop was made.
        """
        return known_lines(self._moderator)

    def retract(
        self,
        annotator: str,
        log: Iterable[LabelledExample],
        now: float,
        *,
        since: float | None = None,
    ) -> Relearned:
        """Retract every label of one annotator.

        Afterwards the learner and the reliability of all annotators are, bitwise, what they would
        be if they had been taught the log without that annotator's lines, through the scaling now
        in use, with features weighed by the labels that are left. What another annotator has said
        about the same event stands again. Labels of the annotator that are contested, and not
        learned yet, are never learned. Questions asked, budgets spent, the past of a temporal
        filter, and withdrawals are not undone.

        Parameters
        ----------
        annotator
            The annotator.
        log
            Every `LabelledExample` that the loop has returned, in any order, except the `taken`
            lines of each `Retraction`; or the log that the last retraction returned, and all lines
            since.
        now
            The time, in seconds.
        since
            Only labels learned at this time or later, POSIX seconds; None for all.

        Returns
        -------
        The messages, the new log, and what `reinstate` needs to undo it.

        Raises
        ------
        TypeError
            If labels cannot be retracted from the model.
        ValueError
            If the log is not that of the loop.

        Examples
        --------
        >>> from streamgp import isgp
        >>> from streamgp.interactive import Answer, Event
        >>> loop, log = InteractiveLoop(isgp(seed=1)), []
        >>> for n, annotator in enumerate(["ann", "bob", "ann"]):
        ...     event = Event(event_id=f"e{n}", x={"wap1": -64.0 + n}, occurred_at=float(n))
        ...     messages = loop.on_event(event, now=float(n))
        ...     answer = Answer(
        ...         answer_id=f"a{n}", event_id=f"e{n}", y="hall", annotator=annotator,
        ...         answered_at=float(n),
        ...     )
        ...     log += loop.on_answer(answer, now=float(n))
        >>> taken_back = loop.retract("bob", log, now=3.0)
        >>> [(line.event_id, line.annotator) for line in taken_back.log if line.y is not None]
        [('e0', 'ann'), ('e2', 'ann')]
        >>> loop.model.n_learned, loop.model.error_rate("bob")
        (2, 0.2)
        >>> again = loop.reinstate(taken_back.retraction, taken_back.log, now=4.0)
        >>> loop.model.n_learned, again.log == log
        (3, True)

        """
        work = partial(take_back, annotator=annotator, log=log, now=now, since=since)
        return self._relearned(work, now)

    def reinstate(
        self, retraction: Retraction, log: Iterable[LabelledExample], now: float
    ) -> Relearned:
        """Undo a retraction: the retracted labels are learned again, at their place in the log.

        What was said since stays, and prevails where it came later. Contested labels that were not
        learned do not come back.

        Parameters
        ----------
        retraction
            What `retract` returned.
        log
            All lines of the log, as in `retract`.
        now
            The time, in seconds.

        """
        work = partial(put_back, retraction=retraction, log=log, now=now)
        relearned = self._relearned(work, now)
        self._segments.has_changed = True
        return relearned

    def _relearned(self, work: Callable[..., Relearned], now: float) -> Relearned:
        """Do something that is not an input, completely or not at all."""
        check_now(now)
        self._last = None
        self._rollback.begin(self._moderator)
        try:
            done = work(self._moderator)
        except Exception:
            self._rollback.undo(self._moderator)
            self._segments.has_changed = True  # credit is part of the state
            raise
        self._segments.has_changed |= bool(done.messages) or done.retraction is not None
        return done

    def reject_last(self, error: Exception, stage: Stage | None = None) -> list[Message] | None:
        """Undo the last input, because it failed afterwards, when its messages were encoded.

        Parameters
        ----------
        error
            The error raised for its messages.
        stage
            What was being done; None to derive it from the error.

        Returns
        -------
        Messages that replace those that the input has yielded; None if it changed nothing
        that could be undone.

        Examples
        --------
        >>> from streamgp import isgp
        >>> from streamgp.interactive import Event
        >>> loop = InteractiveLoop(isgp(seed=1))
        >>> event = Event(event_id="e1", x={"wap1": -64.0}, occurred_at=0.0)
        >>> messages = loop.on_event(event, now=0.0)
        >>> [rejected] = loop.reject_last(ValueError("too long"), "encode")
        >>> rejected.fault, rejected.stage, rejected.reason, loop.knows("e1")
        ('failed', 'encode', 'ValueError: too long', False)

        """
        last = self._last
        if last is None:
            return None
        self._last = None
        self._rollback.undo(self._moderator)
        return [*last.before, self._failed(last, error, stage)]

    def knows(self, event_id: str) -> bool:
        """Whether an event was seen and is remembered, so that answers about it can be weighed."""
        return self._memory.get(event_id) is not None

    def open_requests(self) -> list[str]:
        """Return the ids of the requests that wait for an answer, the oldest event's first."""
        return [request_id for request_id, _ in self.open_events()]

    def new_drift(self) -> FoundDrift | None:
        """Return the concept drift found since the last call, None if there was none.

        For reports: what is found is part of the model's state, but not whether it was reported.
        Drifts found elsewhere, before a restart, are not new.
        """
        model, before = self._drifting, self._n_drifts
        if model is None or before is None:
            return None
        self._n_drifts = model.n_drifts
        if model.n_drifts <= before:  # fewer after a retraction
            return None
        n_kept = self.model.n_learned - model.n_outdated
        return FoundDrift(n_kept=n_kept, n_outdated=model.n_outdated)

    @property
    def n_open(self) -> int:
        """Number of requests that wait for an answer."""
        return len(self._memory.open_ones())

    def _cancel_if_clear(self, messages: list[Message], now: float) -> list[Message]:
        """Take back the label requests whose answer has become clear from a label just learned."""
        if self.rules.open_at_most is None:
            return []
        if not any(isinstance(message, LabelledExample) for message in messages):
            return []
        cancelled: list[Message] = []
        for record in self._memory.open_ones():
            request = record.open_request
            assert request is not None  # it is open
            threshold = request.threshold
            if record.state != "asked" or threshold is None:
                continue
            if -math.inf < self._score_of(record, now) <= threshold:
                cancelled += self._apply(record, "cancel", now, CLEAR_SINCE)
        return cancelled

    def _score_of(self, record: Conversation, now: float) -> float:
        """Return how useful the label of an event would be now, -inf if it cannot be used."""
        event = record.event
        try:
            return self.model.query_one(event.x, event_id=event.event_id, now=now).score
        except (ValueError, TypeError):  # with new statistics the learner cannot use it
            return -math.inf

    def _apply(self, record: Conversation, given: Input, now: float, why: str) -> list[Message]:
        """Process an input of the caller's for a conversation."""
        self._rollback.touch(record)
        return self._moderator.apply(record, given, now, why=why)

    def _expire(
        self, record: Conversation, now: float, given: Literal["deadline", "horizon"] = "deadline"
    ) -> list[Message]:
        """End an open request; there is no input that could be rejected instead."""
        self._rollback.begin(self._moderator)
        self._rollback.touch(record)
        try:
            return self._moderator.apply(record, given, now)
        except MemoryError:
            raise
        except Exception as error:
            self._rollback.undo(self._moderator)
            expired = self._moderator.abandon(record, now)
            ended = _Accepted(expired.request_id, expired.key, now)
            return [expired, self._failed(ended, error, None)]

    def _forget(self, record: Conversation, now: float) -> list[Message]:
        """Forget an event, ending its open request."""
        self._segments.has_changed = True
        messages = [] if record.open_request is None else self._expire(record, now, "horizon")
        self._memory.forget(record)
        return messages

    # --- inputs that fail

    def _attempt(
        self, given: _Accepted, work: Callable[[], list[Message]], *, always: bool = False
    ) -> list[Message]:
        """Run an input; on any error, roll back to the state before it.

        Any error is caught: a user-defined learner, rule or budget may raise any error,
        and one record must not end the work on all others.
        """
        journal = self._moderator.journal
        credit = journal.credit
        if not (journal.may_try() or always):
            self._segments.has_changed = True  # credit is part of the state
            reason = (
                "not tried, as too many inputs of this learner have failed; of further ones every "
                "tenth is tried until one does not fail"
            )
            key = given.key
            return [*given.before, rejected(given.subject, key, "failed", reason, given.at)]
        if self._n_drifts is None and self._drifting is not None:
            self._n_drifts = self._drifting.n_drifts
        self._rollback.begin(self._moderator)
        self._last, changed = given, self._segments.has_changed
        try:
            messages = [*given.before, *work()]
            self._segments.has_changed |= journal.credit != credit
            return messages
        except MemoryError:
            raise
        except Exception as error:
            self._rollback.undo(self._moderator)
            self._last, self._segments.has_changed = None, changed or journal.credit != credit
            if isinstance(error, _RefusedError):
                flaw = rejected(given.subject, given.key, "malformed", str(error), given.at)
                return [*given.before, flaw]
            return [*given.before, self._failed(given, error, None)]

    @staticmethod
    def _failed(given: _Accepted, error: Exception, stage: Stage | None) -> Rejected:
        return rejected(
            given.subject,
            given.key,
            "failed",
            reason_of(error),
            given.at,
            stage or stage_of(error),
        )
