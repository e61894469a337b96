"""Criteria: functions of a posterior, of class probabilities, or of the distribution of a number.

Each returns a number that grows with the reason to ask, or to challenge. Nothing is decided here.

"""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from streamgp.base import Belief, Distribution, Label, Mixture, Posterior
from streamgp.common.normal import MixturePosterior
from streamgp.common.running_stats import Moments
from streamgp.common.uncertainty import best_versus_second as best_versus_second
from streamgp.common.uncertainty import entropy as entropy
from streamgp.common.uncertainty import most_probable

AnyBelief: TypeAlias = Belief | Distribution
"""What a learner believes of an event: of its class or of its number."""

# Odds ratios stay finite for noise of any variance.
_LEAST_FLIP = 1e-9


def probabilities(belief: Belief) -> Mapping[Label, float]:
    """Class probabilities of a belief of any type."""
    return belief.probabilities() if isinstance(belief, Posterior) else belief


def scores(belief: Belief) -> Mapping[Label, float]:
    """Return the means or probabilities of the known classes; the largest is the prediction's."""
    return belief.mean if isinstance(belief, Posterior) else belief


def predicted(belief: Belief) -> Label | None:
    """Return the class of largest mean or probability (ISGP Eq. 6), None if none is known."""
    return most_probable(scores(belief))


def normal_cdf(mean: float, variance: float) -> float:
    """`P(f >= 0)` for a Gaussian f (ISGP Eq. 3); a step with value 1/2 at 0 without variance.

    Examples
    --------
    >>> normal_cdf(1.0, 1.0)
    0.841344...

    """
    if variance <= 0.0:
        return 0.5 if mean == 0.0 else float(mean > 0.0)
    return 0.5 * math.erfc(-mean / math.sqrt(2.0 * variance))


def doubt(belief: Belief) -> float:
    """Return the uncertainty of a learner about its own prediction.

    For a posterior, the probability that the predicted class has a negative score,
    `1 - Φ(mean / std)` with the latent standard deviation (ISGP Eq. 7; with the noise included, as
    Eq. 2 prints it, it would never reach 0). For plain probabilities, `1 - max p`. If nothing is
    known, 1. Where open questions count, their share competes with the classes, and the standard
    deviation is the one after their answers.

    For an ensemble, at least the probability that the score of the second class is above that of
    the predicted one. To its smoothest expert nothing is far from the examples, so that the best
    score is hardly ever near 0, even on the boundary between two classes.

    Examples
    --------
    >>> doubt(Posterior(mean={"home": 1.0, "work": -0.2}, variance=1.0))
    0.158655...
    >>> boundary = {"mean": {"home": 0.55, "work": 0.45}, "variance": 0.01}
    >>> doubt(Posterior(**boundary)), doubt(MixturePosterior(**boundary, weights=(), components=()))
    (1.89...e-08, 0.239750...)
    >>> doubt({"home": 0.9, "work": 0.1})
    0.1
    >>> from streamgp.base import PendingPosterior
    >>> doubt(Posterior(mean={}, variance=1.0, pending=PendingPosterior(mean=0.5, variance=0.25)))
    0.158655...

    """
    if not isinstance(belief, Posterior):
        return 1.0 - max(belief.values(), default=0.0)
    pending = belief.pending
    if pending is not None:
        return normal_cdf(-max([pending.mean, *belief.mean.values()]), pending.variance)
    if not belief.mean:
        return 1.0
    negative = normal_cdf(-max(belief.mean.values()), belief.variance)
    if not isinstance(belief, MixturePosterior) or len(belief.mean) == 1:
        return negative
    best, second = heapq.nlargest(2, belief.mean.values())
    return max(negative, normal_cdf(second - best, 2.0 * belief.variance))


def unexplained_share(belief: Posterior) -> float:
    """Return the part of 1 that the means of the known classes leave unexplained, at least 0.

    Examples
    --------
    >>> unexplained_share(Posterior(mean={"home": 0.5, "work": -0.2}, variance=1.0))
    0.5

    """
    return max(0.0, 1.0 - explained(belief))


def explained(belief: Posterior) -> float:
    """Return the sum of the positive means of a posterior; 1 where all is explained."""
    return sum([m for m in belief.mean.values() if m > 0.0])


def contradiction(belief: Belief, given: Label) -> float:
    """Return how strongly the prediction contradicts a given label, 0 if they agree (ISGP Eq. 8).

    `Φ((mean_predicted - mean_given) / std)`; a class never seen has mean 0. For plain
    probabilities it is the difference of the two. The paper sets agreement to 0 by hand, as Eq. 8
    would give 1/2 there, and divides by the standard deviation of one function, as here, though it
    takes them to be independent.

    Examples
    --------
    >>> contradiction(Posterior(mean={"home": 1.0, "work": 0.0}, variance=1.0), "work")
    0.841344...

    """
    known = scores(belief)
    best = most_probable(known)
    if best is None or best == given:
        return 0.0
    difference = known[best] - known.get(given, 0.0)
    return normal_cdf(difference, belief.variance) if isinstance(belief, Posterior) else difference


