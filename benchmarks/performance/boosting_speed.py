"""Time per step of a boosted forest, and of peers with as many trees.

`ConfidenceBoostingClassifier` over ten forests of ten trees, on ten classes of sixteen features,
three clusters each. Predicting an event and learning its label are measured at several numbers of
labels, with trees compiled by numba, if it is installed, and with the same trees in numpy: means
over some hundred steps, splits of leaves included. Rows of a data frame are predicted at once,
including their conversion. All times are processor time, so other programs hardly matter.

Then River's forests and boosting with a hundred trees, and `OnlineForestClassifier` with a hundred,
on the same stream: time per step over all events, and errors in the second half. Finally, the time
of the first label in a new process: numba compiles only once, and caches what it compiled.

"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np
from river import base, ensemble, forest, tree

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
from streamgp import ConfidenceBoostingClassifier, OnlineForestClassifier
from streamgp.base import Array, Features, Label
from streamgp.trees import forest as own_forest
from streamgp.trees import numpy_backend

OWN = "ConfidenceBoostingClassifier"
FOREST = "OnlineForestClassifier"

LEARNERS: dict[str, Callable[[int], base.Classifier]] = {
    OWN: lambda seed: ConfidenceBoostingClassifier(seed=seed),
    FOREST: lambda seed: OnlineForestClassifier(n_models=100, seed=seed),
    "River AMF": lambda seed: forest.AMFClassifier(n_estimators=100, seed=seed),
    "River ARF": lambda seed: forest.ARFClassifier(n_models=100, seed=seed),
    "River AdaBoost": lambda seed: ensemble.AdaBoostClassifier(
        tree.HoeffdingTreeClassifier(), n_models=100, seed=seed
    ),
    "River ADWIN boosting": lambda seed: ensemble.ADWINBoostingClassifier(
        tree.HoeffdingTreeClassifier(), n_models=100, seed=seed
    ),
}
"""With a hundred trees each."""

_N_CLASSES, _N_CLUSTERS, _N_FEATURES = 10, 30, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured.

    Parameters
    ----------
    labels
        Numbers of labels at which steps are measured.
    n_steps
        Steps at each.
    n_rows
        Rows of a data frame that are predicted at once.
    n_peers
        Events of the comparison with peers.
    peers
        Names of the learners to compare; None for all.
    starts
        Whether new processes are started to measure the first label.

    """

    labels: tuple[int, ...] = (500, 2000, 10_000)
    n_steps: int = 500
    n_rows: int = 2000
    n_peers: int = 1000
    peers: tuple[str, ...] | None = None
    starts: bool = True


