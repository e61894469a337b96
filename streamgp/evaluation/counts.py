"""Counts of a run: predictions, answers and labels judged by the truth, and concept drifts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from streamgp.common import normal
from streamgp.common.annotator_error import ErrorRate
from streamgp.common.calibration import (
    Bins,
    Confidences,
    area_under_curve,
    expected_error,
    is_right,
    squared_distance,
)
from streamgp.common.feature_values import is_number
from streamgp.common.running_stats import Moments
from streamgp.common.uncertainty import best_versus_second

if TYPE_CHECKING:
    from streamgp.base import Label, State


class Confusion:
    """Counts of events by true and predicted label.

    Examples
    --------
    >>> confusion = Confusion()
    >>> for truth, predicted in [("a", "a"), ("b", "a"), ("b", "b")]:
    ...     confusion.count(truth, predicted)
    >>> confusion.summary()
    {'labels': ['a', 'b'], 'counts': [[1, 0], [1, 1]]}
    >>> round(confusion.accuracy, 3), round(confusion.macro_f1, 3)
    (0.667, 0.667)

    """

    # _labels  every label that occurred or was predicted, in order of appearance
    # _cells   number of events by (true, predicted) label, where it is not 0

    def __init__(self) -> None:
        self.n = 0
        self.n_hits = 0
        self._labels: dict[Label, None] = {}
        self._cells: defaultdict[tuple[Label, Label], int] = defaultdict(int)

    def count(self, truth: Label, predicted: Label) -> None:
        """Count an event."""
        self._labels[truth] = self._labels[predicted] = None
        self._cells[truth, predicted] += 1
        self.n += 1
        self.n_hits += predicted == truth

    def remove(self, part: Confusion) -> None:
        """Uncount events that were counted here and in `part`; drop labels without events."""
        for cell, n in part._cells.items():
            self._cells[cell] -= n
            if not self._cells[cell]:
                del self._cells[cell]
        left = {label for cell in self._cells for label in cell}
        self._labels = {label: None for label in self._labels if label in left}
        self.n -= part.n
        self.n_hits -= part.n_hits

    @property
    def accuracy(self) -> float | None:
        """Share of events predicted correctly; None before the first."""
        return self.n_hits / self.n if self.n else None

    @property
    def macro_f1(self) -> float | None:
        """Mean F1 of the labels that occurred or were predicted; None before the first."""
        if not self.n:
            return None
        margins = dict.fromkeys(self._labels, 0)
        for (truth, predicted), n in self._cells.items():
            margins[truth] += n
            margins[predicted] += n
        # 2 hits / (true + predicted) is the harmonic mean of precision and recall.
        scores = (2 * self._cells.get((c, c), 0) / margins[c] for c in self._labels)
        return sum(scores) / len(self._labels)

    def never_predicted(self) -> dict[Label, int]:
        """Return the number of events of each class that was never predicted, in their order."""
        predicted = {label for _, label in self._cells}
        missed = dict.fromkeys((y for y in self._labels if y not in predicted), 0)
        for (truth, _), n in self._cells.items():
            if truth in missed:
                missed[truth] += n
        return missed

    def summary(self) -> dict[str, Any]:
        """Return the matrix as plain JSON values: rows are true labels, columns predicted ones."""
        labels = list(self._labels)
        counts = [
            [self._cells.get((truth, predicted), 0) for predicted in labels] for truth in labels
        ]
        return {"labels": labels, "counts": counts}

    def state(self) -> State:
        """Return the cells that are not 0."""
        at = {label: i for i, label in enumerate(self._labels)}
        cells = [[at[truth], at[predicted], n] for (truth, predicted), n in self._cells.items()]
        return {"labels": list(self._labels), "cells": cells}

    def load_state(self, state: State) -> None:
        """Restore a state."""
        labels = state["labels"]
        self._labels = dict.fromkeys(labels)
        for truth, predicted, n in state["cells"]:
            self._cells[labels[truth], labels[predicted]] = n
            self.n += n
            self.n_hits += n if truth == predicted else 0


# --- Quality of the class probabilities of a run: confidence and accuracy.


N_BINS = 15
N_STEPS = 20
_CELLS_PER_OCTAVE = 32


class Calibration:
    """Counts over predictions with class probabilities, of events whose truth is known.

    The values are those of `streamgp.metrics`; confidence is one minus the ratio of the second
    largest probability to the largest.

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

    # _by_probability  predictions by the probability of the predicted class
    # _by_confidence, _fine  predictions by confidence, in equal steps and by octaves
    # _doubt, _confidence  sums of the uncertainties of right predictions, and of the confidences
    #                      of wrong ones
    # _squares         sum of the squared distances of the probabilities from the truth

    def __init__(self) -> None:
        self._by_probability = Bins(N_BINS)
        self._by_confidence = Bins(N_STEPS)
        self._fine = Confidences(_CELLS_PER_OCTAVE)
        self._doubt = self._confidence = self._squares = 0.0

    def count(self, truth: Label, p: Mapping[Label, float]) -> None:
        """Count a prediction; one without classes is ignored."""
        if not p:
            return
        uncertainty, right = best_versus_second(p), is_right(p, truth)
        self._by_probability.add(max(p.values()), right)
        self._by_confidence.add(1.0 - uncertainty, right)
        self._fine.add(uncertainty, right)
        if right:
            self._doubt += uncertainty
        else:
            self._confidence += 1.0 - uncertainty
        self._squares += squared_distance(p, truth)

    def remove(self, part: Calibration) -> None:
        """Uncount what was counted here and in `part`; means are exact up to rounding."""
        self._by_probability.remove(part._by_probability)
        self._by_confidence.remove(part._by_confidence)
        self._fine.remove(part._fine)
        self._doubt -= part._doubt
        self._confidence -= part._confidence
        self._squares -= part._squares

    @property
    def n(self) -> int:
        return sum(self._sides)

    @property
    def overconfidence(self) -> float | None:
        """Mean confidence of the wrong predictions; None without any."""
        n_wrong = self._sides[1]
        return self._confidence / n_wrong if n_wrong else None

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
        """Return the scores and the data for diagrams, as plain JSON values."""
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
            "sums": [self._doubt, self._confidence, self._squares],
        }

    def load_state(self, state: State) -> None:
        """Restore a state."""
        self._by_probability.load_state(state["by_probability"])
        self._by_confidence.load_state(state["by_confidence"])
        self._fine.load_state(state["fine"])
        self._doubt, self._confidence, self._squares = map(float, state["sums"])

    @property
    def _sides(self) -> tuple[int, int]:
        """Return the numbers of right and of wrong predictions."""
        counts = self._by_confidence.counts()
        return int(sum(right for right, _ in counts)), int(sum(wrong for _, wrong in counts))