def probability_wrong(
    belief: Belief,
    given: Label,
    error_rate: float,
    *,
    heard: Mapping[Label, int] | None = None,
) -> float:
    """Probability that a given label is wrong, by Bayes' rule.

    `P(wrong | given) = 1 - q (1 - e) / (q (1 - e) + (1 - q) e / (C - 1))`: `q` is the learner's
    probability of the given class, `e` the annotator's error rate, spread evenly over the other
    classes, and `C = max(2, known classes, the given one included)`.

    A posterior counts as far as it knows something: `q = (1 - v) share + v / C`, where `v` is its
    variance divided by that of the prior, so that far from all examples `P(wrong) = e`. It keeps a
    share for classes not seen yet, the part of 1 that its means leave; a new class gets this share
    as its `q`, if it is larger. Without a posterior a new class is never suspicious.

    That believes new labels far too readily. With `heard`, a new label is wrong with the odds
    `e w : (1 - e) g (1 - a)` (see `new_label_rates`), where `a` is how far known classes explain
    the event: `1 - v` times the sum of the positive means, at most 1; 0 without a posterior.

    Parameters
    ----------
    belief
        What the learner believes about the event.
    given
        The label that the annotator gave.
    error_rate
        Estimate of how often this annotator errs, strictly between 0 and 1.
    heard
        How often each label was learned, from all annotators; None to believe new labels.

    Examples
    --------
    An annotator who errs in one of five answers gives a label that the learner deems improbable:

    >>> probability_wrong({"home": 0.9, "work": 0.1}, "work", error_rate=0.2)
    0.692307...
    >>> probability_wrong({"home": 0.9, "work": 0.1}, "home", error_rate=0.2)
    0.027027...

    Where a posterior knows nothing, only the annotator's record counts, and a label never heard
    before is believed:

    >>> far = Posterior(mean={"home": -0.01, "work": 0.0}, variance=1.0)
    >>> [probability_wrong(far, label, error_rate=0.2) for label in ("home", "gym")]
    [0.2, 0.0]

    unless it is known how rarely such labels have come:

    >>> probability_wrong(far, "gym", 0.2, heard={"home": 20, "work": 1})
    0.589...

    """
    known = scores(belief)
    n_classes = max(2, len(known) + (given not in known))
    if heard and given not in known:
        known_share = 0.0  # plain probabilities do not tell how much they explain
        if isinstance(belief, Posterior):
            known_share = (1.0 - _open(belief)) * min(1.0, explained(belief))
        g, w = new_label_rates(heard)
        right = (1.0 - error_rate) * g * (1.0 - known_share)
        return error_rate * w / (error_rate * w + right)
    if isinstance(belief, Posterior):
        positive = explained(belief)
        share = max(belief.mean.get(given, 1.0 - positive), 0.0) / max(1.0, positive)
        v = _open(belief)
        q = (1.0 - v) * share + v / n_classes
        if given not in known:
            q = max(q, share)
    else:
        q = belief.get(given, 1.0)
    right = q * (1.0 - error_rate)
    wrong = (1.0 - q) * error_rate / (n_classes - 1)
    return wrong / (right + wrong)


def new_label_rates(heard: Mapping[Label, int]) -> tuple[float, float]:
    """Return how often a right answer is a label never heard before, and how often a wrong one is.

    With n labels learned, of K classes, of which N1 were heard once and N2 twice:

    * the right ones by Good and Turing, `g = (N1 + 1) / (n + 2)`, which Laplace's rule keeps off 0
      and 1;
    * the wrong ones are evenly any other class, of which U are unheard: `w = U / (K + U - 1)`. U
      is one, as a new label has come, and Chao's estimate `N1 (N1 - 1) / (2 (N2 + 1))` of others.

    Parameters
    ----------
    heard
        How often each label was learned; at least one was.

    Examples
    --------
    >>> new_label_rates({"home": 20, "work": 1})
    (0.0869..., 0.5)

    References
    ----------
    [^1]: Good, I.J., 1953. The population frequencies of species and the estimation of population
        parameters. Biometrika 40, 237-264.
    [^2]: Chao, A., 1984. Nonparametric estimation of the number of classes in a population.
        Scandinavian Journal of Statistics 11, 265-270.

    """
    counts = list(heard.values())
    once, twice = counts.count(1), counts.count(2)
    unheard = 1.0 + once * (once - 1) / (2.0 * (twice + 1))
    return (once + 1) / (sum(counts) + 2), unheard / (len(counts) + unheard - 1.0)


