"""Online random forest: the weak learner of boosting, and a fast learner in its own right.

Dictionaries and labels in, probabilities out; the trees are `streamgp.trees`.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from streamgp.base import Array, Features, Label
from streamgp.common.validation import check_flag, check_number, check_whole
from streamgp.features import ColumnsWithGaps
from streamgp.learners.numbering import Classes
from streamgp.learners.river_adapters import (
    Seeded,
    feature_rows,
    frame_like,
    labelled_rows,
    one_for_each_row,
    series_like,
    settings_of,
)
from streamgp.trees.forest import Forest
from streamgp.trees.storage import Limits

if TYPE_CHECKING:
    import pandas as pd


# --- Several online random forests over the same dictionaries of features.
# They settle which feature is which column, and which class has which number. What the forests are
# for is up to the learner around them.


LARGEST_WEIGHT = 1e5
"""Largest weight of an example, so that sums of squared weights stay exact for long."""


# Ranges of the arguments. Memory grows with them when a forest is created, or a leaf is split.
_RANGES = {
    "n_models": (1, 10_000),
    "n_tests": (1, 10_000),
    "min_weight": (2, 100_000),
    "max_nodes": (1, 1_000_000_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestSettings:
    """The arguments of a forest, under their names.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its type, or out of range.

    """

    n_models: int
    n_tests: int
    min_weight: int
    max_nodes: int
    inherit: bool

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            check_whole(name, getattr(self, name), least, most)
        check_flag("inherit", self.inherit)

    @property
    def limits(self) -> Limits:
        """Limits that decide when a leaf is split."""
        return Limits(
            n_tests=int(self.n_tests),
            min_weight=int(self.min_weight),
            max_nodes=int(self.max_nodes),
            inherit=int(self.inherit),
        )


def check_weight(w: float) -> None:
    """Refuse a weight that no example can have."""
    # Called by every member of an ensemble for every example: a plain float takes a shortcut.
    if not (w.__class__ is float and _is_weight(w)):
        check_number("w", w, f"between 0 and {LARGEST_WEIGHT:.0e}", _is_weight)


def _is_weight(w: float) -> bool:
    return 0.0 <= w <= LARGEST_WEIGHT


class Forests:
    """Several forests that learn the same examples, each with its own weights.

    They are `WeakLearners` of boosting. Each is, bitwise, an `OnlineForestClassifier` with its seed
    that has learned the same examples with the same weights.

    Parameters
    ----------
    settings
        How each of them is built.
    seeds
        The seed of each.

    Attributes
    ----------
    n_learned
        Number of examples learned by each.

    Examples
    --------
    >>> from streamgp import OnlineForestClassifier
    >>> forests = OnlineForestClassifier().forests([66840870, 3564991678])
    >>> forests.meet({"light": 0.9}, "awake")
    >>> forests.learn(0, 1.0), forests.learn(1, 0.5)
    ({'awake': 1.0}, {'awake': 1.0})
    >>> forests.meet({"light": 0.1}, "asleep")
    >>> forests.learn(0, 1.0)
    {'awake': 0.56..., 'asleep': 0.43...}

    """

    # _classes  the known classes
    # _columns  which feature is which column
    # _forest   the forests; they know classes by their numbers
    def __init__(self, settings: ForestSettings, seeds: Sequence[int]) -> None:
        self._classes = Classes()
        self._columns = ColumnsWithGaps()
        self._forest = Forest(int(settings.n_models), settings.limits, seeds)

    def __len__(self) -> int:
        return len(self.n_learned)

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return self._classes.labels

    @property
    def n_learned(self) -> list[int]:
        """Number of examples learned by each forest."""
        return self._forest.n_learned

    @property
    def n_nodes(self) -> list[int]:
        """Number of nodes of each tree, forest after forest."""
        nodes: list[int] = self._forest.n_nodes.tolist()
        return nodes

    def check(self, x: Features, y: Label) -> None:
        """Refuse what cannot be learned, as `meet` does; changes nothing."""
        self._classes.number(y)
        self._columns.vector(x)

    def meet(self, x: Features, y: Label) -> None:
        """Take in the example that each forest may learn next.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string, or the label is missing.
        ValueError
            If a feature is infinite, or the label equals a class of another type.

        """
        number = self._classes.number(y)
        vector = self._columns.known_vector(x)
        if vector is None:
            columns = self._columns.widened(x)
            vector = columns.vector(x)
            if columns is not self._columns:
                first = len(self._columns)
                self._forest.widen([i in columns.texts for i in range(first, len(columns))])
                self._columns = columns
        if number == len(self._classes):
            self._classes.add(y)
            self._forest.add_class()
        self._forest.meet(vector, number)

    def learn(self, m: int, w: float) -> dict[Label, float]:
        """Let forest m learn the example met, and return its prediction for it afterwards.

        Parameters
        ----------
        m
            Number of the forest, which has not learned this example yet.
        w
            Weight of the example; with 0 nothing is learned.

        Returns
        -------
        Probability of each class.

        Raises
        ------
        ValueError
            If the weight is negative, infinite or above 1e5.

        """
        check_weight(w)
        return dict(zip(self.labels, self._forest.learn(m, float(w)).tolist(), strict=True))

    def probabilities(self, x: Features) -> Array:
        """Return the probability of each class by each forest, shape (forests, classes)."""
        proba: Array = self._forest.predict(np.array([self._columns.vector(x)]))[0]
        return proba

    def probabilities_many(self, X: pd.DataFrame) -> Array:
        """Return the same for each row of a data frame, shape (events, forests, classes)."""
        columns = self._columns
        vectors = np.array([columns.vector(x) for x in feature_rows(X)], dtype=float)
        return self._forest.predict(vectors.reshape(len(X), len(columns)))

    def largest(self, proba: Array) -> Label | None:
        """Return the label of the largest of the probabilities (classes,), None without any."""
        return self._classes.largest(proba.tolist())


class OnlineForestClassifier(Seeded, base.MiniBatchClassifier):
    """Random trees that learn one example at a time, and new classes as they come.

    A leaf keeps its latest examples. Once their weight has grown by `min_weight`, it draws
    `n_tests` random tests of features in which they differ, and is split by the test that best
    separates their classes. Each tree learns an example a Poisson-distributed number of times,
    with the example's weight as the mean. Nothing is ever pruned or forgotten; time and memory are
    bounded by `max_nodes`.

    Numbers need no scaling. A number is compared with a threshold drawn uniformly from the range of
    the feature in the leaf; a string with one of the strings in the leaf. An example in which the
    feature is absent, None or NaN takes the branch that suited such examples best when the leaf was
    split.

    Parameters
    ----------
    n_models
        Number of trees.
    n_tests
        Number of random tests, the best of which splits a leaf.
    min_weight
        Weight of examples after which a leaf is split.
    max_nodes
        Largest number of nodes of a tree; once it is reached, leaves only count classes.
    inherit
        Let the two leaves of a split take over its examples, which then count for their own splits.
        Otherwise they start with the class weights alone, as in the paper, and trees grow half as
        fast (docs/forest.md).
    seed
        Seed of all draws. None draws one.

    Attributes
    ----------
    n_learned
        Number of examples learned; none is retained.
    n_nodes
        Number of nodes of each tree.
    labels
        Known classes, in the order in which they appeared.

    Examples
    --------
    >>> from streamgp import OnlineForestClassifier
    >>> model = OnlineForestClassifier(seed=1)
    >>> for hour in range(200):
    ...     model.learn_one({"hour": hour % 24}, "asleep" if hour % 24 < 8 else "awake")
    >>> model.predict_proba_one({"hour": 3})
    {'asleep': 0.99..., 'awake': 0.00...}

    References
    ----------
    [^1]: Saffari, A., Leistner, C., Santner, J., Godec, M. and Bischof, H., 2009. On-line random
        forests. ICCV Workshops.

    """

    # _forests  a single one
    def __init__(
        self,
        n_models: int = 10,
        n_tests: int = 50,
        min_weight: int = 30,
        max_nodes: int = 2000,
        inherit: bool = True,
        seed: int | None = None,
    ) -> None:
        self.n_models = n_models
        self.n_tests = n_tests
        self.min_weight = min_weight
        self.max_nodes = max_nodes
        self.inherit = inherit
        self.seed = seed
        self._begin_seeded()

    def _begin(self) -> None:
        self._forests = self.forests([self._seed])

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def n_learned(self) -> int:
        """Number of examples learned; none is retained."""
        return self._forests.n_learned[0]

    @property
    def n_nodes(self) -> list[int]:
        """Number of nodes of each tree."""
        return self._forests.n_nodes

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return self._forests.labels.copy()

    def predict_proba_one(self, x: Features) -> dict[Label, float]:  # type: ignore[override]
        """Predict the probability of each known class, `{}` before the first label.

        The mean over the trees of `(c + 1 / C) / (n + 1)` for a class of weight c in a leaf of
        weight n, with C known classes.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string.
        ValueError
            If a feature is infinite.

        """
        proba = self._forests.probabilities(x)[0].tolist()
        return dict(zip(self._forests.labels, proba, strict=True))

    def predict_one(self, x: Features) -> Label | None:  # type: ignore[override]
        """Predict the most probable class, None before the first label."""
        return self._forests.largest(self._forests.probabilities(x)[0])

    def learn_one(self, x: Features, y: Label, w: float = 1.0) -> None:
        """Learn that `x` is a `y`, as if it had been seen `w` times; not at all if that is 0.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a string, the label is missing, or the weight is
            not a number.
        ValueError
            If a feature is infinite, or the weight is negative or above 1e5.

        """
        check_weight(w)
        if w == 0.0:
            self._forests.check(x, y)
            return
        self._forests.meet(x, y)
        self._forests.learn(0, w)

    # --- many at once

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: pd.Series | None = None) -> None:
        """Learn the rows of a data frame, one after the other; each weighs 1 if `w` is None."""
        examples = labelled_rows(X, y)
        weights = [1.0] * len(X) if w is None else one_for_each_row(X, "w", w)
        for (x, label), weight in zip(examples, weights, strict=True):
            self.learn_one(x, label, w=weight)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probability of each known class for each row; faster than one by one."""
        proba = self._forests.probabilities_many(X)[:, 0]
        return frame_like(X, dict(zip(self._forests.labels, proba.T.tolist(), strict=True)))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the most probable class for each row of a data frame."""
        proba = self._forests.probabilities_many(X)[:, 0]
        return series_like(X, [self._forests.largest(p) for p in proba])

    # --- several over the same examples

    def forests(self, seeds: Sequence[int]) -> Forests:
        """Return forests like this one, with other seeds, that have learned nothing."""
        return Forests(settings_of(ForestSettings, self), seeds)

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"seed": 1}
