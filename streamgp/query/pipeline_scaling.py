"""Scaling by the transformers of a River pipeline."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from river.base import Transformer

from streamgp.base import Features, Label, State
from streamgp.common.feature_values import features_of, plain_features


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
        """Take note of an event; True if the transformers in use have been renewed.

        If a transformer raises, nothing is noted.
        """
        x = _without_nan(x)
        if self._n < self.warm_up:
            # On a copy: a transformer that raises may have taken note of half an event.
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
        """Return the events and labels of the warm-up, from which transformers are made anew."""
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
