"""Scaling that is renewed as events double, clips, and learns from labels which columns matter."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np

from streamgp.base import Array, FeatureName, Features, Label, Rescale, State
from streamgp.common.array_text import array_of, text_of
from streamgp.common.feature_values import as_number, is_missing, is_number, plain_name
from streamgp.common.running_stats import Moments, Quartiles
from streamgp.scaling.column_forms import FAR, ColumnForms, forms_of, has_enough, weights_of
from streamgp.scaling.standard import (
    NoScaling,
    Scaling,
    StandardScaling,
    check_finite,
    finite_numbers,
    is_plain,
)

MOST_RELEARNED: Final = 500
"""Number of labels after which scaling is not renewed: the learner would have to relearn all."""

# Number of events whose values are added to the statistics at once: one by one takes longer. As
# many first values of a feature are kept, to tell outliers from the rest once there are enough.
_BATCH: Final = 50

# Distance from the mean, in standard deviations, from which on a value counts as if it were there.
_OUTLYING: Final = 5.0
# Share of a batch that is no longer outliers, but the feature having changed.
_CHANGED: Final = 0.2
# Number of steps in which the first outliers are found. Each brings one value of 12 a tenth nearer:
# 200 steps are enough for a million.
_MOST_STEPS: Final = 200


class RenewedScaling(StandardScaling):
    """Standardise and clip by statistics that are renewed at each doubling of the number of events.

    That is after `warm_up` events, and after 2, 4, 8, ... times as many.

    The first events may not be typical of later ones, and a feature that is constant in them keeps
    its unit. At each renewal the statistics are those of all events so far; a feature needs values
    in half of them to be renewed. After `MOST_RELEARNED` labels there are no more renewals.

    Values are clipped at 3 standard deviations from the mean, so that no feature decides alone. If
    more than half of the values are 0, the others are rare but not outliers. The unit is then
    larger, so that values within 3 of their own standard deviations of their own mean are not
    clipped and remain distinct.

    Outliers do not enter the statistics either: a value more than 5 standard deviations from the
    mean of those before counts as if it were there. Otherwise a single -9999 would become the unit,
    and all other values the same. This holds for up to one value in 25: for more, there is no mean
    from which they are so far. A feature whose values are mostly 0, or were all equal, has no
    outliers, nor has a batch of which a fifth is out there, since the feature has changed; unless
    these are all the same value, as of a sensor that is down.

    At each renewal numbers are also weighed by how far they tell the labels apart (`weights_of`):
    distances between events are then mostly those in the features that matter. Where labels show
    that a column tells more by its ranks, as a name, or by where it is missing, it counts as that
    (`forms_of`).

    A feature that at least half of the events have is filled in with its mean where it is missing.
    A Gaussian process takes it for the mean anyway, but counts the features of its first example to
    choose a length scale. Rarer ones are not counted: where each event has a few of very many, the
    scale would be far too large.

    Parameters
    ----------
    warm_up
        Number of events.
    takes_texts
        Whether the learner takes texts, so that numbers may count as names.

    Examples
    --------
    >>> scaling = RenewedScaling(warm_up=4)
    >>> xs = [{"light": light} for light in (1.0, 3.0, 1.0, 3.0, 2.0, 6.0, 2.0, 6.0)]
    >>> [scaling.observe(x) for x in xs]
    [True, True, False, True, False, False, False, True]
    >>> scaling.transform({"light": 3.0}), scaling.transform({"light": 90.0})
    ({'light': 0.0}, {'light': 3.0})

    """

    # _running   statistics of all features, including those in use
    # _first     first values of each feature, until there are _BATCH or it is in use for good
    # _n_zeros   number of zeros of each feature; features without zeros are missing
    # _n_labels  labels learned
    # _columns   names of the features of the event of the last renewal, if all are in use
    # _pending   values of later events with these features, event after event in this order, still
    #            to be added
    # _forms     columns that do not count as numbers
    # _weights   factors of the features in use, after clipping; {} while labels are too few
    _fills = True

    def __init__(self, warm_up: int, *, takes_texts: bool = True) -> None:
        super().__init__(warm_up)
        self.takes_texts = takes_texts
        self._first: dict[FeatureName, list[float]] = {}
        self._n_zeros: dict[FeatureName, float] = {}
        self._n_labels = 0
        self._columns: list[FeatureName] = []
        self._pending: list[float] = []
        self._forms = ColumnForms()
        self._weights: dict[FeatureName, float] = {}

    def observe(self, x: Features) -> bool:
        """Update with an event; True if the statistics in use have changed.

        Raises
        ------
        ValueError
            If a feature is infinite or too large; nothing is recorded in this case.

        """
        ended = self._n >= self.warm_up
        is_over = ended and self._n_labels > MOST_RELEARNED
        if is_over and x.keys() <= self._locations.keys() and is_plain(x):
            self._n += 1
            return False
        if ended and list(x) == self._columns and is_plain(x):
            self._n += 1
            self._pending.extend(x.values())
            if len(self._pending) == _BATCH * len(x):
                self._add_pending()
            return self._refresh()
        is_known = ended and x.keys() <= self._locations.keys()
        numbers = finite_numbers(x)
        self._n += 1
        n_zeros = self._n_zeros
        for name, value in numbers.items():
            self._add(name, value)
            if not value:
                n_zeros[name] = n_zeros.get(name, 0) + 1
        if self._first:
            self._end_first(n for n in numbers if len(self._first.get(n, ())) == _BATCH)
        renewed = not is_over and self._refresh()
        if not is_known:
            renewed = self._freeze_late() or renewed
        if renewed:
            self._add_pending()
            self._columns = list(x) if x.keys() <= self._locations.keys() else []
        return renewed

    def learn(self, x: Features, y: Label) -> None:  # noqa: ARG002 - whatever the label
        """Count the label."""
        self._n_labels += 1

    def weigh(self, examples: Sequence[tuple[Features, Label]]) -> None:
        """Find the forms in which columns tell the labels of the examples apart, and weigh them."""
        self._forms, self._weights = ColumnForms(), {}
        if not has_enough([y for _, y in examples]):  # as of every new key: no rows are made for it
            return
        # What is infinite or too large may have been learned, but not observed: it stays on record.
        examples = [each for each in examples if _is_finite(each[0])]
        names, labels = list(self._locations), [y for _, y in examples]
        X = np.array([[_number_in(x, name) for name in names] for x, _ in examples])
        X, Z = X.reshape(len(examples), len(names)), self._matrix(names, examples)
        self._forms = forms_of(names, X, Z, labels, with_names=self.takes_texts)
        if self._forms.scores or self._forms.missing:
            Z = self._matrix(names, examples)
        is_weighed = [name not in self._forms.names for name in names]
        weights = weights_of(np.compress(is_weighed, Z, axis=1), labels)
        if weights is not None:
            self._weights = dict(zip(compress(names, is_weighed), weights.tolist(), strict=True))

    def _matrix(
        self, names: Sequence[FeatureName], examples: Sequence[tuple[Features, Label]]
    ) -> Array:
        """Return scaled and clipped numbers, one example in each row; 0 for what is none."""
        seen = [self._clipped(x) for x, _ in examples]
        rows = [
            [d if type(d := z.get(name, 0.0)) is float or is_number(d) else 0.0 for name in names]
            for z in seen
        ]
        return np.array(rows).reshape(len(examples), len(names))

    @property
    def weights(self) -> Mapping[FeatureName, float]:
        """Factors of numbers after clipping, {} while labels are too few."""
        return self._weights

    @property
    def forms(self) -> Mapping[FeatureName, Sequence[str]]:
        """What features count as that do not count as the numbers that they are."""
        return self._forms.kinds()

    def transform(self, x: Features) -> dict[FeatureName, Any]:
        """Return scaled features; those without statistics in use are left out."""
        weighed = self._weighed(self._clipped(x))
        self._forms.replace_names(weighed, x)
        return weighed

    def _weighed(self, scaled: dict[FeatureName, Any]) -> dict[FeatureName, Any]:
        weights = self._weights
        if not weights:
            return scaled
        try:
            if self._forms.names:  # they have none
                return {name: d * weights.get(name, 1.0) for name, d in scaled.items()}
            return {name: d * weights[name] for name, d in scaled.items()}
        except (KeyError, TypeError):  # there are strings, or arrays, for the learner to refuse
            return {
                name: d * weights.get(name, 1.0) if is_number(d) else d
                for name, d in scaled.items()
            }

    def _clipped(self, x: Features) -> dict[FeatureName, Any]:
        scaled = StandardScaling.transform(self, x)  # super() is slower
        self._forms.replace_numbers(scaled, x)
        distances = scaled.values()
        try:
            if not scaled or (min(distances) >= -FAR and max(distances) <= FAR):
                return scaled
            return {
                name: d if -FAR <= d <= FAR else math.copysign(FAR, d) for name, d in scaled.items()
            }
        except (TypeError, ValueError):  # there are strings, or arrays, for the learner to refuse
            return {
                name: min(max(d, -FAR), FAR) if is_number(d) else d for name, d in scaled.items()
            }

    def state(self) -> State:
        """Return the statistics of all features, and those in use."""
        rows = self._rows
        first = [[plain_name(k), len(v), text_of(np.array(v))] for k, v in self._first.items()]
        return {
            **super().state(),
            "first": first,
            "zeros": [[plain_name(name), n] for name, n in self._n_zeros.items()],
            "labels": self._n_labels,
            "columns": list(map(plain_name, self._columns)),
            # As text: the state is needed every few events.
            "pending": [len(rows), text_of(rows)],
            "forms": self._forms.state(),
            "weights": [[plain_name(name), weight] for name, weight in self._weights.items()],
        }

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        super().load_state(state)
        # States lacked this before outliers were kept out.
        for name, n_first, values in state.get("first", ()):
            self._first[name] = array_of(values, int(n_first)).tolist()
        self._n_zeros = dict(state["zeros"])
        self._n_labels = int(state["labels"])
        self._columns = list(state["columns"])
        # States lacked these before columns had forms, and weights.
        if "forms" in state:
            self._forms = ColumnForms.of_state(state["forms"])
        self._weights = dict(state.get("weights", ()))
        n, rows = state["pending"]
        self._pending = array_of(rows, int(n) * len(self._columns)).tolist() if n else []

    @property
    def _rows(self) -> Array:
        """Values still to be added, one event in each row."""
        # Via bytes: numpy takes four times as long to inspect the contents of a list.
        values = struct.pack(f"{len(self._pending)}d", *self._pending)
        return np.frombuffer(values).reshape(-1, len(self._columns) or 1)

    def _moments(self, name: FeatureName) -> Moments:
        moments = self._running[name]
        assert isinstance(moments, Moments)
        return moments

    def _add(self, name: FeatureName, value: float) -> None:
        if name not in self._running:
            self._running[name], self._first[name] = Moments(), []
        moments, first = self._moments(name), self._first.get(name)
        if first is not None:
            first.append(value)
        elif abs(value - moments.mean) > _OUTLYING * math.sqrt(moments.variance):
            far = self._outlying(name)
            value = min(max(value, moments.mean - far), moments.mean + far)
        moments.add(value)

    def _settle(self, names: Iterable[FeatureName]) -> None:
        """Replace the statistics of features' first values by those without outliers."""
        by_number: dict[int, list[FeatureName]] = {}
        for name in names:
            n = len(self._first[name])
            # None of n values is more than sqrt(n - 1) standard deviations from their mean.
            if n - 1 > FAR**2 and math.isfinite(self._outlying(name)):
                by_number.setdefault(n, []).append(name)
        for alike in by_number.values():
            clipped = _without_outliers(np.array([self._first[name] for name in alike]))
            for name, values in zip(alike, clipped.tolist(), strict=True):
                moments = self._running[name] = Moments()
                for value in values:
                    moments.add(value)

    def _end_first(self, names: Iterable[FeatureName]) -> None:
        """Settle features whose first values are complete, and forget these values."""
        complete = list(names)
        self._settle(complete)
        for name in complete:
            del self._first[name]

    def _outlying(self, name: FeatureName) -> float:
        """Return the distance from the mean beyond which a value of a feature is an outlier."""
        moments = self._moments(name)
        rare = 2.0 * self._n_zeros.get(name, 0) > moments.n
        return math.inf if rare or not moments.varies else _OUTLYING * moments.std

    def _add_pending(self) -> None:
        if not self._pending:
            return
        rows = self._rows
        n_zeros = (rows == 0.0).sum(axis=0).tolist()
        centers = np.array([self._moments(name).mean for name in self._columns])
        far = np.array(list(map(self._outlying, self._columns)))
        outlying = np.abs(rows - centers) > far
        for j in np.flatnonzero(outlying.mean(axis=0) > _CHANGED):
            if np.ptp(rows[outlying[:, j], j]) > 0.0:
                far[j] = math.inf
        rows = np.clip(rows, centers - far, centers + far)
        means = rows.mean(axis=0)
        squares = np.square(rows - means).sum(axis=0).tolist()
        for i, (name, mean) in enumerate(zip(self._columns, means.tolist(), strict=True)):
            self._moments(name).merge(len(rows), mean, squares[i])
            if n_zeros[i]:
                self._n_zeros[name] = self._n_zeros.get(name, 0) + n_zeros[i]
        self._pending = []

    def _refresh(self) -> bool:
        if self._n < self._next:
            return False
        self._add_pending()
        ended = self._n >= self.warm_up
        self._settle(self._first)
        if ended:
            self._first.clear()
        self._next = self._renewed_at() if ended else min(2 * self._n, self.warm_up)
        if self._n <= self.warm_up:
            self._clear_in_use()
        for name in self._with_enough(self._weight() / 2 if ended else 1):
            self._use(name, keep=True)
        return True

    def _renewed_at(self) -> int:
        """Return the number of events at the renewal after the current one."""
        return 2 * self._n

    def _freeze_late(self) -> bool:
        late = [
            name
            for name, r in self._running.items()
            if r.n >= self.warm_up and name not in self._locations
        ]
        self._end_first(name for name in late if name in self._first)
        for name in late:
            self._use(name, keep=True)
        return bool(late)

    def _unit(self, name: FeatureName, running: Moments | Quartiles, mark: Moments | None) -> float:
        assert isinstance(running, Moments)
        moments = mark or running
        n_zeros = mark.n - running.n if mark else self._n_zeros.get(name, 0)
        return max(moments.std, _unit_of_rare(moments, n_zeros))


