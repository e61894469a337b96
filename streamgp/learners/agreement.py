"""How far a prediction agrees with a label: what boosting weighs examples by.

Agreement is positive where the label is predicted and negative where it is not. Probabilities are
of all known classes, the label among them.

"""

from __future__ import annotations

from collections.abc import Mapping

from streamgp.base import Label
from streamgp.uncertainty import Uncertainty


def gradient_agreement(p: Mapping[Label, float], y: Label) -> float:
    """Probability of the label, above that of a guess (Eq. 5).

    Examples
    --------
    >>> gradient_agreement({"home": 0.75, "work": 0.25}, "home")
    0.25

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA.

    """
    return p[y] - 1.0 / len(p)  # Eq. 5


def confidence_agreement(p: Mapping[Label, float], y: Label, uncertainty: Uncertainty) -> float:
    """Confidence of the prediction, negative if it is not the label (Eqs. 6-7).

    Of a wrong prediction the uncertainty counts for less the more classes there are, so that it
    is a disagreement even if it was unsure. Of equally probable classes the first is predicted.

    Parameters
    ----------
    p
        Probability of each class.
    y
        The label.
    uncertainty
        Measure of the probabilities, between 0 and 1.

    Examples
    --------
    >>> from streamgp.uncertainty import best_versus_second
    >>> p = {"home": 0.8, "work": 0.2, "gym": 0.0}
    >>> [confidence_agreement(p, y, best_versus_second) for y in ("home", "work")]
    [0.75, -0.875]

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA.

    """
    h = uncertainty(p)
    if max(p, key=p.__getitem__) == y:  # Eq. 7
        return 1.0 - h  # Eq. 6, xi = 0
    return h / (len(p) - 1) - 1.0  # Eq. 6, xi = 1
