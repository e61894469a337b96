"""Rules that ask by how much a label would tell, for numbers and for classes.

Scores shrink by orders of magnitude while a learner learns: no constant threshold gives a steady
share of events. With a threshold of 0 they only rank, and `RateBudget` or `AdaptiveThreshold`
decides how many are asked about.

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamgp.arguments import check_non_negative, check_rate
from streamgp.base import Decision
from streamgp.query import spread
from streamgp.query.rules import ONE_CLASS_RATE, cold_start
from streamgp.query.spread import AnyBelief


@dataclass(frozen=True, slots=True)
class _Above:
    """Ask when a score exceeds a threshold.

    Plain probabilities of no class or of one have no spread; as for `Entropy`, the first are asked
    about always, the second now and then. Experts that do not differ at all, since they have
    learned nothing yet or since one alone is left, say nothing either: with a threshold such events
    are asked about now and then, as asking never would deadlock. With none, which all exceed, they
    are asked about as all others, and a budget can keep its rate.
    """

    threshold: float = 0.0

    def __post_init__(self) -> None:
        check_non_negative("threshold", self.threshold)

    def decide(self, belief: AnyBelief, draw: float) -> Decision:
        """Compare the score with the threshold."""
        name = type(self).__name__
        cold = cold_start(belief, draw, name) if isinstance(belief, Mapping) else None
        if cold is not None:
            return cold
        score = self._score(belief)
        if score == 0.0:
            return Decision.of(ONE_CLASS_RATE, draw if self.threshold else 0.0, name)
        return Decision.of(score, self.threshold, name)

    def _score(self, belief: AnyBelief) -> float:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Variance(_Above):
    """Ask when the variance of the belief exceeds a threshold.

    That of an observation, for a learner of numbers; of the predicted class, for one of classes.

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

    def _score(self, belief: AnyBelief) -> float:
        return spread.variance(belief)


@dataclass(frozen=True, slots=True)
class KL(_Above):
    """Ask when what the experts of an ensemble predict diverges.

    The score is the largest divergence from one expert, in the mean of all (Eq. 10). The paper asks
    the maximum over all experts, also those that have proved wrong, and so mostly measures how far
    the most mistaken one is away; `least_weight` leaves these out.

    Parameters
    ----------
    threshold
        In nats.
    least_weight
        What share of the largest weight an expert must have to be compared with. 0 is the paper.

    References
    ----------
    [^1]: Polyzos, K.D., Lu, Q. and Giannakis, G.B., 2023. Active labeling for online ensemble
        learning. Asilomar, Eq. 10; as printed, it is the condition not to ask.

    """

    least_weight: float = 0.0

    def __post_init__(self) -> None:
        _Above.__post_init__(self)
        check_rate("least_weight", self.least_weight)

    def _score(self, belief: AnyBelief) -> float:
        return spread.largest_divergence(belief, self.least_weight)


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

    def _score(self, belief: AnyBelief) -> float:
        return spread.largest_distance(belief)
