"""The strategies of River and scikit-activeml as query strategies of streamgp.

They are used through their public interface alone, with the class probabilities of an event in
place of its features, and a classifier that returns what it is given: they decide only when to ask.
Unlike streamgp's own rules they contain their budget, so each event must be decided exactly once.

"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from river.active import EntropySampler

from streamgp.base import Array, Belief, Decision
from streamgp.query import criteria
from streamgp.query.strategies import ONE_CLASS_RATE

HAS_SKACTIVEML = importlib.util.find_spec("skactiveml") is not None


class RiverAsk:
    """River's `EntropySampler`: ask with probability `entropy ** discount_factor`.

    The entropy is divided by that of a uniform choice among the classes of non-zero probability.
    As long as at most one class is known, the sampler does not ask, so it would never start; here
    it starts like streamgp's rules on class probabilities.

    Parameters
    ----------
    discount_factor
        The larger, the fewer labels.
    seed
        Seed of the sampler's draws.

    """

    def __init__(self, discount_factor: float, seed: int) -> None:
        self._sampler: Any = EntropySampler(_Echo(), discount_factor, seed)

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Query the sampler; once for every event, as it draws each time."""
        p = criteria.probabilities(belief)
        if len(p) < 2:
            return _cold_start(len(p), draw, "EntropySampler")
        _, asks = self._sampler.predict_proba_one(p)
        return Decision.of(float(asks), 0.0, "EntropySampler")


class SkactivemlAsk:
    """A stream strategy of scikit-activeml with its own budget manager.

    It sees the probabilities of all classes, also of those still to come: 0 for these, all equal
    while nothing is known.

    Parameters
    ----------
    name
        Class in `skactiveml.stream`: a baseline, or one of Žliobaitė's uncertainty strategies.
    budget
        Share of events that may be asked about.
    n_classes
        Number of classes in the whole stream.
    seed
        Seed of the strategy's draws.

    """

    def __init__(self, name: str, budget: float, n_classes: int, seed: int) -> None:
        from skactiveml import stream

        options: dict[str, Any] = {"budget": budget, "random_state": seed}
        # Its threshold is fixed, at a probability that a single known class always exceeds.
        self._deadlocks = name == "FixedUncertainty"
        if self._deadlocks:
            options["classes"] = list(range(n_classes))
        self._strategy: Any = getattr(stream, name)(**options)
        self._more: dict[str, Any] = {} if name in _BASELINES else {"clf": _echo_of_arrays()}
        self._n_classes = n_classes
        self._name = name

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Query the strategy, and update it with its decision; once for every event."""
        known = list(criteria.probabilities(belief).values())
        p = self._padded(known)
        queried = self._strategy.query(p, **self._more)
        decision = Decision.of(float(len(queried) > 0), 0.0, self._name)
        if self._deadlocks and len(known) == 1:
            decision = _cold_start(1, draw, self._name)
        self._strategy.update(p, [0] if decision.ask else [])
        return decision

    def _padded(self, p: list[float]) -> Array:
        if not p:
            return np.full((1, self._n_classes), 1.0 / self._n_classes)
        return np.array([p + [0.0] * (self._n_classes - len(p))])


_BASELINES = ("StreamRandomSampling", "PeriodicSampling")


class _Echo:
    """Classifier that predicts the probabilities it is given."""

    def predict_proba_one(self, p: Any) -> Any:
        return p


def _echo_of_arrays() -> Any:
    from skactiveml.base import SkactivemlClassifier

    class Echo(SkactivemlClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # noqa: ARG002
            return self

        def predict_proba(self, X: Array) -> Array:
            return X

    return Echo()


def _cold_start(n_known: int, draw: float, name: str) -> Decision:
    """Decide as streamgp's rules on class probabilities do while fewer than two are known."""
    return Decision.of(ONE_CLASS_RATE if n_known else 1.0, draw, name)