# --- Errors of numeric predictions, quality of their distributions, and which numbers count as
# wrong.


LEVEL = 0.9
"""Probability of the interval whose coverage is counted."""


class NumberErrors:
    """Errors of the predictions of a run, and scores of their distributions, assumed normal.

    Attributes
    ----------
    n_with_std
        Number of them whose prediction had a standard deviation above 0.

    Examples
    --------
    >>> errors = NumberErrors()
    >>> for truth, predicted in [(10.0, 11.0), (20.0, 20.0), (30.0, 27.0)]:
    ...     errors.count(truth, predicted)
    >>> errors.mae, errors.nmse
    (1.333..., 0.05)

    """

    # _absolute, _squared  sums over the errors
    # _truths              mean and variance of the truths of the events counted
    # _log_densities, _crps, _n_inside  sums over events with a standard deviation
    def __init__(self) -> None:
        self.n_with_std = 0
        self._log_densities = self._crps = 0.0
        self._n_inside = 0
        self._absolute = 0.0
        self._squared = 0.0
        self._truths = Moments()

    @property
    def n(self) -> int:
        return int(self._truths.n)

    def count(self, truth: Label, predicted: Label, std: float | None = None) -> None:
        """Count an event; it is ignored if either value is not a number."""
        if not (is_number(truth) and is_number(predicted)):
            return
        y, mu = float(truth), float(predicted)
        error = abs(mu - y)
        self._absolute += error
        self._squared += error * error
        self._truths.add(y)
        if std is not None and std > 0.0:
            self.n_with_std += 1
            self._log_densities += normal.log_density(y, mu, std)
            self._crps += normal.crps(y, mu, std)
            self._n_inside += normal.is_inside(y, normal.cdf(y, mu, std), mu, LEVEL)

    def remove(self, part: NumberErrors) -> None:
        """Uncount events that were counted here and in `part`, exact up to rounding."""
        left = self._truths.without(part._truths)
        self._absolute = max(0.0, self._absolute - part._absolute) if left.n else 0.0
        self._squared = max(0.0, self._squared - part._squared) if left.n else 0.0
        self._truths = left
        self.n_with_std -= part.n_with_std
        self._n_inside -= part._n_inside
        self._log_densities = self._log_densities - part._log_densities if self.n_with_std else 0.0
        self._crps = max(0.0, self._crps - part._crps) if self.n_with_std else 0.0

    @property
    def mae(self) -> float | None:
        """Mean absolute error, in units of the target; None before the first event."""
        return self._absolute / self.n if self.n else None

    @property
    def nmse(self) -> float | None:
        """Mean squared error over the variance of the truths, 1 - R²; None while that is 0."""
        return self._squared / self._truths.m2 if self._truths.m2 > 0.0 else None

    @property
    def npll(self) -> float | None:
        """Mean negative log density, for truths in units of their standard deviation, in nats.

        None before the first standard deviation.
        """
        if not self.n_with_std:
            return None
        unit = 0.5 * math.log(self._truths.variance) if self._truths.m2 > 0.0 else 0.0
        return -self._log_densities / self.n_with_std - unit

    @property
    def crps(self) -> float | None:
        """Mean continuous ranked probability score, in units of the target."""
        return self._crps / self.n_with_std if self.n_with_std else None

    @property
    def coverage(self) -> float | None:
        """Share of the truths within the central interval of probability `LEVEL`."""
        return self._n_inside / self.n_with_std if self.n_with_std else None

    def summary(self) -> dict[str, Any]:
        """Return the scores of distributions as plain JSON values."""
        names = ("npll", "crps", "coverage")
        return {"n": self.n_with_std, **{name: getattr(self, name) for name in names}}

    def state(self) -> State:
        """Return all sums."""
        scores = [self.n_with_std, self._log_densities, self._crps, self._n_inside]
        return {
            "scores": scores,
            "absolute": self._absolute,
            "squared": self._squared,
            "truths": self._truths.plain(),
        }

    def load_state(self, state: State) -> None:
        """Restore a state."""
        self._absolute, self._squared = float(state["absolute"]), float(state["squared"])
        self._truths = Moments.of(*state["truths"])
        if "scores" in state:  # not in the state of a replay begun before there were any
            self.n_with_std, self._log_densities, self._crps, self._n_inside = state["scores"]


