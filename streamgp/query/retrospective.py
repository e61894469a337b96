"""Questions about earlier events: labels that have become doubtful, and events to label after all.

A new label is judged by what is known when it comes. The first labels of a stream, and of each
class, are believed because there is no evidence against them yet; later there may be. Likewise
an event that was not asked about may turn out to tell much. When to look and what to ask about is
decided here; `streamgp.interactive` holds the conversation about it.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    get_args,
)

from streamgp.base import (
    Belief,
    Budget,
    Decision,
    Doubt,
    Example,
    Label,
    Posterior,
    State,
)
from streamgp.common.fingerprint import recorded_name
from streamgp.common.validation import check_positive, check_rate, check_whole
from streamgp.query import criteria
from streamgp.query.budgets import account_of
from streamgp.query.registry import BOTH, Count, Seconds, Share, rule

__all__ = [
    "LeaveOneOutReview",
    "RecentEventsAsk",
]

if TYPE_CHECKING:
    from streamgp.query.pool_criteria import JointBelief

# A look at n examples costs O(n³). With at least n / 20 labels learned between two looks, all looks
# together cost O(n²) for each label learned, the same as learning it.
_SHARE_BETWEEN_LOOKS = 20


class ReviewsLabels(Protocol):
    """Reviews the labels of one learner, with a state of its own; see `Reviewer`."""

    def is_due(self, n_learned: int, n_held: int) -> bool:
        """Whether it is time to look, given the numbers of labels ever learned and now held."""

    def doubt(
        self,
        examples: Sequence[Example],
        beliefs: Mapping[str, criteria.AnyBelief],
        wrong: Callable[[str, Any, Label], float],
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
        """Restore what `state` returned."""


class Review(Protocol):
    """Decides when to review the labels learned, and which one to challenge."""

    def reviewer(self) -> ReviewsLabels:
        """Return a reviewer for the labels of one learner, which has seen none yet."""


@rule(
    "review",
    "leave_one_out",
    example="threshold = 0.3, every = 5 (after every 5 labels, the one that fits the others least, "
    "if it is wrong with more than this probability)",
    targets=BOTH,
)
@dataclass(frozen=True, slots=True)
class LeaveOneOutReview:
    """Challenge, now and then, the most doubtful of the labels learned.

    Every few labels, each example is judged by all the others (leave-one-out, in closed form), with
    the same probability of being wrong as a new label. The most doubtful one is challenged if that
    probability exceeds the threshold.

    An annotator who upheld or corrected a label is not asked about it again, and there are at
    most two challenges about an event.

    Parameters
    ----------
    threshold
        Probability of being wrong above which an old label is challenged.
    every
        Labels learned between two looks; with more than `20 * every` examples, a twentieth of
        them.
    budget
        How many of these challenges are allowed, None for no limit. It counts each look as an
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
        """Return a reviewer for the labels of one learner that follows this rule."""
        return Reviewer(self)


class _Looking:
    """A rule in use that looks now and then, with a budget of its own.

    Parameters
    ----------
    rule
        When to look, and for what. Its budget is copied.
    threshold
        Score above which a question is worth asking.

    """

    # _budget     a copy of the rule's, which counts
    # _looked_at  labels ever learned, or events ever seen, at the last look
    def __init__(self, rule: Any, threshold: float) -> None:
        self._rule = rule
        self._threshold = threshold
        self._budget = account_of(rule.budget)
        self._looked_at = 0

    def state(self) -> State:
        """Return what must survive a restart."""
        return {"looked_at": self._looked_at, "budget": self._budget.state()}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._looked_at = int(state["looked_at"])
        self._budget.load_state(state["budget"])

    def _note_look(self, decision: Decision | None, n: int, now: float) -> None:
        self._looked_at = n
        decision = self._decision(0.0) if decision is None else decision
        self._budget.note(decision, decision.ask, now)

    def _decision(self, score: float) -> Decision:
        return Decision.of(score, self._threshold, recorded_name(type(self._rule)))


