"""Regressors of River and scikit-learn as learners of the same stream, one example at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from streamgp import EnsembleGPRegressor

Build = Callable[[int], Any]


class RefittedGP:
    """scikit-learn's exact Gaussian process, fitted anew whenever there are a tenth more examples.

    Parameters
    ----------
    seed
        Seed of the restarts of its search.

    """

    def __init__(self, seed: int) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor, kernels

        kernel = kernels.ConstantKernel(1.0) * kernels.RBF(3.0) + kernels.WhiteKernel(0.1)
        self._model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
        self._X: list[list[float]] = []
        self._y: list[float] = []
        self._due = 10

    def predict_one(self, x: dict[str, float]) -> float:
        """Predict a target; 0 before the first fit."""
        if len(self._X) < 10:
            return 0.0
        return float(self._model.predict(np.array([list(x.values())]))[0])

    def learn_one(self, x: dict[str, float], y: float) -> None:
        """Keep an example, and fit if it is time."""
        self._X.append(list(x.values()))
        self._y.append(y)
        if len(self._X) >= self._due:
            with warnings.catch_warnings():
                # That noise is small, while there are few examples.
                warnings.simplefilter("ignore")
                self._model.fit(np.array(self._X), np.array(self._y))
            self._due = math.ceil(1.1 * len(self._X))


class SgdOnFeatures:
    """scikit-learn's stochastic gradient descent on its random Fourier features.

    Parameters
    ----------
    seed
        Seed of the features.

    """

    def __init__(self, seed: int) -> None:
        from sklearn.kernel_approximation import RBFSampler
        from sklearn.linear_model import SGDRegressor

        self._features = RBFSampler(gamma=0.05, n_components=100, random_state=seed)
        self._model = SGDRegressor(random_state=seed, alpha=1e-5)
        self._n = 0

    def predict_one(self, x: dict[str, float]) -> float:
        """Predict a target; 0 before the first example."""
        if self._n == 0:
            return 0.0
        return float(self._model.predict(self._features.transform([list(x.values())]))[0])

    def learn_one(self, x: dict[str, float], y: float) -> None:
        """Take one step."""
        row = [list(x.values())]
        if self._n == 0:
            self._features.fit(row)
        self._model.partial_fit(self._features.transform(row), [y])
        self._n += 1


def _ensemble(seed: int) -> Any:
    return EnsembleGPRegressor(seed=seed)


def _forest(seed: int) -> Any:
    from river import forest

    return forest.ARFRegressor(seed=seed)


def _neighbours(seed: int) -> Any:  # noqa: ARG001 - draws nothing
    from river import neighbors

    return neighbors.KNNRegressor(n_neighbors=5)


def _tree(seed: int) -> Any:
    from river import forest

    return forest.AMFRegressor(seed=seed)


ENSEMBLE = "EnsembleGPRegressor"
PEERS: dict[str, Build] = {
    ENSEMBLE: _ensemble,
    "River ARFRegressor": _forest,
    "River AMFRegressor": _tree,
    "River KNNRegressor": _neighbours,
    "scikit-learn GaussianProcessRegressor": RefittedGP,
    "scikit-learn SGDRegressor on RBFSampler": SgdOnFeatures,
}
