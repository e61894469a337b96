"""Scaling by the first events of a stream, and what all scalings have in common.

A learner that keeps its examples must never mix points scaled with different statistics. So the
statistics in use change only at a few times, when the learner is rebuilt from the raw examples:
during the warm-up, whenever the number of events has doubled, and at its end. After that they stay
fixed here; `streamgp.scaling.renewed` has those that change later, too.

"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamgp.base import FeatureName, Features, Label, State
from streamgp.common.feature_values import (
    LARGEST,
    as_number,
    check_features,
    is_missing,
    is_number,
    plain_name,
)
from streamgp.common.running_stats import Moments, Quartiles


class Scaling:
    """Transformation of features before they reach the learner; by default there is none."""

    def observe(self, x: Features) -> bool:  # noqa: ARG002
        """Update with an event, once for each; return whether the learner must be rebuilt."""
        return False

    def n_with(self, x: Features) -> int:
        """Return the number of features that are kept, together with those of an event.

        By default that of the event: how many a transformer keeps is not known.
        """
        return len(x)

    def extract(self, x: Features) -> Features:
        """Return the features that an event keeps; `x` itself if they are its own."""
        return x

    def learn(self, x: Features, y: Label) -> None:
        """Update with a label, for transformers that use it; `x` is what `extract` returned."""

    def weigh(self, examples: Sequence[tuple[Features, Label]]) -> None:
        """Weigh features by what they tell about labels, before the learner is rebuilt.

        The features of the examples are what `extract` returned.
        """

    @property
    def weights(self) -> Mapping[FeatureName, float]:
        """Factors of features after scaling, {} while all count alike."""
        return {}

    @property
    def forms(self) -> Mapping[FeatureName, Sequence[str]]:
        """What features count as that do not count as the numbers that they are."""
        return {}

    def transform(self, x: Features) -> Features:
        """Return the features as the learner sees them; `x` is what `extract` returned."""
        return x

    def state(self) -> State:
        """Return what must survive a restart."""
        return {}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""


class NoScaling(Scaling):
    """Features reach the learner as they are."""


class StandardScaling(Scaling):
    """Standardise numbers by the mean and standard deviation of the first `warm_up` events.

    A standard deviation of 0 counts as 1. A feature that has fewer than `warm_up / 2` values by
    then, or appears later, is left out until it has `warm_up` values of its own. Booleans are the
    numbers 0 and 1. Values that are not numbers, such as strings, pass unchanged; None and NaN are
    missing and dropped.

    A feature that is 1 in some events, at least one in a hundred, and missing in all others is a
    mark: its presence is all that it says. It counts as 0 where it is missing.

    Parameters
    ----------
    warm_up
        Number of events.

    Examples
    --------
    >>> scaling = StandardScaling(warm_up=4)
    >>> [scaling.observe({"light": light}) for light in (1.0, 3.0, 1.0, 3.0, 90.0)]
    [True, True, False, True, False]
    >>> scaling.transform({"light": 4.0})
    {'light': 2.0}

    """

    # _n        events observed
    # _next     number of events at which the statistics in use will next change
    # _running  statistics of the features that are not frozen
    # _locations, _factors  offset and factor of the features in use
    # _absent   features in use that are filled in, and with what, where they are missing
    # _in_use   these as plain values; None: not needed since they changed
    # _fills    whether features that most events have are filled in, too: with 0, their mean
    _statistics: type[Moments | Quartiles] = Moments
    _fills = False

    def __init__(self, warm_up: int) -> None:
        self.warm_up = warm_up
        self._n = 0
        self._next = 1
        self._running: dict[FeatureName, Moments | Quartiles] = {}
        self._locations: dict[FeatureName, float] = {}
        self._factors: dict[FeatureName, float] = {}
        self._absent: dict[FeatureName, float] = {}
        self._in_use: list[list[Any]] | None = None

    def __getstate__(self) -> State:
        # A cache is not part of the state: transforming changes nothing.
        return {**self.__dict__, "_in_use": None}

    def observe(self, x: Features) -> bool:
        """Update with an event; True if the statistics in use have changed.

        Raises
        ------
        ValueError
            If a feature is infinite or too large; nothing is recorded in this case.

        """
        if self._n >= self.warm_up and x.keys() <= self._locations.keys() and is_plain(x):
            self._n += 1
            return False
        numbers = finite_numbers(x)
        self._n += 1
        frozen = self._n > self.warm_up
        for name, value in numbers.items():
            if frozen and name in self._locations:
                continue
            running = self._running.get(name)
            if running is None:
                running = self._running[name] = self._statistics()
            running.add(value)
        return self._freeze_late() if frozen else self._refresh()

    def n_with(self, x: Features) -> int:
        """Return the number of features that are kept, together with those of an event."""
        known = self._locations.keys()
        return len(known) if x.keys() <= known else len(known | self._running.keys() | x.keys())

    def transform(self, x: Features) -> dict[FeatureName, Any]:
        """Return standardised features; those without statistics in use are left out."""
        locations, factors = self._locations, self._factors
        try:
            scaled = {name: (value - locations[name]) * factors[name] for name, value in x.items()}
            # NaN survives a sum.
            if not math.isnan(sum(scaled.values())):
                return scaled if len(scaled) == len(locations) else {**self._absent, **scaled}
        except (KeyError, TypeError, ArithmeticError):
            pass
        return self._transform_with_care(x)

    def _transform_with_care(self, x: Features) -> dict[FeatureName, Any]:
        scaled: dict[FeatureName, Any] = dict(self._absent)
        for name, value in x.items():
            if is_missing(value):
                continue
            if not is_number(value):
                scaled[name] = value
            elif name in self._locations:
                number = as_number(name, value)
                scaled[name] = (number - self._locations[name]) * self._factors[name]
        return scaled

    def state(self) -> State:
        """Return the statistics in use, and the running ones of features that are not frozen."""
        return {
            "n": self._n,
            "next": self._next,
            "moments": [[plain_name(name), *r.plain()] for name, r in self._running.items()],
            "in_use": self._plain_in_use(),
        }

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._n, self._next = int(state["n"]), int(state["next"])
        for name, *running in state["moments"]:
            self._running[name] = self._statistics.of(*running)
        for name, location, factor, *absent in state["in_use"]:
            self._locations[name], self._factors[name] = float(location), float(factor)
            if absent:
                self._absent[name] = float(absent[0])
        self._in_use = None

    def _plain_in_use(self) -> list[list[Any]]:
        # The state is needed every few events, and these values rarely change.
        if self._in_use is None:
            self._in_use = [
                [plain_name(name), location, self._factors[name]]
                + ([self._absent[name]] if name in self._absent else [])
                for name, location in self._locations.items()
            ]
        return self._in_use

    def _refresh(self) -> bool:
        if self._n < min(self._next, self.warm_up):
            return False
        self._next *= 2
        ended = self._n == self.warm_up
        self._clear_in_use()
        for name in self._with_enough(self.warm_up / 2 if ended else 1):
            self._use(name, keep=not ended)
        return True

    def _clear_in_use(self) -> None:
        self._locations.clear()
        self._factors.clear()
        self._absent.clear()
        self._in_use = None

    def _with_enough(self, n: float) -> list[FeatureName]:
        """Return the marks, and the other features that have enough values."""
        found = self._running.items()
        return [name for name, r in found if r.n >= n or self._mark_of(r) is not None]

    def _mark_of(self, running: Moments | Quartiles) -> Moments | None:
        """Return the moments of a mark, with zeros where it is missing; None if it is no mark."""
        n = self._weight()
        share = running.n / n
        if not isinstance(running, Moments) or running.mean != 1.0 or running.m2:
            return None
        return Moments.of(n, share, n * share * (1.0 - share)) if _RAREST <= share < 1.0 else None

    def _weight(self) -> float:
        """Return the total weight of all events in the statistics."""
        return self._n

    def _freeze_late(self) -> bool:
        late = [name for name, r in self._running.items() if r.n >= self.warm_up]
        for name in late:
            self._use(name, keep=False)
        return bool(late)

    def _use(self, name: FeatureName, *, keep: bool) -> None:
        running = self._running[name] if keep else self._running.pop(name)
        mark = self._mark_of(running)
        self._locations[name] = (mark or running).location
        self._factors[name] = 1.0 / self._unit(name, running, mark)
        if mark is not None:
            self._absent[name] = -self._locations[name] * self._factors[name]
        elif self._fills and running.n >= self._weight() / 2:
            self._absent[name] = 0.0
        self._in_use = None

    def _unit(
        self,
        name: FeatureName,  # noqa: ARG002 - for subclasses
        running: Moments | Quartiles,
        mark: Moments | None,
    ) -> float:
        """Return the unit of a feature; `mark` is what `_mark_of` returned."""
        return (mark or running).scale


# Least share of events that have a mark. It bounds the dimension where events invent names: there
# are at most a hundred times as many marks as features in an event.
_RAREST: Final = 0.01


class RobustScaling(StandardScaling):
    """Scale by median and interquartile range instead: for numbers with outliers.

    One answer that took half an hour, because of a lunch break, would make all others look the same
    after division by a standard deviation.

    Examples
    --------
    >>> scaling = RobustScaling(warm_up=5)
    >>> for seconds in (2.0, 3.0, 4.0, 3.0, 1800.0):
    ...     _ = scaling.observe({"response_s": seconds})
    >>> scaling.transform({"response_s": 4.0})
    {'response_s': 1.3489...}

    """

    _statistics = Quartiles


_FLOATS = frozenset({float})


def is_plain(x: Features) -> bool:
    """Whether all values are ordinary numbers: none missing, infinite or too large."""
    try:
        # Absolute values, as huge ones may cancel to 0.
        return float(sum(map(abs, x.values()), 0.0)) <= LARGEST
    except (TypeError, ArithmeticError, AttributeError):
        return False


def check_finite(x: Features) -> None:
    """Raise ValueError if a number among the features is infinite or too large.

    Raises
    ------
    TypeError
        If they are not a mapping.

    """
    if not is_plain(x):
        check_features(x)
        finite_numbers(x)


def finite_numbers(x: Features) -> dict[FeatureName, float]:
    # NaN and infinity survive a sum; features whose sum is too large only take the slower path.
    if _FLOATS.issuperset(map(type, x.values())) and sum(map(abs, x.values())) <= LARGEST:
        return dict(x)
    return {
        name: as_number(name, value)
        for name, value in x.items()
        if is_number(value) and not is_missing(value)
    }
