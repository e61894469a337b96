"""The active online Confidence Boosting paper, reproduced: Tables I and II, and learning curves.

Pendigits, Letter, USPS and DNA, split as published. Each run learns a random part of the training
set, then plays ten rounds: some events are drawn, and those whose confidence is below an adaptive
threshold are asked about. Passive learners get as many labels in each round, drawn at random. GB:
online gradient boosting of ten online forests of ten trees; CB: Confidence Boosting of the same.
Where the difference comes from: gradient boosting with each weak learner's weights divided by their
mean (normalised); with leaves that split sooner, so that trees are about as large as CB's (larger
trees); a forest of a hundred such trees (not boosted).

Settings: `paper` (6 % at first, 14 % drawn in each round, every label learned once, agreement
counts half, 20 tests per leaf) and `default` (2 % at first, 14 % drawn, all labels replayed in each
round, agreement counts in full, 50 tests per leaf).

Baselines learn as many labels as active CB ends with in the setting `default`: those that it asked
for, or as many drawn at random. They are a one-vs-all Gaussian process (`GPClassifier`) and 100
extremely randomised trees of scikit-learn, refitted.

Weak learners of River in place of the forests: scikit-learn's digits and DNA, every label of the
pool learned once, one run.

What to pick: progressive errors on the first 2000 events of seven logs, with all labels right or
one in five wrong, compared with a forest of a hundred trees and a Gaussian process, and with
forests that split as late as in the settings above; three runs.

Extra option: --pictures DIR draws the curves into DIR.

"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from river import forest, preprocessing, tree

from benchmarks._harness import (
    Options,
    Outcome,
    Row,
    one_thread,
    progress,
    run_with_pictures,
    standard_error,
)
from benchmarks._logs import Log, read_all
from benchmarks.papers.boosting import results as tables
from benchmarks.papers.boosting.experiment import (
    ACTIVE,
    ASKED,
    BASELINES,
    CB,
    DIGITS,
    GB,
    METHODS,
    NORMALISED,
    RANDOM,
    SETS,
    SETTINGS,
    Cell,
    Problem,
    Run,
    at_random,
    baseline_error,
    play,
    read,
)
from benchmarks.papers.boosting.results import draw
from streamgp import (
    ConfidenceBoostingClassifier,
    GPClassifier,
    OnlineForestClassifier,
    OnlineGradientBoostingClassifier,
)

# --- recorded logs: boosted forests, a plain forest and a Gaussian process

LOGS: Mapping[str, str] = {
    "wifi_rooms": "random",
    "wisdm": "random",
    "keystroke": "random",
    "occupancy": "recorded",
    "places_1": "recorded",
    "pendigits": "random",
    "letter": "random",
}
"""The order in which each log is played."""
N_EVENTS = 2000
"""Events of each log that are read."""
NOISES = (0.0, 0.2)

LEARNERS: Mapping[str, Callable[[int], Any]] = {
    CB: lambda seed: ConfidenceBoostingClassifier(seed=seed),
    "CB, min_weight=100": lambda seed: ConfidenceBoostingClassifier(
        OnlineForestClassifier(min_weight=100), seed=seed
    ),
    GB: lambda seed: OnlineGradientBoostingClassifier(seed=seed),
    NORMALISED: lambda seed: OnlineGradientBoostingClassifier(normalise_weights=True, seed=seed),
    "forest of 100 trees": lambda seed: OnlineForestClassifier(100, seed=seed),
    "GP, 500 points": lambda _: preprocessing.StandardScaler() | GPClassifier(max_points=500),
}


def rows_of_log(log: Log, n: int | None, seeds: Sequence[int]) -> list[Row]:
    """Return the share of wrong predictions and the time per event, for each learner.

    Parameters
    ----------
    log
        The log.
    n
        Largest number of events that are played; None for all.
    seeds
        One for each run.

    """
    found = []
    for noise in NOISES:
        for name, built in LEARNERS.items():
            progress(f"{log.name}, {noise:.0%} wrong: {name}")
            played = [_error_and_seconds(built(seed), log, n, noise, seed) for seed in seeds]
            errors = [error for error, _ in played]
            row: Row = {
                "log": log.name,
                "wrong labels": noise,
                "learner": name,
                "error": mean(errors),
                "error se": standard_error(errors),
                "ms per event": 1e3 * min(seconds for _, seconds in played),
            }
            found.append(row)
    return found


def _error_and_seconds(
    model: Any, log: Log, n: int | None, noise: float, seed: int
) -> tuple[float, float]:
    """Return the share of wrong predictions, and the seconds per event."""
    rng, n_wrong = random.Random(seed), 0
    events = log.played(LOGS[log.name], seed)[:n]
    started = time.perf_counter()
    for x, y in events:
        n_wrong += model.predict_one(x) != y
        others = [c for c in log.classes if c != y] if rng.random() < noise else [y]
        model.learn_one(x, rng.choice(others))
    return n_wrong / len(events), (time.perf_counter() - started) / len(events)


# --- weak learners of River: one pass over a pool, one test

WEAK: Mapping[str, Any] = {
    "OnlineForestClassifier (default)": None,
    "river AMFClassifier": forest.AMFClassifier(n_estimators=10),
    "river HoeffdingTreeClassifier": tree.HoeffdingTreeClassifier(),
}


def rows_of_weak_learners(problem: Problem, n: int | None, seed: int) -> list[Row]:
    """Return error and times of ten weak learners of each kind, one row per kind.

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


