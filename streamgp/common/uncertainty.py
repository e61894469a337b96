"""Uncertainty of class probabilities: functions with values between 0 and 1.

0 is certain, 1 knows nothing; the confidence of a prediction is `1 - uncertainty`. Learners weight
examples by it, query strategies ask by it, and metrics evaluate it.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from streamgp.base import Label

Uncertainty: TypeAlias = Callable[[Mapping[Label, float]], float]


def most_probable(scores: Mapping[Label, float]) -> Label | None:
    """Label of the largest score, the first of several; None if there is none.

    Examples
    --------
    >>> most_probable({"home": 0.2, "work": 0.4, "gym": 0.4})
    'work'

    """
    return max(scores, key=scores.__getitem__, default=None)


def normalised(log_weights: list[float]) -> list[float]:
    """Return weights that sum to 1 from logarithms known up to a constant.

    Examples
    --------
    >>> normalised([-5000.0, -5000.0 + math.log(3.0)])
    [0.25, 0.75]

    """
    # A plain loop: with a handful of experts it is much faster than numpy.
    largest = max(log_weights)
    weights = [math.exp(value - largest) for value in log_weights]
    total = sum(weights)
    return [w / total for w in weights]


def entropy(p: Mapping[Label, float]) -> float:
    """Entropy of class probabilities, in nats.

    Examples
    --------
    >>> entropy({"home": 0.5, "work": 0.5})
    0.693147...

    """
    return sum((-q * math.log(q) for q in p.values() if q > 0.0), 0.0)


def best_versus_second(p: Mapping[Label, float]) -> float:
    """Second largest probability divided by the largest: 0 is certain, 1 a tie, even of zeros.

    A single class is certain (0), no class at all is not (1). Rounding of the probabilities does
    not take the result outside [0, 1].

    Examples
    --------
    >>> best_versus_second({"home": 0.6, "work": 0.3, "gym": 0.1})
    0.5

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Eq. 2.

    """
    if len(p) < 2:
        return 0.0 if p else 1.0
    *_, second, best = sorted(p.values())
    return max(second, 0.0) / best if best > 0.0 else 1.0


def normalised_entropy(p: Mapping[Label, float]) -> float:
    """Entropy of class probabilities, divided by that of the uniform distribution.

    A single class is certain (0), no class at all is not (1). Rounding of the probabilities does
    not take the result outside [0, 1].

    Examples
    --------
    >>> normalised_entropy({"home": 0.5, "work": 0.5, "gym": 0.0})
    0.630929...

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Eq. 2, whose logarithm has the number of classes as
        its base.

    """
    if len(p) < 2:
        return 0.0 if p else 1.0
    return min(max(entropy(p) / math.log(len(p)), 0.0), 1.0)


UNCERTAINTIES: Mapping[str, Uncertainty] = {
    "bvsb": best_versus_second,
    "entropy": normalised_entropy,
}


def uncertainty(name: str) -> Uncertainty:
    """Return the uncertainty function with the given name.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> uncertainty("bvsb")({"home": 0.75, "work": 0.25})
    0.333333...

    """
    if not (isinstance(name, str) and name in UNCERTAINTIES):
        known = " or ".join(map(repr, UNCERTAINTIES))
        raise ValueError(f"uncertainty must be {known}, got {name!r}")
    return UNCERTAINTIES[name]
