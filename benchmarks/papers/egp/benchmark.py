"""The paper on active labeling with ensembles of Gaussian processes, reproduced.

Ten runs of each cell: an initial set whose labels are given (10 for the functions of two inputs, 50
for the others), a stream of 500 or 1000 events of which a share is labelled, 1000 test events.
`RateBudget` keeps the label rate: it asks about the recent events that the rule scores highest, so
that all rules get the same number of labels. The rules are random, the paper's (KL), the same
restricted to experts that still have weight, variance, and deterministic; and all labels. Both
presets of the ensembles.

Branin, Currin, robot pushing (a quasi-static stand-in: the paper's simulator is Box2D), the SARCOS
subset, pumadyn32nm: NMSE and NPLL. The paper has no classification problem; pendigits, dna and
letter of the data folder are added: share of errors. Rows of a data set are drawn at random.

"Better" and "worse" are differences of more than two standard errors, run by run. The budget makes
up arrears within 5 events instead of 8, so that no run is more than .01 off its rate.

Extra option: --pictures DIR draws the curves into DIR.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._harness import Options, Outcome, Row, one_thread, progress, run_with_pictures
from benchmarks.papers.egp import results as tables
from benchmarks.papers.egp.experiment import (
    ALL,
    KL_PAPER,
    PRESETS,
    RANDOM,
    RATES,
    RULES,
    VARIANCE,
    Cell,
    Result,
    gaps,
    play,
)
from benchmarks.papers.egp.problems import CLASSES, REGRESSION, Problem, read
from benchmarks.papers.egp.results import Panel, draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs.

    Parameters
    ----------
    problems, presets, rules, rates
        Names, and label rates.
    n_runs
        Runs of each cell.

    """

    problems: Sequence[str] = (*REGRESSION, *CLASSES)
    presets: Sequence[str] = PRESETS
    rules: Sequence[str] = tuple(RULES)
    rates: Sequence[float] = RATES
    n_runs: int = 10


QUICK = Plan(
    problems=("Branin", "Currin", "SARCOS"),
    rules=(RANDOM, KL_PAPER, VARIANCE, ALL),
    rates=(0.1, 0.2),
    n_runs=4,
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run_with_pictures("egp", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None, pictures: Path | None = None) -> Outcome:
    """Run all cells."""
    plan = plan or (QUICK if options.quick else Plan())
    problems, skipped = read(plan.problems, options.data)
    seeds = range(options.seed, options.seed + plan.n_runs)
    with one_thread():
        results = {
            cell: runs for problem in problems for cell, runs in _played(problem, plan, seeds)
        }
        identities = [gaps(p.draw(seeds[0]), seeds[0]) for p in problems if not p.classes]
    numbers = {p.name: "NMSE" for p in problems if not p.classes}
    classes = {p.name: "error" for p in problems if p.classes}
    rows: list[Row] = tables.against_rate(results, tables.ERROR, numbers)
    rows += tables.against_rate(results, tables.NPLL, dict.fromkeys(numbers, "NPLL"))
    rows += tables.against_rate(results, tables.ERROR, classes)
    rows += tables.duels(results, list(classes))
    rows += tables.kept_rates(results)
    if pictures is not None:
        for preset in plan.presets:
            draw(_panels(results, preset, problems), pictures / f"egp-{preset}.svg")
    return Outcome(
        rows=rows,
        acceptance=tables.accepted(results, identities, slack=2.0 if options.quick else 0.0),
        skipped=skipped,
        notes=[f"Means of {plan.n_runs} runs; se: standard error. 1: all labels."],
    )


def _played(problem: Problem, plan: Plan, seeds: Sequence[int]) -> list[tuple[Cell, list[Result]]]:
    draws = [problem.draw(seed) for seed in seeds]
    played = []
    for preset in plan.presets:
        for rule in plan.rules:
            progress(f"{problem.name}, {preset}: {rule}")
            for rate in (1.0,) if rule == ALL else plan.rates:
                cell = Cell(problem=problem.name, preset=preset, rule=rule, rate=rate)
                runs = [
                    play(problem, one, cell, seed) for one, seed in zip(draws, seeds, strict=True)
                ]
                played.append((cell, runs))
    return played


def _panels(results: tables.Results, preset: str, problems: Sequence[Problem]) -> list[list[Panel]]:
    """Return a row of panels for each measure."""
    numbers = [p.name for p in problems if not p.classes]
    classes = [p.name for p in problems if p.classes]
    mine = {cell: runs for cell, runs in results.items() if cell.preset == preset}
    return [
        [Panel.of(mine, name, measure, title) for name in names]
        for names, measure, title in (
            (numbers, tables.ERROR, "NMSE"),
            (numbers, tables.NPLL, "NPLL"),
            (classes, tables.ERROR, "error"),
        )
        if names
    ]
