"""Classifiers that learn one event at a time, the Gaussian process among them, by their names."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from river import base, dummy, forest, naive_bayes, neighbors, tree

from streamgp import GPClassifier
from streamgp.base import Features, Label
from streamgp.learners.gp_classifier import LENGTH_SCALE_PER_ROOT_FEATURE

EXACT = "GPClassifier()"
BOUNDED = "GPClassifier(max_points=200)"
FITTED = "exact, learning hyper-parameters"
BOTH = "200 points, learning hyper-parameters"
REFITTED = "scikit-learn's GP, refitted"
AMF = "River AMF"
TREE = "River Hoeffding tree"
BAYES = "River Gaussian naive Bayes"
NO_CHANGE = "no change"

HAS_SKLEARN = importlib.util.find_spec("sklearn") is not None

BUILDERS: dict[str, Callable[[int], base.Classifier]] = {
    EXACT: lambda _: GPClassifier(),
    BOUNDED: lambda _: GPClassifier(max_points=200),
    FITTED: lambda _: GPClassifier(learn_hyperparameters=True),
    BOTH: lambda _: GPClassifier(max_points=200, learn_hyperparameters=True),
    REFITTED: lambda _: RefittedGP(),
    AMF: lambda seed: forest.AMFClassifier(seed=seed),
    "River KNN": lambda _: neighbors.KNNClassifier(),
    "River ARF": lambda seed: forest.ARFClassifier(seed=seed),
    TREE: lambda _: tree.HoeffdingTreeClassifier(),
    BAYES: lambda _: naive_bayes.GaussianNB(),
    NO_CHANGE: lambda _: dummy.NoChangeClassifier(),
}


class RefittedGP(base.Classifier):  # type: ignore[misc]
    """scikit-learn's Gaussian process, fitted anew whenever the number of labels has doubled.

    A regression of the classes' indicators with the kernel and noise of `GPClassifier()`, whose
    predictions it would share if it were fitted after every event, at a cost of n³ each time.
    """

    # _points, _indices  everything learned, the classes numbered
    # _fitted  the process of the first examples; None before the first
    # _n_next  number of examples at which it is fitted next
    def __init__(self) -> None:
        self._names: list[Any] = []
        self._labels: list[Label] = []
        self._points: list[list[float]] = []
        self._indices: list[int] = []
        self._fitted: Any = None
        self._n_next = 1

    def learn_one(self, x: Features, y: Label) -> None:
        """Keep an event, and fit if it is time."""
        self._names = self._names or list(x)
        if y not in self._labels:
            self._labels.append(y)
        self._points.append([x[name] for name in self._names])
        self._indices.append(self._labels.index(y))
        if len(self._points) == self._n_next:
            self._fit()
            self._n_next *= 2

    def predict_one(self, x: Features, **_: Any) -> Label | None:
        """Return the label that the last fit makes of an event."""
        if self._fitted is None:
            return None
        means = self._fitted.predict([[x[name] for name in self._names]])
        return self._labels[int(np.argmax(means))]

    def _fit(self) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF

        scale = LENGTH_SCALE_PER_ROOT_FEATURE * len(self._names) ** 0.5
        process = GaussianProcessRegressor(RBF(scale), alpha=0.5, optimizer=None)
        indicators = np.eye(len(self._labels))[self._indices]
        self._fitted = process.fit(np.array(self._points), indicators)
