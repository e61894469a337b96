"""Strategies that pick from a pool, their runs, and their times.

The criteria of streamgp, and the nearest strategies of scikit-activeml. All see the same
coordinates, and use a squared exponential of the same length scale wherever they compare points;
those strategies of scikit-activeml that need a classifier or measure similarity get it through
their own arguments.

"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.comparison.pool.problems import NOISE_VARIANCE, Draw
from streamgp import PoolSampler

RAND, MVAR, RKHS, HVAR, L2FM = "rand", "mvar", "rkhs", "hvar", "l2fm"
# --- strategies

CRITERIA = (RAND, MVAR, RKHS, HVAR, L2FM)

_VARIANTS: dict[str, tuple[str, int, float]] = {
    "hvar, 5 at once": (HVAR, 5, NOISE_VARIANCE),
    "l2fm, 5 at once": (L2FM, 5, NOISE_VARIANCE),
    "hvar, noise 1e-6": (HVAR, 1, 1e-6),
    "l2fm, noise 1e-6": (L2FM, 1, 1e-6),
    "rkhs, noise 1e-6": (RKHS, 1, 1e-6),
}
VARIANTS = tuple(_VARIANTS)
"""The same in batches, and with next to no noise, as in the document that defines them."""

MARGIN, MCPAL, CORE_SET = "UncertaintySampling", "ProbabilisticAL", "CoreSet"
TYPICLUST, HERDING = "TypiClust", "MaxHerding"
PEERS = (MARGIN, MCPAL, CORE_SET, TYPICLUST, HERDING)

EER, QUIRE = "MonteCarloEER", "Quire"
SLOW_PEERS = (EER, QUIRE)
"""The nearest in spirit to l2fm and to rkhs; a single pick may take minutes."""


class Strategy(Protocol):
    """Picks points of one pool, one by one."""

    def pick(self) -> int:
        """Return the point to be labelled next."""

    def tell(self, index: int, y: int) -> None:
        """Record its class."""


def strategy(name: str, draw: Draw, seed: int) -> Strategy:
    """Return a strategy that knows no label yet."""
    if name in PEERS or name in SLOW_PEERS:
        return Peer(name, draw, seed)
    criterion, n_at_once, noise_variance = _VARIANTS.get(name, (name, 1, NOISE_VARIANCE))
    sampler = PoolSampler(draw.X, criterion, draw.kernel, noise_variance, seed)
    return _Ours(sampler, n_at_once)


class _Ours:
    """A criterion of streamgp; it gets all labels of a batch before it picks the next one."""

    def __init__(self, sampler: PoolSampler, n_at_once: int) -> None:
        self._sampler = sampler
        self._n_at_once = n_at_once
        self._picked: list[int] = []

    def pick(self) -> int:
        """Return the next pick of the batch, or the first of a new one."""
        if not self._picked:
            self._picked = self._sampler.pick(self._n_at_once)
        return self._picked.pop(0)

    def tell(self, index: int, y: int) -> None:
        """Learn the class."""
        self._sampler.tell(index, y)


class Peer:
    """A pool strategy of scikit-activeml.

    Parameters
    ----------
    name
        Class in `skactiveml.pool`.
    draw
        The pool.
    seed
        Seed of the strategy's draws.

    """

    def __init__(self, name: str, draw: Draw, seed: int) -> None:
        from skactiveml import pool

        gamma = 0.5 / draw.kernel.length_scale**2  # type: ignore[operator]
        similar = {"metric": "rbf", "metric_dict": {"gamma": gamma}}
        classes = list(range(draw.n_classes))
        options: dict[str, dict[str, Any]] = {
            MARGIN: {"method": "margin_sampling"},
            MCPAL: similar,
            HERDING: {"normalize_samples": False, **similar},
            QUIRE: {"classes": classes, "lmbda": NOISE_VARIANCE, **similar},
        }
        self._strategy: Any = getattr(pool, name)(random_state=seed, **options.get(name, {}))
        self._more: dict[str, Any] = {}
        if name == MARGIN:
            self._more["clf"] = _gaussian_process(draw, classes, seed)
        elif name in (MCPAL, EER):
            self._more["clf"] = _parzen_windows(similar, classes, seed)
        self._X = draw.X
        self._y = np.full(len(draw.X), np.nan)

    def pick(self) -> int:
        """Ask the strategy."""
        with warnings.catch_warnings():
            # While only one class is known, scikit-learn's classifier cannot be fitted, and its
            # wrapper warns that it falls back to class counts.
            warnings.simplefilter("ignore")
            return int(self._strategy.query(self._X, self._y, **self._more)[0])

    def tell(self, index: int, y: int) -> None:
        """Record the class; strategies are refitted for each pick."""
        self._y[index] = y


def _gaussian_process(draw: Draw, classes: list[int], seed: int) -> Any:
    """Laplace's approximation with the prior of the pool."""
    from skactiveml.classifier import SklearnClassifier
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    process = GaussianProcessClassifier(RBF(draw.kernel.length_scale), optimizer=None)
    return SklearnClassifier(process, classes=classes, random_state=seed)


def _parzen_windows(similar: dict[str, Any], classes: list[int], seed: int) -> Any:
    from skactiveml.classifier import ParzenWindowClassifier

    return ParzenWindowClassifier(classes=classes, random_state=seed, **similar)


# --- runs

MARKS = (*range(1, 20), *range(20, 51, 2))
"""Numbers of labels at which the accuracy of a run is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Result of a run.

    Parameters
    ----------
    accuracy
        Share of the test set that is right, by number of labels.
    ms
        Milliseconds per label: to pick it and, if it is learned at once, to learn it.

    """

    accuracy: dict[int, float]
    ms: float


def play(draw: Draw, name: str, seed: int, n_labels: int) -> Run:
    """Pick and tell `n_labels` labels, starting with none."""
    picks, seconds = picked(draw, name, seed, n_labels)
    accuracy = {n: draw.accuracy(picks[:n]) for n in MARKS if n <= n_labels}
    return Run(accuracy=accuracy, ms=1e3 * seconds / n_labels)


def picked(draw: Draw, name: str, seed: int, n_labels: int) -> tuple[list[int], float]:
    """Return the picks, and the seconds they took."""
    chooser = strategy(name, draw, seed)
    picks: list[int] = []
    start = time.perf_counter()
    for _ in range(n_labels):
        picks.append(chooser.pick())
        chooser.tell(picks[-1], int(draw.y[picks[-1]]))
    return picks, time.perf_counter() - start


def ms_of_one_pick(draw: Draw, name: str, seed: int, told: Sequence[int]) -> float:
    """Return the milliseconds of one pick when the labels of the points `told` are known."""
    chooser = strategy(name, draw, seed)
    for i in told:
        chooser.tell(i, int(draw.y[i]))
    start = time.perf_counter()
    chooser.pick()
    return 1e3 * (time.perf_counter() - start)
