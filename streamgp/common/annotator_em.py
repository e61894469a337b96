"""EM estimate of how often annotators err, and how often they insist on an error.

The running estimate of `annotator_error.py` judges each answer once, by what was known when it
came, and counts an upheld answer as right. It overestimates the errors of careful annotators, and
considers those who never give in the most careful of all. Here all answers are judged together, by
what is known now.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamgp.base import Array, Label, SettledAnswer
from streamgp.common.annotator_error import ANSWERS, ERRORS, INSISTED, WRONG, Reliability

Flags: TypeAlias = NDArray[np.bool_]

# Beliefs are raised to one of these powers: shares of a Gaussian process with much noise are
# underconfident, probabilities of other learners may be overconfident. The first leaves them as
# they are, for answers that do not favour any power.
SHARPENINGS = (1.0, 0.5, 1.5, 2.0, 3.0, 5.0)
# Shares of a Gaussian process fit the truth best when raised to a power that, over logs and
# annotators, is log-normal with this median and standard deviation of its logarithm.
_USUAL_POWER, _POWER_SPREAD = 2.5, 0.5
# Share of a belief that is spread evenly over all classes: no answer is impossible.
_SPREAD = 1e-3
# Probability that an annotator who is right upholds the answer when challenged.
_STANDS_BY = 0.98
MOST_ROUNDS = 60
# Change of the rates below which iteration stops.
_CONVERGED = 1e-9
# Log likelihoods that differ by less count as equal: rounding must not decide between powers.
_AS_LIKELY = 1e-6


@dataclass(frozen=True, slots=True)
class Estimates:
    """Result of `estimate`.

    Parameters
    ----------
    reliability
        Error rate and insistence by annotator, in the order of their first answers.
    wrong
        Probability that each answer is wrong, shape (n,).
    sharpening
        Power to which beliefs were raised.

    """

    reliability: dict[str | None, Reliability]
    wrong: Array
    sharpening: float


def estimate(
    answers: Sequence[SettledAnswer], beliefs: Array, labels: Sequence[Label]
) -> Estimates:
    """Estimate error rate and insistence of each annotator, after Dawid and Skene.

    An answer with the label y, in which the learner's belief is `q_y`, is right with weight

        (1 - e) q_y · {1 unchallenged; .98 upheld; .02 changed}

    and wrong with weight

        e (1 - q_y) / (K - 1) · {1 unchallenged; s upheld; 1 - s changed}

    for an annotator with error rate `e` and insistence `s`, and K labels. Where another annotator
    has answered a second question with y', blind, the true label k has the weight of the first
    answer, `q_k (1 - e)` or `q_k e / (K - 1)`, times `1 - e'` if k is y' and `e' / (K - 1)` if not;
    the probability that an answer is wrong is the share of the labels other than its own. EM
    alternates between the resulting probabilities z of being wrong, and `e = (1 + Σ z) / (5 + n)`,
    `s = (1 + Σ z over upheld) / (4 + Σ z over challenged)`. The beliefs are raised to a power,
    chosen among `SHARPENINGS` by the likelihood it reaches, priors included; among equals the
    first.

    Parameters
    ----------
    answers
        Each first answer of an annotator, and its outcome.
    beliefs
        The learner's belief about each event from all other answers, shape (n, K). Rows need not
        sum to 1; a row of zeros says nothing.
    labels
        The K labels of the columns; every answer's is among them.

    Examples
    --------
    Certain beliefs that contradict one answer in four:

    >>> answers = [SettledAnswer(y=y) for y in "aaab" * 25]
    >>> found = estimate(answers, np.array([[1.0, 0.0]] * 100), ["a", "b"])
    >>> found.reliability[None].error_rate, found.wrong[2:4].round(3).tolist()
    (0.236..., [0.007, 0.933])

    References
    ----------
    [^1]: Dawid, A.P. and Skene, A.M., 1979. Maximum likelihood estimation of observer error-rates
        using the EM algorithm. Journal of the Royal Statistical Society C 28, 20-28.

    """
    best: _Fit | None = None
    for fit in _fits(answers, beliefs, labels):
        if best is None or fit.reached > best.reached + _AS_LIKELY:
            best = fit
    assert best is not None  # SHARPENINGS is not empty
    return Estimates(
        reliability=_reliability(answers, best.e, best.s), wrong=best.z, sharpening=best.power
    )


def estimate_mean(
    answers: Sequence[SettledAnswer], beliefs: Array, labels: Sequence[Label], *, are_shares: bool
) -> dict[str | None, Reliability]:
    """Return the reliability of each annotator by `estimate`, averaged over the powers.

    Each power counts by the likelihood it reaches. All are equally probable beforehand, but those
    of shares of a Gaussian process are usually about 2.5.

    Parameters
    ----------
    answers, beliefs, labels
        As in `estimate`.
    are_shares
        Whether the beliefs are shares of a Gaussian process.

    Examples
    --------
    Shares that contradict one answer in four are usually meant more surely than they say:

    >>> answers = [SettledAnswer(y=y) for y in "aaab" * 5]
    >>> beliefs = np.array([[0.8, 0.2]] * 20)
    >>> for are_shares in (False, True):
    ...     found = estimate_mean(answers, beliefs, ["a", "b"], are_shares=are_shares)
    ...     print(found[None].error_rate)
    0.197...
    0.213...

    """
    fits = list(_fits(answers, beliefs, labels))
    logs = np.array([fit.reached for fit in fits])
    if are_shares:
        powers = np.array([fit.power for fit in fits])
        logs -= 0.5 * (np.log(powers / _USUAL_POWER) / _POWER_SPREAD) ** 2
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    e, s = (weights @ np.array(rates) for rates in zip(*((f.e, f.s) for f in fits), strict=True))
    return _reliability(answers, e, s)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Log posterior density reached with a power, rates, and probabilities of being wrong."""

    power: float
    reached: float
    e: Array
    s: Array
    z: Array


def _fits(
    answers: Sequence[SettledAnswer], beliefs: Array, labels: Sequence[Label]
) -> Iterator[_Fit]:
    """Yield what EM finds with each power."""
    columns: dict[Label | None, int] = {label: column for column, label in enumerate(labels)}
    names = _names(answers)
    who = np.array([names[one.annotator] for one in answers], dtype=np.intp)
    given = np.array([columns[one.y] for one in answers], dtype=np.intp)
    at, seconds = _numbered([one.second for one in answers])
    by = np.array([names[one.annotator] for one in seconds], dtype=np.intp)
    said = np.array([columns[one.y] for one in seconds], dtype=np.intp)
    challenged = np.array([one.upheld is not None for one in answers], dtype=bool)
    upheld = np.array([one.upheld is True for one in answers], dtype=bool)
    for power in SHARPENINGS:
        shares = sharpened(beliefs, power)
        q = shares[np.arange(len(given)), given]
        second = _Seconds(at=at, who=by, agree=given[at] == said, q=shares[at, said])
        asked = _Asked(who, q, max(1, len(labels) - 1), challenged, upheld, second)
        yield _Fit(power, *_fit(asked, len(names)))


def _names(answers: Sequence[SettledAnswer]) -> dict[str | None, int]:
    """Number the annotators in the order of their first answers, then of their second ones."""
    seconds = [one.second for one in answers if one.second is not None]
    names: dict[str | None, int] = {}
    for one in (*answers, *seconds):
        names.setdefault(one.annotator, len(names))
    return names


def _reliability(
    answers: Sequence[SettledAnswer], e: Array, s: Array
) -> dict[str | None, Reliability]:
    given = [one for first in answers for one in (first, first.second) if one is not None]
    n_answers = Counter(one.annotator for one in given)
    return {
        name: Reliability(error_rate=float(e[i]), insistence=float(s[i]), n_answers=n_answers[name])
        for name, i in _names(answers).items()
    }


def sharpened(beliefs: Array, power: float) -> Array:
    """Return beliefs, spread slightly, raised to a power and normalised, shape (n, K)."""
    n_labels = beliefs.shape[1]
    sums = beliefs.sum(axis=1, keepdims=True)
    shares = np.divide(beliefs, sums, out=np.full(beliefs.shape, 1.0 / n_labels), where=sums > 0.0)
    shares = ((1.0 - _SPREAD) * shares + _SPREAD / n_labels) ** power
    normalised: Array = shares / shares.sum(axis=1, keepdims=True)
    return normalised


def witnessed(beliefs: Array, said: Sequence[tuple[int, float] | None]) -> Array:
    """Return beliefs updated by what a witness said of each event, shape (n, K).

    A witness with error rate `e` multiplies the belief in the label given by `1 - e`, and in each
    of the others by `e / (K - 1)`, as in `estimate`.

    Parameters
    ----------
    beliefs
        Belief about each event without the witness, shape (n, K); rows sum to 1.
    said
        Column of the label given by each event's witness, and the witness's error rate; None where
        there is no witness.

    Examples
    --------
    >>> witnessed(np.array([[0.5, 0.5], [0.5, 0.5]]), [(0, 0.2), None]).tolist()
    [[0.8, 0.2], [0.5, 0.5]]

    """
    after = beliefs.copy()
    n_others = max(1, beliefs.shape[1] - 1)
    for row, witness in zip(after, said, strict=True):
        if witness is not None:
            column, e = witness
            row *= np.where(np.arange(len(row)) == column, 1.0 - e, e / n_others)
            row /= row.sum()
    return after


def wrong_of_two(
    first: SettledAnswer,
    second: SettledAnswer,
    error_rates: tuple[float, float],
    shares: Sequence[float],
    labels: Sequence[Label],
) -> tuple[float, float]:
    """Return the probabilities that a first and a second answer about one event are wrong.

    By the weights of `estimate`, with the prior insistence.

    Parameters
    ----------
    first, second
        The answers, each with a label.
    error_rates
        Error rates of the two annotators.
    shares
        The learner's belief in each label; they need not sum to 1.
    labels
        The labels, those of both answers among them.

    Examples
    --------
    Between two equally careful annotators who disagree, the learner's belief decides, here .8 to
    .1; with the third label, believed with .1, both would be wrong:

    >>> one, other = SettledAnswer(y="a"), SettledAnswer(y="b")
    >>> wrong_of_two(one, other, (0.2, 0.2), [0.8, 0.1, 0.1], "abc")
    (0.123..., 0.890...)
    >>> wrong_of_two(one, one, (0.2, 0.2), [0.8, 0.1, 0.1], "abc")
    (0.003..., 0.003...)

    """
    q = sharpened(np.array([shares]), 1.0)[0]
    given, said = (labels.index(one.y) for one in (first, second) if one.y is not None)
    seconds = _Seconds(
        at=np.array([0]),
        who=np.array([1]),
        agree=np.array([given == said]),
        q=q[[said]],
    )
    asked = _Asked(
        who=np.array([0]),
        q=q[[given]],
        n_others=max(1, len(labels) - 1),
        challenged=np.array([first.upheld is not None]),
        upheld=np.array([first.upheld is True]),
        seconds=seconds,
    )
    right, wrong, wrong_second = asked.weights(np.array(error_rates), np.full(2, INSISTED / WRONG))
    return float(wrong[0] / (right[0] + wrong[0])), float(wrong_second[0])


def _numbered(
    seconds: Sequence[SettledAnswer | None],
) -> tuple[NDArray[np.intp], list[SettledAnswer]]:
    """Return the indices of the answers that are not None, and these answers."""
    found = {n: one for n, one in enumerate(seconds) if one is not None}
    return np.array(list(found), dtype=np.intp), list(found.values())


@dataclass(frozen=True, slots=True)
class _Seconds:
    """Second answers: index of the first, annotator, whether they agree, belief in the label."""

    at: NDArray[np.intp]
    who: NDArray[np.intp]
    agree: Flags
    q: Array


@dataclass(frozen=True)
class _Asked:
    """Answers: annotator, belief in the label, number of other labels, outcomes of challenges."""

    who: NDArray[np.intp]
    q: Array
    n_others: int
    challenged: Flags
    upheld: Flags
    seconds: _Seconds

    @cached_property
    def any_challenged(self) -> bool:
        return bool(self.challenged.any())

    @cached_property
    def if_right(self) -> Array:
        """The weight of each answer, given that it is right."""
        outcome = np.where(self.upheld, _STANDS_BY, 1.0 - _STANDS_BY)
        return self.q * np.where(self.challenged, outcome, 1.0)

    @cached_property
    def if_wrong(self) -> Array:
        """The weight of each answer that is not challenged, given that it is wrong."""
        return (1.0 - self.q) / self.n_others

    def weights(self, rates: Array, insistences: Array) -> tuple[Array, Array, Array]:
        """Return the weights of each answer being right and wrong, and which seconds are wrong.

        The last as probabilities.
        """
        e = rates[self.who]
        right, wrong = (1.0 - e) * self.if_right, e * self.if_wrong
        if self.any_challenged:
            s = insistences[self.who]
            then = np.where(self.challenged, np.where(self.upheld, s, 1.0 - s), 1.0)
            wrong, e = wrong * then, e * then
        at, agree, q = self.seconds.at, self.seconds.agree, self.seconds.q
        if not at.size:
            return right, wrong, q
        hit = 1.0 - rates[self.seconds.who]
        miss = (1.0 - hit) / self.n_others
        # The true label is that of the first answer, that of the second, or neither.
        first = right[at] * np.where(agree, hit, miss)
        other = e[at] / self.n_others
        second = np.where(agree, 0.0, other * q * hit)
        none = np.where(agree, 1.0 - q, np.maximum(0.0, 1.0 - q - self.q[at])) * other * miss
        right[at], wrong[at] = first, second + none
        wrong_second = np.where(agree, none, first + none) / (first + second + none)
        return right, wrong, wrong_second


def _fit(asked: _Asked, n: int) -> tuple[float, Array, Array, Array]:
    """Return log posterior density, error rates, insistences and probabilities of being wrong."""
    who, by, challenged, upheld = asked.who, asked.seconds.who, asked.challenged, asked.upheld
    n_answers = np.bincount(np.append(who, by), minlength=n)
    e, s = np.full(n, ERRORS / ANSWERS), np.full(n, INSISTED / WRONG)
    for _ in range(MOST_ROUNDS):
        right, wrong, z_second = asked.weights(e, s)
        z = wrong / (right + wrong)
        before = e, s
        e = (ERRORS + (np.bincount(who, z, n) + np.bincount(by, z_second, n))) / (
            ANSWERS + n_answers
        )
        if asked.any_challenged:
            s = (INSISTED + np.bincount(who, z * upheld, n)) / (
                WRONG + np.bincount(who, z * challenged, n)
            )
        if max(abs(e - before[0]).max(), abs(s - before[1]).max()) < _CONVERGED:
            break
    right, wrong, _ = asked.weights(e, s)
    prior = (
        ERRORS * np.log(e)
        + (ANSWERS - ERRORS) * np.log1p(-e)
        + INSISTED * np.log(s)
        + (WRONG - INSISTED) * np.log1p(-s)
    )
    reached = float(np.log(right + wrong).sum() + prior.sum())
    return reached, e, s, wrong / (right + wrong)
