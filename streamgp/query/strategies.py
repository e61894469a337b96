"""Rules that turn a belief into a decision: ask for a label, challenge a given one.

A rule is a frozen set of named values. It scores and compares; the budget decides what may still be
asked (`streamgp.query.budgets`). Randomness comes in as `draw`, a number uniform in [0, 1) that
belongs to the event, so that every decision can be repeated.

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from streamgp.base import Belief, Decision, Distribution, Label, Posterior
from streamgp.common.fingerprint import recorded_name
from streamgp.common.normal import MixturePosterior
from streamgp.common.signatures import parameters
from streamgp.common.validation import check_flag, check_non_negative, check_rate
from streamgp.query import criteria
from streamgp.query.registry import BOTH, NUMBERS, NonNegative, Share, rule

__all__ = [
    "KL",
    "AlwaysAsk",
    "AlwaysChallenge",
    "AskRule",
    "BestVersusSecond",
    "ChallengeRule",
    "Deterministic",
    "Entropy",
    "LeastConfidence",
    "NeverAsk",
    "NeverChallenge",
    "OutsideInterval",
    "PaperAsk",
    "PaperChallenge",
    "RandomAsk",
    "SkepticalAsk",
    "SkepticalChallenge",
    "Variance",
]

# Probability of asking while a single class is known, for rules on plain probabilities: never
# asking would deadlock, always asking would cover all of a stream whose first class lasts long.
ONE_CLASS_RATE = 0.1


class AskRule(Protocol):
    """Decides whether to ask for the label of an event.

    A rule that learns from the answers is a `LearningAskRule`, and has `state` and `load_state`,
    like a budget. It serves as a template. To count all events, use a budget: its `note` is called
    once for each of them.
    """

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Decide on what the learner believes; changes nothing, and may be called repeatedly.

        Parameters
        ----------
        belief
            A `Posterior`, or the probability of each known class: `{}` before the first label.
        draw
            A number uniform in [0, 1) that belongs to the event.

        """


@runtime_checkable
class LearningAskRule(AskRule, Protocol):
    """Learns from the answers whether to ask."""

    def hear(self, belief: Belief, y: Label) -> None:
        """Update from a requested label and the belief before it was learned.

        Before the first label the belief is `{}`, as in `decide`.
        """


class ChallengeRule(Protocol):
    """Decides whether to challenge a given label."""

    def decide(
        self, belief: Belief, given: Label, *, probability_wrong: float, draw: float
    ) -> Decision:
        """Decide on what the learner believes, before it has learned the given label."""


def check_decides(name: str, rule: object, taking: str, *, not_taking: str | None = None) -> None:
    """Refuse what is no rule, or one of the other kind, early, before the first event fails."""
    if rule is None:
        return
    taken = parameters(rule.decide) if hasattr(rule, "decide") else ()
    if isinstance(rule, type) or taking not in taken or not_taking in taken:
        raise TypeError(
            f"{name} must be an object of streamgp.query with a method decide that takes "
            f"{taking!r}, got {rule!r}"
        )


def cold_start(p: Mapping[Label, float], draw: float, criterion: str) -> Decision | None:
    """Decide while fewer than two classes are known and probabilities say nothing; then None.

    Always ask while there is no class, with probability `ONE_CLASS_RATE` while there is one.
    """
    if not p:
        return Decision.of(1.0, 0.0, criterion)
    return Decision.of(ONE_CLASS_RATE, draw, criterion) if len(p) == 1 else None


def _ask_by_doubt(
    belief: Belief, c: float, draw: float, criterion: str, *, at_least: float = 0.0
) -> Decision:
    # The posterior of a single process needs no cold-start rule: far from its examples the doubt is
    # 1/2 anyway. To the experts of an ensemble that examples of one class prefer, nothing is far.
    is_single = isinstance(belief, Posterior) and not isinstance(belief, MixturePosterior)
    if not is_single and len(criteria.scores(belief)) == 1:
        at_least = max(at_least, ONE_CLASS_RATE)
    return Decision.of(max(min(1.0, c * criteria.doubt(belief)), at_least), draw, criterion)


