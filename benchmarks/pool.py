"""Which points of a pool to label: the criteria of `PoolSampler` and scikit-activeml's strategies.

Twenty runs of each pool, from no label to 50, one by one. After each, a Gaussian process that
knows these labels predicts a test set: the same one for all strategies, with the prior of the pool.
The pools are two moons, breast cancer, digits 3 vs 8 and all ten (scikit-learn's copies), the
rooms of the WiFi log, and two pairs of USPS digits. A pool has 500 points, or two thirds of the
rows; the test set has 1000, or the rest. Each run draws them anew.

Two criteria also pick five points at once, and three with next to no noise, as the document has it,
before the same judge. Closed forms are compared with refitting each candidate. Two strategies of
scikit-activeml are too slow for curves; one pick of each is timed, after ten labels.

One option of its own: --pictures DIR draws the curves into DIR.

"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks import _pool_problems as pools
from benchmarks import _pool_strategies as strategies
from benchmarks._blas import one_thread
from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    at_most,
    progress,
    run_with_pictures,
    standard_error,
)
from benchmarks._peers import HAS_SKACTIVEML
from benchmarks._pool_identities import Gaps, gaps
from benchmarks._pool_picture import draw
from benchmarks._pool_play import Run, ms_of_one_pick, picked, play
from benchmarks._pool_problems import Problem
from benchmarks._pool_strategies import HVAR, L2FM, RAND

Results = Mapping[str, Mapping[str, Sequence[Run]]]
"""Runs by problem and strategy."""

SHOWN = (10, 20, 50)
"""Numbers of labels in the tables."""

_LIMITS = (
    (HVAR, pools.MOONS, 20, 0.96),
    (HVAR, pools.CANCER, 20, 0.945),
    (HVAR, pools.PAIR, 20, 0.98),
    (L2FM, pools.DIGITS, 50, 0.89),
)
_LARGEST_GAP = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played.

    Parameters
    ----------
    problems, strategies
        Names.
    timed
        Problems on which a pick of each slow strategy is timed.
    n_runs, n_labels
        Runs of each problem and strategy, and labels of each run.

    """

    problems: Sequence[str] = (
        pools.MOONS,
        pools.CANCER,
        pools.PAIR,
        pools.DIGITS,
        pools.WIFI,
        pools.USPS_35,
        pools.USPS_49,
    )
    strategies: Sequence[str] = (
        *strategies.CRITERIA,
        *strategies.VARIANTS,
        *strategies.PEERS,
    )
    timed: Sequence[str] = (pools.MOONS, pools.DIGITS)
    n_runs: int = 20
    n_labels: int = 50


QUICK = Plan(
    problems=(pools.MOONS, pools.CANCER, pools.PAIR, pools.DIGITS),
    strategies=(*strategies.CRITERIA, strategies.MARGIN),
    timed=(),
    n_runs=10,
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run_with_pictures("pool", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None, pictures: Path | None = None) -> Outcome:
    """Play all runs."""
    plan = plan or (QUICK if options.quick else Plan())
    problems, skipped = pools.read(plan.problems, options.data)
    names = [s for s in plan.strategies if HAS_SKACTIVEML or s not in strategies.PEERS]
    if not HAS_SKACTIVEML:
        skipped.append("scikit-activeml (not installed; install the extra bench)")
    seeds = range(options.seed, options.seed + plan.n_runs)
    with one_thread():
        found = {p.name: _gaps(p, options.seed) for p in problems}
        results = {p.name: _played(p, names, seeds, plan.n_labels) for p in problems}
        slow = [p for p in problems if p.name in plan.timed and HAS_SKACTIVEML]
        times = [_timed(p, name, options.seed) for p in slow for name in strategies.SLOW_PEERS]
    if pictures is not None and results:
        draw(results, pictures / "pool.png")
    return Outcome(
        rows=[*_identities(found), *_accuracies(results), *_means(results), *times],
        acceptance=_accepted(found, results, slack=2.0 if options.quick else 0.0),
        skipped=skipped,
        notes=[
            f"Accuracy in % with so many labels, mean of {plan.n_runs} runs; se: standard error; "
            "ms: for a label, to be picked and told."
        ],
    )


def _gaps(problem: Problem, seed: int) -> Gaps:
    progress(f"{problem.name}: identities")
    one = problem.draw(seed)
    return gaps(one, picked(one, RAND, seed, 20)[0])


def _played(
    problem: Problem, names: Sequence[str], seeds: Sequence[int], n_labels: int
) -> dict[str, list[Run]]:
    draws = [problem.draw(seed) for seed in seeds]
    played = {}
    for name in names:
        progress(f"{problem.name}: {name}")
        played[name] = [
            play(one, name, seed, n_labels) for one, seed in zip(draws, seeds, strict=True)
        ]
    return played


def _timed(problem: Problem, name: str, seed: int) -> Row:
    progress(f"{problem.name}: one pick of {name}")
    one = problem.draw(seed)
    told, _ = picked(one, RAND, seed, 10)
    return {
        "timed on": problem.name,
        "points": len(one.X),
        "strategy": name,
        "ms_for_one_pick": ms_of_one_pick(one, name, seed, told),
    }


def _identities(found: Mapping[str, Gaps]) -> list[Row]:
    return [
        {
            "identities on": problem,
            "update": g.update,
            "l2fm_against_sqsm": g.l2fm,
            "rkhs_against_refit": g.rkhs,
            "two_classes_against_one_function": g.two_classes,
        }
        for problem, g in found.items()
    ]


def _accuracies(results: Results) -> list[Row]:
    rows: list[Row] = []
    for problem, by_strategy in results.items():
        for name, runs in by_strategy.items():
            row: Row = {"pool": problem, "strategy": name}
            for n in SHOWN:
                values = [100.0 * run.accuracy[n] for run in runs if n in run.accuracy]
                row[f"{n}"] = mean(values) if values else None
                row[f"se {n}"] = standard_error(values) if values else None
            rows.append({**row, "ms": mean(run.ms for run in runs)})
    return rows


def _means(results: Results) -> list[Row]:
    """Return means over all pools, which count alike."""
    names = dict.fromkeys(name for by_strategy in results.values() for name in by_strategy)
    rows: list[Row] = []
    for name in names:
        row: Row = {"mean of all pools": name}
        for n in SHOWN:
            values = [_mean(of[name], n) for of in results.values()]
            row[f"{n}"] = None if None in values else 100.0 * mean(v for v in values if v)
        rows.append(row)
    return rows


def _mean(runs: Sequence[Run], n: int) -> float | None:
    values = [run.accuracy[n] for run in runs if n in run.accuracy]
    return mean(values) if values else None


def _accepted(found: Mapping[str, Gaps], results: Results, *, slack: float) -> list[Acceptance]:
    """Return the limits; those on accuracies widened by so many standard errors."""
    largest = max((g.largest for g in found.values()), default=None)
    accepted = [at_most("closed forms against refits: largest gap", largest, _LARGEST_GAP)]
    for name, problem, n, limit in _LIMITS:
        runs = results.get(problem, {}).get(name, ())
        values = [run.accuracy[n] for run in runs if n in run.accuracy]
        if values:
            margin = slack * standard_error(values)
            title = f"{name} on {problem} with {n} labels"
            if slack:
                title += f", {limit:g} less {slack:g} standard errors"
            accepted.append(at_least(title, mean(values), limit - margin))
    return accepted


if __name__ == "__main__":
    sys.exit(main())
