"""Sequential test of whether an annotator misleads: errs more often than not.

What others have taught a learner is the witness. `annotator_em.py` estimates how often annotators
err; here it is decided, with a stated level, whether to go on learning from one.

"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Final

from streamgp.base import Array

LARGEST_HONEST: Final = 0.3
"""Error rate up to which an annotator counts as honest."""
THRESHOLD: Final = 1e6
"""Evidence beyond which an annotator misleads. Of 1000 honest annotators with 1000 answers each, at
most one gets there on average, if beliefs are what they say."""
FEWEST: Final = 8
"""Answers of an annotator who is judged, or is a witness."""
WITNESSES: Final = 2
"""Other annotators without whom none is judged: of two it cannot be told who misleads."""

# Error rates of those who mislead, all of them equally probable beforehand.
_MISLEADING: Final = (0.55, 0.65, 0.75, 0.85, 0.95)
# Share of a belief that is spread evenly over all labels at least.
_SPREAD: Final = 0.05
# More evidence than that is as good: a float has no room for the evidence of 1000 lies.
_MOST: Final = 1e200


def spread(beliefs: Array, n_labels: int, contradicted: float = 0.0) -> Array:
    """Return beliefs that count no more than they have proved.

    A share of each is spread evenly over all labels: .05, as the others are no perfect witnesses,
    or so much that the beliefs are no better than they prove for another annotator. Beliefs that
    are surer than they should be contradict all annotators, also those who never err. The errors
    of that one are counted against the beliefs as well, which only makes the test more careful.

    Parameters
    ----------
    beliefs
        Beliefs in labels, of any shape, by what others have said alone.
    n_labels
        Number of labels that the beliefs are shared among, K.
    contradicted
        Share of the answers of another annotator that contradict such beliefs: an estimate of the
        smallest one there is.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([0.9, 0.1]), n_labels=2, contradicted=0.1).round(3).tolist()
    [0.82, 0.18]

    """
    # Where the other one is contradicted, the other labels are held to be equally probable.
    share = max(_SPREAD, min(1.0, contradicted * n_labels / max(1, n_labels - 1)))
    careful: Array = (1.0 - share) * beliefs + share / n_labels
    return careful


def evidence(beliefs: Iterable[float], n_labels: int) -> float:
    """Return the evidence that an annotator misleads, from some answer on until the last.

    The statistic of Shiryaev and Roberts, `R = (1 + R) Λ` for each answer in turn, on average over
    the error rates `e = .55, .65, ..., .95`. With `q` the belief in the label that was given, and K
    labels, the ratio of the likelihoods is

        Λ = ((1 - e) q + e (1 - q) / (K - 1)) / (.7 q + .3 (1 - q) / (K - 1))

    For an annotator who errs in at most 30 % of the answers, R is n or less on average after n
    answers, and the probability that it has exceeded a threshold A by then is at most n / A. That
    holds where beliefs are what they say or less sure: the more of them is `spread`, the smaller
    the mean of Λ.

    Parameters
    ----------
    beliefs
        Belief in the label that was given, for each answer of the annotator in their order, by what
        others have said alone.
    n_labels
        Number of labels that the beliefs are shared among, K.

    Examples
    --------
    Lies at which the others are nearly sure, after a hundred answers that they agree with:

    >>> import numpy as np
    >>> told = np.array([0.95] * 100 + [0.01] * 15)
    >>> careful = spread(told, n_labels=4)
    >>> evidence(careful[:100], n_labels=4), evidence(careful, n_labels=4)
    (0.820..., 1702280...)

    The same, where one answer in three of the others contradicts such beliefs:

    >>> evidence(spread(told, n_labels=4, contradicted=0.33), n_labels=4)
    2597.8...

    References
    ----------
    [^1]: Roberts, S.W., 1966. A comparison of some control chart procedures. Technometrics 8,
        411-430.
    [^2]: Pollak, M., 1987. Average run lengths of an optimal method of detecting a change in
        distribution. Annals of Statistics 15, 749-779.

    """
    if n_labels < 2:
        return 0.0
    found = [0.0] * len(_MISLEADING)
    for belief in beliefs:
        q = float(belief)
        wrong = (1.0 - q) / (n_labels - 1)
        honest = (1.0 - LARGEST_HONEST) * q + LARGEST_HONEST * wrong
        found = [
            min((1.0 + before) * ((1.0 - e) * q + e * wrong) / honest, _MOST)
            for before, e in zip(found, _MISLEADING, strict=True)
        ]
    return fmean(found)
