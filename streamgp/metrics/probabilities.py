"""Metrics of class probabilities: whether a classifier knows when it is wrong.

They take what `predict_proba_one` returns. The prediction is its most probable class, the first of
several. Like River's evaluators they pass over `{}`, which predicts nothing.

"""

from __future__ import annotations

from collections.abc import Mapping

from river import base

from streamgp.base import Label
from streamgp.common.calibration import Confidences, area_under_curve, is_right
from streamgp.common.uncertainty import uncertainty as uncertainty_named
from streamgp.metrics.metric import Metric

_CELLS_PER_OCTAVE = 1024


class ProbabilityMetric(Metric):
    """Base class of metrics of class probabilities."""

    @property
    def requires_labels(self) -> bool:
        """Return False: River's evaluators hand over the probabilities."""
        return False

    def works_with(self, model: base.Estimator) -> bool:
        """Whether the model predicts classes."""
        return isinstance(model, base.Classifier)

    def update(self, y_true: Label, y_pred: Mapping[Label, float]) -> None:
        """Count one prediction.

        Parameters
        ----------
        y_true
            The label.
        y_pred
            The probability of each known class.

        """
        if y_pred:
            self._note(y_true, y_pred, 1)

    def revert(self, y_true: Label, y_pred: Mapping[Label, float]) -> None:
        """Take one prediction back."""
        if y_pred:
            self._note(y_true, y_pred, -1)

    def _note(self, y_true: Label, p: Mapping[Label, float], step: int) -> None:
        raise NotImplementedError


class _ByUncertainty(ProbabilityMetric):
    """A metric of how sure right and wrong predictions are."""

    def __init__(self, uncertainty: str = "bvsb") -> None:
        self.uncertainty = uncertainty
        self._uncertainty = uncertainty_named(uncertainty)


class _Mean(_ByUncertainty):
    """A mean over the right predictions, or over the wrong ones."""

    def __init__(self, uncertainty: str = "bvsb") -> None:
        super().__init__(uncertainty)
        self._n = 0
        self._total = 0.0

    def get(self) -> float:
        """Return the mean; 0 before the first prediction that counts."""
        return self._total / self._n if self._n else 0.0

    def _count(self, value: float, step: int) -> None:
        self._n += step
        self._total += step * value


class Overconfidence(_Mean):
    """Mean confidence of the wrong predictions: 1 if nothing tells that they are wrong.

    Who squashes all confidences has less of it, too, and more underconfidence: look at both, or at
    `RightWrongAUC`.

    Parameters
    ----------
    uncertainty
        What the confidence leaves to 1: `bvsb`, the second largest probability divided by the
        largest, or `entropy`, that of the probabilities divided by the largest possible one.

    Examples
    --------
    >>> from streamgp.metrics import Overconfidence
    >>> metric = Overconfidence()
    >>> metric.update("hall", {"hall": 0.8, "den": 0.2})
    >>> metric.update("hall", {"hall": 0.2, "den": 0.8})
    >>> metric
    Overconfidence: 0.75

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Eq. 4.

    """

    def _note(self, y_true: Label, p: Mapping[Label, float], step: int) -> None:
        if not is_right(p, y_true):
            self._count(1.0 - self._uncertainty(p), step)


class Underconfidence(_Mean):
    """Mean uncertainty of the right predictions: 1 if none of them is trusted.

    Parameters
    ----------
    uncertainty
        As for `Overconfidence`.

    Examples
    --------
    >>> from streamgp.metrics import Underconfidence
    >>> metric = Underconfidence()
    >>> metric.update("hall", {"hall": 0.8, "den": 0.2})
    >>> metric.update("hall", {"hall": 0.2, "den": 0.8})
    >>> metric
    Underconfidence: 0.25

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Eq. 3.

    """

    def _note(self, y_true: Label, p: Mapping[Label, float], step: int) -> None:
        if is_right(p, y_true):
            self._count(self._uncertainty(p), step)


class RightWrongAUC(_ByUncertainty):
    """Probability that a right prediction is more confident than a wrong one; ties count half.

    The area under the curve of the shares of right and of wrong predictions that are more confident
    than a threshold. 1 if confidence tells them apart, 0.5 if it says nothing. Unlike over- and
    underconfidence it depends on the order of the confidences only, not on how large they are.

    Memory is bounded: counts are kept, not confidences, and uncertainties that differ by less than
    a thousandth of themselves, or are below 1e-19, may count as tied. That moves the area by half
    the share of such pairs of a right and a wrong prediction, at most.

    Parameters
    ----------
    uncertainty
        As for `Overconfidence`.

    Examples
    --------
    >>> from streamgp.metrics import RightWrongAUC
    >>> metric = RightWrongAUC()
    >>> for y, p in [("hall", 0.9), ("hall", 0.7), ("den", 0.8), ("den", 0.6)]:
    ...     metric.update(y, {"hall": p, "den": 1.0 - p})
    >>> metric
    RightWrongAUC: 0.75

    """

    def __init__(self, uncertainty: str = "bvsb") -> None:
        super().__init__(uncertainty)
        self._seen = Confidences(_CELLS_PER_OCTAVE)

    @property
    def bigger_is_better(self) -> bool:
        return True

    def get(self) -> float:
        """Return the area; 0 as long as no prediction was right, or none was wrong."""
        return area_under_curve(self._seen.cells()) or 0.0

    def _note(self, y_true: Label, p: Mapping[Label, float], step: int) -> None:
        self._seen.add(self._uncertainty(p), is_right(p, y_true), step)