def shares(belief: Belief, labels: Sequence[Label]) -> list[float]:
    """Return the share of a belief for each label, as used by `probability_wrong`.

    `(1 - v) share + v / K` for a posterior, of K labels; they need not sum to 1.

    Examples
    --------
    >>> shares(Posterior(mean={"home": 0.6, "work": -0.1}, variance=0.2), ["home", "work", "gym"])
    [0.546..., 0.066..., 0.066...]

    """
    if not isinstance(belief, Posterior):
        return [belief.get(label, 0.0) for label in labels]
    known = [max(belief.mean.get(label, 0.0), 0.0) for label in labels]
    v = _open(belief)
    z = max(1.0, sum(known))
    return [(1.0 - v) * share / z + v / len(labels) for share in known]


def probability_right(belief: Belief) -> float:
    """Return the probability that the prediction is right, 0 if nothing is known.

    For a posterior `(1 - v) Φ((m - m') / (√2 std)) + v / K`: the probability that the largest of K
    means, m, belongs to a larger score than the next one, m', if their errors are independent;
    counted as far as the posterior knows something, with v as in `probability_wrong`. With one
    class, m' is 0 and K is 2. For plain probabilities, the largest one.

    Unlike a share of the means it does not count the errors of annotators: where one answer in five
    is wrong the share of the right class is .8, however many answers there are. Nor does it count
    that classes overlap: it is about the most frequent class there, not about the next event.

    Examples
    --------
    >>> probability_right(Posterior(mean={"home": 0.8, "work": 0.2}, variance=0.1))
    0.869...
    >>> probability_right({"home": 0.8, "work": 0.2})
    0.8

    """
    if not isinstance(belief, Posterior):
        return max(belief.values(), default=0.0)
    if not belief.mean:
        return 0.0
    first, second = (*heapq.nlargest(2, belief.mean.values()), 0.0)[:2]
    v = _open(belief)
    is_largest = normal_cdf(first - second, 2.0 * belief.variance)
    return (1.0 - v) * is_largest + v / max(len(belief.mean), 2)


def _open(belief: Posterior) -> float:
    """Return how much a posterior leaves open: its variance in units of that of the prior."""
    prior = belief.prior_variance
    return min(belief.variance / prior, 1.0) if prior > 0.0 else 0.0


def flip_probability(noise_variance: float) -> float:
    """Probability that noise turns the sign of a function that is `N(0, 1)` beforehand.

    `atan(s) / pi` with the standard deviation `s` of the noise: function and noisy function are
    normal with correlation `rho = 1 / sqrt(1 + s²)`, and two such numbers have opposite signs with
    probability `acos(rho) / pi` (Sheppard). It runs from 0 without noise to 1/2, a guess. For a
    label with noise of this variance it is an error rate.

    Examples
    --------
    >>> flip_probability(1.0), flip_probability(1e12)
    (0.25, 0.499...)

    """
    return math.atan(math.sqrt(noise_variance)) / math.pi


def error_rate_with_noise(error_rate: float, noise: float, usual_noise: float) -> float:
    """Error rate of an annotator for an answer that is known to be more, or less, noisy than usual.

    The odds of an error, times the ratio of the odds of `flip_probability` for this answer and for
    any answer: the annotator's record and what is known of this answer count as independent.

    Parameters
    ----------
    error_rate
        Estimate of how often the annotator errs, strictly between 0 and 1.
    noise, usual_noise
        Noise variances of this answer, and of an answer of which nothing is known.

    Examples
    --------
    >>> error_rate_with_noise(0.2, 1.0, 1.0), error_rate_with_noise(0.2, 14.9, 0.6)
    (0.2, 0.404...)

    """
    flips = [max(flip_probability(one), _LEAST_FLIP) for one in (noise, usual_noise)]
    this, usual = (flip / (1.0 - flip) for flip in flips)
    odds = error_rate / (1.0 - error_rate) * (this / usual)
    return odds / (1.0 + odds)


def least_confidence(p: Mapping[Label, float]) -> float:
    """`1 - max p`."""
    return 1.0 - max(p.values())


# --- Spread of a belief, and disagreement of experts: for numbers and for classes.
#
# For numbers the belief is the distribution of an observation; for classes it is the posterior of
# the predicted class.


# Scores are finite, even where a distribution without any variance is compared with another.
LARGEST = sys.float_info.max


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