class RecentScaling(RenewedScaling):
    """Standardise and clip by statistics in which earlier events count less and less.

    For sensors that drift. Statistics are renewed after every `warm_up` events, and each renewal
    halves the weight of all events before it. A feature that is not in use waits for `warm_up`
    values of its own, which count in full until then.

    Parameters
    ----------
    warm_up
        Number of events.
    takes_texts
        Whether the learner takes texts, so that numbers may count as names.

    Examples
    --------
    >>> scaling = RecentScaling(warm_up=4)
    >>> for light in (1.0, 3.0, 1.0, 3.0, 11.0, 13.0, 11.0, 13.0):
    ...     _ = scaling.observe({"light": light})
    >>> round(scaling.transform({"light": 2.0})["light"], 2)
    -1.38

    """

    def _refresh(self) -> bool:
        renewed = super()._refresh()
        if renewed and self._n >= self.warm_up:
            for name in self._locations:
                self._moments(name).fade(_KEPT)
                if name in self._n_zeros:
                    self._n_zeros[name] *= _KEPT
        return renewed

    def _renewed_at(self) -> int:
        return self._n + self.warm_up

    def _weight(self) -> float:
        if self._n < self.warm_up:
            return self._n
        # N, N + N/2, N + N/2 + N/4, ...
        return self.warm_up * (1.0 - _KEPT ** (self._n // self.warm_up)) / (1.0 - _KEPT)


# Factor by which a renewal reduces the weight of the events before it.
_KEPT: Final = 0.5


def standard_scaling(warm_up: int, *, rescale: Rescale, takes_texts: bool = True) -> Scaling:
    """Return the scaling of a model without transformers of its own, which may take texts.

    Raises
    ------
    ValueError
        If `rescale` is not one of its values.

    """
    if rescale not in (False, True, "recent"):
        raise ValueError(f"rescale must be True, False or 'recent', got {rescale!r}")
    if warm_up == 0:
        return NoScaling()
    if rescale == "recent":
        return RecentScaling(warm_up, takes_texts=takes_texts)
    if rescale:
        return RenewedScaling(warm_up, takes_texts=takes_texts)
    return StandardScaling(warm_up)


def weighed_as(state: State, other: State) -> State:
    """Return the state of a scaling, with the forms and weights of columns of another one."""
    return {**state, **{name: other[name] for name in ("forms", "weights") if name in other}}


def _is_finite(x: Features) -> bool:
    try:
        check_finite(x)
    except ValueError:
        return False
    return True


def _number_in(x: Features, name: FeatureName) -> float:
    """Return a number among the features: NaN if it is missing, infinite if it is a text."""
    value = x.get(name)
    if type(value) is float:  # the shorter way
        return value
    if is_missing(value):
        return math.nan
    return as_number(name, value) if is_number(value) else math.inf


def _without_outliers(given: Array) -> Array:
    """Clip at 5 standard deviations from the mean, both of the values clipped at 3, in each row.

    Clipped at 5, two outliers of 50 would hide each other. If more than half of a row's values are
    equal, the others are rare but not outliers.
    """
    clipped = given
    for _ in range(_MOST_STEPS):
        before, (center, std) = clipped, _mean_and_std(clipped)
        clipped = np.clip(given, center - FAR * std, center + FAR * std)
        if np.array_equal(before, clipped):
            break
    center, std = _mean_and_std(clipped)
    far = _OUTLYING * std
    is_usual = given == np.median(given, axis=1, keepdims=True)
    far[2 * np.count_nonzero(is_usual, axis=1) > given.shape[1]] = np.inf
    return np.clip(given, center - far, center + far)


def _mean_and_std(rows: Array) -> tuple[Array, Array]:
    return rows.mean(axis=1, keepdims=True), rows.std(axis=1, keepdims=True)


def _unit_of_rare(moments: Moments, n_zeros: float) -> float:
    """Return the smallest unit in which typical values among rare ones are not clipped.

    Values other than 0 are rare if more than half of all values are 0.
    """
    n, mean, n_rare = moments.n, moments.mean, moments.n - n_zeros
    if not 0 < n_rare < n_zeros:
        return 0.0
    # Sums over all numbers are sums over those that are not 0.
    center = mean * n / n_rare
    variance = (moments.m2 + n * mean * mean) / n_rare - center * center
    return (abs(center - mean) + FAR * math.sqrt(max(variance, 0.0))) / FAR
