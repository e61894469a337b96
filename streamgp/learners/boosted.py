"""What boosting ensembles share: Algorithm 1 for any agreement, and the face of a River classifier.

What an agreement is, is not said here (`streamgp.learners.agreement`), nor how a weak learner
learns with a weight (`streamgp.learners.weak`).

"""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from streamgp.arguments import check_whole
from streamgp.base import Array, Features, Label, Preset, State, check_label, check_preset
from streamgp.draws import check_seed
from streamgp.learners.forest import OnlineForestClassifier
from streamgp.learners.frames import feature_rows, frame_like, series_like
from streamgp.learners.unretained import Unretained
from streamgp.learners.weak import WeakLearners, clones
from streamgp.learners.weak_forests import WeakForests
from streamgp.uncertainty import uncertainty as uncertainty_named

if TYPE_CHECKING:
    import pandas as pd

FORESTS: Mapping[Preset, Mapping[str, Any]] = {
    "default": {"n_tests": 50, "min_weight": 100},
    "paper": {"n_tests": 20, "min_weight": 100, "inherit": False},
}
"""The forests that stand for no model, by preset."""
SHRINKAGE: Mapping[Preset, float] = {"default": 1.0, "paper": 0.5}
"""What share of an agreement counts, by preset."""

# An example that all weak learners so far got wrong would have a weight of e^9 in the tenth.
MAX_WEIGHT = 10.0
# What is learned is predicted from then on, so that weights shrink: their mean is of the latest
# hundred or so.
_FORGETTING = 0.01
# Rows of a data frame that are predicted at a time: probabilities of every weak learner take room.
_ROWS = 1000


class BoostedClassifier(Unretained, base.MiniBatchClassifier, ABC):
    """Online boosting of weak learners, with an agreement of its own."""

    # _weak      the weak learners
    # _n_learned number of examples learned
    # _mean_weights  of the latest weights of each weak learner, before they were normalised
    def __init__(
        self,
        model: base.Classifier | None = None,
        n_models: int = 10,
        uncertainty: str = "bvsb",
        normalise_weights: bool = False,
        preset: Preset = "default",
        seed: int | None = None,
    ) -> None:
        self.model = model
        self.n_models = n_models
        self.uncertainty = uncertainty
        self.normalise_weights = normalise_weights
        self.preset = preset
        self.seed = seed
        check_preset(preset)
        check_whole("n_models", n_models, 1)
        check_seed(seed)
        self._uncertainty = uncertainty_named(uncertainty)
        # Which seed it has does not matter, as those of the weak learners are their own.
        self._template: base.Classifier = (
            OnlineForestClassifier(**FORESTS[preset], seed=0) if model is None else model
        )
        self._begin(secrets.randbits(32) if seed is None else int(seed))

    def _begin(self, seed: int) -> None:
        self._seed = seed
        self._weak = _weak_learners(self._template, int(self.n_models), seed)
        self._n_learned = 0
        self._mean_weights = [0.0] * len(self._weak)

    @abstractmethod
    def _agreement(self, p: Mapping[Label, float], y: Label) -> float:
        """Return how far the probabilities of all known classes agree with a label."""

    @property
    def _multiclass(self) -> bool:
        multiclass: bool = self._template._multiclass
        return multiclass

    @property
    def n_learned(self) -> int:
        """Number of examples learned."""
        return self._n_learned

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return list(self._weak.labels)

    @property
    def mean_weights(self) -> list[float]:
        """Mean weight of the latest examples in each weak learner, before it is normalised."""
        return list(self._mean_weights)

    @property
    def n_nodes(self) -> list[int] | None:
        """Nodes of each tree, weak learner after weak learner; None unless they are forests."""
        return self._weak.n_nodes if isinstance(self._weak, WeakForests) else None

    @property
    def refuses_whole(self) -> bool:
        """Whether an example that is refused changes nothing."""
        # Of any other weak learners, some may have learned it when another one refuses.
        return isinstance(self._template, OnlineForestClassifier)

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn that `x` is a `y`.

        Raises
        ------
        TypeError
            If the label is missing, or a weak learner cannot use a feature.
        ValueError
            If a weak learner cannot use a feature.

        """
        check_label(y)
        weak, share = self._weak, SHRINKAGE[self.preset]
        weak.meet(x, y)
        weight, total = 1.0, 0.0  # Alg. 1, lines 3-4
        for m in range(len(weak)):
            p = weak.learn(m, self._scaled(m, weight))  # lines 6-7
            total += share * self._agreement(p, y)  # lines 8-9
            weight = min(math.exp(-total), MAX_WEIGHT)  # line 10
        self._n_learned += 1

    def predict_proba_one(self, x: Features) -> dict[Label, float]:  # type: ignore[override]
        """Predict the probability of each known class: the mean of those of the weak learners.

        `{}` before the first label.
        """
        return dict(zip(self.labels, _mean(self._weak.probabilities(x)).tolist(), strict=True))

    def confidence_one(self, x: Features) -> float:
        """Return how sure the ensemble is of its prediction: 1 minus its uncertainty."""
        return 1.0 - self._uncertainty(self.predict_proba_one(x))

    # --- many at once

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a data frame, one after the other."""
        for x, label in zip(feature_rows(X), y.tolist(), strict=True):
            self.learn_one(x, label)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probability of each known class for each row of a data frame."""
        parts = [X.iloc[n : n + _ROWS] for n in range(0, max(len(X), 1), _ROWS)]
        P = np.concatenate([_mean(self._weak.probabilities_many(part)) for part in parts])
        return frame_like(X, dict(zip(self.labels, P.T, strict=True)))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the most probable class of each row of a data frame."""
        labels = self.labels
        P = self.predict_proba_many(X).to_numpy()
        return series_like(X, [labels[i] for i in P.argmax(axis=1)] if labels else [None] * len(X))

    # --- over a restart

    def state(self) -> State | None:
        """Return what is no function of the examples, as plain JSON values; None for nothing.

        That is a seed that was drawn. A classifier that takes it over with `load_state`, and is
        taught all examples in their order, is this one to the last bit.
        """
        return {"seed": self._seed} if self.seed is None else None

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; this classifier has learned nothing yet."""
        if state is not None:
            self._begin(int(state["seed"]))

    # --- inside

    def _scaled(self, m: int, weight: float) -> float:
        """Return the weight with which a weak learner learns, and take note of it."""
        rate = max(1.0 / (self._n_learned + 1), _FORGETTING)
        self._mean_weights[m] += rate * (weight - self._mean_weights[m])
        if not self.normalise_weights:
            return weight
        # Leaves split by weight: where most examples weigh next to nothing, trees hardly grow.
        return min(weight / self._mean_weights[m], MAX_WEIGHT)


def _mean(P: Array) -> Array:
    """Return the mean of probabilities (..., n, C) over the weak learners, shape (..., C)."""
    # One after the other, so that one example and many have the same bits.
    mean: Array = np.cumsum(P, axis=-2)[..., -1, :] / P.shape[-2]
    return mean


def _weak_learners(model: base.Classifier, n: int, seed: int) -> WeakLearners:
    if isinstance(model, OnlineForestClassifier):
        return WeakForests(model, n, seed)
    return clones(model, n, seed)