_QUICK = Plan(labels=(500, 1500), n_steps=300, n_peers=250)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("boosting_speed", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Measure the steps in both ways, then all peers, then the first label."""
    plan = plan or (_QUICK if options.quick else Plan())
    ways = ["numpy"] if find_spec("numba") is None else ["numba", "numpy"]
    with one_thread() as how:
        steps = [row for way in ways for row in _steps(way, plan, options.seed)]
        names = LEARNERS if plan.peers is None else plan.peers
        peers = [_peer(name, plan.n_peers, options.seed) for name in names]
    return Outcome(
        rows=[*steps, *peers, *(_starts() if plan.starts else [])],
        acceptance=[*_accepted([s for s in steps if s["trees"] == ways[0]]), *_ratios(peers)],
        skipped=[] if len(ways) == 2 else ["trees compiled by numba, which is not installed"],
        notes=[f"One BLAS thread: {how}."],
    )


def _steps(way: str, plan: Plan, seed: int) -> list[Row]:
    """Return a row for each number of labels."""
    progress(f"steps, {way}")
    model, rows = ConfidenceBoostingClassifier(seed=seed), []
    X, y = _drawn(max(plan.labels) + plan.n_steps, seed)
    events = list(zip(_dicts(X), y.tolist(), strict=True))
    with _grown_by(way):
        _warm_up(seed)
        for n in plan.labels:
            for x, label in events[model.n_learned : n]:
                model.learn_one(x, label)
            predicting = learning = 0.0
            for x, label in events[n : n + plan.n_steps]:
                t0 = time.process_time()
                model.predict_proba_one(x)
                t1 = time.process_time()
                model.learn_one(x, label)
                t2 = time.process_time()
                predicting += t1 - t0
                learning += t2 - t1
            rows.append(
                {
                    "trees": way,
                    "labels": n,
                    "predict_us": 1e6 * predicting / plan.n_steps,
                    "update_us": 1e6 * learning / plan.n_steps,
                    "predict_many_us": 1e6 * _predicting_many(model, plan.n_rows, seed),
                }
            )
    return rows


def _grown_by(way: str) -> AbstractContextManager[Any]:
    """Let trees grow in one of the two ways."""
    if way == "numba":
        return nullcontext()
    return patch.object(own_forest, "fastest", lambda: numpy_backend)


def _warm_up(seed: int) -> None:
    """Compile the code that is measured."""
    model = ConfidenceBoostingClassifier(seed=seed)
    X, y = _drawn(300, seed)
    for x, label in zip(_dicts(X), y.tolist(), strict=True):
        model.learn_one(x, label)
        model.predict_proba_one(x)
    _predicting_many(model, 10, seed)


def _predicting_many(model: Any, n: int, seed: int) -> float:
    """Return the seconds it takes to predict a row, the minimum of five trials."""
    import pandas as pd

    X = pd.DataFrame(_drawn(n, seed + 1)[0], columns=_NAMES)
    durations = []
    for _ in range(5):
        t0 = time.process_time()
        model.predict_proba_many(X)
        durations.append(time.process_time() - t0)
    return min(durations) / n


def _peer(name: str, n: int, seed: int) -> Row:
    """Return error and time per step of one learner on the stream."""
    progress(name)
    _warm_up(seed)
    model = LEARNERS[name](seed)
    X, y = _drawn(n, seed)
    wrong, duration = 0, 0.0
    for i, (x, label) in enumerate(zip(_dicts(X), y.tolist(), strict=True)):
        t0 = time.process_time()
        predicted = _most_probable(model, x)
        model.learn_one(x, label)
        duration += time.process_time() - t0
        wrong += i >= n // 2 and predicted != label
    return {
        "learner": name,
        "events": n,
        "error": wrong / (n - n // 2),
        "step_us": 1e6 * duration / n,
    }


def _most_probable(model: base.Classifier, x: Features) -> Label | None:
    proba = model.predict_proba_one(dict(x))
    return max(proba, key=proba.__getitem__) if proba else None


_FIRST = """
import time
from streamgp import OnlineForestClassifier
model = OnlineForestClassifier(n_models=2, min_weight=2, seed=1)
t0 = time.process_time()
for i in range(9):
    model.learn_one({"light": float(i)}, i > 4)
    model.predict_proba_one({"light": 1.0})
print(time.process_time() - t0)
"""


def _starts() -> list[Row]:
    """Return the time of the first labels in a process, with and without compiled code in cache."""
    if find_spec("numba") is None:
        return []
    progress("first labels")
    with tempfile.TemporaryDirectory() as folder:
        return [
            {"first labels": what, "seconds": _first(folder)}
            for what in ("nothing compiled yet", "compiled by an earlier process")
        ]


def _first(folder: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _FIRST],
        env={**os.environ, "NUMBA_CACHE_DIR": folder},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


# --- the stream

_NAMES = [f"f{j}" for j in range(_N_FEATURES)]


def _drawn(n: int, seed: int) -> tuple[Array, Any]:
    """Return points from clusters, and the classes of the clusters."""
    centres = np.random.default_rng(seed).normal(size=(_N_CLUSTERS, _N_FEATURES))
    rng = np.random.default_rng([seed, n])
    cluster = rng.integers(_N_CLUSTERS, size=n)
    return centres[cluster] + 0.7 * rng.normal(size=(n, _N_FEATURES)), cluster % _N_CLASSES


def _dicts(X: Array) -> list[dict[str, float]]:
    return [dict(zip(_NAMES, row, strict=True)) for row in X.tolist()]


# --- limits


def _accepted(steps: list[Row]) -> list[Acceptance]:
    many = max(row["predict_many_us"] for row in steps)
    return [
        at_most("update of ten forests of ten trees, us", max(s["update_us"] for s in steps), 400),
        at_most("prediction in batches, us", many, 15.0),
    ]


def _ratios(peers: list[Row]) -> list[Acceptance]:
    own = next((row for row in peers if row["learner"] == OWN), None)
    if own is None:
        return []
    return [
        at_least(f"time of {row['learner']} / own", row["step_us"] / own["step_us"], 10.0)
        for row in peers
        if row["learner"] not in (OWN, FOREST)
    ]
