"""Metrics of class probabilities: calibration, and whether a classifier knows when it is wrong.

They take what `predict_proba_one` returns. The prediction is its most probable class, the first of
several. Like River's evaluators, they skip `{}`, which predicts nothing.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from river import base

from streamgp.base import Label
from streamgp.common.calibration import (
    Bin,
    Bins,
    Confidences,
    area_under_curve,
    expected_error,
    is_right,
    squared_distance,
)
from streamgp.common.uncertainty import uncertainty as uncertainty_named
from streamgp.metrics.metric import WeightedMetric

_CELLS_PER_OCTAVE = 1024


class ProbabilityMetric(WeightedMetric):
    """Base class of metrics of class probabilities."""

    @property
    def requires_labels(self) -> bool:
        """Return False: River's evaluators pass on the probabilities."""
        return False

    def works_with(self, model: base.Estimator) -> bool:
        """Whether the model predicts classes."""
        return isinstance(model, base.Classifier)

    def update(self, y_true: Label, y_pred: Mapping[Label, float], w: float = 1) -> None:
        """Count one prediction.

        Parameters
        ----------
        y_true
            The label.
        y_pred
            The probability of each known class.
        w
            Weight of the prediction; it is ignored if that is 0.

        """
        if y_pred:
            super().update(y_true, y_pred, w)

    def revert(self, y_true: Label, y_pred: Mapping[Label, float], w: float = 1) -> None:
        """Uncount one prediction, with the weight with which it was counted."""
        if y_pred:
            super().revert(y_true, y_pred, w)


class _ByUncertainty(ProbabilityMetric):
    """A metric of how confident right and wrong predictions are."""

    def __init__(self, uncertainty: str = "bvsb") -> None:
        self.uncertainty = uncertainty
        self._uncertainty = uncertainty_named(uncertainty)


class _Mean(_ByUncertainty):
    """A mean over the right predictions, or over the wrong ones."""

    def __init__(self, uncertainty: str = "bvsb") -> None:
        super().__init__(uncertainty)
        self._n = 0.0
        self._total = 0.0

    def get(self) -> float:
        """Return the mean; 0 before the first prediction that counts."""
        return self._total / self._n if self._n else 0.0

    def _count(self, value: float, weight: float) -> None:
        self._n += weight
        self._total += weight * value


class Overconfidence(_Mean):
    """Mean confidence of the wrong predictions: 1 if nothing shows that they are wrong.

    A classifier that shrinks all confidences also has less of it, and more underconfidence: look at
    both, or at `RightWrongAUC`.

    Parameters
    ----------
    uncertainty
        Measure of uncertainty, 1 minus the confidence: `bvsb`, the second largest probability
        divided by the largest, or `entropy`, that of the probabilities divided by the largest
        possible one.

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

    def _note(self, y_true: Label, y_pred: Mapping[Label, float], weight: float) -> None:
        if not is_right(y_pred, y_true):
            self._count(1.0 - self._uncertainty(y_pred), weight)


class Underconfidence(_Mean):
    """Mean uncertainty of the right predictions: 1 if all are as unsure as can be.

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

    def _note(self, y_true: Label, y_pred: Mapping[Label, float], weight: float) -> None:
        if is_right(y_pred, y_true):
            self._count(self._uncertainty(y_pred), weight)


