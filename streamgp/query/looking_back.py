"""What a skeptical classifier does about the past: doubt old labels, ask about earlier events.

Both are done now and then, by rules of their own with budgets of their own, and only where somebody
keeps the conversation: in `streamgp.interactive`.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from river import base

from streamgp.base import Belief, Decision, Doubt, Example, Features, Label, State
from streamgp.query import criteria
from streamgp.query.arguments import check_reservoir, check_review
from streamgp.query.reservoir import Reservoir, ReservoirAsk
from streamgp.query.review import LeaveOneOutReview, Reviewer
from streamgp.query.taught_classes import TaughtClasses
from streamgp.query.wrapper import Skeptical
from streamgp.trust import ErrorRate


class LookingBack(Skeptical[Belief, ErrorRate]):
    """A skeptical classifier, but for what it makes of the present."""

    # _reviewer   looks through the labels learned, None for nobody
    # _reservoir  looks through the latest events, None for nobody
    review: LeaveOneOutReview | None
    reservoir: ReservoirAsk | None
    _taught: TaughtClasses

    def _set_up_looks(
        self,
        review: LeaveOneOutReview | None,
        reservoir: ReservoirAsk | None,
        learner: base.Classifier,
    ) -> None:
        """Take the rules, if they are any that suit the learner."""
        check_review(review, learner)
        check_reservoir(reservoir, learner)
        self.review = review
        self.reservoir = reservoir
        self._reviewer = None if review is None else Reviewer(review)
        self._reservoir = None if reservoir is None else Reservoir(reservoir)

    # --- doubting what was learned

    @property
    def review_due(self) -> bool:
        """Whether it is time to look through the labels learned."""
        reviewer = self._reviewer
        return reviewer is not None and reviewer.is_due(self._taught.n_taught, self.n_learned)

    def review_one(self, annotators: Mapping[str, str | None], *, now: float) -> Doubt | None:
        """Return the most doubtful label and whether to challenge it; changes nothing.

        Parameters
        ----------
        annotators
            Who gave the labels that may be doubted, by event id.
        now
            Time for the budget of these challenges, in seconds.

        Returns
        -------
        The doubt, or None if every label is what the others speak for.

        """
        reviewer = self._reviewer
        if reviewer is None:
            return None
        beliefs = {e: b for e, b in self._taught.leave_one_out().items() if e in annotators}

        def wrong(event_id: str, belief: Belief, y: Label) -> float:
            return criteria.probability_wrong(belief, y, self.error_rate(annotators[event_id]))

        return reviewer.doubt(self.examples(), beliefs, wrong, now)

    def note_review(self, doubt: Doubt | None, *, now: float) -> None:
        """Take note of a look through the labels, once each, and of the challenge it led to."""
        if self._reviewer is not None:
            self._reviewer.note(doubt, self._taught.n_taught, now)

    def note_review_unanswered(self, now: float) -> None:
        """Hear that the challenge of an old label ended without an answer."""
        if self._reviewer is not None:
            self._reviewer.note_unanswered(now)

    # --- asking about earlier events

    @property
    def reservoir_due(self) -> bool:
        """Whether it is time to look through the latest events."""
        return self._reservoir is not None and self._reservoir.is_due(self._n_events)

    def ask_among_one(
        self, candidates: Mapping[str, Features], *, now: float
    ) -> tuple[str, Decision] | None:
        """Return the most telling event and whether to ask about it; changes nothing.

        Parameters
        ----------
        candidates
            Features of the events that may be asked about, by event id.
        now
            Time for the budget of these questions, in seconds.

        Returns
        -------
        The event id and the decision, or None if there is no event.

        """
        reservoir = self._reservoir
        event_ids, belief = self._taught.joint(candidates)
        if reservoir is None or belief is None:
            return None
        lots = partial(self._draw, purpose="reservoir")
        return reservoir.choose(event_ids, belief, lots, now)

    def note_reservoir(self, decision: Decision | None, *, now: float) -> None:
        """Take note of a look through the latest events, once each, and of the question it led to.

        None where no event could be asked about.
        """
        if self._reservoir is not None:
            self._reservoir.note(decision, self._n_events, now)

    def note_reservoir_unanswered(self, now: float, *, asked_at: float) -> None:
        """Hear that a question about an earlier event ended without an answer."""
        if self._reservoir is not None:
            self._reservoir.note_unanswered(now, asked_at)

    # --- surviving a restart

    def state(self) -> State:
        """Return what decisions depend on beside the labelled examples; see `Skeptical.state`."""
        state = super().state()
        # Without such rules as it was before there were any: snapshots stay what they are.
        if self._reviewer is not None:
            state["review"] = self._reviewer.state()
        if self._reservoir is not None:
            state["reservoir"] = self._reservoir.state()
        return state

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Become what `state` and `examples` were taken from; see `Skeptical.load_state`."""
        super().load_state(state, examples)
        if self._reviewer is not None:
            self._reviewer.load_state(state["review"])
        if self._reservoir is not None:
            self._reservoir.load_state(state["reservoir"])

    def _configuration(self) -> list[object]:
        # Without them as it was before there were any: snapshots stay what they are.
        rules = (self.review, self.reservoir)
        return super()._configuration() + [rule for rule in rules if rule is not None]
