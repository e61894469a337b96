"""Which points of a pool to label: the criteria of `PoolSampler` and scikit-activeml's strategies.

Twenty runs of each pool, from no label to 50, one by one. After each label, a Gaussian process that
knows these labels predicts a test set: the same process for all strategies, with the prior of the
pool. The pools are two moons, breast cancer, digits 3 vs 8 and all ten (scikit-learn's copies), the
rooms of the WiFi log, and two pairs of USPS digits. A pool has 500 points, or two thirds of the
rows; the test set has 1000, or the rest. Each run draws them again.

Two criteria also pick five points at once, and three have next to no noise, as in the document that
defines them; all are evaluated in the same way. Closed forms are compared with refitting each
candidate. Two strategies of scikit-activeml are too slow for curves; one pick of each is timed,
after ten labels.

Extra option: --pictures DIR draws the curves into DIR.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    at_most,
    one_thread,
    progress,
    run_with_pictures,
    save_picture,
    standard_error,
)
from benchmarks.comparison.pool import problems as pools
from benchmarks.comparison.pool import strategies
from benchmarks.comparison.pool.problems import NOISE_VARIANCE, Draw, Problem
from benchmarks.comparison.pool.strategies import (
    HERDING,
    HVAR,
    L2FM,
    MARGIN,
    MVAR,
    RAND,
    RKHS,
    Run,
    ms_of_one_pick,
    picked,
    play,
)
from benchmarks.comparison.skactiveml import HAS_SKACTIVEML
from streamgp.base import Array
from streamgp.gp.joint_posterior import PoolPosterior
from streamgp.query.pool_criteria import assumed, hvar, l2fm, rkhs

# --- closed forms against refits with each candidate, by dense solves


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Largest differences between two computations of the same values, relative to the largest.

    Parameters
    ----------
    update
        Functions and covariances of the pool: label by label, and by one solve.
    l2fm
        The closed form, and sqsm: the distance of each refit from the function before it.
    rkhs
        The closed form, and the squared norm of each refit.
    two_classes
        Scores of hvar, rkhs and l2fm for two functions, and for the document's single one.

    """

    update: float
    l2fm: float
    rkhs: float
    two_classes: float

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self.update, self.l2fm, self.rkhs, self.two_classes)


def gaps(draw: Draw, told: Sequence[int]) -> Gaps:
    """Measure the differences on one pool with the points `told` labelled."""
    told = list(told)
    codes = np.where(draw.y[told, None] == np.arange(draw.n_classes), 1.0, -1.0)
    K = draw.K[: len(draw.X)]
    posterior = _store(K, told, codes)
    f, C, _ = _solved(K, told, codes)
    unlabelled = np.ones(len(K), dtype=bool)
    unlabelled[told] = False
    candidates = np.flatnonzero(unlabelled)
    expected = assumed(f)
    refits = [_solved(K, [*told, u], np.vstack([codes, expected[:, u]])) for u in candidates]
    distances = np.array([np.linalg.norm((g - f)[:, unlabelled]) for g, _, _ in refits])
    norms = np.array([norm for _, _, norm in refits])
    return Gaps(
        update=max(_gap(posterior.functions, f), _gap(posterior.covariances, C)),
        l2fm=_gap(l2fm(posterior, unlabelled)[candidates], distances),
        rkhs=_gap(rkhs(posterior, unlabelled)[candidates], norms),
        two_classes=_gap_of_two_classes(K, told, codes[:, :1]),
    )


def _gap_of_two_classes(K: Array, told: list[int], codes: Array) -> float:
    one, two = _store(K, told, codes), _store(K, told, np.hstack([codes, -codes]))
    everywhere = np.ones(len(K), dtype=bool)
    return max(
        _gap(criterion(two, everywhere), factor * criterion(one, everywhere))
        for criterion, factor in ((hvar, 2.0), (rkhs, 2.0), (l2fm, 2.0**0.5))
    )


