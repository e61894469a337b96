"""Uncertainty of class probabilities: functions with values between 0 and 1.

0 is sure, 1 knows nothing; the confidence of a prediction is `1 - uncertainty`. Learners weigh
examples by it, rules ask by it, and metrics judge it.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from streamgp.base import Array, Label

Uncertainty: TypeAlias = Callable[[Mapping[Label, float]], float]


def entropy(p: Mapping[Label, float]) -> float:
    """Entropy of class probabilities, in nats.

    Examples
    --------
    >>> entropy({"home": 0.5, "work": 0.5})
    0.693147...

    """
    return sum((-q * math.log(q) for q in p.values() if q > 0.0), 0.0)


def best_versus_second(p: Mapping[Label, float]) -> float:
    """Second largest probability divided by the largest: 0 sure, 1 a tie, even of zeros.

    A single class is sure, no class at all is not. What rounding makes of probabilities does not
    lead out of [0, 1].

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
    """Entropy of class probabilities, divided by that of the same classes at random.

    A single class is sure, no class at all is not. What rounding makes of probabilities does not
    lead out of [0, 1].

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
    """Return the function of a name.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> uncertainty("bvsb")({"home": 0.75, "work": 0.25})
    0.333333...

    """
    if name not in UNCERTAINTIES:
        known = " or ".join(map(repr, UNCERTAINTIES))
        raise ValueError(f"uncertainty must be {known}, got {name!r}")
    return UNCERTAINTIES[name]


def uncertainties(P: Array, name: str) -> Array:
    """Return the uncertainty of each of many predictions.

    Parameters
    ----------
    P
        Class probabilities, shape (n, C); each row as if its columns were all classes there are.
    name
        Name of the function.

    Returns
    -------
    Uncertainties, shape (n,).

    Raises
    ------
    ValueError
        If there is no function of that name.

    Examples
    --------
    >>> import numpy as np
    >>> uncertainties(np.array([[0.6, 0.3, 0.1], [0.5, 0.5, 0.0]]), "bvsb")
    array([0.5, 1. ])

    """
    import numpy as np  # late: rules and metrics do without

    uncertainty(name)
    n, n_classes = P.shape
    if n_classes < 2:
        return np.full(n, 1.0 - n_classes)
    if name == "bvsb":
        ranked = np.partition(P, -2, axis=1)
        second, best = np.maximum(ranked[:, -2], 0.0), ranked[:, -1]
        return np.divide(second, best, out=np.ones(n), where=best > 0.0)
    positive = np.where(P > 0.0, P, 1.0)
    nats = -np.sum(positive * np.log(positive), axis=1)
    bounded: Array = np.clip(nats / math.log(n_classes), 0.0, 1.0)
    return bounded
