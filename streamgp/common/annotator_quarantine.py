"""Sequential test of whether an annotator misleads: errs more often than not.

The witness is what a learner has learned from others. `annotator_em.py` estimates how often
annotators err; this test decides, at a stated level, whether to go on learning from one.

"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Final

from streamgp.base import Array

LARGEST_HONEST: Final = 0.3
"""Error rate up to which an annotator counts as honest."""
THRESHOLD: Final = 1e6
"""Evidence beyond which an annotator counts as misleading. Of 1000 honest annotators with 1000
answers each, at most two get there on average, if beliefs are calibrated."""
HEAD_START: Final = 300.0
"""Number of later answers that together are as probable a beginning of the lies as the first."""
FEWEST: Final = 5
"""Number of answers from which an annotator is judged, or serves as a witness."""
WITNESSES: Final = 2
"""Number of other annotators needed to judge one: of two, it cannot be told who misleads."""

# Error rates of misleading annotators, all equally probable a priori.
_MISLEADING: Final = (0.55, 0.65, 0.75, 0.85, 0.95)
# Least share of a belief that is spread evenly over all labels.
_SPREAD: Final = 0.05
# Upper bound of the evidence: that of 1000 lies would overflow a float.
_MOST: Final = 1e200


def spread(beliefs: Array, n_labels: int, contradicted: float = 0.0) -> Array:
    """Return beliefs that count no more than they have proved.

    A share of each is spread evenly over all labels: .05, as the others are no perfect witnesses,
    or as much as makes the beliefs no better than they proved for another annotator. Overconfident
    beliefs contradict all annotators, even those who never err. The errors of that other annotator
    are counted against the beliefs as well, which only makes the test more conservative.

    Parameters
    ----------
    beliefs
        Beliefs in labels, of any shape, based on other annotators alone.
    n_labels
        Number of labels among which the beliefs are divided, K.
    contradicted
        Share of another annotator's answers that contradict such beliefs: an estimate of the
        smallest such share.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([0.9, 0.1]), n_labels=2, contradicted=0.1).round(3).tolist()
    [0.82, 0.18]

    """
    # Where the other annotator is contradicted, the other labels are taken as equally probable.
    share = max(_SPREAD, min(1.0, contradicted * n_labels / max(1, n_labels - 1)))
    careful: Array = (1.0 - share) * beliefs + share / n_labels
    return careful


def evidence(beliefs: Iterable[float], n_labels: int, head_start: float = 0.0) -> float:
    """Return the evidence that an annotator has misled from some answer on until the last.

    The Shiryaev-Roberts statistic, `R = (1 + R) Λ` for each answer in turn, averaged over the error
    rates `e = .55, .65, ..., .95`, from R = `head_start` on. With `q` the belief in the label
    given, and K labels, the likelihood ratio is

        Λ = ((1 - e) q + e (1 - q) / (K - 1)) / (.7 q + .3 (1 - q) / (K - 1))

    For an annotator who errs in at most 30 % of the answers, the mean of R after n answers is at
    most `head_start + n`, and the probability that it has exceeded a threshold A by then is at most
    `(head_start + n) / A`. That holds where beliefs are calibrated or underconfident: the more of
    them is `spread`, the smaller the mean of Λ.

    Parameters
    ----------
    beliefs
        Belief in the label given, for each answer of the annotator in order, based on other
        annotators alone.
    n_labels
        Number of labels among which the beliefs are divided, K.
    head_start
        Evidence before the first of the answers: `HEAD_START` if the annotator has given no other,
        as lies from the first answer on are more probable than from any other; else 0.

    Examples
    --------
    Lies that the others are nearly sure of, after a hundred answers that they agree with:

    >>> import numpy as np
    >>> told = np.array([0.95] * 100 + [0.01] * 15)
    >>> careful = spread(told, n_labels=4)
    >>> evidence(careful[:100], n_labels=4), evidence(careful, n_labels=4)
    (0.820..., 1702280...)

    The same, if one in three of another annotator's answers contradicts such beliefs:

    >>> evidence(spread(told, n_labels=4, contradicted=0.33), n_labels=4)
    2597.8...

    From the first answer on, ten lies are enough:

    >>> evidence(careful[100:110], n_labels=4, head_start=HEAD_START)
    2215325.5...

    References
    ----------
    [^1]: Roberts, S.W., 1966. A comparison of some control chart procedures. Technometrics 8,
        411-430.
    [^2]: Pollak, M., 1987. Average run lengths of an optimal method of detecting a change in
        distribution. Annals of Statistics 15, 749-779.
    [^3]: Moustakides, G.V., Polunchenko, A.S. and Tartakovsky, A.G., 2011. A numerical approach to
        performance analysis of quickest change-point detection procedures. Statistica Sinica 21,
        571-596.

    """
    if n_labels < 2:
        return 0.0
    found = [head_start] * len(_MISLEADING)
    for belief in beliefs:
        q = float(belief)
        wrong = (1.0 - q) / (n_labels - 1)
        honest = (1.0 - LARGEST_HONEST) * q + LARGEST_HONEST * wrong
        found = [
            min((1.0 + before) * ((1.0 - e) * q + e * wrong) / honest, _MOST)
            for before, e in zip(found, _MISLEADING, strict=True)
        ]
    return fmean(found)
