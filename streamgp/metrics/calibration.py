"""Metrics of class probabilities: whether what is predicted with 80 % is right in 80 %."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamgp.base import Label
from streamgp.common.calibration import Bin, Bins, expected_error, is_right, squared_distance
from streamgp.metrics.probabilities import ProbabilityMetric


class CalibrationError(ProbabilityMetric):
    """Expected calibration error: how far the probability of the predicted class is from its truth.

    `Σ n_b / n · |share right - mean probability|` over intervals of the largest probability. A
    classifier is calibrated if of what it predicts with 80 %, 80 % is right. It need not be a good
    one for that.

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.get():.2%}"

    def _note(self, y_true: Label, p: Mapping[Label, float], step: int) -> None:
        self._bins.add(max(p.values()), is_right(p, y_true), step)


class Brier(ProbabilityMetric):
    """Mean squared distance of the probabilities from the truth, `Σ_k (p_k - [y = k])²`.

    0 at best, 2 at worst. For two classes it is twice what is called Brier score where only the
    probability of one of them counts.

    It is `reliability - resolution + uncertainty`, up to rounding. Forecasts are grouped for each
    class by their probability, and what they vary within a group counts as resolution, so that the
    sum is exact (the generalised resolution [^2]). A class that was not known yet was forecast with
    probability 0.

    Parameters
    ----------
    n_bins
        Number of groups of equal width between 0 and 1, for each class.

    Attributes
    ----------
    reliability
        How far forecasts are from what came true; 0 if calibrated. Less is better.
    resolution
        How far what comes true differs between forecasts. More is better.
    uncertainty
        Of the labels themselves: the score of who knows only how frequent they are.

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

    # _n        predictions
    # _squares  sum of their squared distances
    # _classes  forecasts of each class that was ever forecast or true

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins
        Bins(n_bins)  # refuses what is no number of them
        self._n = 0
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
        """The score of who knows only how frequent the labels are."""
        shares = [sum(b.n * b.share for b in bins) / self._n for bins in self._filled()]
        return sum(share * (1.0 - share) for share in shares)

    def _note(self, y_true: Label, p: Mapping[Label, float], step: int) -> None:
        for label in (*p, y_true):
            if label not in self._classes:
                self._classes[label] = Bins(self.n_bins)
                self._classes[label].add_zeros(self._n)
        self._n += step
        for label, bins in self._classes.items():
            bins.add(p.get(label, 0.0), label == y_true, step)
        self._squares += step * squared_distance(p, y_true)

    def _filled(self) -> list[list[Bin]]:
        return [bins.filled() for bins in self._classes.values()] if self._n else []

    def _mean(self, values: Iterable[float]) -> float:
        return sum(values) / self._n if self._n else 0.0
