"""The paper on active online Confidence Boosting, repeated: Tables I and II, and learning curves.

Pendigits, Letter, USPS and DNA, split as published. Each run learns a random part of the training
set, then plays ten rounds: some events are drawn, those of low confidence are asked about, below a
threshold that adapts. Passive learners are told as many labels in each round, drawn at random. GB:
online gradient boosting of ten online forests of ten trees; CB: Confidence Boosting of the same.
Where the difference comes from: gradient boosting with each weak learner's weights divided by their
mean (normalised); with leaves that split sooner, so that trees are about as large as CB's (larger
trees); a forest of a hundred such trees (not boosted).

Settings: `paper` (6 % at first, 14 % drawn a round, every label learned once, agreement counts by
half, 20 tests per leaf) and `default` (2 % at first, 14 % drawn, all labels replayed each round,
agreement counts as it is, 50 tests per leaf).

Baselines learn as many labels as active CB ends with in the setting `default`: those that it asked
for, or as many drawn at random. They are a one-vs-all Gaussian process (`GPClassifier`) and 100
extremely randomised trees of scikit-learn, fitted anew.

Weak learners of River in the place of the forests: digits of scikit-learn and DNA, every label of
the pool learned once, one run.

What to pick: progressive errors on five recorded logs, the first 2000 events, all labels right or
one of five wrong, beside a forest of a hundred trees and a Gaussian process; three runs.

One option of its own: --pictures DIR draws the curves into DIR.

"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import _boosting_choice as choice
from benchmarks import _boosting_tables as tables
from benchmarks import _boosting_weak as weak
from benchmarks._blas import one_thread
from benchmarks._boosting_picture import draw
from benchmarks._boosting_play import (
    ACTIVE,
    ASKED,
    BASELINES,
    CB,
    GB,
    METHODS,
    RANDOM,
    SETTINGS,
    Cell,
    Run,
    at_random,
    baseline_error,
    play,
)
from benchmarks._boosting_problems import DIGITS, SETS, Problem, read
from benchmarks._harness import Options, Outcome, Row, progress, run_with_pictures
from benchmarks._logs import read_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played.

    Parameters
    ----------
    problems, settings, methods, baselines
        Names.
    n_runs
        Runs of each cell.
    weak_problems
        Names of the data sets for weak learners of River.
    logs
        Names of the logs.
    n_log_runs
        Runs of each log.
    n_weak, n_events
        Largest numbers of events of these data sets and logs, None for all.

    """

    problems: Sequence[str] = SETS
    settings: Sequence[str] = SETTINGS
    methods: Sequence[str] = tuple(METHODS)
    baselines: Sequence[str] = BASELINES
    n_runs: int = 5
    weak_problems: Sequence[str] = (DIGITS, "DNA")
    n_weak: int | None = None
    logs: Sequence[str] = tuple(choice.LOGS)
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
    """Play all cells."""
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
    """Return the tables that are no part of the paper, and what had to be left out of them."""
    problems, _ = read(plan.weak_problems, options.data)
    logs, missing = read_all(plan.logs, options.data, choice.N_EVENTS)
    rows = [row for p in problems for row in weak.rows(p, plan.n_weak, options.seed)]
    seeds = range(options.seed, options.seed + plan.n_log_runs)
    return rows + [row for log in logs for row in choice.rows(log, plan.n_events, seeds)], missing


if __name__ == "__main__":
    sys.exit(main())
