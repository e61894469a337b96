"""Scaling that is learned from the first events of a stream and then stands still.

A learner that keeps its examples must never mix points scaled with different statistics. So
statistics in use change only at a few moments, at which the learner is rebuilt from the raw
examples: during the warm-up whenever the number of events has doubled, and at its end.

"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Protocol

from river.base import Transformer

from streamgp.base import FeatureName, Features, Label, State
from streamgp.common.feature_values import (
    LARGEST,
    as_number,
    features_of,
    is_missing,
    is_number,
    plain_features,
    plain_name,
)
from streamgp.common.running_stats import Moments, Quartiles


class Scaling(Protocol):
    """Transformation of features before they reach the learner."""

    def observe(self, x: Features) -> bool:
        """Update with an event, once each; return whether the learner must be rebuilt."""

    def learn(self, x: Features, y: Label) -> None:
        """Update with a label, for transformers that use it."""

    def transform(self, x: Features) -> Features:
        """Return the features as the learner sees them; changes nothing."""

    def state(self) -> State:
        """Return what must survive a restart."""

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""


class NoScaling:
    """Features reach the learner as they are."""

    def observe(self, x: Features) -> bool:  # noqa: ARG002
        """Nothing to learn."""
        return False

    def learn(self, x: Features, y: Label) -> None:
        """Nothing to learn."""

    def transform(self, x: Features) -> Features:
        """Return the very same features."""
        return x

    def state(self) -> State:
        """Nothing to keep."""
        return {}

    def load_state(self, state: State) -> None:
        """Nothing to take over."""


class StandardScaling:
    """Standardise numbers by the mean and standard deviation of the first `warm_up` events.

    A standard deviation of 0 counts as 1. A feature that has fewer than `warm_up / 2` values by
    then, or appears later, is left out until it has `warm_up` values of its own. Truth values are
    numbers, 0 and 1. What is no number, as a text, passes unchanged; None and NaN are missing and
    dropped.

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
    # _next     number of events at which the statistics in use change next
    # _running  statistics of the features that are not frozen
    # _locations, _factors  what is subtracted and multiplied by, for the features in use
    # _in_use   these as plain values; None: not asked for since they changed
    _statistics: type[Moments | Quartiles] = Moments

    def __init__(self, warm_up: int) -> None:
        self.warm_up = warm_up
        self._n = 0
        self._next = 1
        self._running: dict[FeatureName, Moments | Quartiles] = {}
        self._locations: dict[FeatureName, float] = {}
        self._factors: dict[FeatureName, float] = {}
        self._in_use: list[list[Any]] | None = None

    def __getstate__(self) -> State:
        # What is only remembered for speed is no state: asking changes nothing.
        return {**self.__dict__, "_in_use": None}

    def observe(self, x: Features) -> bool:
        """Update with an event; True if the statistics in use have changed.

        Raises
        ------
        ValueError
            If a feature is infinite or too large; nothing is noted then.

        """
        if self._n >= self.warm_up and x.keys() <= self._locations.keys() and _is_plain(x):
            self._n += 1
            return False
        numbers = _finite_numbers(x)
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

    def learn(self, x: Features, y: Label) -> None:
        """Labels do not matter."""

    def transform(self, x: Features) -> Features:
        """Return standardised features; those without statistics in use are left out."""
        locations, factors = self._locations, self._factors
        try:
            scaled = {name: (value - locations[name]) * factors[name] for name, value in x.items()}
            # NaN survives a sum.
            if not math.isnan(sum(scaled.values())):
                return scaled
        except (KeyError, TypeError, OverflowError):
            pass
        return self._transform_with_care(x)

    def _transform_with_care(self, x: Features) -> Features:
        scaled: dict[FeatureName, Any] = {}
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
        """Become what the state was taken from."""
        self._n, self._next = int(state["n"]), int(state["next"])
        for name, *running in state["moments"]:
            self._running[name] = self._statistics.of(*running)
        for name, location, factor in state["in_use"]:
            self._locations[name], self._factors[name] = float(location), float(factor)
        self._in_use = None

    def _plain_in_use(self) -> list[list[Any]]:
        # The state is asked for after every few events, and these never change any more.
        if self._in_use is None:
            self._in_use = [
                [plain_name(name), location, self._factors[name]]
                for name, location in self._locations.items()
            ]
        return self._in_use

    def _refresh(self) -> bool:
        if self._n < min(self._next, self.warm_up):
            return False
        self._next *= 2
        ended = self._n == self.warm_up
        enough = self.warm_up / 2 if ended else 1
        self._locations.clear()
        self._factors.clear()
        self._in_use = None
        for name in [name for name, r in self._running.items() if r.n >= enough]:
            self._use(name, keep=not ended)
        return True

    def _freeze_late(self) -> bool:
        late = [name for name, r in self._running.items() if r.n >= self.warm_up]
        for name in late:
            self._use(name, keep=False)
        return bool(late)

    def _use(self, name: FeatureName, *, keep: bool) -> None:
        running = self._running[name] if keep else self._running.pop(name)
        self._locations[name], self._factors[name] = running.location, 1.0 / running.scale
        self._in_use = None


