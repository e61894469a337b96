"""What the class probabilities of a run were worth: how sure it was, and how often right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamgp.confidences import Confidences, area_under_curve, is_right
from streamgp.reliability import Bins, expected_error, squared_distance
from streamgp.uncertainty import best_versus_second

if TYPE_CHECKING:
    from streamgp.base import Label, State

N_BINS = 15
N_STEPS = 20
_CELLS_PER_OCTAVE = 32


class Calibration:
    """Counts over predictions with class probabilities, of events whose truth is known.

    The numbers are those of `streamgp.metrics`; confidence is one minus the second largest
    probability divided by the largest.

    Attributes
    ----------
    n
        Predictions counted.

    Examples
    --------
    >>> calibration = Calibration()
    >>> for truth, p in [("hall", 0.9), ("hall", 0.8), ("den", 0.6)]:
    ...     calibration.count(truth, {"hall": p, "den": 1.0 - p})
    >>> calibration.overconfidence, calibration.underconfidence, calibration.auc
    (0.333..., 0.180..., 1.0)
    >>> calibration.calibration_error, calibration.brier
    (0.3, 0.273...)

    """

    # _by_probability  of the predicted class
    # _by_confidence, _fine  the same predictions by confidence, in equal steps and by octaves
    # _doubt, _trust   sums of the uncertainties of right and the confidences of wrong predictions
    # _squares         sum of the squared distances of the probabilities from the truth

    def __init__(self) -> None:
        self._by_probability = Bins(N_BINS)
        self._by_confidence = Bins(N_STEPS)
        self._fine = Confidences(_CELLS_PER_OCTAVE)
        self._doubt = self._trust = self._squares = 0.0

    def count(self, truth: Label, p: Mapping[Label, float]) -> None:
        """Count a prediction; one of no class is passed over."""
        if not p:
            return
        uncertainty, right = best_versus_second(p), is_right(p, truth)
        self._by_probability.add(max(p.values()), right)
        self._by_confidence.add(1.0 - uncertainty, right)
        self._fine.add(uncertainty, right)
        if right:
            self._doubt += uncertainty
        else:
            self._trust += 1.0 - uncertainty
        self._squares += squared_distance(p, truth)

    def remove(self, part: Calibration) -> None:
        """Take out what was counted here and in `part`; means are exact up to rounding."""
        self._by_probability.remove(part._by_probability)
        self._by_confidence.remove(part._by_confidence)
        self._fine.remove(part._fine)
        self._doubt -= part._doubt
        self._trust -= part._trust
        self._squares -= part._squares

    @property
    def n(self) -> int:
        return sum(self._sides)

    @property
    def overconfidence(self) -> float | None:
        """Mean confidence of the wrong predictions; None without any."""
        n_wrong = self._sides[1]
        return self._trust / n_wrong if n_wrong else None

    @property
    def underconfidence(self) -> float | None:
        """Mean uncertainty of the right predictions; None without any."""
        n_right = self._sides[0]
        return self._doubt / n_right if n_right else None

    @property
    def auc(self) -> float | None:
        """Probability that a right prediction is more confident than a wrong one.

        Uncertainties that differ by less than 3 % count as tied.
        """
        return area_under_curve(self._fine.cells())

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error of the predicted class; None before the first prediction."""
        return expected_error(self._by_probability.filled()) if self.n else None

    @property
    def brier(self) -> float | None:
        """Mean squared distance of the probabilities from the truth, between 0 and 2."""
        return self._squares / self.n if self.n else None

    def summary(self) -> dict[str, Any]:
        """Return the numbers and what diagrams are drawn of, as plain JSON values."""
        bins = self._by_probability.filled()
        right, wrong = zip(*self._by_confidence.counts(), strict=True)
        names = ("overconfidence", "underconfidence", "auc", "calibration_error", "brier")
        return {
            "n": self.n,
            **{name: getattr(self, name) for name in names},
            "reliability": {
                "n": [b.n for b in bins],
                "mean": [b.mean for b in bins],
                "share": [b.share for b in bins],
            },
            "confidence": {"right": list(right), "wrong": list(wrong)},
        }

    def state(self) -> State:
        """Return all counts."""
        return {
            "by_probability": self._by_probability.state(),
            "by_confidence": self._by_confidence.state(),
            "fine": self._fine.state(),
            "sums": [self._doubt, self._trust, self._squares],
        }

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._by_probability.load_state(state["by_probability"])
        self._by_confidence.load_state(state["by_confidence"])
        self._fine.load_state(state["fine"])
        self._doubt, self._trust, self._squares = map(float, state["sums"])

    @property
    def _sides(self) -> tuple[int, int]:
        """How many predictions were right, and how many wrong."""
        counts = self._by_confidence.counts()
        return sum(right for right, _ in counts), sum(wrong for _, wrong in counts)