@rule(
    "query",
    "skeptical",
    example="c = 1.0, at_least = 0.0 (at random, with c times the probability that the prediction "
    "is wrong, but never less than at_least, to notice concept drift), pending = true",
)
@dataclass(frozen=True, slots=True)
class SkepticalAsk:
    """Ask with probability `min(1, c · doubt)`, or `at_least` if that is more.

    `doubt` is `1 - Φ(mean / std)` of the predicted class for a posterior (ISGP Eq. 7), `1 - max p`
    for plain probabilities; an ensemble is in doubt between two classes as well
    (`criteria.doubt`). The coin flip matters: a fixed threshold trusts the learner too much while
    classes are still to come.

    Parameters
    ----------
    c
        Factor by which to ask more, or less, than the paper; 1 is the paper.
    at_least
        Least probability of asking, however sure the learner is. Events of which it is sure are
        hardly ever asked about, so that concept drift goes unnoticed: a learner that should notice
        it (`GPClassifier(drift=True)`, `window`) needs some, .05 or .1. 0 is the paper.
    pending
        Whether open questions count, for answers that come late: events near one that was asked
        about are hardly asked about again. For learners that know covariances (`GPClassifier`), in
        `InteractiveLoop`. False is the paper.

    Examples
    --------
    >>> SkepticalAsk(c=2.0).decide({"home": 0.9, "work": 0.1}, draw=0.15)
    Decision(ask=True, score=0.2, threshold=0.15, criterion='SkepticalAsk', budget=None)
    >>> SkepticalAsk(at_least=0.05).decide({"home": 1.0, "work": 0.0}, draw=0.04)
    Decision(ask=True, score=0.05, threshold=0.04, criterion='SkepticalAsk', budget=None)

    """

    c: NonNegative = 1.0
    at_least: Share = 0.0
    pending: bool = True

    # Parameters that topics may have been written without: `common.fingerprint` omits them at their
    # default, so that older snapshots still match.
    ADDED: ClassVar = ("at_least", "pending")

    def __post_init__(self) -> None:
        check_non_negative("c", self.c)
        check_rate("at_least", self.at_least)
        check_flag("pending", self.pending)

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Compare the scaled doubt, or the least probability, with the draw."""
        name = recorded_name(type(self))
        return _ask_by_doubt(belief, self.c, draw, name, at_least=self.at_least)


@rule(
    "query",
    "paper",
    example="that of the ISGP paper: at random, with the probability that the prediction is wrong",
)
@dataclass(frozen=True, slots=True)
class PaperAsk:
    """Ask with probability `1 - Φ(mean / std)` of the predicted class, ISGP Eq. 7.

    That is `SkepticalAsk()` without open questions, for learners of all kinds.
    """

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Compare the doubt with the draw."""
        return _ask_by_doubt(belief, 1.0, draw, recorded_name(type(self)))


@rule(
    "challenge",
    "skeptical",
    example="threshold = 0.1 (when the label is wrong with more than this probability), "
    "doubts_new = true (also labels that are new)",
    targets=BOTH,
)
@dataclass(frozen=True, slots=True)
class SkepticalChallenge:
    """Challenge when the given label is wrong with more than a given probability.

    The probability weighs the learner's belief against what is known of the annotator
    (`criteria.probability_wrong`).

    Parameters
    ----------
    threshold
        Probability of being wrong above which a label is challenged.
    doubts_new
        Whether a label that was never heard before is doubted according to how rarely such labels
        are right (`criteria.new_label_rates`); for classifiers. Otherwise new labels are believed.

    """

    threshold: Share = 0.1
    doubts_new: bool = False

    # Older topics lack them, see `SkepticalAsk`.
    ADDED: ClassVar = ("doubts_new",)

    def __post_init__(self) -> None:
        check_rate("threshold", self.threshold)
        check_flag("doubts_new", self.doubts_new)

    def decide(
        self,
        belief: Belief,  # noqa: ARG002 - its part is in probability_wrong
        given: Label,  # noqa: ARG002
        *,
        probability_wrong: float,
        draw: float,  # noqa: ARG002
    ) -> Decision:
        """Compare the probability of being wrong with the threshold."""
        return Decision.of(probability_wrong, self.threshold, recorded_name(type(self)))


