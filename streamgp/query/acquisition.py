"""Query strategies that ask for the labels that would tell most, for numbers and for classes.

Scores shrink by orders of magnitude while a learner learns: no constant threshold gives a steady
share of events. With a threshold of 0 they only rank, and `RateBudget` or `AdaptiveThreshold`
decides how many are asked about.

"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from streamgp.base import Belief, Decision, Distribution, Posterior
from streamgp.common.fingerprint import recorded_name
from streamgp.common.uncertainty import most_probable
from streamgp.common.validation import check_non_negative, check_rate
from streamgp.query.registry import BOTH, NonNegative, Share, rule
from streamgp.query.strategies import ONE_CLASS_RATE, cold_start

__all__ = [
    "KL",
    "Deterministic",
    "Variance",
]

# --- Functions of distributions: spread of a belief, disagreement of experts.
#
# For numbers the belief is the distribution of an observation; for classes it is the posterior of
# the predicted class. The rules further down decide by these scores.


# Scores are finite, even where a distribution without any variance is compared with another.
LARGEST = sys.float_info.max


@runtime_checkable
class Mixture(Protocol):
    """A belief composed of those of several experts."""

    @property
    def weights(self) -> Sequence[float]:
        """Weight of each expert; they sum to 1."""

    @property
    def components(self) -> Sequence[Distribution | Posterior]:
        """Belief of each expert."""


@runtime_checkable
class HavingExperts(Protocol):
    """A learner composed of several experts."""

    @property
    def n_experts(self) -> int:
        """Number of experts."""


AnyBelief: TypeAlias = Belief | Distribution


def variance(belief: AnyBelief) -> float:
    """Variance of a belief: of an observation, or of the predicted class (Eq. 11).

    For a mixture this is the mean of the variances plus the variance of the means. For plain
    probabilities it is that of an indicator, `p (1 - p)`.

    Examples
    --------
    >>> variance(Posterior(mean={"home": 0.7}, variance=0.3))
    0.3
    >>> variance({"home": 0.9, "work": 0.1})
    0.09

    """
    if isinstance(belief, Posterior):
        return belief.variance
    if isinstance(belief, Mapping):
        p = max(belief.values(), default=0.5)
        return p * (1.0 - p)
    return _finite(belief.sigma * belief.sigma)


def divergence(p: tuple[float, float], q: tuple[float, float]) -> float:
    """Kullback-Leibler divergence `D(p || q)` of two normal distributions, in nats.

    Each is given as mean and variance. The result is at most `LARGEST`, which stands for infinity.

    Examples
    --------
    >>> divergence((0.0, 1.0), (1.0, 1.0)), divergence((0.0, 1.0), (0.0, 4.0))
    (0.5, 0.318...)
    >>> divergence((0.0, 1.0), (0.0, 0.0))
    1.797...e+308

    """
    (mean, variance), (other_mean, other_variance) = p, q
    if (mean, variance) == (other_mean, other_variance):
        return 0.0
    if variance <= 0.0 or other_variance <= 0.0:
        return LARGEST
    ratio = variance / other_variance
    step = mean - other_mean
    # ln(ratio) from both logarithms: the ratio may be 0 or infinite.
    log_ratio = math.log(variance) - math.log(other_variance)
    # Rounding can leave slightly less than 0.
    return _finite(max(0.0, 0.5 * (ratio + step / other_variance * step - 1.0 - log_ratio)))


def largest_divergence(belief: AnyBelief, least_weight: float) -> float:
    """Largest weighted divergence of the experts from one of them (Eq. 10), in nats.

    `max over m' of sum over m of w_m D(p_m || p_m')`, where `m'` is any expert whose weight is at
    least `least_weight` times the largest.

    Raises
    ------
    TypeError
        If the belief is not that of several experts.

    """
    parts = _parts(belief)
    living = least_weight * max([w for w, _ in parts])
    return max(
        [
            _finite(sum([w * divergence(p, q) for w, p in parts if w > 0.0]))
            for v, q in parts
            if v >= living
        ]
    )


def largest_distance(belief: AnyBelief) -> float:
    """Largest weighted squared distance of the experts' means from that of one of them (Eq. 12).

    Raises
    ------
    TypeError
        If the belief is not that of several experts.

    """
    parts = _parts(belief)
    return max(
        [
            _finite(sum([w * (mean - mu) * (mean - mu) for w, (mean, _) in parts]))
            for _, (mu, _) in parts
        ]
    )


def _parts(belief: AnyBelief) -> list[tuple[float, tuple[float, float]]]:
    """Return the weight of each expert, and the mean and variance of what it predicts."""
    if not isinstance(belief, Mixture) or len(belief.components) < 2:
        raise TypeError(
            "experts can only be compared in an ensemble of two or more, got "
            f"{type(belief).__name__}; "
            "use one, such as EnsembleGPRegressor, or the rule Variance()"
        )
    best = most_probable(belief.mean) if isinstance(belief, Posterior) else None
    moments = [
        (part.mean[best] if best is not None else 0.0, part.variance)
        if isinstance(part, Posterior)
        else (part.mu, part.sigma * part.sigma)
        for part in belief.components
    ]
    return list(zip(belief.weights, moments, strict=True))


def _finite(value: float) -> float:
    return min(value, LARGEST)


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

    def decide(self, belief: AnyBelief, draw: float) -> Decision:
        """Compare the score with the threshold."""
        name = recorded_name(type(self))
        cold = cold_start(belief, draw, name) if isinstance(belief, Mapping) else None
        if cold is not None:
            return cold
        score = self._score(belief)
        if score == 0.0:
            return Decision.of(ONE_CLASS_RATE, draw if self.threshold else 0.0, name)
        return Decision.of(score, self.threshold, name)

    def _score(self, belief: AnyBelief) -> float:
        raise NotImplementedError


@rule(
    "query",
    "variance",
    example="threshold = 0.0 (variance of the prediction)",
    reason="the prediction is unsure",
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

    def _score(self, belief: AnyBelief) -> float:
        return variance(belief)


@rule(
    "query",
    "kl",
    example="threshold = 0.0, least_weight = 0.01 (how far the experts of an ensemble diverge)",
    reason="several models predict different things",
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

    def _score(self, belief: AnyBelief) -> float:
        return largest_divergence(belief, self.least_weight)


@rule(
    "query",
    "deterministic",
    example="threshold = 0.0 (the same, by their means alone)",
    reason="several models predict different things",
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

    def _score(self, belief: AnyBelief) -> float:
        return largest_distance(belief)
