"""Rules that learn from the answers how much confidence to trust.

A prediction is asked about if it is less confident than a threshold: the one at which, among the
answers heard so far, the share of wrong predictions below it equals the share of right ones above
it. An overconfident classifier gets a higher threshold, and no number has to be chosen.

"""

from __future__ import annotations

import math
from typing import Literal

from streamgp.base import Belief, Decision, Label, State
from streamgp.common.calibration import Confidences, equal_error_threshold, is_right
from streamgp.common.fingerprint import recorded_name
from streamgp.common.uncertainty import uncertainty as uncertainty_named
from streamgp.common.validation import check_forgetting, check_rate
from streamgp.query.criteria import probabilities
from streamgp.query.registry import Remainder, Share, rule
from streamgp.query.strategies import cold_start

__all__ = [
    "EqualErrorAsk",
    "EqualErrorRounds",
]

_CELLS_PER_OCTAVE = 32
# Number of points over which the first prediction of each histogram is spread.
_N_AT_FIRST = 16


class EqualErrorRounds:
    """Ask in rounds, below the confidence of equal errors in all earlier rounds.

    For a pool of events, some of which are drawn in every round: all those drawn are asked about in
    the first round, in later ones those whose confidence is below the threshold of everything
    heard so far. Pass every label to `hear`, and call `next_round` at the end of a round.

    Parameters
    ----------
    uncertainty
        The uncertainty, 1 minus the confidence: `bvsb`, the second largest probability divided by
        the largest, or `entropy`, that of the probabilities divided by the largest possible one.

    Attributes
    ----------
    threshold
        The confidence below which it asks; infinity while it asks about everything.

    Examples
    --------
    >>> rule = EqualErrorRounds()
    >>> for y, p in [("hall", 0.9), ("hall", 0.8), ("den", 0.75), ("den", 0.6)]:
    ...     rule.hear({"hall": p, "den": 1.0 - p}, y)
    >>> rule.next_round()
    >>> rule.threshold
    0.708333...
    >>> rule.decide({"hall": 0.7, "den": 0.3}, draw=0.5).ask
    True

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Sec. III-C.

    """

    # _right, _wrong  confidences of predictions whose label was heard

    def __init__(self, uncertainty: str = "bvsb") -> None:
        self.uncertainty = uncertainty
        self.threshold = math.inf
        self._uncertainty = uncertainty_named(uncertainty)
        self._right: list[float] = []
        self._wrong: list[float] = []

    def __repr__(self) -> str:
        return f"EqualErrorRounds({self.uncertainty!r})"

    def decide(self, belief: Belief, draw: float) -> Decision:  # noqa: ARG002
        """Compare the uncertainty with 1 minus the threshold."""
        p, name = probabilities(belief), recorded_name(type(self))
        if len(p) < 2 or self.threshold == math.inf:
            return Decision.of(1.0, 0.0, name)
        return Decision.of(self._uncertainty(p), 1.0 - self.threshold, name)

    def hear(self, belief: Belief, y: Label) -> None:
        """Record the label of an event that was asked about, and the belief before it."""
        p = probabilities(belief)
        if len(p) > 1:
            side = self._right if is_right(p, y) else self._wrong
            side.append(1.0 - self._uncertainty(p))

    def next_round(self) -> None:
        """End a round: the threshold is now that of everything heard so far."""
        self.threshold = equal_error_threshold(self._right, self._wrong)


@rule(
    "query",
    "equal_error",
    example="at_least = 0.1 (at random with this probability, and always below a confidence that "
    "it learns from the answers: for learners that give only probabilities)",
)
class EqualErrorAsk:
    """Ask below the confidence of equal errors in a stream, and now and then above it.

    Two histograms with exponential forgetting, of right and of wrong predictions, hold the
    confidences of the events asked about. Both begin with one prediction spread evenly over all
    confidences, so that it asks below 1/2 at first and neither is ever empty. While fewer than two
    classes are known it asks as the other rules on probabilities do.

    A prediction that is wrong and confident is noticed only if confident ones are asked about, so a
    random share of them is. Volunteered labels do not count, as it is unknown how they were
    selected: people report what is wrong rather than what is right.

    In a `SkepticalClassifier` the rule given is a template; each classifier has a copy of its own.

    Parameters
    ----------
    uncertainty
        As for `EqualErrorRounds`.
    at_least
        Least probability of asking, however confident a prediction is.
    forgetting
        What remains of the weight of each right prediction after the next right one, and the same
        for wrong ones; at most 1, which never forgets.

    Attributes
    ----------
    threshold
        The confidence below which it asks; infinity if it asks about everything.

    Examples
    --------
    >>> rule = EqualErrorAsk()
    >>> rule.threshold
    0.507...
    >>> for y, p in [("hall", 0.9), ("hall", 0.8), ("den", 0.75), ("den", 0.6)]:
    ...     rule.hear({"hall": p, "den": 1.0 - p}, y)
    >>> rule.decide({"hall": 0.9, "den": 0.1}, draw=0.5)
    Decision(ask=False, score=0.111..., threshold=0.304..., criterion='EqualErrorAsk', budget=None)

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Sec. III-C, for pools, where the first round asks
        about everything.

    """

    # _seen   what was heard
    # _above  the uncertainty above which it asks, a function of _seen

    def __init__(
        self,
        uncertainty: Literal["bvsb", "entropy"] = "bvsb",
        *,
        at_least: Share = 0.1,
        forgetting: Remainder = 0.99,
    ) -> None:
        check_rate("at_least", at_least)
        check_forgetting(forgetting)
        self.uncertainty = uncertainty
        self.at_least = at_least
        self.forgetting = forgetting
        self._uncertainty = uncertainty_named(uncertainty)
        self._seen = Confidences(_CELLS_PER_OCTAVE)
        for i in range(_N_AT_FIRST):
            for right in (True, False):
                self._seen.add((i + 0.5) / _N_AT_FIRST, right, 1.0 / _N_AT_FIRST)
        self._above = self._threshold()

    def __repr__(self) -> str:
        return (
            f"EqualErrorAsk({self.uncertainty!r}, at_least={self.at_least!r}, "
            f"forgetting={self.forgetting!r})"
        )

    @property
    def threshold(self) -> float:
        """The confidence below which it asks; infinity if it asks about everything."""
        return math.inf if self._above < 0.0 else 1.0 - self._above

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Compare the uncertainty with the threshold, then the least probability with the draw."""
        p, name = probabilities(belief), recorded_name(type(self))
        cold = cold_start(p, draw, name)
        if cold is not None:
            return cold
        by_confidence = Decision.of(self._uncertainty(p), self._above, name)
        at_random = Decision.of(self.at_least, draw, name)
        return at_random if at_random.ask and not by_confidence.ask else by_confidence

    def hear(self, belief: Belief, y: Label) -> None:
        """Record the label of an event that was asked about, and the belief before it."""
        p = probabilities(belief)
        if len(p) < 2:
            return
        right = is_right(p, y)
        self._seen.fade(right, self.forgetting)
        self._seen.add(self._uncertainty(p), right)
        self._above = self._threshold()

    def state(self) -> State:
        """Return the histograms."""
        return self._seen.state()

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._seen.load_state(state)
        self._above = self._threshold()

    def _threshold(self) -> float:
        found = self._seen.threshold()
        assert found is not None  # neither histogram is ever empty
        return found