@rule(
    "challenge",
    "paper",
    example="that of the ISGP paper: at random, if label and prediction differ",
)
@dataclass(frozen=True, slots=True)
class PaperChallenge:
    """Challenge with probability `Φ((mean_predicted - mean_given) / std)`, ISGP Eq. 8."""

    def decide(
        self,
        belief: Belief,
        given: Label,
        *,
        probability_wrong: float,  # noqa: ARG002
        draw: float,
    ) -> Decision:
        """Compare the contradiction with the draw."""
        return Decision.of(criteria.contradiction(belief, given), draw, recorded_name(type(self)))


@rule(
    "challenge",
    "always",
    example="whenever label and prediction differ",
)
@dataclass(frozen=True, slots=True)
class AlwaysChallenge:
    """Challenge every label that differs from the prediction."""

    def decide(
        self,
        belief: Belief,
        given: Label,
        *,
        probability_wrong: float,  # noqa: ARG002
        draw: float,  # noqa: ARG002
    ) -> Decision:
        """Compare the labels: score 1 if they differ."""
        differs = criteria.predicted(belief) not in (None, given)
        return Decision.of(float(differs), 0.0, recorded_name(type(self)))


@rule("challenge", "never", example="accept every label", targets=BOTH)
@dataclass(frozen=True, slots=True)
class NeverChallenge:
    """Challenge no label."""

    def decide(
        self,
        belief: Belief,  # noqa: ARG002
        given: Label,  # noqa: ARG002
        *,
        probability_wrong: float,  # noqa: ARG002
        draw: float,  # noqa: ARG002
    ) -> Decision:
        """Score 0, threshold 1."""
        return Decision.of(0.0, 1.0, recorded_name(type(self)))


@rule(
    "challenge",
    "outside_interval",
    example="level = 0.99 (for numbers: outside the interval in which answers are expected with "
    "this probability)",
    targets=NUMBERS,
)
@dataclass(frozen=True, slots=True)
class OutsideInterval:
    """Challenge a number that lies outside the credible interval of this annotator's answers.

    The score is the probability of the central interval that ends at the given number,
    `|2 F(y) - 1|`, where `F` is the distribution of `criteria.answer_expected`: 0 at the
    forecast, 0.68 one standard deviation from it.

    Parameters
    ----------
    level
        Probability of the credible interval, at most 1; one in `1 / (1 - level)` right answers
        is challenged.

    Examples
    --------
    >>> rule = OutsideInterval(level=0.95)
    >>> expected = criteria.StudentT(mu=20.0, sigma=1.0, dof=1000)
    >>> rule.decide(expected, 22.0, probability_wrong=0.3, draw=0.5)
    Decision(ask=True, score=0.954..., threshold=0.95, criterion='OutsideInterval', budget=None)

    """

    level: Share = 0.99

    def __post_init__(self) -> None:
        check_rate("level", self.level)

    def decide(
        self,
        belief: criteria.StudentT | None,
        given: float,
        *,
        probability_wrong: float,  # noqa: ARG002
        draw: float,  # noqa: ARG002
    ) -> Decision:
        """Compare the probability of the interval up to the given number with the level."""
        score = 0.0 if belief is None else abs(2.0 * belief.cdf(given) - 1.0)
        return Decision.of(score, self.level, recorded_name(type(self)))


@rule("query", "always", example="every event", targets=BOTH)
@dataclass(frozen=True, slots=True)
class AlwaysAsk:
    """Ask about every event."""

    def decide(self, belief: Belief | Distribution, draw: float) -> Decision:  # noqa: ARG002
        """Score 1, threshold 0."""
        return Decision.of(1.0, 0.0, recorded_name(type(self)))