class Reviewer(_Looking):
    """Reviews the labels that one learner has learned, by a `LeaveOneOutReview`."""

    _rule: LeaveOneOutReview

    def __init__(self, rule: LeaveOneOutReview) -> None:
        super().__init__(rule, rule.threshold)

    def is_due(self, n_learned: int, n_held: int) -> bool:
        """Whether it is time to look, given the numbers of labels ever learned and now held."""
        between = max(self._rule.every, n_held // _SHARE_BETWEEN_LOOKS)
        return n_learned - self._looked_at >= between

    def doubt(
        self,
        examples: Sequence[Example],
        beliefs: Mapping[str, criteria.AnyBelief],
        wrong: Callable[[str, Any, Label], float],
        now: float,
    ) -> Doubt | None:
        """Return the most doubtful label and whether to challenge it; changes nothing.

        Parameters
        ----------
        examples
            All examples that the learner holds.
        beliefs
            Belief about an example by all others, by event id, for those that may be doubted.
        wrong
            Returns the probability that the label of an event is wrong under a belief.
        now
            Time for the budget, in seconds.

        Returns
        -------
        The doubt; None if the others support the label of every example. Of two equally doubtful
        labels, the one learned first.

        """
        doubts = _doubts(examples, beliefs, wrong)
        found = max(doubts, key=lambda doubt: doubt.probability_wrong, default=None)
        if found is None:
            return None
        decision = self._budget.checked(self._decision(found.probability_wrong), now)
        return Doubt(
            event_id=found.event_id,
            decision=decision,
            suggested=found.suggested,
            probability_wrong=found.probability_wrong,
            std=found.std,
        )

    def note(self, doubt: Doubt | None, n_learned: int, now: float) -> None:
        """Record a review, once each, and the challenge it led to."""
        self._note_look(None if doubt is None else doubt.decision, n_learned, now)

    def note_unanswered(self, now: float) -> None:
        """Tell the budget that a challenge ended without an answer."""
        self._budget.refund(now, asked_at=None)


class _Suspicion(NamedTuple):
    """A label that the other examples do not predict."""

    probability_wrong: float
    event_id: str
    suggested: Label
    std: float | None


def _doubts(
    examples: Sequence[Example],
    beliefs: Mapping[str, criteria.AnyBelief],
    wrong: Callable[[str, Any, Label], float],
) -> Iterator[_Suspicion]:
    """Yield the labels that the other examples do not predict."""
    counts = Counter(example.y for example in examples)
    for example in examples:
        event_id, y = example.event_id, example.y
        if event_id is None or (belief := beliefs.get(event_id)) is None:
            continue
        predicted: Label | None
        if isinstance(belief, Posterior | Mapping):
            if counts[y] == 1:
                # If it had not been learned, its class would be unknown.
                belief = _without(belief, y)
            predicted, std = criteria.predicted(belief), None
        else:
            predicted, std = belief.mu, belief.sigma
        if predicted not in (None, y):
            yield _Suspicion(wrong(event_id, belief, y), event_id, predicted, std)


def _without(belief: Belief, y: Label) -> Belief:
    if isinstance(belief, Posterior):
        return replace(belief, mean={label: m for label, m in belief.mean.items() if label != y})
    return {label: p for label, p in belief.items() if label != y}


# --- Review of the latest events: which of them would tell most if it had a label.
#
# A stream's own rule judges each event alone, when it comes. Here the latest events without a
# label are a pool, with the criteria of pools; nothing is learned to find out. When to look
# and which event to ask about is decided here; `streamgp.interactive` keeps the events and holds
# the conversation about them.


CriterionName: TypeAlias = Literal["rand", "mvar", "rkhs", "hvar", "sqsm", "l2fm"]
"""The names in `streamgp.query.pool_criteria.CRITERIA`, which is slow to load."""


@rule(
    "reservoir",
    "latest",
    example='criterion = "l2fm", size = 200, every = 10 (after every 10 events, the one of the '
    "latest 200 whose label would change the predictions of the others most; with max_age_s = "
    "3600.0, none older than an hour)",
)
@dataclass(frozen=True, slots=True)
class RecentEventsAsk:
    """Ask, now and then, about the most informative of the latest events.

    Every few events, those of the latest ones that have neither a label nor ever had a question are
    compared, including the newest, and the label of the best one is requested, maybe an hour after
    the event. That is in addition to the rule that decides about each event as it comes, and only
    in `InteractiveLoop`. No event is asked about twice.

    It does not improve the next predictions, as the past is not what comes next: see
    docs/pool.md. It is for a log that is to be labelled well as a whole, and for events about which
    no annotator can be asked at once.

    Parameters
    ----------
    criterion
        How events are compared: `"l2fm"`, `"hvar"`, `"rkhs"`, `"mvar"` or `"rand"`, see
        `PoolSampler`.
    size
        How many of the latest events are compared. Events beyond the answer horizon are left out,
        and so are those whose question would outlast it.
    every
        Events between two looks. A look costs a little more than predicting all events compared.
    max_age_s
        Seconds after which people no longer know what an event was; None for no limit.
    budget
        How many of these questions are allowed, None for no limit. It counts each look as an
        event: `RateBudget(0.2)` allows a question for every fifth look.

    Raises
    ------
    ValueError
        If the criterion is unknown, or a number is out of range.

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


class RecentEventChooser(_Looking):
    """Decides which of the latest events of one learner is asked about, by a `RecentEventsAsk`.

    The events are not part of its state: the caller, which stores them, passes them in.
    """

    _rule: RecentEventsAsk

    def __init__(self, rule: RecentEventsAsk) -> None:
        super().__init__(rule, threshold=0.0)

    def is_due(self, n_events: int) -> bool:
        """Whether it is time to look, given the number of events so far."""
        return n_events - self._looked_at >= self._rule.every

    def choose(
        self,
        event_ids: Sequence[str],
        belief: JointBelief,
        draw: Callable[[str], float],
        now: float,
    ) -> tuple[str, Decision]:
        """Return the most informative event, and whether to ask about it; changes nothing.

        Parameters
        ----------
        event_ids
            The events, at least one.
        belief
            The belief about them, in their order.
        draw
            Returns a number from 0 to 1 for an event: among events with equal scores, the highest
            wins.
        now
            Time for the budget, in seconds.

        """
        import numpy as np  # late: rules do not need it

        from streamgp.query.pool_criteria import CRITERIA

        with np.errstate(all="ignore"):
            scores = CRITERIA[self._rule.criterion](belief, np.ones(len(event_ids), dtype=bool))
        # Squares overflow far out, where a kernel grows without bound: no request there.
        scores = np.where(np.isfinite(scores), scores, 0.0)
        alike = np.flatnonzero(scores == scores.max()).tolist()
        best = max(alike, key=lambda i: draw(event_ids[i]))
        # Where only chance decides, any event is good enough.
        score = 1.0 if self._rule.criterion == "rand" else float(scores[best])
        return event_ids[best], self._budget.checked(self._decision(score), now)

    def note(self, decision: Decision | None, n_events: int, now: float) -> None:
        """Record a review, once each, and its request; None if there was no event."""
        self._note_look(decision, n_events, now)

    def note_unanswered(self, now: float, asked_at: float) -> None:
        """Tell the budget that such a question ended without an answer."""
        self._budget.refund(now, asked_at)
