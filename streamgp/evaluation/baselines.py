"""Baselines: predictions without features, which any learner should beat."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from streamgp.common.feature_values import is_number
from streamgp.common.running_stats import Moments
from streamgp.evaluation.counts import Confusion, NumberErrors

if TYPE_CHECKING:
    from streamgp.base import Label

NO_CHANGE, MAJORITY, MEAN = "no change", "majority class", "mean so far"


class ClassBaselines:
    """Scores of the last label of a key, and of its most frequent one, as predictions of the next.

    Both know the true label of every event from the next event of the key on, which is more than a
    learner that has to ask knows. Neither predicts the first event of a key.

    Attributes
    ----------
    found
        Predictions by true and predicted label, by name of the baseline.

    Examples
    --------
    >>> baselines = ClassBaselines()
    >>> for room in ["hall", "hall", "hall", "den", "den"]:
    ...     baselines.count(None, room)
    >>> {name: confusion.accuracy for name, confusion in baselines.found.items()}
    {'no change': 0.75, 'majority class': 0.5}

    """

    # _last, _frequent, _counts  by key: its last label, its most frequent one, and its labels
    def __init__(self) -> None:
        self.found = {NO_CHANGE: Confusion(), MAJORITY: Confusion()}
        self._last: dict[str | None, Label] = {}
        self._frequent: dict[str | None, Label] = {}
        self._counts: defaultdict[str | None, Counter[Label]] = defaultdict(Counter)

    def count(self, key: str | None, y: Label) -> None:
        """Count the next event of a key, by its true label."""
        if key in self._last:
            self.found[NO_CHANGE].count(y, self._last[key])
            self.found[MAJORITY].count(y, self._frequent[key])
        self._last[key] = y
        counts = self._counts[key]
        counts[y] += 1
        # Among equally frequent classes, the one that got there first.
        if counts[y] > counts[self._frequent.setdefault(key, y)]:
            self._frequent[key] = y

    def remove(self, part: ClassBaselines) -> None:
        """Uncount the keys of another object, whose events were counted here, too."""
        for name, kept in self.found.items():
            kept.remove(part.found[name])
        for key in part._last:
            del self._last[key], self._frequent[key], self._counts[key]


class NumberBaselines:
    """Scores of the last number of a key, and of the mean of all so far, as those of classes.

    Examples
    --------
    >>> baselines = NumberBaselines()
    >>> for y in [1.0, 2.0, 3.0]:
    ...     baselines.count(None, y)
    >>> {name: errors.mae for name, errors in baselines.found.items()}
    {'no change': 1.0, 'mean so far': 1.25}

    """

    # _last, _moments  by key: its last number, and the mean of its numbers
    def __init__(self) -> None:
        self.found = {NO_CHANGE: NumberErrors(), MEAN: NumberErrors()}
        self._last: dict[str | None, float] = {}
        self._moments: defaultdict[str | None, Moments] = defaultdict(Moments)

    def count(self, key: str | None, y: Any) -> None:
        """Count the next event of a key, by its true number; what is no number is ignored."""
        if not is_number(y):
            return
        if key in self._last:
            self.found[NO_CHANGE].count(y, self._last[key])
            self.found[MEAN].count(y, self._moments[key].mean)
        self._last[key] = float(y)
        self._moments[key].add(float(y))

    def remove(self, part: NumberBaselines) -> None:
        """Uncount the keys of another object, whose events were counted here, too."""
        for name, kept in self.found.items():
            kept.remove(part.found[name])
        for key in part._last:
            del self._last[key], self._moments[key]