@rule("query", "never", example="no event", targets=BOTH)
@dataclass(frozen=True, slots=True)
class NeverAsk:
    """Ask about no event; only unasked labels are learned."""

    def decide(self, belief: Belief | Distribution, draw: float) -> Decision:  # noqa: ARG002
        """Score 0, threshold 1."""
        return Decision.of(0.0, 1.0, recorded_name(type(self)))


@rule(
    "query",
    "random",
    example="rate = 0.1 (share of the events)",
    targets=BOTH,
)
@dataclass(frozen=True, slots=True)
class RandomAsk:
    """Ask about a random share of the events.

    Parameters
    ----------
    rate
        Probability of asking about an event.

    """

    rate: Share

    def __post_init__(self) -> None:
        check_rate("rate", self.rate)

    def decide(self, belief: Belief | Distribution, draw: float) -> Decision:  # noqa: ARG002
        """Compare the rate with the draw."""
        return Decision.of(self.rate, draw, recorded_name(type(self)))


@dataclass(frozen=True, slots=True)
class _Measured:
    """Ask when a measure of the class probabilities exceeds a threshold.

    While nothing is known it always asks, while one class is known now and then: see
    `ONE_CLASS_RATE`.
    """

    threshold: Share = 0.0

    def __post_init__(self) -> None:
        check_rate("threshold", self.threshold)

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Compare the measure with the threshold."""
        p, name = criteria.probabilities(belief), recorded_name(type(self))
        cold = cold_start(p, draw, name)
        return Decision.of(self._measure(p), self.threshold, name) if cold is None else cold

    def _measure(self, p: Mapping[Label, float]) -> float:
        raise NotImplementedError


@rule(
    "query",
    "entropy",
    example="threshold = 0.5 (nats)",
)
@dataclass(frozen=True, slots=True)
class Entropy(_Measured):
    """Ask when the entropy of the class probabilities exceeds a threshold.

    Parameters
    ----------
    threshold
        In nats. With 0, the default, the score only ranks events: add a `RateBudget`.

    """

    threshold: NonNegative = 0.0

    def _measure(self, p: Mapping[Label, float]) -> float:
        return criteria.entropy(p)

    def __post_init__(self) -> None:
        check_non_negative("threshold", self.threshold)


@rule(
    "query",
    "least_confidence",
    example="threshold = 0.3 (one minus the highest probability)",
)
@dataclass(frozen=True, slots=True)
class LeastConfidence(_Measured):
    """Ask when `1 - max p` exceeds a threshold.

    Parameters
    ----------
    threshold
        Between 0 and 1. With 0, the default, the score only ranks events: add a `RateBudget`.

    """

    def _measure(self, p: Mapping[Label, float]) -> float:
        return criteria.least_confidence(p)


@rule(
    "query",
    "best_versus_second",
    example="threshold = 0.3 (second best probability over best: margin sampling)",
)
@dataclass(frozen=True, slots=True)
class BestVersusSecond(_Measured):
    """Ask when the second best class is close to the best: when `p2 / p1` exceeds a threshold.

    Parameters
    ----------
    threshold
        Between 0 and 1. With 0, the default, the score only ranks events: add a `RateBudget`.

    """

    def _measure(self, p: Mapping[Label, float]) -> float:
        return criteria.best_versus_second(p)


# --- Rules for the labels that would tell most, for numbers and for classes.
#
# Scores shrink by orders of magnitude while a learner learns: no constant threshold gives a steady
# share of events. With a threshold of 0 they only rank, and `RateBudget` or `AdaptiveThreshold`
# decides how many are asked about.


@dataclass(frozen=True, slots=True)
class _Above:
    """Ask when a score exceeds a threshold.

    Plain probabilities of no class or of one have no spread. As with `Entropy`, the former are
    always asked about, the latter now and then. Experts that do not differ at all, because they
    have learned nothing or only one is left, say nothing either. With a positive threshold such
    events are asked about now and then, as never asking would deadlock. With a threshold of 0,
    which all other scores exceed, they are asked about like all others, and a budget can keep its
    rate.
    """

    threshold: NonNegative = 0.0

    def __post_init__(self) -> None:
        check_non_negative("threshold", self.threshold)

    def decide(self, belief: criteria.AnyBelief, draw: float) -> Decision:
        """Compare the score with the threshold."""
        name = recorded_name(type(self))
        cold = cold_start(belief, draw, name) if isinstance(belief, Mapping) else None
        if cold is not None:
            return cold
        score = self._score(belief)
        if score == 0.0:
            return Decision.of(ONE_CLASS_RATE, draw if self.threshold else 0.0, name)
        return Decision.of(score, self.threshold, name)

    def _score(self, belief: criteria.AnyBelief) -> float:
        raise NotImplementedError


@rule(
    "query",
    "variance",
    example="threshold = 0.0 (variance of the prediction)",
    targets=BOTH,
)
@dataclass(frozen=True, slots=True)
class Variance(_Above):
    """Ask when the variance of the belief exceeds a threshold.

    The variance is that of an observation for regressors, that of the predicted class for
    classifiers.

    Parameters
    ----------
    threshold
        In units of y², or of indicators of classes.

    Examples
    --------
    >>> from streamgp import GPRegressor
    >>> belief = GPRegressor(noise_variance=1.0).predict_one({"light": 1.0}, with_dist=True)
    >>> Variance(threshold=0.5).decide(belief, draw=0.0)
    Decision(ask=True, score=2.0..., threshold=0.5, criterion='Variance', budget=None)

    References
    ----------
    [^1]: Polyzos, K.D., Lu, Q. and Giannakis, G.B., 2023. Active labeling for online ensemble
        learning. Asilomar, Eqs. 3 and 11.

    """

    def _score(self, belief: criteria.AnyBelief) -> float:
        return criteria.variance(belief)


@rule(
    "query",
    "kl",
    example="threshold = 0.0, least_weight = 0.01 (how far the experts of an ensemble diverge)",
    targets=BOTH,
    compares_experts=True,
)
@dataclass(frozen=True, slots=True)
class KL(_Above):
    """Ask when what the experts of an ensemble predict diverges.

    The score is the largest divergence from one expert, averaged over all (Eq. 10). The paper takes
    the maximum over all experts, including those that have proved wrong, and so mostly measures how
    far off the most mistaken one is; `least_weight` excludes these.

    Parameters
    ----------
    threshold
        In nats.
    least_weight
        Share of the largest weight that an expert must have to be compared with. 0 is the paper.

    References
    ----------
    [^1]: Polyzos, K.D., Lu, Q. and Giannakis, G.B., 2023. Active labeling for online ensemble
        learning. Asilomar, Eq. 10; as printed, it is the condition not to ask.

    """

    least_weight: Share = 0.0

    def __post_init__(self) -> None:
        _Above.__post_init__(self)
        check_rate("least_weight", self.least_weight)

    def _score(self, belief: criteria.AnyBelief) -> float:
        return criteria.largest_divergence(belief, self.least_weight)


@rule(
    "query",
    "deterministic",
    example="threshold = 0.0 (the same, by their means alone)",
    targets=BOTH,
    compares_experts=True,
)
@dataclass(frozen=True, slots=True)
class Deterministic(_Above):
    """Ask when the means of the experts of an ensemble are far apart.

    Parameters
    ----------
    threshold
        In units of y², or of indicators of classes.

    References
    ----------
    [^1]: Polyzos, K.D., Lu, Q. and Giannakis, G.B., 2023. Active labeling for online ensemble
        learning. Asilomar, Eq. 12; as printed, it is the condition not to ask.

    """

    def _score(self, belief: criteria.AnyBelief) -> float:
        return criteria.largest_distance(belief)