class Tolerances:
    """Largest distance from the truth at which a number still counts as right.

    It is the standard deviation of all truths up to and including that of the event: a number
    further off says less than the mean of the truths, which is known without asking. While all
    truths are equal, only the truth itself is right.

    Examples
    --------
    >>> tolerances = Tolerances()
    >>> [tolerances.next(truth) for truth in (1.0, 3.0)]
    [0.0, 1.0]

    """

    def __init__(self) -> None:
        self._truths = Moments()

    def next(self, truth: Label) -> float:
        """Return the tolerance for the next event; call it once for each event."""
        if not is_number(truth):
            return 0.0
        self._truths.add(float(truth))
        return self._truths.std if self._truths.m2 > 0.0 else 0.0


def is_off(y: Any, truth: Any, tolerance: float) -> bool:
    """Whether a number is further from the truth than the tolerance, or is not a number."""
    if not (is_number(y) and is_number(truth)):
        return bool(y != truth)
    return abs(float(y) - float(truth)) > tolerance


# --- Outcomes of the first answers of one annotator, judged by the truth and by the learner.


@dataclass(slots=True)
class FirstAnswers:
    """Counts over the first answers of one annotator that became examples.

    A first answer is an answer to a label request, or a volunteered label; answers to challenges
    and corrections are not. It counts once it is settled: learned as it is, or upheld, revised or
    kept after a challenge.

    Attributes
    ----------
    sum_wrong
        Sum of the learner's probabilities that they are wrong.
    n_judged
        Number of answers about events whose truth is known.
    n_wrong
        Number of judged answers that were wrong.
    n_contested
        Number of judged answers that were challenged.
    n_justified
        Number of judged answers that were wrong and challenged.
    n_quarantines
        Number of loops, one for each key, in which the annotator is in quarantine.
    n_taken_back
        Number of the annotator's labels that were taken back there.

    Examples
    --------
    >>> ann = FirstAnswers()
    >>> ann.note(0.1, is_wrong=False, contested=False)
    >>> ann.note(1.0, is_wrong=True, contested=True)
    >>> ann.error_rate, round(ann.estimate, 3)
    (0.5, 0.3)

    """

    n_answers: int = 0
    sum_wrong: float = 0.0
    n_judged: int = 0
    n_wrong: int = 0
    n_contested: int = 0
    n_justified: int = 0
    n_quarantines: int = 0
    n_taken_back: int = 0

    def note(self, probability_wrong: float, *, is_wrong: bool | None, contested: bool) -> None:
        """Count an answer.

        Parameters
        ----------
        is_wrong
            Whether it was wrong; None if unknown.

        """
        self.n_answers += 1
        self.sum_wrong += probability_wrong
        if is_wrong is not None:
            self.n_judged += 1
            self.n_wrong += is_wrong
            self.n_contested += contested
            self.n_justified += is_wrong and contested

    def note_challenge(self, *, is_wrong: bool) -> None:
        """Count a later challenge of an answer that was already counted and judged."""
        self.n_contested += 1
        self.n_justified += is_wrong

    def note_quarantine(self, n_taken_back: int) -> None:
        """Count that a loop no longer learns from the annotator, and the labels it took back."""
        self.n_quarantines += 1
        self.n_taken_back += n_taken_back

    def remove(self, part: FirstAnswers) -> None:
        """Uncount answers that were counted here and in `part`."""
        for name, n in asdict(part).items():
            setattr(self, name, getattr(self, name) - n)
        # Rounding must not leave a negative sum.
        self.sum_wrong = max(0.0, self.sum_wrong)

    @property
    def error_rate(self) -> float | None:
        """Share of wrong answers among those whose truth is known; None without any."""
        return self.n_wrong / self.n_judged if self.n_judged else None

    @property
    def estimate(self) -> float:
        """The learner's estimate of that share, without the truth."""
        return ErrorRate(self.n_answers, self.sum_wrong).estimate

    def summary(self) -> dict[str, Any]:
        """Return counts and rates as plain JSON values, in a fixed order.

        Those of quarantines are included only if there are any.
        """
        names = ["n_answers", "n_wrong", "error_rate", "estimate"]
        if self.n_quarantines:
            names += ["n_quarantines", "n_taken_back"]
        return {name: getattr(self, name) for name in names}

    def state(self) -> State:
        """Return the counts."""
        return asdict(self)


# --- Concept drifts.


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifts:
    """Concept drifts that the learners of a run have found.

    Parameters
    ----------
    n_outdated
        Number of labels that are no longer taught because of them.
    since
        Id of the first event, in the order learned, whose label still is; None with several keys.
    n_keys
        Number of keys with drifts; None without keys.

    Examples
    --------
    >>> print(Drifts(n_found=1, n_outdated=127, since="2391"))
    1 concept drift found; 127 labels, those before that of event 2391, are outdated
    >>> print(Drifts(n_found=3, n_outdated=127, n_keys=2))
    3 concept drifts found, in 2 keys; 127 labels are outdated

    """

    n_found: int
    n_outdated: int
    since: str | None = None
    n_keys: int | None = None

    def __str__(self) -> str:
        found = f"{self.n_found} concept drift{'s' * (self.n_found != 1)} found"
        if self.n_keys is not None:
            found += f", in {self.n_keys} key{'s' * (self.n_keys != 1)}"
        labels = f"{self.n_outdated} label{'s' * (self.n_outdated != 1)}"
        which = "" if self.since is None else f", those before that of event {self.since},"
        return f"{found}; {labels}{which} {'is' if self.n_outdated == 1 else 'are'} outdated"
