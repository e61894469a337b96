"""Time per step of the ensemble of Gaussian processes, and of its peers.

A step is `EnsembleGPRegressor.predict_one` with a distribution and `learn_one` of the same event,
20 features in a dictionary, one BLAS thread. For comparison, one reading (`ddot` of a buffer with
itself) of as many numbers as the square-root factor of one expert has. Steps of one expert and of
seven are measured at several numbers of labels, on which the time should not depend. Fits of the
hyperparameters, done whenever the number of labels doubles, are left out of the medians and shown
separately.

Then River's and scikit-learn's regressors on a nonlinear stream (Friedman's, noise of variance 1),
every label given: mean squared error over the second half, each target predicted before it is
learned, divided by the variance of the targets; and the time per step. The nearest peer is the one
with the smallest error; errors within a tenth count as equal.

"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    at_most,
    one_thread,
    progress,
    run,
)
from streamgp import EnsembleGPRegressor
from streamgp.kernels import SquaredExponential
from streamgp.metrics import NMSE

# --- regressors of River and scikit-learn as learners of the same stream

Build = Callable[[int], Any]


class RefittedGP:
    """scikit-learn's exact Gaussian process, refitted whenever there are a tenth more examples.

    Parameters
    ----------
    seed
        Seed of the restarts of its optimiser.

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
        """Keep an example, and refit if it is time."""
        self._X.append(list(x.values()))
        self._y.append(y)
        if len(self._X) >= self._due:
            with warnings.catch_warnings():
                # With few examples, it warns that the noise is small.
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


# --- the benchmark

_N_FEATURES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured.

    Parameters
    ----------
    labels
        Numbers of labels at which steps are measured.
    n_steps
        Steps at each.
    n_peers
        Events of the comparison with peers.
    peers
        Names of the learners to compare; None for all.

    """

    labels: tuple[int, ...] = (200, 2000, 20_000, 100_000)
    n_steps: int = 400
    n_peers: int = 1200
    peers: tuple[str, ...] | None = None


_QUICK = Plan(labels=(200, 2000, 8000), n_peers=600)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("egp_speed", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Measure the steps of one expert and of seven, then all peers."""
    plan = plan or (_QUICK if options.quick else Plan())
    with one_thread() as how:
        steps = [*_steps(1, plan, options.seed), *_steps(7, plan, options.seed)]
        names = PEERS if plan.peers is None else plan.peers
        peers = [_peer(name, plan.n_peers, options.seed) for name in names]
    return Outcome(
        rows=[*steps, *peers],
        acceptance=[*_accepted(steps), *_accepted_peers(peers)],
        notes=[f"One BLAS thread: {how}."],
    )


def _steps(n_experts: int, plan: Plan, seed: int) -> list[Row]:
    """Return a row for each number of labels."""
    progress(f"{n_experts} experts")
    scales = [10.0 ** ((c - n_experts // 2) / 2.0) * 4.0 for c in range(n_experts)]
    model = EnsembleGPRegressor([SquaredExponential(scale) for scale in scales], seed=seed)
    rng, rows = np.random.default_rng(seed), []
    factor = rng.normal(size=(2 * model.n_features) ** 2)
    for n in plan.labels:
        while model.n_learned < n:
            x = _drawn(rng)
            model.learn_one(x, math.sin(x["f0"]))
        predicts, learns, readings = [], [], []
        for _ in range(plan.n_steps):
            x = _drawn(rng)
            y, clock = math.sin(x["f0"]), time.perf_counter
            t0 = clock()
            model.predict_one(x, with_dist=True)
            t1 = clock()
            model.learn_one(x, y)
            t2 = clock()
            ddot(factor, factor)
            t3 = clock()
            predicts.append(t1 - t0)
            learns.append(t2 - t1)
            readings.append(t3 - t2)
        step = median(p + q for p, q in zip(predicts, learns, strict=True))
        rows.append(
            {
                "experts": n_experts,
                "labels": n,
                "predict_us": 1e6 * median(predicts),
                "learn_us": 1e6 * median(learns),
                "step_us": 1e6 * step,
                "longest_ms": 1e3 * max(learns),
                "reading_us": 1e6 * median(readings),
                "step_per_reading": step / median(readings),
            }
        )
    return rows


def _drawn(rng: np.random.Generator) -> dict[str, float]:
    return {f"f{j}": value for j, value in enumerate(rng.normal(size=_N_FEATURES).tolist())}


def _peer(name: str, n: int, seed: int) -> Row:
    """Return error and time per step of one learner on the stream."""
    progress(name)
    model, metric, durations = PEERS[name](seed), NMSE(), []
    for i, (x, y) in enumerate(_friedman(n, seed)):
        t0 = time.perf_counter()
        predicted = model.predict_one(x)
        model.learn_one(x, y)
        durations.append(time.perf_counter() - t0)
        if i >= n // 2:
            metric.update(y, predicted)
    second = durations[n // 2 :]
    return {
        "learner": name,
        "events": n,
        "nmse": metric.get(),
        "mean_step_us": 1e6 * sum(second) / len(second),
        "median_step_us": 1e6 * median(second),
    }


def _friedman(n: int, seed: int) -> list[tuple[dict[str, float], float]]:
    """Return Friedman's function of five standardised features."""
    rng: Any = np.random.default_rng(seed)
    U = rng.uniform(size=(n, 5))
    y = (
        10.0 * np.sin(np.pi * U[:, 0] * U[:, 1])
        + 20.0 * (U[:, 2] - 0.5) ** 2
        + 10.0 * U[:, 3]
        + 5.0 * U[:, 4]
        + rng.normal(size=n)
    )
    X = (U - 0.5) * math.sqrt(12.0)
    names = [f"f{j}" for j in range(5)]
    return [
        (dict(zip(names, row, strict=True)), target)
        for row, target in zip(X.tolist(), y.tolist(), strict=True)
    ]


def _accepted(steps: list[Row]) -> list[Acceptance]:
    one = [row for row in steps if row["experts"] == 1]
    seven = [row for row in steps if row["experts"] == 7]
    worst = max(row["step_per_reading"] for row in one)
    return [
        at_most("one expert: step / one reading of its factor", worst, 25.0),
        at_most("seven experts: step, us", max(row["step_us"] for row in seven), 120.0),
        at_most(
            "seven experts: last step / first step",
            seven[-1]["step_us"] / seven[0]["step_us"],
            1.2,
        ),
    ]


def _accepted_peers(peers: list[Row]) -> list[Acceptance]:
    own = next((row for row in peers if row["learner"] == ENSEMBLE), None)
    others = [row for row in peers if row["learner"] != ENSEMBLE]
    if own is None or not others:
        return []
    nearest = min(others, key=lambda row: float(row["nmse"]))
    name = nearest["learner"]
    return [
        at_most(f"NMSE / that of {name}", own["nmse"] / nearest["nmse"], 1.1),
        at_least(f"time of {name} / own", nearest["mean_step_us"] / own["mean_step_us"], 10.0),
    ]
