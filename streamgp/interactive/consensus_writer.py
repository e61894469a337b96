"""The learning of labels, by which the consensus log is written.

Every `LabelledExample` is made here, together with the one call of the model that it stands for;
this keeps the log and the model consistent. The loop decides when that happens.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamgp.base import Doubt, Example, MixedLabelsError, SettledAnswer
from streamgp.common.label_context import AcceptedOptions, LabelContext
from streamgp.common.signatures import narrowed
from streamgp.interactive.consensus_log import HeldLines
from streamgp.interactive.learner import (
    ComparesAnswers,
    HoldsExamples,
    SkepticalLearner,
    predicted_target,
)
from streamgp.interactive.messages import Challenge, LabelledExample
from streamgp.interactive.validation import plain_excerpt, refusal_of, rejected

if TYPE_CHECKING:
    from streamgp.base import Neighbour
    from streamgp.interactive.conversation_record import Conversation, GivenLabel
    from streamgp.interactive.messages import Answer, Event, Rejected
    from streamgp.interactive.rollback import CallJournal

# Number of labelled examples shown with a challenge.
_N_NEIGHBOURS: Final = 3


class Consensus:
    """The consensus log of one model, while it is written.

    Parameters
    ----------
    model
        The model that learns.
    journal
        Makes all calls that change the model.
    lines
        The lines that define the current labels.

    Attributes
    ----------
    accepted
        Optional arguments that the methods of the model accept.

    """

    def __init__(self, model: SkepticalLearner, journal: CallJournal, lines: HeldLines) -> None:
        self.model = model
        self.accepted = AcceptedOptions(model)
        self._journal = journal
        self._lines = lines

    def contest(
        self, record: Conversation, label: GivenLabel, now: float, expires_at: float | None
    ) -> Challenge | None:
        """Challenge an answer; None if it is credible, or the model suggests nothing else."""
        event, model, context = record.event, self.model, label.context
        try:
            decision = model.challenge_one(
                event.x,
                label.y,
                annotator=context.annotator,
                event_id=event.event_id,
                **self.accepted.of("challenge_one", context),
            )
        except MixedLabelsError:
            return None  # nothing has failed: the model refuses to learn it, too
        if not decision.ask:
            return None
        suggested = predicted_target(model, event.x, alone=True)
        if suggested.y is None or suggested.y == label.y:
            return None
        return self._challenge(
            record,
            label,
            Doubt(
                event_id=event.event_id,
                decision=decision,
                suggested=suggested.y,
                probability_wrong=model.probability_wrong_one(
                    event.x,
                    label.y,
                    annotator=context.annotator,
                    **self.accepted.of("probability_wrong_one", context),
                ),
                std=suggested.std,
            ),
            model.neighbours_one(event.x, _N_NEIGHBOURS),
            now,
            expires_at,
        )

    def contest_again(
        self, record: Conversation, doubt: Doubt, now: float, expires_at: float | None
    ) -> Challenge:
        """Challenge the label of a learned event."""
        event, label = record.event, record.label
        assert label is not None  # a learned event has a label
        near = self.model.neighbours_one(event.x, _N_NEIGHBOURS + 1)
        others = [neighbour for neighbour in near if neighbour.event_id != event.event_id]
        return self._challenge(record, label, doubt, others[:_N_NEIGHBOURS], now, expires_at)

    def settle(
        self,
        record: Conversation,
        given: GivenLabel,
        final: GivenLabel,
        now: float,
        *,
        challenged: bool,
        n_since: int,
    ) -> LabelledExample | Rejected:
        """Learn the label of an event that has none yet; the record changes accordingly.

        `n_since` is the number of events observed after it.
        """
        event = record.event
        # A rule that learns is not told of labels that a reservoir has requested: they are selected
        # in another way. As evidence on their annotator they count like those of the rule.
        was_asked = given.origin == "asked"
        answer = SettledAnswer.settled(
            given.y,
            final.y,
            given.annotator,
            challenged=challenged,
            was_asked=was_asked,
            final_by=final.annotator,
        )
        context = LabelContext(
            annotator=given.annotator,
            std=given.std,
            asked=was_asked and not record.was_asked_back,
            privileged=final.privileged,
            n_since=n_since,
            answer=answer,
        )
        try:
            w = self._journal.call(
                self.model.settle_one,
                event.x,
                final.y,
                given=given.y,
                challenged=challenged,
                annotator=context.annotator,
                event_id=event.event_id,
                **self.accepted.of("settle_one", context),
            )
        except (ValueError, TypeError) as error:
            record.stand(final, None)
            return self._unlearnable(record, final, error, now)
        _check_finite("probability that the answer was wrong", w)
        record.stand(final, final)
        if record.revision:
            # Learned again after it was taken back: every line about an event has a number of its
            # own, under which a compacted log keeps it.
            record.revision += 1
        first = given if challenged else None
        return self._added(self._line(record, final, now, probability_wrong=w, first=first))

    def revise(
        self, record: Conversation, final: GivenLabel, now: float
    ) -> LabelledExample | Rejected:
        """Replace the label of a learned event; if the model refuses, nothing changes."""
        context = LabelContext(annotator=final.annotator, privileged=final.privileged)
        known = self.accepted.of("relabel_one", context)
        try:
            self._journal.call(self.model.relabel_one, record.event.event_id, final.y, **known)
        except (ValueError, TypeError) as error:
            return self._unlearnable(record, final, error, now)
        record.stand(final, final)
        record.revision += 1
        return self._added(self._line(record, final, now))

    def aggregate(
        self,
        record: Conversation,
        stood: GivenLabel,
        second: GivenLabel | None,
        now: float,
        *,
        is_evidence: bool,
    ) -> LabelledExample | Rejected:
        """Learn the result of weighing the label that stood against a second answer.

        Parameters
        ----------
        record
            The conversation; it is updated.
        stood
            The label that stood before there was a second answer.
        second
            The second answer; None if it is taken back.
        now
            The time, in seconds.
        is_evidence
            Whether the answer tells how often both annotators err.

        """
        model, event_id, y = narrowed(self.model, ComparesAnswers), record.event.event_id, stood.y
        assert model is not None  # it drew the question
        final = stood
        try:
            if second is not None:
                y = model.aggregate_one(
                    event_id, y, second.y, given_by=stood.annotator, annotator=second.annotator
                )
                final = stood if y == stood.y else second
            privileged = final.privileged
            if privileged is None and record.label is not None:
                # What came with the label before must not be kept for this one.
                privileged = None if record.label.privileged is None else {}
            known = self.accepted.of("relabel_one", LabelContext(privileged=privileged))
            self._journal.call(self.model.relabel_one, event_id, y, **known)
        except (ValueError, TypeError) as error:
            return self._unlearnable(record, stood if second is None else second, error, now)
        if second is not None and is_evidence:
            self._journal.call(
                model.note_second,
                event_id,
                second.y,
                annotator=second.annotator,
                probability_wrong=self._lines.first_probability_wrong(event_id),
            )
        record.label = replace(stood, y=y, origin="aggregated", privileged=privileged)
        record.revision += 1
        line = self._line(record, record.label, now)
        line = replace(
            line,
            annotator=None if second is None else second.annotator,
            given=None if second is None or second.y == y else second.y,
            late=line.late if second is None else second.late,
        )
        return self._added(line)

    def withdraw(self, record: Conversation, answer: Answer | None, now: float) -> LabelledExample:
        """Take back the label of a learned event; `answer` is None if its line was deleted."""
        record.label = None
        if answer is not None:
            record.stand(answer, None)
        record.revision += 1
        annotator = None if answer is None else answer.annotator
        return self.forget(record.event, record.revision, annotator, now)

    def forget(
        self, event: Event, revision: int, annotator: str | None, now: float
    ) -> LabelledExample:
        """Forget the example of an event, whether or not the event is remembered."""
        self._journal.call(self.model.forget_one, event.event_id)
        self._lines.sequence += 1
        line = LabelledExample(
            event_id=event.event_id,
            key=event.key,
            revision=revision,
            sequence=self._lines.sequence,
            x=event.x,
            y=None,
            origin="withdrawn",
            annotator=annotator,
            learned_at=now,
        )
        return self._added(line)

    def held(self, event_id: str) -> Example | None:
        """Return the example of an event, if the model holds one.

        Raises
        ------
        TypeError
            If the model does not provide its examples.

        """
        model = self.model
        if not isinstance(model, HoldsExamples):
            raise TypeError(
                f"{type(model).__name__} does not tell which examples it holds; "
                "give it the method examples"
            )
        return next((found for found in model.examples() if found.event_id == event_id), None)

    @staticmethod
    def _challenge(
        record: Conversation,
        label: GivenLabel,
        doubt: Doubt,
        neighbours: Sequence[Neighbour],
        now: float,
        expires_at: float | None,
    ) -> Challenge:
        event, decision = record.event, doubt.decision
        _check_finite("probability that the label is wrong", doubt.probability_wrong)
        for neighbour in neighbours:
            _check_finite("distance of a neighbour", neighbour.distance)
        return Challenge(
            request_id=record.challenge_id(record.n_challenges + 1),
            event_id=event.event_id,
            key=event.key,
            x=event.x,
            reason=decision.criterion,
            score=decision.score,
            threshold=decision.threshold,
            requested_at=now,
            expires_at=expires_at,
            given=label.y,
            suggested=doubt.suggested,
            probability_wrong=doubt.probability_wrong,
            annotator=label.annotator,
            neighbours=tuple(neighbours),
            std=doubt.std,
            occurred_at=record.occurred_before(now),
            excerpt=plain_excerpt(event.excerpt),
        )

    def _line(
        self,
        record: Conversation,
        label: GivenLabel,
        now: float,
        *,
        probability_wrong: float | None = None,
        first: GivenLabel | None = None,
    ) -> LabelledExample:
        """Return the next line; `first` is the challenged answer, if this ends a challenge."""
        self._lines.sequence += 1
        return LabelledExample(
            event_id=record.event.event_id,
            key=record.event.key,
            revision=record.revision,
            sequence=self._lines.sequence,
            x=record.event.x,
            y=label.y,
            origin=label.origin,
            annotator=label.annotator,
            learned_at=now,
            late=label.late,
            probability_wrong=probability_wrong,
            privileged=label.privileged,
            std=label.std,
            asked_back=record.was_asked_back,
            given=None if first is None or first.y == label.y else first.y,
            challenged=first is not None,
            given_by=None if first is None else first.annotator,
            volunteered=first is not None and first.origin == "volunteered",
        )

    def _added(self, line: LabelledExample) -> LabelledExample:
        self._lines.add(line)
        return line

    @staticmethod
    def _unlearnable(
        record: Conversation, label: GivenLabel, error: Exception, now: float
    ) -> Rejected:
        key = record.event.key
        return rejected(label.answer_id, key, "unlearnable", refusal_of(error, record.event.x), now)


def _check_finite(what: str, number: float | None) -> None:
    """Refuse a number that cannot be written."""
    if number is not None and not math.isfinite(number):
        raise ArithmeticError(f"{what} must be finite, got {number!r}")