def _store(K: Array, told: list[int], codes: Array) -> PoolPosterior:
    posterior = PoolPosterior(K.copy(), NOISE_VARIANCE)
    for _ in range(codes.shape[1] - 1):
        posterior.add_function()
    for i, code in zip(told, codes, strict=True):
        posterior.learn(i, code)
    return posterior


def _solved(K: Array, told: list[int], codes: Array) -> tuple[Array, Array, float]:
    """Return functions (m, P), covariances (P, P) and the sum of the squared norms."""
    gram = K[np.ix_(told, told)] + NOISE_VARIANCE * np.eye(len(told))
    a, m = K[told], codes.shape[1]
    solved = np.linalg.solve(gram, np.hstack([codes, a]))
    return solved[:, :m].T @ a, K - a.T @ solved[:, m:], float((codes * solved[:, :m]).sum())


def _gap(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


# --- curves: accuracy against labels, a panel for each pool

# Colours of Okabe and Ito, which colour-blind readers can tell apart; dashes differ as well.
_LINES: dict[str, tuple[str, Any]] = {
    RAND: ("#999999", (0, (1, 1.2))),
    MVAR: ("#E69F00", (0, (4, 1.5))),
    RKHS: ("#D55E00", (0, (5, 1.5, 1, 1.5))),
    HVAR: ("#000000", "solid"),
    L2FM: ("#0072B2", "solid"),
    MARGIN: ("#CC79A7", (0, (3, 1.2, 1, 1.2, 1, 1.2))),
    HERDING: ("#009E73", (0, (4, 1.5))),
}
_COLUMNS = 4


def draw(results: Mapping[str, Mapping[str, Sequence[Run]]], path: Path) -> None:
    """Draw the means of all runs, by problem and strategy, with bands of one standard error."""
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    n_rows = -(-len(results) // _COLUMNS)
    n_columns = min(len(results), _COLUMNS)
    figure = Figure(figsize=(3.1 * n_columns, 2.7 * n_rows + 0.4), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis, (problem, by_strategy) in zip(axes, results.items(), strict=False):
        axis.set_title(problem)
        for name, line in _LINES.items():
            if name in by_strategy:
                _draw_mean(axis, name, by_strategy[name], line)
        axis.grid(alpha=0.25)
        axis.set_xlim(left=0)
    for axis in axes[len(results) :]:
        axis.set_axis_off()
    for axis in axes[::n_columns]:
        axis.set_ylabel("accuracy, %")
    for axis in axes[: len(results)][-n_columns:]:  # those with nothing below
        axis.set_xlabel("labels")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False
    )
    save_picture(figure, path)


def _draw_mean(axis: Any, name: str, runs: Sequence[Run], line: tuple[str, Any]) -> None:
    colour, dash = line
    marks = list(runs[0].accuracy)
    values = 100.0 * np.array([list(run.accuracy.values()) for run in runs])
    middle = values.mean(axis=0)
    error = values.std(axis=0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
    axis.plot(marks, middle, color=colour, linestyle=dash, linewidth=1.5, label=name)
    axis.fill_between(marks, middle - error, middle + error, color=colour, alpha=0.15, linewidth=0)


# --- the benchmark

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
    """What the benchmark runs.

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
    """Run all problems and strategies."""
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
    """Return means over all pools, all with the same weight."""
    names = dict.fromkeys(name for by_strategy in results.values() for name in by_strategy)
    rows: list[Row] = []
    for name in names:
        row: Row = {"pool": "mean", "strategy": name}
        for n in SHOWN:
            values = [_mean(of[name], n) for of in results.values()]
            row[f"{n}"] = None if None in values else 100.0 * mean(v for v in values if v)
        rows.append(row)
    return rows


def _mean(runs: Sequence[Run], n: int) -> float | None:
    values = [run.accuracy[n] for run in runs if n in run.accuracy]
    return mean(values) if values else None


def _accepted(found: Mapping[str, Gaps], results: Results, *, slack: float) -> list[Acceptance]:
    """Return the limits; those on accuracies are widened by `slack` standard errors."""
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
