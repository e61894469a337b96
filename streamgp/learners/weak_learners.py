"""The weak learners of an ensemble: what boosting asks of them, and clones of any classifier.

Forests have an implementation of their own, many times as fast (`WeakForests`).

"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from river import base

from streamgp.base import Array, Features, Label
from streamgp.common.counter_rng import uniform
from streamgp.learners.forest import OnlineForestClassifier
from streamgp.learners.river_adapters import EstimatorOptions, as_classifier, feature_rows, split

if TYPE_CHECKING:
    import pandas as pd


class WeakLearners(Protocol):
    """Classifiers that learn the same examples, each with a weight of its own."""

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""

    def __len__(self) -> int: ...

    def meet(self, x: Features, y: Label) -> None:
        """Take in the example that is to be learned next."""

    def learn(self, m: int, w: float) -> Mapping[Label, float]:
        """Let learner `m`, 0 first, learn it; return its probabilities of all known classes."""

    def probabilities(self, x: Features) -> Array:
        """Return what each predicts for the known classes, shape (n, C)."""

    def probabilities_many(self, X: pd.DataFrame) -> Array:
        """Return what each predicts for each row of a data frame, shape (N, n, C)."""


class Clones:
    """Clones of a classifier as weak learners.

    A classifier whose `learn_one` takes no weight learns an example `w` times on average instead.
    One that has nothing to say gives all classes the same probability.

    Parameters
    ----------
    learners
        The clones, unlearned; this object makes them its own.
    seed
        Seed of the rounding of weights.

    """

    # _takes_weight  whether `learn_one` has a parameter `w`
    # _labels        classes that an example had, or that a learner has named; a dict for its order
    # _n_learned     examples learned by each; it numbers the draws
    # _met           the example to be learned
    def __init__(self, learners: list[Any], seed: int) -> None:
        _, last = split(learners[0], as_classifier)
        self._takes_weight = EstimatorOptions(last, "predict_proba_one").weight
        self._learners = learners
        self._seed = seed
        # A binary classifier knows both of its classes beforehand.
        self._labels: dict[Label, None] = {} if last._multiclass else {False: None, True: None}
        self._n_learned = [0] * len(learners)
        self._met: tuple[Features, Label]

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return list(self._labels)

    def __len__(self) -> int:
        return len(self._learners)

    def meet(self, x: Features, y: Label) -> None:
        """Take in the example that is to be learned next."""
        self._met = dict(x), y

    def learn(self, m: int, w: float) -> Mapping[Label, float]:
        """Let learner `m`, 0 first, learn it; return its probabilities of all known classes."""
        learner, (x, y) = self._learners[m], self._met
        if self._takes_weight:
            learner.learn_one(x, y, w=w)
        else:
            for _ in range(self._times(m, w)):
                learner.learn_one(x, y)
        self._n_learned[m] += 1
        said = learner.predict_proba_one(x)
        self._labels.update(dict.fromkeys([y, *said]))
        return dict(zip(self._labels, _row(said, self._labels), strict=True))

    def probabilities(self, x: Features) -> Array:
        """Return what each predicts for the known classes, shape (n, C)."""
        said = [learner.predict_proba_one(x) for learner in self._learners]
        return np.array([_row(p, self._labels) for p in said], dtype=float)

    def probabilities_many(self, X: pd.DataFrame) -> Array:
        """Return what each predicts for each row of a data frame, shape (N, n, C)."""
        if not isinstance(self._learners[0], base.MiniBatchClassifier):
            rows = [self.probabilities(x) for x in feature_rows(X)]
            return np.array(rows).reshape(len(rows), len(self), len(self._labels))
        frames = [learner.predict_proba_many(X) for learner in self._learners]
        return np.stack([_rows(frame, list(self._labels)) for frame in frames], axis=1)

    def _times(self, m: int, w: float) -> int:
        # Rounded at random: a weight of 1, that of every example in the first of them, is learned
        # once, where a Poisson draw would leave out a third of the examples.
        whole = int(w)
        draw = uniform(self._seed, str(self._n_learned[m]), f"times {m}")
        return whole + (draw < w - whole)


def _row(said: Mapping[Label, float], labels: Collection[Label]) -> list[float]:
    """Return probabilities in the order of the classes."""
    if not said:
        return [1.0 / len(labels) for _ in labels]
    return [said.get(y, 0.0) for y in labels]


def _rows(frame: pd.DataFrame, labels: list[Label]) -> Array:
    """Return probabilities in the order of the classes, shape (N, C)."""
    if frame.columns.empty:
        return np.tile(np.array(_row({}, labels)), (len(frame), 1))
    rows: Array = frame.reindex(columns=labels, fill_value=0.0).to_numpy(dtype=float)
    return rows


def clones(model: Any, n: int, seed: int) -> Clones:
    """Return clones of a classifier whose seeds, at any depth, follow from one and differ.

    Parameters
    ----------
    model
        The classifier, or a pipeline that ends in one; it stays unlearned.
    n
        How many.
    seed
        Seed of all that is random in them.

    Raises
    ------
    TypeError
        If the model is no classifier that predicts probabilities, or is an active learner.

    """
    split(model, as_classifier)
    return Clones([_reseeded(model, seed, f"weak learner {m}") for m in range(n)], seed)


def _reseeded(model: Any, seed: int, purpose: str) -> Any:
    return model.clone(_seeds(model, seed, purpose))


def _seeds(model: Any, seed: int, purpose: str) -> dict[str, Any]:
    """Return the parameters that a clone is to have anew, in the form that `clone` takes."""
    from river.compose import Pipeline

    if isinstance(model, Pipeline):
        parts = {name: _seeds(s, seed, f"{purpose}/{name}") for name, s in model.steps.items()}
        return {name: part for name, part in parts.items() if part}
    found: dict[str, Any] = {}
    for name in model._get_params():
        value = getattr(model, name, None)  # a union of transformers has parts, not attributes
        if name == "seed":
            found[name] = int(uniform(seed, purpose, "seed") * 2**32)
        elif isinstance(value, base.Estimator):
            found[name] = _reseeded(value, seed, f"{purpose}/{name}")
    return found


# --- Online forests as weak learners: all of them in the same arrays, one descent for an
# example.


class WeakForests:
    """Forests as weak learners; to the last bit what as many clones with their seeds are.

    Parameters
    ----------
    model
        What each forest is like; it stays unlearned.
    n
        How many.
    seed
        Seed from which theirs follow.

    """

    def __init__(self, model: OnlineForestClassifier, n: int, seed: int) -> None:
        self._n = n
        self._forests = model.clone({"seed": seed}).forests(n)

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return self._forests.labels

    @property
    def n_nodes(self) -> list[int]:
        """Number of nodes of each tree, forest after forest."""
        return self._forests.n_nodes

    def __len__(self) -> int:
        return self._n

    def meet(self, x: Features, y: Label) -> None:
        """Take in the example that is to be learned next."""
        self._forests.meet(x, y)

    def learn(self, m: int, w: float) -> Mapping[Label, float]:
        """Let forest `m`, 0 first, learn it; return its probabilities of all known classes."""
        return dict(zip(self._forests.labels, self._forests.learn(m, w).tolist(), strict=True))

    def probabilities(self, x: Features) -> Array:
        """Return what each predicts for the known classes, shape (n, C)."""
        return self._forests.probabilities(x)

    def probabilities_many(self, X: pd.DataFrame) -> Array:
        """Return what each predicts for each row of a data frame, shape (N, n, C)."""
        return self._forests.probabilities_many(feature_rows(X))
