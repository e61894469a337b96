"""Old labels looked through again: which of them has become improbable since it was learned.

A fresh label is judged by what is known when it comes. The first labels of a stream, and of each
class, are believed because nothing speaks against them yet; what is learned later may. When to
look and whom to doubt is decided here; the conversation about it is `streamgp.interactive`.

"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from streamgp.base import (
    Belief,
    Budget,
    Decision,
    Doubt,
    Example,
    Features,
    Label,
    Posterior,
    State,
)
from streamgp.common.budget_account import BudgetAccount
from streamgp.common.fingerprint import recorded_name
from streamgp.common.validation import check_positive, check_rate, check_whole
from streamgp.query.budgets import Unlimited
from streamgp.query.registry import Count, Seconds, Share, rule

__all__ = [
    "LeaveOneOutReview",
    "RecentEventsAsk",
]

if TYPE_CHECKING:
    from streamgp.query.pool_criteria import JointBelief

# A look at n examples costs O(n³). With at least n / 20 labels learned between two looks, all looks
# together cost O(n²) for each label learned, as learning it does.
_SHARE_BETWEEN_LOOKS = 20


@runtime_checkable
class LeavingOneOut(Protocol):
    """A learner that judges each of its examples by the others."""

    def leave_one_out(self) -> Mapping[str, Any]:
        """Return what is believed of each example by all the others, by event id."""


@runtime_checkable
class BelievingJointly(Protocol):
    """A learner that believes something of several events at once."""

    noise_variance: float

    def joint(self, xs: Sequence[Features]) -> tuple[Any, ...]:
        """Return means and covariances of the events, and what the classifier knows besides."""


class Looks(Protocol):
    """Looks through the labels of one learner, with a state of its own; see `Reviewer`."""

    def is_due(self, n_learned: int, n_held: int) -> bool:
        """Whether it is time to look, with so many labels ever learned and so many held."""

    def doubt(
        self,
        examples: Sequence[Example],
        beliefs: Mapping[str, Belief],
        wrong: Callable[[str, Belief, Label], float],
        now: float,
    ) -> Doubt | None:
        """Return the most doubtful label and whether to challenge it; changes nothing."""

    def note(self, doubt: Doubt | None, n_learned: int, now: float) -> None:
        """Record a review, once each, and the challenge it led to."""

    def note_unanswered(self, now: float) -> None:
        """Refund the budget: the challenge expired unanswered."""

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values."""

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""


class Review(Protocol):
    """Decides when to look through the labels learned, and which one to challenge."""

    def reviewer(self) -> Looks:
        """Return what looks through the labels of one learner, which has seen none yet."""


@rule(
    "review",
    "leave_one_out",
    example="threshold = 0.3, every = 5 (every 5 labels the one that fits the others least, if it "
    "is wrong with more than this probability)",
    reason="the label, learned before, does not fit what was learned since",
)
@dataclass(frozen=True, slots=True)
class LeaveOneOutReview:
    """Challenge, now and then, the most doubtful of the labels learned.

    Every few labels, each example is judged by what all the others say of it (leave-one-out, in
    closed form), with the same probability of being wrong as a fresh label. The most doubtful one
    is challenged if that probability exceeds the threshold.

    An annotator who upheld or corrected a label is not asked about it again, and none about
    an event more than twice.

    Parameters
    ----------
    threshold
        Probability of being wrong above which an old label is challenged.
    every
        Labels learned between two looks; with more than `20 * every` examples, a twentieth of
        them.
    budget
        How many of these challenges are allowed, None for no limit. It hears of each look as of an
        event: `RateBudget(0.2)` allows a challenge for every fifth look.

    Examples
    --------
    >>> from streamgp import GPClassifier, SkepticalClassifier
    >>> from streamgp.query import AtMostPer
    >>> review = LeaveOneOutReview(threshold=0.5, budget=AtMostPer(2, span_s=86400))
    >>> SkepticalClassifier(GPClassifier(), review=review).review
    LeaveOneOutReview(threshold=0.5, every=5, budget=AtMostPer(2, 86400))

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eq. 5.12.

    """

    threshold: Share = 0.3
    every: Count = 5
    budget: Budget | None = None

    def __post_init__(self) -> None:
        check_rate("threshold", self.threshold)
        check_whole("every", self.every, 1)

    def reviewer(self) -> Reviewer:
        """Return what looks through the labels of one learner by this rule."""
        return Reviewer(self)