class RobustScaling(StandardScaling):
    """Scale by median and interquartile range instead: for numbers of which some are wild.

    One answer that took half an hour, for lunch was ready, would make all others the same to
    users who divide by a standard deviation.

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


def _is_plain(x: Features) -> bool:
    """Whether all values are ordinary numbers: none missing, infinite or too large."""
    try:
        return abs(float(sum(x.values(), 0.0))) <= LARGEST
    except (TypeError, OverflowError):
        return False


def check_finite(x: Features) -> None:
    """Raise ValueError if a number among the features is infinite or too large."""
    if not _is_plain(x):
        _finite_numbers(x)


def _finite_numbers(x: Features) -> dict[FeatureName, float]:
    # NaN and infinity survive a sum; what is too large in all only takes the longer way.
    if _FLOATS.issuperset(map(type, x.values())) and sum(map(abs, x.values())) <= LARGEST:
        return dict(x)
    return {
        name: as_number(name, value)
        for name, value in x.items()
        if is_number(value) and not is_missing(value)
    }


class PipelineScaling:
    """The transformers of a River pipeline, learned from the first `warm_up` events, then frozen.

    NaN is missing and never reaches a transformer, whose statistics it would spoil for good; None
    does, for those that fill in what is missing.

    Parameters
    ----------
    transformers
        Transformers in the order of the pipeline; unlearned, this object makes them its own.
    warm_up
        Number of events.

    """

    # _n     events observed
    # _next  number of events at which the transformers in use are renewed next
    # _live  transformers that learn from every event of the warm-up
    # _used  what they were at the last renewal
    # _heard  all that they learned from, in order: [x] or [x, y]; a River transformer has no other
    #         state that could be written down
    def __init__(self, transformers: Sequence[Transformer], warm_up: int) -> None:
        self.warm_up = warm_up
        self._n = 0
        self._next = 1
        self._live = list(transformers)
        self._used = copy.deepcopy(self._live)
        self._heard: list[list[Any]] = []

    def observe(self, x: Features) -> bool:
        """Update with an event; True if the transformers in use have been renewed.

        If a transformer raises, nothing is noted.
        """
        x = _without_nan(x)
        if self._n < self.warm_up:
            # On a copy: a transformer that raises may have learned half an event.
            live = copy.deepcopy(self._live)
            seen: Any = x
            for transformer in live:
                if not transformer._supervised:
                    transformer.learn_one(seen)
                seen = transformer.transform_one(seen)
            self._live = live
            self._heard.append([dict(x)])
        self._n += 1
        if self._n > self.warm_up:
            return False
        if self._n < min(self._next, self.warm_up):
            return False
        self._next *= 2
        self._used = copy.deepcopy(self._live)
        return True

    def learn(self, x: Features, y: Label) -> None:
        """Teach the label to the transformers that use it, while the warm-up lasts."""
        if self._n >= self.warm_up:
            return
        x = _without_nan(x)
        live = copy.deepcopy(self._live)
        seen: Any = x
        for transformer in live:
            if transformer._supervised:
                transformer.learn_one(seen, y)  # type: ignore[call-arg]
            seen = transformer.transform_one(seen)
        self._live = live
        self._heard.append([dict(x), y])

    def transform(self, x: Features) -> Features:
        """Return the features as the last transformer in use makes them."""
        seen: Any = _without_nan(x)
        for transformer in self._used:
            seen = transformer.transform_one(seen)
        return seen  # type: ignore[no-any-return]

    def state(self) -> State:
        """Return the events and labels of the warm-up, from which transformers are rebuilt."""
        return {
            "n": self._n,
            "heard": [[plain_features(x), *rest] for x, *rest in self._heard],
        }

    def load_state(self, state: State) -> None:
        """Hear once more what the state has heard."""
        for features, *label in state["heard"]:
            if label:
                self.learn(features_of(features), label[0])
            else:
                self.observe(features_of(features))
        self._n = int(state["n"])


def _without_nan(x: Features) -> Features:
    if all(value == value for value in x.values()):
        return x
    return {name: value for name, value in x.items() if value == value}
