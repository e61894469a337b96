"""Pools to be labelled: pictures, patients, rooms, and two moons.

A draw is a pool and a test set, both random rows. Coordinates are standardised by the pool, as
`PoolSampler` does by itself; pixels, which share a unit, are all divided by their common standard
deviation, so that pixels that are hardly ever set count little.

"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks import _logs
from benchmarks._logs import MissingLogError, skipping
from streamgp.base import Array
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE

MOONS, CANCER, PAIR, DIGITS = "moons", "breast cancer", "digits 3 vs 8", "digits 10"
WIFI, USPS_35, USPS_49 = "wifi rooms", "USPS 3 vs 5", "USPS 4 vs 9"

NOISE_VARIANCE = 0.1

_MOST_POOL = 500
_MOST_TEST = 1000
# Chosen before anything was measured: between scikit-learn's .1 and .2.
_MOON_NOISE = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Data of one run.

    Parameters
    ----------
    X, y
        Coordinates (P, d) and classes (P,) of the pool, classes numbered from 0.
    test_y
        Classes of the test set.
    K
        Prior covariances of the pool, followed by the test set, with the pool, (P + T, P).
    kernel
        The kernel of these covariances.

    """

    X: Array
    y: NDArray[np.int64]
    test_y: NDArray[np.int64]
    K: Array
    kernel: SquaredExponential

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1

    def accuracy(self, told: Sequence[int]) -> float:
        """Share of right predictions on the test set with these labels, by one dense solve.

        The same for all strategies: a Gaussian process with the prior of the pool.
        """
        some, P = list(told), len(self.X)
        classes = np.unique(self.y[some])
        codes = np.where(self.y[some, None] == classes, 1.0, -1.0)
        gram = self.K[np.ix_(some, some)] + NOISE_VARIANCE * np.eye(len(some))
        means = self.K[P:, some] @ np.linalg.solve(gram, codes)
        return float((classes[means.argmax(axis=1)] == self.test_y).mean())


Rows: TypeAlias = tuple[Array, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Rows from which runs are drawn.

    Parameters
    ----------
    name
        Its name.
    rows
        Function of a seed that returns points (n, d) and classes; only synthetic ones depend on it.
    same_unit
        Whether all coordinates share one unit.

    """

    name: str
    rows: Callable[[int], Rows]
    same_unit: bool = False

    def draw(self, seed: int) -> Draw:
        """Draw a pool of at most 500 rows or two thirds, and a test set of 1000 or the rest."""
        X, labels = self.rows(seed)
        _, y = np.unique(labels, return_inverse=True)
        order = np.random.default_rng(seed).permutation(len(X))
        n = min(_MOST_POOL, 2 * len(X) // 3)
        pool, test = order[:n], order[n : n + _MOST_TEST]
        variances = X[pool].var(axis=0)
        variances = variances.mean() if self.same_unit else np.where(variances, variances, 1.0)
        Z = (X[order[: n + _MOST_TEST]] - X[pool].mean(axis=0)) / np.sqrt(variances)
        kernel = SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * Z.shape[1] ** 0.5)
        K = kernel.matrix(np.array([kernel.embed(z) for z in Z]))[:, :n]
        return Draw(X=Z[:n], y=y[pool], test_y=y[test], K=K, kernel=kernel)


def read(names: Sequence[str], data: Path | None) -> tuple[list[Problem], list[str]]:
    """Read the problems of these names; also say which are missing, and why."""
    problems: list[Problem] = []
    missing: list[str] = []
    for name in names:
        with skipping(missing):
            problems += list(_read(name, data))
    return problems, missing


def _read(name: str, data: Path | None) -> Iterator[Problem]:
    if name == WIFI:
        events = _logs.read("wifi_rooms", data, 2000).events
        X = np.array([list(x.values()) for x, _ in events], dtype=float)
        yield _fixed(name, X, np.array([y for _, y in events]))
    elif name in (USPS_35, USPS_49):
        yield _fixed(name, *_pair(*_usps(name, data), name), same_unit=True)
    elif importlib.util.find_spec("sklearn") is None:
        raise MissingLogError(f"{name} (needs sklearn; install the extra bench)")
    elif name == MOONS:
        yield Problem(name=name, rows=_moons)
    else:
        yield _of_scikit_learn(name)


def _of_scikit_learn(name: str) -> Problem:
    from sklearn import datasets

    if name == CANCER:
        return _fixed(name, *datasets.load_breast_cancer(return_X_y=True))
    X, y = datasets.load_digits(return_X_y=True)
    return _fixed(name, *(_pair(X, y, name) if name == PAIR else (X, y)), same_unit=True)


def _usps(name: str, data: Path | None) -> Rows:
    if data is None:
        raise MissingLogError(f"{name} (needs --data)")
    path = data / "classification" / "usps.npz"
    if not path.is_file():
        raise MissingLogError(f"{name} (no classification/usps.npz in the data folder)")
    with np.load(path) as arrays:
        X = np.concatenate([arrays["X_train"], arrays["X_test"]]).astype(float)
        return X, np.concatenate([arrays["y_train"], arrays["y_test"]])


def _pair(X: Array, y: NDArray[Any], name: str) -> Rows:
    """Return the rows of the two digits in the name."""
    first, second = (int(word) for word in name.split() if word.isdigit())
    chosen = (y == first) | (y == second)
    return X[chosen], y[chosen]


def _moons(seed: int) -> Rows:
    from sklearn.datasets import make_moons

    n = _MOST_POOL + _MOST_TEST
    X, y = make_moons(n, noise=_MOON_NOISE, random_state=seed)
    return X, y


def _fixed(name: str, X: Array, y: NDArray[Any], *, same_unit: bool = False) -> Problem:
    return Problem(name=name, rows=partial(_same_rows, (X, y)), same_unit=same_unit)


def _same_rows(rows: Rows, seed: int) -> Rows:  # noqa: ARG001 - whatever the seed is
    return rows
