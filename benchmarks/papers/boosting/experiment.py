"""Runs of the Confidence Boosting experiment: data sets, and the rounds that a forest plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.egp.problems import as_points
from streamgp import (
    ConfidenceBoostingClassifier,
    GPClassifier,
    OnlineForestClassifier,
    OnlineGradientBoostingClassifier,
)
from streamgp.base import Array
from streamgp.pool_learning import Pair, Round, active_learning_rounds
from streamgp.query import AlwaysAsk

# --- data sets

DIGITS = "digits"
"""scikit-learn's copy, which needs no data folder."""

_FILES: Mapping[str, str] = {
    "Pendigits": "pendigits",
    "Letter": "letter",
    "USPS": "usps",
    "DNA": "dna",
}
SETS = tuple(_FILES)
_N_DIGITS_POOL = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A data set, split as it was published.

    Parameters
    ----------
    name
        Its name.
    X, y
        Features and classes of the pool, shapes (n, d) and (n,).
    X_test, y_test
        The same of the test set.

    """

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def pool(self) -> list[Pair]:
        """Return the events of the pool with their labels."""
        return list(zip(as_points(self.X, "x"), self.y.tolist(), strict=True))

    def test(self) -> list[Pair]:
        """Return the events of the test set with their labels."""
        return list(zip(as_points(self.X_test, "x"), self.y_test.tolist(), strict=True))


def read(names: Sequence[str], data: Path | None) -> tuple[list[Problem], list[str]]:
    """Return data sets, and what had to be left out."""
    problems, skipped = [], []
    for name in names:
        if name == DIGITS:
            problems.append(_digits())
            continue
        path = None if data is None else data / "classification" / f"{_FILES[name]}.npz"
        if path is None or not path.exists():
            where = "needs --data" if path is None else f"no file {path}"
            skipped.append(f"{name} ({where})")
            continue
        with np.load(path) as table:
            parts = [table[key] for key in ("X_train", "y_train", "X_test", "y_test")]
        problems.append(_problem(name, *parts))
    return problems, skipped


def _digits() -> Problem:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    n = _N_DIGITS_POOL
    return _problem(DIGITS, X[:n], y[:n], X[n:], y[n:])


def _problem(name: str, X: Array, y: Array, X_test: Array, y_test: Array) -> Problem:
    return Problem(
        name=name, X=X.astype(float), y=y.astype(int), X_test=X_test.astype(float), y_test=y_test
    )


GB, CB = "GB", "CB"
NORMALISED, LARGER, FOREST = "GB, normalised", "GB, larger trees", "forest, not boosted"


# --- runs


# Leaves split as late as in the paper, in both settings, whatever the defaults of the classes.
FORESTS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"n_tests": 20, "min_weight": 100, "inherit": False},
    "default": {"n_tests": 50, "min_weight": 100},
}


def _gradient(preset: str, seed: int, **options: Any) -> Any:
    trees = OnlineForestClassifier(**FORESTS[preset])
    return OnlineGradientBoostingClassifier(trees, preset=preset, seed=seed, **options)


def _confidence(preset: str, seed: int) -> Any:
    trees = OnlineForestClassifier(**FORESTS[preset])
    return ConfidenceBoostingClassifier(trees, preset=preset, seed=seed)


def _larger_trees(preset: str, seed: int) -> Any:
    trees = OnlineForestClassifier(**{**FORESTS[preset], "min_weight": _MIN_WEIGHT})
    return OnlineGradientBoostingClassifier(trees, preset=preset, seed=seed)


def _normalised(preset: str, seed: int) -> Any:
    return _gradient(preset, seed, normalise_weights=True)


def _forest(preset: str, seed: int) -> Any:
    return OnlineForestClassifier(100, **FORESTS[preset], seed=seed)


# Gives the forests of gradient boosting about as many nodes as those of Confidence Boosting, on
# scikit-learn's digits and on Pendigits, in the setting `paper`.
_MIN_WEIGHT = 40
METHODS: Mapping[str, Callable[..., Any]] = {
    GB: _gradient,
    CB: _confidence,
    NORMALISED: _normalised,
    LARGER: _larger_trees,
    FOREST: _forest,
}
SETTINGS = ("paper", "default")
PASSIVE, ACTIVE = "passive", "active"

GP, TREES = "one-vs-all GP", "extra trees, refit"
BASELINES = (GP, TREES)
ASKED, RANDOM = "the labels CB asked for", "as many at random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Configuration that several runs share.

    Parameters
    ----------
    problem
        Name of the data set.
    setting
        Preset of learner and protocol.
    method
        Name of the learner.
    way
        `passive` or `active`; for a baseline, which labels it learns.

    """

    problem: str
    setting: str
    method: str
    way: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Result of one run.

    Parameters
    ----------
    rounds
        Its rounds, the initial set first.
    n_nodes
        Mean number of nodes of a tree at the end.

    """

    rounds: Sequence[Round]
    n_nodes: float

    @property
    def last(self) -> Round:
        """The last round."""
        return self.rounds[-1]

    @property
    def labelled(self) -> list[int]:
        """Events whose labels are known at the end, the initial set first."""
        return [i for r in self.rounds for i in r.labelled]


def play(problem: Problem, setting: str, method: str, seed: int) -> dict[str, Run]:
    """Play actively, then passively with as many labels in each round."""
    active = _played(problem, setting, method, seed)
    counts = [r.n_asked for r in active.rounds[1:]]
    passive = _played(
        problem, setting, method, seed, rule=AlwaysAsk(), per_round=counts, n_rounds=len(counts)
    )
    return {ACTIVE: active, PASSIVE: passive}


def _played(problem: Problem, setting: str, method: str, seed: int, **options: Any) -> Run:
    model = METHODS[method](preset=setting, seed=seed)
    rounds = active_learning_rounds(
        model, problem.pool(), problem.test(), preset=setting, seed=seed, **options
    )
    return Run(rounds=rounds, n_nodes=float(np.mean(model.n_nodes)))


# All labels are right; on scikit-learn's digits, .001 to .1 make no difference and .5 is worse.
_GP_NOISE = 0.1
_N_TREES = 100


def baseline_error(problem: Problem, name: str, labelled: Sequence[int], seed: int) -> float:
    """Return the share of the test set that a baseline predicts wrong with the given labels."""
    rows = np.array(labelled)
    learned = _fitted_gp if name == GP else _fitted_trees
    predicted = learned(problem, rows, seed)
    return float(np.mean(predicted != problem.y_test))


def at_random(problem: Problem, n: int, seed: int) -> list[int]:
    """Return `n` events of the pool, drawn at random."""
    drawn: list[int] = np.random.default_rng(seed).permutation(len(problem.X))[:n].tolist()
    return drawn


def _fitted_gp(problem: Problem, rows: Any, seed: int) -> Any:  # noqa: ARG001 - nothing is random
    import pandas as pd

    # Scaling needs no labels, so the whole pool is used; features that are constant there become 0.
    mean, std = problem.X.mean(axis=0), problem.X.std(axis=0)
    std = np.where(std > 0.0, std, np.inf)
    X, X_test = (problem.X[rows] - mean) / std, (problem.X_test - mean) / std
    model = GPClassifier(noise_variance=_GP_NOISE)
    model.learn_many(pd.DataFrame(X), pd.Series(problem.y[rows]))
    return model.predict_many(pd.DataFrame(X_test)).to_numpy()


def _fitted_trees(problem: Problem, rows: Any, seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    model = ExtraTreesClassifier(_N_TREES, random_state=seed, n_jobs=1)
    return model.fit(problem.X[rows], problem.y[rows]).predict(problem.X_test)
