"""Skeptical learning as it was before Gaussian processes: a random forest in three stages.

The baseline of the ISGP paper ("SRF"), after Zeni et al., 2019, as far as the ISGP paper describes
it. The forest is scikit-learn's, retrained as in the papers.

"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from river import base
from sklearn import config_context
from sklearn.ensemble import RandomForestClassifier

from benchmarks.papers.isgp.three_stage import StagedSkepticalClassifier
from streamgp.base import Array, FeatureName, Features, Label

_GROWTH = 0.05


def srf(
    theta: float,
    *,
    n_trees: int = 100,
    names: tuple[FeatureName, ...] | None = None,
    seed: int = 0,
) -> StagedSkepticalClassifier:
    """Return a skeptical random forest; the arguments are those of `RetrainedForest`."""
    return StagedSkepticalClassifier(RetrainedForest(n_trees, names, seed), theta, seed=seed)


class RetrainedForest(base.Classifier):
    """A random forest that is retrained whenever the number of labels has grown by a twentieth.

    Parameters
    ----------
    n_trees
        Number of trees.
    names
        Names of the features, if an event may lack some, which scikit-learn's trees can handle.
        None if every event has the same ones in the same order.
    seed
        Seed of the forest.

    Attributes
    ----------
    n_fits
        How often the forest was trained.

    """

    # _points, _labels  what was learned
    # _forest  trained on the first _n_fitted of them; None before the first
    def __init__(
        self, n_trees: int = 100, names: tuple[FeatureName, ...] | None = None, seed: int = 0
    ) -> None:
        self.n_trees = n_trees
        self.names = names
        self.seed = seed
        self.n_fits = 0
        self._points: list[list[float]] = []
        self._labels: list[Label] = []
        self._forest: RandomForestClassifier | None = None
        self._n_fitted = 0

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: Features) -> dict[Label, float]:  # type: ignore[override]
        """Return the probability of each label known at the last training."""
        if self._forest is None:
            return {}
        return dict(zip(self._forest.classes_.tolist(), self._proba([x])[0].tolist(), strict=True))

    def predict_points(self, points: Sequence[Features]) -> list[Label]:
        """Predict the label of many events at once."""
        if self._forest is None:
            raise ValueError("nothing was learned yet")
        classes: list[Label] = self._forest.classes_[self._proba(points).argmax(axis=1)].tolist()
        return classes

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn a label."""
        self._points.append(self._row(x))
        self._labels.append(y)
        if len(self._labels) >= math.ceil((1.0 + _GROWTH) * self._n_fitted):
            self._fit()

    def _row(self, x: Features) -> list[float]:
        if self.names is None:
            return [*x.values()]
        return [x.get(name, math.nan) for name in self.names]

    def _fit(self) -> None:
        forest = RandomForestClassifier(self.n_trees, random_state=self.seed)
        # Validating each tree's arguments takes a quarter of the time.
        with config_context(skip_parameter_validation=True, assume_finite=True):
            self._forest = forest.fit(np.array(self._points), np.array(self._labels))
        self.n_fits += 1
        self._n_fitted = len(self._labels)

    def _proba(self, points: Sequence[Features]) -> Array:
        # The same as RandomForestClassifier.predict_proba, without its preparations for large
        # inputs, which take ten times as long.
        X = np.array([self._row(x) for x in points], dtype=np.float32)
        assert self._forest is not None
        trees = self._forest.estimators_
        proba: Array = sum(tree.tree_.predict(X) for tree in trees) / len(trees)
        return proba