# --- Numbers: where an answer is expected, and how probable it is that a given one is wrong.


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentT:
    """Distribution of the answer of an annotator who is not mistaken.

    Student's t, since the variance of the targets is estimated from few of them.

    Parameters
    ----------
    mu
        Centre.
    sigma
        Scale: the standard deviation, if it were known.
    dof
        Degrees of freedom, at least 1.

    Examples
    --------
    >>> few, many = (StudentT(mu=0.0, sigma=1.0, dof=dof) for dof in (1, 1000))
    >>> few.cdf(1.0), many.cdf(1.0)
    (0.75, 0.841...)
    >>> few.log_density(0.0), many.log_density(0.0)
    (-1.144..., -0.919...)

    """

    mu: float
    sigma: float
    dof: float

    def cdf(self, y: float) -> float:
        """Probability of a value of at most `y`."""
        from scipy.special import stdtr

        if self.sigma == 0.0:
            return float(y >= self.mu)
        return float(stdtr(self.dof, (y - self.mu) / self.sigma))

    def log_density(self, y: float) -> float:
        """Log density at `y`, in nats; infinite at the only possible value, if there is one."""
        if self.sigma == 0.0:
            return math.inf if y == self.mu else -math.inf
        dof = self.dof
        return (
            math.lgamma((dof + 1) / 2)
            - math.lgamma(dof / 2)
            - 0.5 * math.log(dof * math.pi)
            - math.log(self.sigma)
            - (dof + 1) / 2 * _log1p_square(y - self.mu, self.sigma, dof)
        )


def _log1p_square(distance: float, scale: float, dof: float = 1.0) -> float:
    """`log(1 + (distance / scale)² / dof)`, finite also where the square is no float."""
    z = distance / scale
    square = z * z / dof
    if square < math.inf:
        return math.log1p(square)
    return 2.0 * (math.log(abs(distance)) - math.log(scale)) - math.log(dof)


def answer_expected(
    forecast: Distribution,
    targets: Moments,
    scatter: float,
    std: float | None,
    spread: float = math.inf,
) -> StudentT | None:
    """Return where an annotator's answer will lie; None while the scale is unknown.

    Its variance is `scatter · (sigma² + std²)`: `sigma` is that of an observation as the learner
    sees it, but at most `spread`, since wrong targets also widen the forecasts; `std` is the
    uncertainty stated with the answer, and `scatter` says how much more, or less, this annotator's
    answers have varied so far (`streamgp.common.annotator_error.ErrorScale`). A learner knows the
    scale of its targets from the ones it was taught: the degrees of freedom are one less than their
    number.

    Parameters
    ----------
    forecast
        What the learner believes about the event.
    targets
        Mean and spread of the targets learned.
    scatter
        Variance of the annotator's answers, in units of what the learner expects.
    std
        Standard deviation stated with the answer; None for none.
    spread
        Standard deviation of the targets as their quartiles suggest it, which a few wrong ones
        hardly change.

    """
    if targets.n < 2 or targets.m2 <= 0.0:
        return None
    sigma = math.hypot(min(forecast.sigma, spread), std or 0.0) * math.sqrt(scatter)
    return StudentT(mu=forecast.mu, sigma=sigma, dof=targets.n - 1)


def probability_outlier(
    expected: StudentT | None, targets: Moments, given: float, error_rate: float
) -> float:
    """Probability that a given number is wrong, by Bayes' rule.

    `P(wrong | y) = e g(y) / (e g(y) + (1 - e) f(y))`: `e` is the annotator's error rate, `f` the
    density of right answers (`answer_expected`), and `g` that of wrong ones. Wrong answers have
    nothing to do with the event: they depend on where targets are, and may be far away, as with a
    misplaced decimal point. So `g` is a Cauchy distribution around the mean of all targets, with
    their standard deviation or that of `f` as scale, whichever is larger: `g` is the wider of the
    two.

    Parameters
    ----------
    expected
        Where a right answer lies; None while nothing is known, so that only the annotator's record
        counts.
    targets
        Mean and spread of the targets learned.
    given
        The number that the annotator gave.
    error_rate
        Estimate of how often this annotator errs, strictly between 0 and 1.

    Examples
    --------
    >>> targets = Moments()
    >>> for y in (0.0, 10.0) * 20:
    ...     targets.add(y)
    >>> expected = StudentT(mu=4.0, sigma=1.0, dof=39)
    >>> [round(probability_outlier(expected, targets, y, 0.2), 4) for y in (4.0, 6.0, 8.0, 400.0)]
    [0.0372, 0.2139, 0.9662, 1.0]
    >>> probability_outlier(None, targets, 4.0, error_rate=0.2)
    0.2

    """
    if expected is None:
        return error_rate
    # Never narrower than `f`: where the learner knows nothing, an answer must not look wrong.
    scale = max(targets.std, expected.sigma)
    wrong = -math.log(math.pi * scale) - _log1p_square(given - targets.mean, scale)
    odds = math.log((1.0 - error_rate) / error_rate) + expected.log_density(given) - wrong
    # 1 / (1 + exp(odds)), for odds of either sign
    return 1.0 / (1.0 + math.exp(odds)) if odds < 0.0 else math.exp(-odds) / (1.0 + math.exp(-odds))
