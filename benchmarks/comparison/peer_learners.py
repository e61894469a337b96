"""Classifiers that learn one event at a time, the Gaussian process among them, by their names."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from river import base, dummy, forest, naive_bayes, neighbors, tree

from streamgp import GPClassifier
from streamgp.base import Array, Features, Label
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE

EXACT = "GPClassifier()"
BOUNDED = "GPClassifier(max_points=200)"
FITTED = "exact, learning hyperparameters"
BOTH = "200 points, learning hyperparameters"
REFITTED = "scikit-learn's GP, refitted"
GPYTORCH = "GPyTorch's GP, refitted"
AMF = "River AMF"
TREE = "River Hoeffding tree"
BAYES = "River Gaussian naive Bayes"
NO_CHANGE = "no change"

NEEDED = {REFITTED: "sklearn", GPYTORCH: "gpytorch"}
"""Modules without which a classifier is left out."""


def missing(name: str) -> str | None:
    """Return a module that a classifier needs and that is not installed."""
    module = NEEDED.get(name)
    return module if module is not None and importlib.util.find_spec(module) is None else None


_NOISE = 0.5


def _nearest(seed: int) -> base.Classifier:
    """Return River's default with a seed: its graph of neighbours is random."""
    engine = neighbors.KNNClassifier().engine
    return neighbors.KNNClassifier(engine=engine.clone({"seed": seed}))


BUILDERS: dict[str, Callable[[int], base.Classifier]] = {
    EXACT: lambda _: GPClassifier(),
    BOUNDED: lambda _: GPClassifier(max_points=200),
    FITTED: lambda _: GPClassifier(learn_hyperparameters=True),
    BOTH: lambda _: GPClassifier(max_points=200, learn_hyperparameters=True),
    REFITTED: lambda _: RefittedGP(),
    GPYTORCH: lambda seed: GPyTorchGP(seed),
    AMF: lambda seed: forest.AMFClassifier(seed=seed),
    "River KNN": _nearest,
    "River ARF": lambda seed: forest.ARFClassifier(seed=seed),
    TREE: lambda _: tree.HoeffdingTreeClassifier(),
    BAYES: lambda _: naive_bayes.GaussianNB(),
    NO_CHANGE: lambda _: dummy.NoChangeClassifier(),
}


class _Refitted(base.Classifier):  # type: ignore[misc]
    """Regression on class indicators, refitted whenever the number of labels has doubled.

    It starts with the kernel and noise of `GPClassifier()`.
    """

    # _points, _indices  everything learned, the classes numbered
    # _means  posterior means of the classes at a point, by the last fit; None before the first
    # _n_next  number of examples at which it is fitted next
    def __init__(self) -> None:
        self._names: list[Any] = []
        self._labels: list[Label] = []
        self._points: list[list[float]] = []
        self._indices: list[int] = []
        self._means: Callable[[list[float]], Array] | None = None
        self._n_next = 1

    def learn_one(self, x: Features, y: Label) -> None:
        """Keep an event, and refit if it is time."""
        self._names = self._names or list(x)
        if y not in self._labels:
            self._labels.append(y)
        self._points.append([x[name] for name in self._names])
        self._indices.append(self._labels.index(y))
        if len(self._points) == self._n_next:
            scale = LENGTH_SCALE_PER_ROOT_FEATURE * len(self._names) ** 0.5
            indicators = np.eye(len(self._labels))[self._indices]
            self._means = self._fit(np.array(self._points), indicators, scale)
            self._n_next *= 2

    def predict_one(self, x: Features, **_: Any) -> Label | None:
        """Return the label that the last fit predicts."""
        if self._means is None:
            return None
        return self._labels[int(np.argmax(self._means([x[name] for name in self._names])))]

    def _fit(self, X: Array, Y: Array, scale: float) -> Callable[[list[float]], Array]:
        raise NotImplementedError


class RefittedGP(_Refitted):
    """scikit-learn's Gaussian process with fixed kernel and noise.

    Its predictions would equal those of `GPClassifier()` if it were fitted after every event, at a
    cost of n³ each time.
    """

    def _fit(self, X: Array, Y: Array, scale: float) -> Callable[[list[float]], Array]:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF

        process = GaussianProcessRegressor(RBF(scale), alpha=_NOISE, optimizer=None).fit(X, Y)
        return lambda point: process.predict([point])  # type: ignore[no-any-return]


class GPyTorchGP(_Refitted):
    """GPyTorch's exact Gaussian processes, one for each class.

    Each fit takes a few steps of Adam on the marginal likelihood, starting from the kernel and
    noise of `GPClassifier()`, with separate length scale, variance and noise for each class: the
    batch of independent processes that GPyTorch's documentation shows.
    """

    def __init__(self, seed: int, n_steps: int = 10) -> None:
        super().__init__()
        self.seed = seed
        self.n_steps = n_steps

    def _fit(self, X: Array, Y: Array, scale: float) -> Callable[[list[float]], Array]:
        import gpytorch
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        # Converted through lists, which works with any versions of numpy and torch.
        points = torch.tensor(X.tolist(), dtype=torch.float64)
        targets = torch.tensor(Y.T.tolist(), dtype=torch.float64)
        many = torch.Size([len(targets)])

        class Process(gpytorch.models.ExactGP):  # type: ignore[misc]
            def __init__(self, likelihood: Any) -> None:
                super().__init__(points, targets, likelihood)
                self.mean_module = gpytorch.means.ZeroMean(batch_shape=many)
                kernel = gpytorch.kernels.RBFKernel(batch_shape=many)
                self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=many)

            def forward(self, x: Any) -> Any:
                mean, covariance = self.mean_module(x), self.covar_module(x)
                return gpytorch.distributions.MultivariateNormal(mean, covariance)

        likelihood = gpytorch.likelihoods.GaussianLikelihood(batch_shape=many)
        process = Process(likelihood).double()
        likelihood.noise = _NOISE
        process.covar_module.outputscale = 1.0
        process.covar_module.base_kernel.lengthscale = scale
        process.train()
        optimizer = torch.optim.Adam(process.parameters(), lr=0.1)
        evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
        for _ in range(self.n_steps):
            optimizer.zero_grad()
            loss = -evidence(process(points), targets).sum()
            loss.backward()
            optimizer.step()
        process.eval()

        def means(point: list[float]) -> Array:
            with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
                found = process(torch.tensor([point], dtype=torch.float64)).mean
            return np.array(found.tolist())

        return means