class RightWrongAUC(_ByUncertainty):
    """Probability that a right prediction is more confident than a wrong one; ties count half.

    The area under the curve of the shares of right and wrong predictions that are more confident
    than a threshold. 1 if confidence separates them, 0.5 if it says nothing. Unlike over- and
    underconfidence, it depends only on the order of the confidences, not on their size.

    Memory is bounded: counts are kept, not confidences, and uncertainties that differ by less than
    a thousandth of themselves, or are below 1e-19, may count as tied. That moves the area by at
    most half the share of such pairs of a right and a wrong prediction.

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
        """Return the area; 0 while no prediction was right, or none was wrong."""
        return area_under_curve(self._seen.cells()) or 0.0

    def _note(self, y_true: Label, y_pred: Mapping[Label, float], weight: float) -> None:
        self._seen.add(self._uncertainty(y_pred), is_right(y_pred, y_true), weight)


class CalibrationError(ProbabilityMetric):
    """Expected calibration error: distance of the predicted class's probability from its accuracy.

    `Σ n_b / n · |share right - mean probability|` over intervals of the largest probability. A
    classifier is calibrated if 80 % of what it predicts with probability 80 % is right. It need not
    be a good one for that.

    Parameters
    ----------
    n_bins
        Number of intervals of equal width between 0 and 1.

    Attributes
    ----------
    bins
        The intervals that hold predictions, for a reliability diagram: `n`, `mean` and `share`.

    Examples
    --------
    >>> from streamgp.metrics import CalibrationError
    >>> metric = CalibrationError(n_bins=10)
    >>> for y in ("hall", "hall", "den", "den"):
    ...     metric.update(y, {"hall": 0.85, "den": 0.15})
    >>> metric
    CalibrationError: 35.00%
    >>> metric.bins
    [Bin(n=4, mean=0.85, share=0.5)]

    References
    ----------
    [^1]: Guo, C., Pleiss, G., Sun, Y. and Weinberger, K.Q., 2017. On calibration of modern neural
        networks. ICML, Eq. 3.

    """

    _format = ".2%"

    def __init__(self, n_bins: int = 15) -> None:
        self.n_bins = n_bins
        self._bins = Bins(n_bins)

    @property
    def bins(self) -> list[Bin]:
        """The intervals that hold predictions, by ascending probability."""
        return self._bins.filled()

    def get(self) -> float:
        """Return the error; 0 before the first prediction."""
        return expected_error(self.bins)

    def _note(self, y_true: Label, y_pred: Mapping[Label, float], weight: float) -> None:
        self._bins.add(max(y_pred.values()), is_right(y_pred, y_true), weight)


class Brier(ProbabilityMetric):
    """Mean squared distance of the probabilities from the truth, `Σ_k (p_k - [y = k])²`.

    0 at best, 2 at worst. For two classes it is twice the Brier score defined by the probability of
    one of them alone.

    It is `reliability - resolution + uncertainty`, up to rounding. Forecasts are grouped for each
    class by their probability, and their variation within a group counts as resolution, so that the
    sum is exact (the generalised resolution [^2]). A class not known yet counts as forecast with
    probability 0.

    Parameters
    ----------
    n_bins
        Number of groups of equal width between 0 and 1, for each class.

    Attributes
    ----------
    reliability
        How far forecasts are from observed frequencies; 0 if calibrated. Smaller is better.
    resolution
        How much observed frequencies differ between forecasts. Larger is better.
    uncertainty
        Uncertainty of the labels themselves: the score of a forecast of their frequencies.

    Examples
    --------
    >>> from streamgp.metrics import Brier
    >>> metric = Brier()
    >>> for y, p in [("hall", 0.9), ("hall", 0.9), ("den", 0.9), ("den", 0.2)]:
    ...     metric.update(y, {"hall": p, "den": 1.0 - p})
    >>> metric
    Brier: 0.435
    >>> metric.reliability, metric.resolution, metric.uncertainty
    (0.101666..., 0.166666..., 0.5)

    References
    ----------
    [^1]: Murphy, A.H., 1973. A new vector partition of the probability score. Journal of Applied
        Meteorology 12.
    [^2]: Stephenson, D.B., Coelho, C.A.S. and Jolliffe, I.T., 2008. Two extra components in the
        Brier score decomposition. Weather and Forecasting 23, Eq. 8.

    """

    # _n        number of predictions
    # _squares  sum of their squared distances
    # _classes  forecasts of each class that was ever forecast or true

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins
        Bins(n_bins)  # refuses an invalid number
        self._n: float = 0
        self._squares = 0.0
        self._classes: dict[Label, Bins] = {}

    def get(self) -> float:
        """Return the mean; 0 before the first prediction."""
        return self._squares / self._n if self._n else 0.0

    @property
    def reliability(self) -> float:
        """Distance of forecasts from observed frequencies; 0 if calibrated."""
        return self._mean(b.n * (b.share - b.mean) ** 2 for bins in self._filled() for b in bins)

    @property
    def resolution(self) -> float:
        """Spread of the observed frequencies between forecasts."""
        return self.reliability + self.uncertainty - self.get()

    @property
    def uncertainty(self) -> float:
        """The score of a forecast of the labels' frequencies."""
        shares = [sum(b.n * b.share for b in bins) / self._n for bins in self._filled()]
        return sum(share * (1.0 - share) for share in shares)

    def _note(self, y_true: Label, y_pred: Mapping[Label, float], weight: float) -> None:
        for label in (*y_pred, y_true):
            if label not in self._classes:
                self._classes[label] = Bins(self.n_bins)
                self._classes[label].add_zeros(self._n)
        self._n += weight
        for label, bins in self._classes.items():
            bins.add(y_pred.get(label, 0.0), label == y_true, weight)
        self._squares += weight * squared_distance(y_pred, y_true)

    def _filled(self) -> list[list[Bin]]:
        return [bins.filled() for bins in self._classes.values()] if self._n else []

    def _mean(self, values: Iterable[float]) -> float:
        return sum(values) / self._n if self._n else 0.0
