"""Transformers of a River pipeline in front of a learner: frozen, or running with the stream.

What scales features must not change under a learner that keeps its examples, so it is frozen after
the warm-up. What a window or a running aggregate makes of an event is different: it is a feature of
that event, and useless if it stands still.

"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from river.base import Transformer

from streamgp.base import Features, Label, State
from streamgp.common.feature_values import features_of, plain_features, same_features
from streamgp.scaling import NoScaling, Scaling

REMEMBERED: Final = 500
"""Least number of events that transformers that run with the stream have seen."""


def scaling_of(transformers: Sequence[Transformer], warm_up: int) -> Scaling:
    """Return the scaling made of the transformers of a pipeline, which are cloned.

    Raises
    ------
    TypeError
        If a step is no transformer, such as an anomaly filter.
    ValueError
        If a transformer that freezes has nothing to learn from, or precedes one that runs on.

    """
    for step in transformers:
        if not hasattr(step, "transform_one"):
            raise TypeError(
                "model must be a pipeline of transformers that ends in one estimator, got the step "
                f"{type(step).__name__}; put it in front of the skeptical model, or leave it out"
            )
    n_running = max((i for i, t in enumerate(transformers, 1) if _running(t)), default=0)
    running, frozen = transformers[:n_running], transformers[n_running:]
    still = [leaf for t in running for leaf in _leaves(t) if _learns(leaf) and not _runs_on(leaf)]
    if still:
        name, other = type(still[0]).__name__, type(_running(running[-1])[0]).__name__
        raise ValueError(
            f"{name} is frozen after the warm-up and {other} is not, so that {name} cannot be in "
            f"front of it or beside it; put {name} behind it in the pipeline"
        )
    learning = [t for t in frozen if _learns(t)]
    if warm_up == 0 and learning:
        raise ValueError(
            f"warm_up must be at least 1 for {type(learning[0]).__name__} to learn from events, "
            "got 0"
        )
    frozen = [t.clone() for t in frozen]
    rest = PipelineScaling(frozen, warm_up) if frozen else NoScaling()
    return RunningScaling(running, rest) if running else rest


def _leaves(transformer: Any) -> Iterator[Any]:
    """Yield the transformers of which a transformer is composed, or itself."""
    from river import compose

    if isinstance(transformer, compose.Grouper):
        yield from _leaves(transformer.transformer)
    elif isinstance(transformer, compose.TransformerUnion | compose.TransformerProduct):
        for part in transformer.transformers.values():
            yield from _leaves(part)
    elif isinstance(transformer, compose.Pipeline):
        for part in transformer.steps.values():
            yield from _leaves(part)
    else:
        yield transformer


def _learns(transformer: Any) -> bool:
    return type(transformer).learn_one is not Transformer.learn_one


def _running(transformer: Any) -> list[Any]:
    """Return those components of a transformer that run with the stream."""
    return [leaf for leaf in _leaves(transformer) if _runs_on(leaf)]


def _runs_on(leaf: Any) -> bool:
    """Whether what a transformer makes of an event depends on the events just before it."""
    from river import feature_extraction, preprocessing, utils

    if leaf._supervised:
        return False
    if isinstance(leaf, feature_extraction.Agg | preprocessing.PreviousImputer):
        return True
    windows = utils.Rolling, utils.TimeRolling, deque
    return any(isinstance(value, windows) for value in vars(leaf).values())


class RunningScaling(Scaling):
    """Transformers that learn from every event, in front of those that are frozen.

    They compute the features of an event when it is observed, itself included; these features stay
    fixed. The transformers know at least the last `REMEMBERED` events: after twice as many they are
    replaced by fresh ones that have seen the last `REMEMBERED`, so that memory and time stay
    bounded however long the stream is.

    Parameters
    ----------
    transformers
        Transformers in the order of the pipeline; they are never taught.
    rest
        Scaling of the features that they compute.

    Examples
    --------
    >>> from river import feature_extraction, stats, utils
    >>> mean = feature_extraction.Agg("light", None, utils.Rolling(stats.Mean, window_size=2))
    >>> scaling = RunningScaling([mean], NoScaling())
    >>> for light in (1.0, 3.0, 5.0):
    ...     _ = scaling.observe({"light": light})
    >>> scaling.extract({"light": 3.0}), scaling.extract({"light": 5.0})
    ({'light_mean': 2.0}, {'light_mean': 4.0})

    """

    # _live    the transformers, which have learned from the events of _recent in their order
    # _recent  fewer than 2 * REMEMBERED latest events, and the features made of each
    # _plain   these events as plain values, as far as they were saved: a worker saves them with
    #          each commit
    def __init__(self, transformers: Sequence[Transformer], rest: Scaling) -> None:
        self._templates = list(transformers)
        self._rest = rest
        self._replay([])

    def observe(self, x: Features) -> bool:
        """Update with an event; True if the statistics in use have changed.

        If a transformer raises, nothing is noted.
        """
        n = len(self._recent)
        try:
            renewed = self._rest.observe(self._run(_without_nan(x)))
        except Exception:
            # A transformer may have learned part of the event.
            self._replay([past for past, _ in self._recent[:n]])
            raise
        if len(self._recent) == 2 * REMEMBERED:
            self._replay([past for past, _ in self._recent[REMEMBERED:]])
        return renewed

    def extract(self, x: Features) -> Features:
        """Return the features made of the latest event equal to `x`, or those it would give now."""
        x = _without_nan(x)
        for past, made in reversed(self._recent):
            if same_features(past, x):
                return made
        return self._made_of(x)

    def learn(self, x: Features, y: Label) -> None:
        """Teach the label to the transformers that use it, while the warm-up lasts."""
        self._rest.learn(x, y)

    def transform(self, x: Features) -> Features:
        """Return the features as the learner sees them; `x` is what `extract` returned."""
        return self._rest.transform(x)

    def state(self) -> State:
        """Return the latest events, from which transformers are rebuilt."""
        self._plain += [plain_features(x) for x, _ in self._recent[len(self._plain) :]]
        return {"recent": self._plain.copy(), "rest": self._rest.state()}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._replay(map(features_of, state["recent"]))
        self._rest.load_state(state["rest"])

    def _replay(self, xs: Iterable[Features]) -> None:
        """Start over with transformers that have seen only these events."""
        self._live: list[Any] = [t.clone() for t in self._templates]
        self._recent: list[tuple[Features, Features]] = []
        self._plain: list[Any] = []
        for x in xs:
            self._run(x)

    def _run(self, x: Features) -> Features:
        """Learn from an event, and return the features made of it."""
        made: Any = dict(x)
        for transformer in self._live:
            transformer.learn_one(made)
            made = transformer.transform_one(made)
        usable = _usable(made)
        self._recent.append((dict(x), usable))
        return usable

    def _made_of(self, x: Features) -> Features:
        made: Any = dict(x)
        for transformer in self._live:
            made = transformer.transform_one(made)
        return _usable(made)


class PipelineScaling(Scaling):
    """The transformers of a River pipeline, taught the first `warm_up` events, then frozen.

    NaN means missing and never reaches a transformer, whose statistics it would spoil for good;
    None does, for transformers that impute missing values.

    Parameters
    ----------
    transformers
        Transformers in the order of the pipeline, unlearned; this object takes them over.
    warm_up
        Number of events.

    """

    # _n     events observed
    # _next  number of events at which the transformers in use will next be renewed
    # _live  transformers that learn from every event of the warm-up
    # _used  what they were at the last renewal
    # _heard  all that they learned from, in order: [x] or [x, y]; a River transformer has no other
    #         state that could be saved
    # _plain  the same as plain values, as far as it was saved: a worker saves it with each commit
    def __init__(self, transformers: Sequence[Transformer], warm_up: int) -> None:
        self.warm_up = warm_up
        self._n = 0
        self._next = 1
        self._live = list(transformers)
        self._used = copy.deepcopy(self._live)
        self._heard: list[list[Any]] = []
        self._plain: list[list[Any]] = []

    def observe(self, x: Features) -> bool:
        """Update with an event; True if the transformers in use have been renewed.

        If a transformer raises, nothing is noted.
        """
        if self._n < self.warm_up:
            # On a copy: a transformer that raises may have learned part of an event.
            live = copy.deepcopy(self._live)
            seen: Any = _without_nan(x)
            for transformer in live:
                if not transformer._supervised:
                    transformer.learn_one(seen)
                seen = transformer.transform_one(seen)
            self._live = live
            self._heard.append([_without_nan(x)])
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
        live = copy.deepcopy(self._live)
        seen: Any = _without_nan(x)
        for transformer in live:
            if transformer._supervised:
                transformer.learn_one(seen, y)  # type: ignore[call-arg]
            seen = transformer.transform_one(seen)
        self._live = live
        self._heard.append([_without_nan(x), y])

    def transform(self, x: Features) -> Features:
        """Return the features as the last transformer in use returns them."""
        seen: Any = _without_nan(x)
        for transformer in self._used:
            seen = transformer.transform_one(seen)
        return seen  # type: ignore[no-any-return]

    def state(self) -> State:
        """Return the events and labels of the warm-up, from which transformers are rebuilt."""
        fresh = self._heard[len(self._plain) :]
        self._plain += [[plain_features(x), *rest] for x, *rest in fresh]
        return {"n": self._n, "heard": self._plain.copy()}

    def load_state(self, state: State) -> None:
        """Learn again everything that the state contains."""
        for features, *label in state["heard"]:
            if label:
                self.learn(features_of(features), label[0])
            else:
                self.observe(features_of(features))
        self._n = int(state["n"])


def _without_nan(x: Features) -> dict[Any, Any]:
    # A copy: some transformers, as River's Renamer, change the features that they are given.
    return {name: value for name, value in x.items() if value == value}


def _usable(made: Features) -> Features:
    """Drop what is not finite, such as a largest value before there is any."""
    return {
        name: value
        for name, value in made.items()
        if not (isinstance(value, float) and not math.isfinite(value))
    }
