"""Running estimates of an annotator's errors, from the outcomes of the answers.

`annotator_em.py` estimates them from all answers together.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

# Pseudo-counts before the first answer: one wrong in five, and one insisted on in four. They are
# Beta priors, with the densities `e (1 - e)^4` and `s (1 - s)^3`.
ERRORS, ANSWERS = 1.0, 5.0
INSISTED, WRONG = 1.0, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """What is known of one annotator.

    Parameters
    ----------
    error_rate
        Probability that a first answer is wrong.
    insistence
        Probability that a wrong answer is upheld when it is challenged.
    n_answers
        Number of answers behind the estimates: first answers, and answers to second questions about
        events that others have labelled.

    """

    error_rate: float = ERRORS / ANSWERS
    insistence: float = INSISTED / WRONG
    n_answers: int = 0


def combined(
    estimates: Iterable[Mapping[str | None, Reliability]],
) -> dict[str | None, Reliability]:
    """Combine what several learners know of their annotators: means, weighted by answers.

    Examples
    --------
    >>> ann = [{"ann": Reliability(error_rate=e, n_answers=n)} for e, n in ((0.1, 30), (0.5, 10))]
    >>> combined(ann)
    {'ann': Reliability(error_rate=0.2, insistence=0.25, n_answers=40)}

    """
    known: dict[str | None, list[Reliability]] = {}
    for estimate in estimates:
        for name, reliability in estimate.items():
            known.setdefault(name, []).append(reliability)
    return {name: _mean(each) for name, each in known.items()}


def _mean(each: Sequence[Reliability]) -> Reliability:
    n = sum(one.n_answers for one in each)
    return Reliability(
        error_rate=sum(one.error_rate * one.n_answers for one in each) / n,
        insistence=sum(one.insistence * one.n_answers for one in each) / n,
        n_answers=n,
    )


class ErrorRate:
    """Running estimate of the share of wrong first answers of one annotator.

    `(1 + Σ w) / (5 + n)`: one wrong answer in five before anything is known. `w` is the probability
    that an unchallenged answer was wrong; after a challenge it is 1 if the annotator changed the
    answer, 0 if not.

    Examples
    --------
    >>> rate = ErrorRate()
    >>> rate.estimate
    0.2
    >>> for _ in range(5):
    ...     rate.note(0.0)
    >>> rate.estimate
    0.1

    """

    __slots__ = ("n", "sum")

    def __init__(self, n: int = 0, sum: float = 0.0) -> None:
        self.n = n
        self.sum = sum

    @property
    def estimate(self) -> float:
        """Estimated share of wrong answers, strictly between 0 and 1."""
        return (ERRORS + self.sum) / (ANSWERS + self.n)

    def note(self, w: float) -> None:
        """Record one answer that was wrong with probability `w`."""
        self.n += 1
        self.sum += w

    def correct(self, before: float, now: float) -> None:
        """Replace the probability with which an answer noted before was wrong."""
        self.sum = max(0.0, self.sum + (now - before))

    def numbers(self) -> list[float]:
        """Return the state as plain numbers."""
        return [self.n, self.sum]

    @classmethod
    def of(cls, numbers: Iterable[float]) -> Self:
        """Restore an object from its `numbers`."""
        n, *rest = numbers
        return cls(int(n), *map(float, rest))


# Prior number of answers that scatter as the learner expects, before anything is known of an
# annotator.
_AS_EXPECTED = 5.0
# Square of the largest deviation that counts, in units of an annotator's estimated scatter: Huber's
# 1.5 standard deviations. Answers that are far off, and not recognised as wrong, must not make all
# others credible: with 9 one in nine would suffice for that, with 2.25 it takes one in three. The
# mean of squares cut off there is this much smaller if deviations are normal.
_LARGEST = 2.25
_SHARE_COUNTED = 0.7784652162


class ErrorScale(ErrorRate):
    """Estimates of an annotator who gives numbers: share of wrong ones, scatter of the others.

    `z` is the distance of a first answer from the forecast, in standard deviations of the forecast.
    If the annotator were as accurate as the learner expects, z² would be 1 on average; its mean is
    estimated as `(5 + Σ v min(z², 2.25 r) / 0.778) / (5 + Σ v)` [^1], which is 1 before anything is
    known. `v` is the probability that the answer was not wrong, `1 - w` of the error rate, and `r`
    the estimate at that time.

    Examples
    --------
    >>> trust = ErrorScale()
    >>> trust.scatter
    1.0
    >>> for _ in range(5):
    ...     trust.note_deviation(z2=4.0, w=0.0)
    >>> round(trust.scatter, 2)
    2.68

    References
    ----------
    [^1]: Huber, P.J., 1964. Robust estimation of a location parameter. Annals of Mathematical
        Statistics 35, proposal 2.

    """

    __slots__ = ("squares", "weight")

    def __init__(
        self, n: int = 0, sum: float = 0.0, weight: float = 0.0, squares: float = 0.0
    ) -> None:
        super().__init__(n, sum)
        self.weight = weight
        self.squares = squares

    @property
    def scatter(self) -> float:
        """Estimated variance of the answers, in units of what the learner expects."""
        return (_AS_EXPECTED + self.squares) / (_AS_EXPECTED + self.weight)

    def note_deviation(self, z2: float, w: float) -> None:
        """Record the squared deviation of an answer that was wrong with probability `w`."""
        self.squares += (1.0 - w) * min(z2, _LARGEST * self.scatter) / _SHARE_COUNTED
        self.weight += 1.0 - w

    def numbers(self) -> list[float]:
        """Return the state as plain numbers."""
        return [*super().numbers(), self.weight, self.squares]