# --- the benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs.

    Parameters
    ----------
    problems, settings, methods, baselines
        Names.
    n_runs
        Runs of each cell.
    weak_problems
        Names of the data sets for River's weak learners.
    logs
        Names of the logs.
    n_log_runs
        Runs of each log.
    n_weak, n_events
        Largest numbers of events of these data sets and logs; None for all.

    """

    problems: Sequence[str] = SETS
    settings: Sequence[str] = SETTINGS
    methods: Sequence[str] = tuple(METHODS)
    baselines: Sequence[str] = BASELINES
    n_runs: int = 5
    weak_problems: Sequence[str] = (DIGITS, "DNA")
    n_weak: int | None = None
    logs: Sequence[str] = tuple(LOGS)
    n_events: int | None = None
    n_log_runs: int = 3


QUICK = Plan(
    problems=(DIGITS,),
    methods=(GB, CB),
    n_runs=3,
    weak_problems=(DIGITS,),
    n_weak=300,
    logs=("wifi_rooms",),
    n_events=500,
    n_log_runs=1,
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run_with_pictures("boosting", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None, pictures: Path | None = None) -> Outcome:
    """Run all cells."""
    plan = plan or (QUICK if options.quick else Plan())
    problems, skipped = read(plan.problems, options.data)
    seeds = range(options.seed, options.seed + plan.n_runs)
    results: dict[Cell, list[Run]] = {}
    baselines: dict[tuple[str, str, str], list[float]] = {}
    with one_thread():
        for problem in problems:
            results |= _played(problem, plan, seeds)
            baselines |= _of_baselines(problem, plan, seeds, results)
        others, missing = _other_tables(plan, options)
    if pictures is not None and results:
        draw(results, pictures / "boosting.png")
    return Outcome(
        rows=tables.last_rounds(results) + tables.of_baselines(baselines, results) + others,
        acceptance=tables.accepted(results, slack=2.0 if options.quick else 0.0),
        skipped=[*skipped, *missing],
        notes=[f"Means of {plan.n_runs} runs; se: standard error."],
    )


def _played(problem: Problem, plan: Plan, seeds: Sequence[int]) -> dict[Cell, list[Run]]:
    results: dict[Cell, list[Run]] = {}
    for setting in plan.settings:
        for method in plan.methods:
            progress(f"{problem.name}, {setting}: {method}")
            for seed in seeds:
                for way, run in play(problem, setting, method, seed).items():
                    cell = Cell(problem=problem.name, setting=setting, method=method, way=way)
                    results.setdefault(cell, []).append(run)
    return results


def _of_baselines(
    problem: Problem, plan: Plan, seeds: Sequence[int], results: Mapping[Cell, Sequence[Run]]
) -> dict[tuple[str, str, str], list[float]]:
    runs = results[Cell(problem=problem.name, setting="default", method=CB, way=ACTIVE)]
    found: dict[tuple[str, str, str], list[float]] = {}
    for name in plan.baselines:
        progress(f"{problem.name}: {name}")
        for run, seed in zip(runs, seeds, strict=True):
            n = run.last.n_labels
            choices = {ASKED: run.labelled, RANDOM: at_random(problem, n, seed)}
            for which, labelled in choices.items():
                error = baseline_error(problem, name, labelled, seed)
                found.setdefault((problem.name, name, which), []).append(error)
    return found


def _other_tables(plan: Plan, options: Options) -> tuple[list[Row], list[str]]:
    """Return the tables that are not in the paper, and what had to be left out of them."""
    problems, _ = read(plan.weak_problems, options.data)
    logs, missing = read_all(plan.logs, options.data, N_EVENTS)
    rows = [row for p in problems for row in rows_of_weak_learners(p, plan.n_weak, options.seed)]
    seeds = range(options.seed, options.seed + plan.n_log_runs)
    return rows + [row for log in logs for row in rows_of_log(log, plan.n_events, seeds)], missing
