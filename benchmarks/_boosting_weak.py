"""Confidence Boosting of weak learners that are not ours: one pass over a pool, one test."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from river import forest, tree

from benchmarks._boosting_problems import Problem
from benchmarks._harness import Row, progress
from streamgp import ConfidenceBoostingClassifier

WEAK: Mapping[str, Any] = {
    "OnlineForestClassifier (default)": None,
    "river AMFClassifier": forest.AMFClassifier(n_estimators=10),
    "river HoeffdingTreeClassifier": tree.HoeffdingTreeClassifier(),
}


def rows(problem: Problem, n: int | None, seed: int) -> list[Row]:
    """Return error and times of ten weak learners of each kind, a row for each.

    Parameters
    ----------
    problem
        The data set.
    n
        Largest number of events of pool and test set; None for all.
    seed
        Seed of the learners.

    """
    pool, test = problem.pool()[:n], problem.test()[:n]
    found = []
    for name, weak in WEAK.items():
        progress(f"{problem.name}, once: {name}")
        model = ConfidenceBoostingClassifier(weak, seed=seed)
        started = time.perf_counter()
        for x, y in pool:
            model.learn_one(x, y)
        learned = time.perf_counter()
        n_wrong = sum(model.predict_one(x) != y for x, y in test)
        predicted = time.perf_counter()
        row: Row = {
            "set": problem.name,
            "labels": len(pool),
            "weak learner": name,
            "error": n_wrong / len(test),
            "ms per label learned": 1e3 * (learned - started) / len(pool),
            "ms per prediction": 1e3 * (predicted - learned) / len(test),
        }
        found.append(row)
    return found
