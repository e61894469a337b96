"""Doubt about numbers: where an answer is expected, and how probably one is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamgp.base import Decision, Distribution
from streamgp.common.running_stats import Moments
from streamgp.common.validation import check_rate
from streamgp.query.registry import NUMBERS, Share, rule

__all__ = [
    "OutsideInterval",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentT:
    """Distribution of the answer of an annotator who is not mistaken.

    Student's t, since how much targets vary is an estimate from few of them.

    Parameters
    ----------
    mu
        Centre.
    sigma
        Scale; the standard deviation, were it known.
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
        """Log density at `y`, in nats; at the only possible value, if there is one, infinite."""
        if self.sigma == 0.0:
            return math.inf if y == self.mu else -math.inf
        z, dof = (y - self.mu) / self.sigma, self.dof
        return (
            math.lgamma((dof + 1) / 2)
            - math.lgamma(dof / 2)
            - 0.5 * math.log(dof * math.pi)
            - math.log(self.sigma)
            - (dof + 1) / 2 * math.log1p(z * z / dof)
        )


def answer_expected(
    forecast: Distribution, targets: Moments, scatter: float, std: float | None
) -> StudentT | None:
    """Return where an annotator's answer will lie, None while nothing is known of the scale.

    Its variance is `scatter · (sigma² + std²)`: `sigma` is that of an observation as the learner
    sees it, `std` the uncertainty stated with the answer, and `scatter` says how much more, or
    less, this annotator's answers have varied so far
    (`streamgp.common.annotator_error.ErrorScale`). A learner knows the scale of its targets from
    as many as it was taught: the degrees of freedom are one less than their number.

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

    """
    if targets.n < 2 or targets.m2 <= 0.0:
        return None
    sigma = math.hypot(forecast.sigma, std or 0.0) * math.sqrt(scatter)
    return StudentT(mu=forecast.mu, sigma=sigma, dof=targets.n - 1)


def probability_outlier(
    expected: StudentT | None, targets: Moments, given: float, error_rate: float
) -> float:
    """Probability that a given number is wrong, after Bayes.

    `P(wrong | y) = e g(y) / (e g(y) + (1 - e) f(y))`: `e` is the annotator's error rate, `f` where
    a right answer lies (`answer_expected`), and `g` where a wrong one does. That has nothing to do
    with the event: it is about where targets are, and possibly far away, as a misplaced decimal
    point takes it. So `g` is a Cauchy distribution around the mean of all targets with their
    standard deviation as scale, or that of `f`, if it is larger: `g` is the wider of the two.

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
    # Never narrower than `f`: where the learner knows nothing, it must not look wrong by itself.
    scale = max(targets.std, expected.sigma)
    z = (given - targets.mean) / scale
    wrong = -math.log(math.pi * scale) - math.log1p(z * z)
    odds = math.log((1.0 - error_rate) / error_rate) + expected.log_density(given) - wrong
    # 1 / (1 + exp(odds)), for odds of either sign
    return 1.0 / (1.0 + math.exp(odds)) if odds < 0.0 else math.exp(-odds) / (1.0 + math.exp(-odds))


@rule(
    "challenge",
    "outside_interval",
    example="level = 0.99 (for numbers: outside the interval in which answers are expected with "
    "this probability)",
    reason="the number lies outside the interval that was expected",
    targets=NUMBERS,
)
@dataclass(frozen=True, slots=True)
class OutsideInterval:
    """Challenge a number that lies outside the credible interval of this annotator's answers.

    The score is the probability of the central interval that ends at the given number,
    `|2 F(y) - 1|`, where `F` is the distribution of `answer_expected`: 0 at the forecast, 0.68 one
    standard deviation from it.

    Parameters
    ----------
    level
        Probability of the credible interval, at most 1; of the right answers, one in
        `1 / (1 - level)` is challenged.

    Examples
    --------
    >>> rule = OutsideInterval(level=0.95)
    >>> expected = StudentT(mu=20.0, sigma=1.0, dof=1000)
    >>> rule.decide(expected, 22.0, probability_wrong=0.3, draw=0.5)
    Decision(ask=True, score=0.954..., threshold=0.95, criterion='OutsideInterval', budget=None)

    """

    level: Share = 0.99

    def __post_init__(self) -> None:
        check_rate("level", self.level)

    def decide(
        self,
        belief: StudentT | None,
        given: float,
        *,
        probability_wrong: float,  # noqa: ARG002
        draw: float,  # noqa: ARG002
    ) -> Decision:
        """Compare the probability of the interval up to the given number with the level."""
        score = 0.0 if belief is None else abs(2.0 * belief.cdf(given) - 1.0)
        return Decision.of(score, self.level, type(self).__name__)