class Reviewer:
    """Looks through the labels that one learner has learned.

    Parameters
    ----------
    rule
        When to look, and what is doubtful. Its budget is copied.

    """

    # _budget     a copy of the rule's, which counts
    # _looked_at  labels ever learned at the last look
    def __init__(self, rule: LeaveOneOutReview) -> None:
        self._rule = rule
        self._budget = BudgetAccount(
            Unlimited() if rule.budget is None else copy.deepcopy(rule.budget)
        )
        self._looked_at = 0

    def is_due(self, n_learned: int, n_held: int) -> bool:
        """Whether it is time to look, with so many labels ever learned and so many held."""
        between = max(self._rule.every, n_held // _SHARE_BETWEEN_LOOKS)
        return n_learned - self._looked_at >= between

    def doubt(
        self,
        examples: Sequence[Example],
        beliefs: Mapping[str, Belief],
        wrong: Callable[[str, Belief, Label], float],
        now: float,
    ) -> Doubt | None:
        """Return the most doubtful label and whether to challenge it; changes nothing.

        Parameters
        ----------
        examples
            All examples that the learner holds.
        beliefs
            What all others say of an example, by event id, for those that may be doubted.
        wrong
            Returns the probability that the label of an event is wrong under a belief.
        now
            Time for the budget, in seconds.

        Returns
        -------
        The doubt; None if the others speak for the label of every example. Of two labels that are
        as doubtful, the one learned first.

        """
        doubts = _doubts(examples, beliefs, wrong)
        found = max(doubts, key=lambda doubt: doubt[0], default=None)
        if found is None:
            return None
        probability_wrong, event_id, suggested = found
        decision = self._budget.checked(self._decision(probability_wrong), now)
        return Doubt(
            event_id=event_id,
            decision=decision,
            suggested=suggested,
            probability_wrong=probability_wrong,
        )

    def note(self, doubt: Doubt | None, n_learned: int, now: float) -> None:
        """Record a review, once each, and the challenge it led to."""
        self._looked_at = n_learned
        decision = self._decision(0.0) if doubt is None else doubt.decision
        self._budget.note(decision, decision.ask, now)

    def note_unanswered(self, now: float) -> None:
        """Tell the budget that a challenge ended without an answer."""
        self._budget.refund(now, asked_at=None)

    def state(self) -> State:
        """Return what must survive a restart."""
        return {"looked_at": self._looked_at, "budget": self._budget.state()}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._looked_at = int(state["looked_at"])
        self._budget.load_state(state["budget"])

    def _decision(self, probability_wrong: float) -> Decision:
        return Decision.of(probability_wrong, self._rule.threshold, recorded_name(type(self._rule)))


def _doubts(
    examples: Sequence[Example],
    beliefs: Mapping[str, Belief],
    wrong: Callable[[str, Belief, Label], float],
) -> Iterator[tuple[float, str, Label]]:
    """Yield, of each label that the others do not predict, how improbable it is and what they do.

    With its event id in the middle.
    """
    counts = Counter(example.y for example in examples)
    for example in examples:
        event_id, y = example.event_id, example.y
        belief = None if event_id is None else beliefs.get(event_id)
        if event_id is None or belief is None:
            continue
        if counts[y] == 1:
            # Had it not been learned, its class would be unknown.
            belief = _without(belief, y)
        scores = belief.mean if isinstance(belief, Posterior) else belief
        predicted = max(scores, key=scores.__getitem__, default=y)
        if predicted != y:
            yield wrong(event_id, belief, y), event_id, predicted


def _without(belief: Belief, y: Label) -> Belief:
    if isinstance(belief, Posterior):
        return replace(belief, mean={label: m for label, m in belief.mean.items() if label != y})
    return {label: p for label, p in belief.items() if label != y}


# --- The latest events looked through again: which of them would tell most, had it a label.
#
# A stream's own rule weighs each event alone, when it comes. Here the latest ones that have no
# label are a pool, with the criteria of pools; nothing is learned to find out. When to look
# and whom to ask about is decided here; which events there are, and the conversation about them,
# is `streamgp.interactive`.


CriterionName: TypeAlias = Literal["rand", "mvar", "rkhs", "hvar", "sqsm", "l2fm"]
"""The names in `streamgp.query.pool_criteria.CRITERIA`, which is not light to load."""


@rule(
    "reservoir",
    "latest",
    example='criterion = "l2fm", size = 200, every = 10 (every 10 events the one of the latest 200 '
    "whose label would change the predictions of the others most; with max_age_s = 3600.0 none of "
    "more than an hour ago)",
    reason="of the latest events, its label would tell most",
)
@dataclass(frozen=True, slots=True)
class RecentEventsAsk:
    """Ask, now and then, about the most telling one of the latest events.

    Every few events, those of the latest ones that have neither a label nor ever a question are
    compared, the newest included, and the label of the best one is requested: an event of an hour
    ago, maybe. That is beside the rule that decides about each event as it comes, and in
    `InteractiveLoop` only. No event is asked about twice.

    It does not make the next predictions better, for the past is not what comes next: see
    docs/pool.md. It is for a log that is to be labelled well as a whole, and for events about which
    no annotator can be asked at once.

    Parameters
    ----------
    criterion
        What is compared: `"l2fm"`, `"hvar"`, `"rkhs"`, `"mvar"` or `"rand"`, see `PoolSampler`.
    size
        How many of the latest events are looked at. Those beyond the answer horizon are not there
        any more, nor those whose question would outlast it.
    every
        Events between two looks. A look costs a little more than predicting all events compared.
    max_age_s
        Seconds after which people no longer know what an event was; None for no limit.
    budget
        How many of these questions are allowed, None for no limit. It hears of each look as of an
        event: `RateBudget(0.2)` allows a question for every fifth look.

    Raises
    ------
    ValueError
        If there is no such criterion, or a number is out of range.

    Examples
    --------
    >>> from streamgp import GPClassifier, SkepticalClassifier
    >>> from streamgp.query import AtMostPer
    >>> rule = RecentEventsAsk(size=50, budget=AtMostPer(5, span_s=86400))
    >>> SkepticalClassifier(GPClassifier(), reservoir=rule).reservoir
    RecentEventsAsk(criterion='l2fm', size=50, every=10, max_age_s=None, budget=AtMostPer(5, 86400))

    """

    criterion: CriterionName = "l2fm"
    size: Count = 200
    every: Count = 10
    max_age_s: Seconds | None = None
    budget: Budget | None = None

    def __post_init__(self) -> None:
        if self.criterion not in get_args(CriterionName):
            names = ", ".join(get_args(CriterionName))
            raise ValueError(f"criterion must be one of {names}, got {self.criterion!r}")
        check_whole("size", self.size, 1)
        check_whole("every", self.every, 1)
        if self.max_age_s is not None:
            check_positive("max_age_s", self.max_age_s)


class RecentEventChooser:
    """Says which of the latest events of one learner is asked about.

    The events themselves are no state of it: the caller that stores them hands them over.

    Parameters
    ----------
    rule
        When to look, and what is telling. Its budget is copied.

    """

    # _budget     a copy of the rule's, which counts
    # _looked_at  events ever seen at the last look
    def __init__(self, rule: RecentEventsAsk) -> None:
        self._rule = rule
        self._budget = BudgetAccount(
            Unlimited() if rule.budget is None else copy.deepcopy(rule.budget)
        )
        self._looked_at = 0

    def is_due(self, n_events: int) -> bool:
        """Whether it is time to look, after so many events."""
        return n_events - self._looked_at >= self._rule.every

    def choose(
        self,
        event_ids: Sequence[str],
        belief: JointBelief,
        draw: Callable[[str], float],
        now: float,
    ) -> tuple[str, Decision]:
        """Return the most telling event, and whether to ask about it; changes nothing.

        Parameters
        ----------
        event_ids
            The events, at least one.
        belief
            What is believed of them, in their order.
        draw
            Returns a number from 0 to 1 for an event: of those that are alike, the highest one
            wins.
        now
            Time for the budget, in seconds.

        """
        import numpy as np  # late: rules do without

        from streamgp.query.pool_criteria import CRITERIA

        with np.errstate(all="ignore"):
            scores = CRITERIA[self._rule.criterion](belief, np.ones(len(event_ids), dtype=bool))
        # Squares overflow far out, where a kernel grows without bound: no request about that.
        scores = np.where(np.isfinite(scores), scores, 0.0)
        alike = np.flatnonzero(scores == scores.max()).tolist()
        best = max(alike, key=lambda i: draw(event_ids[i]))
        # Where only chance decides, any event will do.
        score = 1.0 if self._rule.criterion == "rand" else float(scores[best])
        return event_ids[best], self._budget.checked(self._decision(score), now)

    def note(self, decision: Decision | None, n_events: int, now: float) -> None:
        """Record a review, once each, and its request; None where there was no event."""
        self._looked_at = n_events
        decision = self._decision(0.0) if decision is None else decision
        self._budget.note(decision, decision.ask, now)

    def note_unanswered(self, now: float, asked_at: float) -> None:
        """Tell the budget that such a question ended without an answer."""
        self._budget.refund(now, asked_at)

    def state(self) -> State:
        """Return what must survive a restart."""
        return {"looked_at": self._looked_at, "budget": self._budget.state()}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._looked_at = int(state["looked_at"])
        self._budget.load_state(state["budget"])

    def _decision(self, score: float) -> Decision:
        return Decision.of(score, 0.0, recorded_name(type(self._rule)))
