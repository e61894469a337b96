"""Data sets of the reproduction of Confidence Boosting: a pool and a test set of numbers each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._egp_problems import as_points
from streamgp.base import Array
from streamgp.pool_learning import Pair

DIGITS = "digits"
"""Scikit-learn's copy, which needs no data."""

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
