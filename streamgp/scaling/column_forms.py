"""Forms and weights of columns: what each counts as, and how much, found out from labels.

A column of numbers counts as these numbers, scaled and clipped, unless labels show that it tells
them apart better in another form: by its ranks, as a name, or by where it is missing. How far it
tells them apart is its correlation ratio: the share of the variance that lies between the classes.

"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamgp.base import Array, FeatureName, Features, Label, State
from streamgp.common.array_text import array_of, text_of
from streamgp.common.feature_values import as_number, is_missing, is_number, plain_name

Classes: TypeAlias = NDArray[np.intp]
"""Numbers of the classes of labels, from 0 on, shape (n,)."""

Form = Literal["name", "ranks", "missing"]
"""What a column counts as: a name, its ranks, or in addition where it is missing."""

FAR: Final = 3.0
"""Distance from the mean, in standard deviations, at which scaled values are clipped."""

# Numbers of labels, in total and of each class on average, from which on they tell enough.
_FEWEST_LABELS: Final = 20
_FEWEST_OF_CLASS: Final = 3
# What each feature gets in addition to what it tells, as part of the mean and in any case: a
# feature that tells nothing alone may tell something together with others.
_EVEN: Final = 0.3
_LEAST_TOLD: Final = 0.05
# Sum of squares, in standard deviations, up to which a feature is constant.
_LEAST_SQUARES: Final = 1e-9

# How much more another form must tell than the numbers themselves.
_BETTER: Final = 0.02
# How many of its standard deviations by chance a form must tell in addition: where a number is
# missing, and as a name. There are many columns, of which none should be taken for one by chance.
_SURE_OF_MISSING: Final = 2.0
_SURE_OF_NAME: Final = 3.0
# Events with and without a number from which on it can matter that it is missing.
_FEWEST_MISSING: Final = 3
# Share of what equal values tell up to which neighbouring values may tell it, too.
_NEIGHBOURS: Final = 0.5
# Share of all that there is to tell that a name must tell beyond its neighbours: order is lost.
_WORTH: Final = 0.3

# The tail (5 %) is this many times as far from the median as the quartiles are on average, or more:
# 2.4 times in a normal distribution, 4.2 in an exponential, 5.7 in a log-normal one. Of few numbers
# it must be more: one normal sample of 20 numbers in 50 is taken for heavy, one of 100 in 350.
_HEAVY: Final = 3.0
_FEW: Final = 3.0
# Most ranks that are kept; between them, scores are linear.
_MOST_RANKS: Final = 33


# --- What columns count as


@dataclass(frozen=True, slots=True)
class ColumnForms:
    """Columns that do not count as the numbers that they hold.

    Attributes
    ----------
    scores
        Normal scores of columns that count by their ranks.
    names
        Columns that count as names: any two values differ alike.
    missing
        What columns count as where they are missing, if that matters: `FAR` above or below the
        mean.

    """

    scores: Mapping[FeatureName, NormalScores] = field(default_factory=dict)
    names: Sequence[FeatureName] = ()
    missing: Mapping[FeatureName, float] = field(default_factory=dict)

    def replace_numbers(self, scaled: dict[FeatureName, Any], x: Features) -> None:
        """Replace scaled numbers of an event, where they count as other ones."""
        for name, scores in self.scores.items():
            value = x.get(name)
            if isinstance(value, float | int) and value == value:  # the shorter way
                scaled[name] = scores(value)
            elif is_number(value) and not is_missing(value):
                scaled[name] = scores(as_number(name, value))
        for name, value in self.missing.items():
            if is_missing(x.get(name)):
                scaled[name] = value

    def replace_names(self, scaled: dict[FeatureName, Any], x: Features) -> None:
        """Replace scaled numbers of an event by texts, where they are names."""
        for name in self.names:
            value = x.get(name)
            if is_missing(value):
                scaled.pop(name, None)
            elif is_number(value):
                scaled[name] = repr(as_number(name, value) + 0.0)  # 0.0 for -0.0

    def kinds(self) -> dict[FeatureName, list[Form]]:
        """Return what each of the columns counts as, in words."""
        found: dict[FeatureName, list[Form]] = {name: ["name"] for name in self.names}
        for name in self.scores:
            found.setdefault(name, []).append("ranks")
        for name in self.missing:
            found.setdefault(name, []).append("missing")
        return found

    def state(self) -> State:
        """Return the forms as plain JSON values."""
        return {
            "scores": [
                [plain_name(name), len(s.values), text_of(np.array([s.values, s.scores]))]
                for name, s in self.scores.items()
            ],
            "names": list(map(plain_name, self.names)),
            "missing": [[plain_name(name), value] for name, value in self.missing.items()],
        }

    @classmethod
    def of_state(cls, state: State) -> Self:
        """Return the forms that `state` returned."""
        return cls(
            scores={
                name: NormalScores(*array_of(text, 2, int(n)).tolist())
                for name, n, text in state["scores"]
            },
            names=tuple(state["names"]),
            missing=dict(state["missing"]),
        )


def forms_of(
    names: Sequence[FeatureName],
    X: Array,
    Z: Array,
    labels: Sequence[Label],
    *,
    with_names: bool,
) -> ColumnForms:
    """Return the forms in which columns tell the labels apart best.

    Parameters
    ----------
    names
        Names of the columns.
    X
        Their numbers, NaN where one is missing, infinite where there is a text, shape (n, d).
    Z
        The same scaled and clipped, and what they count as where one is missing.
    labels
        Labels of the events, in the order in which they were learned.
    with_names
        Whether columns may count as names, which not every learner takes.

    Examples
    --------
    >>> rooms, labels = np.array([1.0, 2.0, 3.0, 4.0] * 10), ["in", "out", "in", "out"] * 10
    >>> X = rooms[:, None]
    >>> forms_of(["room"], X, X - 2.5, labels, with_names=True).names
    ('room',)

    References
    ----------
    [^1]: Bartlett, M.S., 1935. Some aspects of the time-correlation problem in regard to tests of
        significance. Journal of the Royal Statistical Society 98.

    """
    scores: dict[FeatureName, NormalScores] = {}
    named: list[FeatureName] = []
    missing: dict[FeatureName, float] = {}
    if not has_enough(labels):
        return ColumnForms()
    classes, is_given = classes_of(labels), np.isfinite(X)
    told = _told(Z, classes)
    is_full = np.count_nonzero(is_given, axis=0) == len(X)
    is_heavy = np.zeros(len(names), bool)
    is_heavy[is_full] = has_heavy_tail(X[:, is_full])  # at once: one by one takes far longer
    for j, name in enumerate(names):
        x, z, best, given = X[:, j], Z[:, j], float(told[j]), is_given[:, j]
        if with_names and is_name(x[given], classes[given]):
            named.append(name)
            continue
        if not is_full[j] and np.count_nonzero(given) >= _FEWEST_LABELS:
            is_heavy[j] = has_heavy_tail(x[given])
        if is_heavy[j]:
            ranked = NormalScores.of(x[given])
            by_ranks = z.copy()
            by_ranks[given] = np.clip(list(map(ranked, x[given].tolist())), -FAR, FAR)
            if (by := _told_by(by_ranks, classes)) > best + _BETTER:
                scores[name], z, best = ranked, by_ranks, by
        is_there = ~np.isnan(x)
        if _FEWEST_MISSING <= np.count_nonzero(is_there) <= len(x) - _FEWEST_MISSING:
            more = _BETTER + _SURE_OF_MISSING * _chance_of_missing(is_there, classes)
            low, high = (_told_by(np.where(is_there, z, value), classes) for value in (-FAR, FAR))
            if max(low, high) > best + more:
                missing[name] = FAR if high > low else -FAR
    return ColumnForms(scores, tuple(named), missing)


def _chance_of_missing(given: Array, classes: Classes) -> float:
    """Return the standard deviation of the correlation ratio of where a number is missing.

    Numbers are missing for a while, and labels stay the same for a while. Of two series that both
    persist, two events say little more than one (Bartlett, 1935, for two autocorrelations).
    """
    together = max(_persistence(given), 0.0) * max(_persistence(classes), 0.0)
    n = len(given) * (1.0 - together) / (1.0 + together)
    return math.sqrt(2.0 * classes.max()) / n


def _persistence(series: Array | Classes) -> float:
    """Return how much more often two successive values are equal than any two, at most 1."""
    _, counts = np.unique(series, return_counts=True)
    anywhere = float(np.square(counts / len(series)).sum())
    return (float(np.mean(series[1:] == series[:-1])) - anywhere) / (1.0 - anywhere)


# --- Names


def is_name(numbers: Array, classes: Classes) -> bool:
    """Return whether whole numbers are mere names, such as those of rooms or states.

    That is so if two events with the same number have the same label more often than two with
    neighbouring numbers: by more than chance gives, by half of what they have it more often than
    any two events, and by .3 of what those lack to certainty. Each number that is there twice
    counts alike: where a sensor is at its end, it may be so often, and all other numbers are still
    a range.

    Parameters
    ----------
    numbers
        Numbers, shape (n,).
    classes
        Classes of their labels, shape (n,).

    Examples
    --------
    >>> classes = np.array([0, 1, 0, 0, 1, 1] * 10)
    >>> is_name(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0] * 10), classes)
    True
    >>> is_name(np.array([1.0, 4.0, 2.0, 3.0, 5.0, 6.0] * 10), classes)
    False

    """
    if not np.array_equal(numbers, np.round(numbers)):
        return False
    values, at = np.unique(numbers, return_inverse=True)
    if not 3 <= len(values) <= len(numbers) / 2:
        return False
    # C[i, k]: number of events with the i-th value and the k-th label; B: with a neighbouring value
    C = np.zeros((len(values), classes.max() + 1))
    np.add.at(C, (at, classes), 1.0)
    B = np.zeros_like(C)
    B[1:] += C[:-1]
    B[:-1] += C[1:]
    anywhere = float(_agreement(C.sum(axis=0)))
    n, n_beside = C.sum(axis=1), B.sum(axis=1)
    often = n >= 2.0
    if np.count_nonzero(often) < 3:
        return False
    C, B, n, n_beside = C[often], B[often], n[often], n_beside[often]
    equal, beside = _agreement(C), (C * B).sum(axis=1) / (n * n_beside)
    # Pairs share events: there are no more independent ones than events.
    n_equal, n_beside = np.minimum(n * (n - 1.0) / 2.0, n), np.minimum(n * n_beside, n + n_beside)
    variance = anywhere * (1.0 - anywhere) * (1.0 / n_equal + 1.0 / n_beside)
    sure = _SURE_OF_NAME * math.sqrt(float(variance.sum())) / len(n)
    likeness = float(equal.mean()) - anywhere
    least = max(sure, _NEIGHBOURS * likeness, _WORTH * (1.0 - anywhere))
    return float((equal - beside).mean()) > least


def _agreement(counts: Array) -> Array:
    """Return how often two events have the same label, by numbers of events with each label."""
    n = counts.sum(axis=-1)
    agreement: Array = (counts * (counts - 1.0)).sum(axis=-1) / (n * (n - 1.0))
    return agreement


# --- Ranks


class NormalScores:
    """Piecewise linear function from numbers to their normal scores, constant beyond the ends.

    Parameters
    ----------
    values
        Numbers, rising.
    scores
        Their scores.

    Examples
    --------
    >>> scores = NormalScores.of(np.array([1.0, 10.0, 100.0, 1000.0]))
    >>> [round(scores(value), 2) for value in (10.0, 55.0, 100.0, 1e9)]
    [-0.32, 0.0, 0.32, 1.15]

    """

    __slots__ = ("scores", "values")

    def __init__(self, values: Sequence[float], scores: Sequence[float]) -> None:
        self.values, self.scores = values, scores

    def __call__(self, value: float) -> float:
        values, scores = self.values, self.scores
        i = bisect_right(values, value)
        if i == 0 or i == len(values):
            return scores[min(i, len(values) - 1)]
        share = (value - values[i - 1]) / (values[i] - values[i - 1])
        return scores[i - 1] + share * (scores[i] - scores[i - 1])

    @classmethod
    def of(cls, numbers: Array) -> NormalScores:
        """Return the scores of numbers: normal quantiles of their ranks, equal ones together."""
        values, counts = np.unique(numbers, return_counts=True)
        ranks = (np.cumsum(counts) - counts / 2) / len(numbers)
        if len(values) > _MOST_RANKS:
            kept = np.linspace(0, len(values) - 1, _MOST_RANKS).round().astype(int)
            values, ranks = values[kept], ranks[kept]
        return cls(values.tolist(), list(map(NormalDist().inv_cdf, ranks.tolist())))


def has_heavy_tail(numbers: Array) -> Array:
    """Return whether some of the numbers are far from the median, beside the distance of most.

    That is for each column, if there are several.
    """
    q = (0.05, 0.25, 0.5, 0.75, 0.95)
    low, first, median, third, high = np.quantile(numbers, q, axis=0)
    spread = (third - first) / 2.0
    far = _HEAVY * (1.0 + _FEW / math.sqrt(len(numbers))) * spread
    found: Array = (np.maximum(high - median, median - low) > far) & (spread > 0.0)
    return found


# --- How much columns count


def weights_of(Z: Array, labels: Sequence[Label]) -> Array | None:
    """Return weights by which features are multiplied: the more a feature tells, the larger.

    The square of a weight is proportional to `r + 0.3 mean(r) + (m - 1) / (n - 1) + 0.05`. Here `r`
    is the share of the variance of a feature, or of its square if that is more, that lies between
    the `m` classes (the correlation ratio), less the part that is due to chance among `n` labels.
    The third term is this part, so that weights are about the same while labels are few; the last
    one makes them about the same where no feature tells much alone. The mean of the squares is 1:
    distances stay as long on average, and a length scale is right that was for equal weights.

    Parameters
    ----------
    Z
        Scaled features of the examples, shape (n, d).
    labels
        Their labels.

    Returns
    -------
    The weights, shape (d,); None if there are fewer than 20 labels, fewer than three of each class
    on average, or no two classes.

    Examples
    --------
    >>> Z = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]] * 10)
    >>> weights_of(Z, ["in", "in", "out", "out"] * 10).round(2)
    array([1.3 , 0.56])

    References
    ----------
    [^1]: Kelley, T.L., 1935. An unbiased correlation ratio measure. PNAS 21.

    """
    if not has_enough(labels) or not Z.shape[1]:
        return None
    classes = classes_of(labels)
    told = _told(Z, classes)
    squares = told + _EVEN * told.mean() + _chance(classes) + _LEAST_TOLD
    return np.asarray(np.sqrt(squares / squares.mean()))


def has_enough(labels: Sequence[Label]) -> bool:
    """Return whether there are enough labels to see what a column tells about them."""
    m = len(set(labels))
    return m >= 2 and len(labels) >= max(_FEWEST_LABELS, _FEWEST_OF_CLASS * m)


def classes_of(labels: Sequence[Label]) -> Classes:
    """Return the number of the class of each label, in the order in which they first occur."""
    number = {y: i for i, y in enumerate(dict.fromkeys(labels))}
    return np.array([number[y] for y in labels])


def _told(Z: Array, classes: Classes) -> Array:
    """Return what each column tells about the labels, `r` of `weights_of`, shape (d,)."""
    is_of_class = np.eye(classes.max() + 1)[classes]
    ratio = np.maximum(_between(Z, is_of_class), _between(Z * Z, is_of_class))
    chance = _chance(classes)
    told: Array = np.maximum(ratio - chance, 0.0) / (1.0 - chance)
    return told


def _told_by(z: Array, classes: Classes) -> float:
    return float(_told(z[:, None], classes)[0])


def _chance(classes: Classes) -> float:
    """Return the share of a column's variance that is expected between classes by chance."""
    return int(classes.max()) / (len(classes) - 1)


def _between(Z: Array, is_of_class: Array) -> Array:
    """Return the share of each column's variance between classes, given as indicators (n, m)."""
    Z = Z - Z.mean(axis=0)
    sums = is_of_class.T @ Z / np.sqrt(is_of_class.sum(axis=0))[:, None]
    total: Array = np.square(Z).sum(axis=0)
    share: Array = np.zeros_like(total)
    np.divide(np.square(sums).sum(axis=0), total, out=share, where=total > _LEAST_SQUARES)
    return share
