"""Baselines: predictions without features, which any learner should beat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from streamgp.common.feature_values import is_number
from streamgp.common.running_stats import Moments
from streamgp.evaluation.counts import Confusion, NumberErrors

if TYPE_CHECKING:
    from streamgp.base import Label

NO_CHANGE, MAJORITY, MEAN = "no change", "majority class", "mean so far"


def class_baselines(labels: Iterable[tuple[str | None, Label]]) -> dict[str, Confusion]:
    """Score the last label of a key, and its most frequent one so far, as predictions of the next.

    Both know the true label of every event from the next event of the key on, which is more than a
    learner that has to ask knows. Neither predicts the first event of a key.

    Parameters
    ----------
    labels
        Key and true label of each event, in order.

    Examples
    --------
    >>> rooms = ["hall", "hall", "hall", "den", "den"]
    >>> found = class_baselines((None, room) for room in rooms)
    >>> {name: confusion.accuracy for name, confusion in found.items()}
    {'no change': 0.75, 'majority class': 0.5}

    """
    found = {NO_CHANGE: Confusion(), MAJORITY: Confusion()}
    last: dict[str | None, Label] = {}
    frequent: dict[str | None, Label] = {}
    counts: defaultdict[tuple[str | None, Label], int] = defaultdict(int)
    for key, y in labels:
        if key in last:
            found[NO_CHANGE].count(y, last[key])
            found[MAJORITY].count(y, frequent[key])
        last[key] = y
        counts[key, y] += 1
        # Among equally frequent classes, the one that got there first.
        if counts[key, y] > counts[key, frequent.setdefault(key, y)]:
            frequent[key] = y
    return found


def number_baselines(numbers: Iterable[tuple[str | None, Any]]) -> dict[str, NumberErrors]:
    """Score the last number of a key, and the mean of all so far, as predictions of the next.

    Parameters
    ----------
    numbers
        Key and true number of each event, in order.

    Examples
    --------
    >>> found = number_baselines((None, y) for y in [1.0, 2.0, 3.0])
    >>> {name: errors.mae for name, errors in found.items()}
    {'no change': 1.0, 'mean so far': 1.25}

    """
    found = {NO_CHANGE: NumberErrors(), MEAN: NumberErrors()}
    last: dict[str | None, float] = {}
    moments: defaultdict[str | None, Moments] = defaultdict(Moments)
    for key, y in numbers:
        if not is_number(y):
            continue
        if key in last:
            found[NO_CHANGE].count(y, last[key])
            found[MEAN].count(y, moments[key].mean)
        last[key] = float(y)
        moments[key].add(float(y))
    return found
