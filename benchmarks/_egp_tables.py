"""What the reproduction shows: errors against label rates, who beats whom, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from benchmarks._egp_identities import Gaps
from benchmarks._egp_play import (
    ALL,
    DETERMINISTIC,
    KL_LIVING,
    KL_PAPER,
    RANDOM,
    VARIANCE,
    Cell,
    Result,
)
from benchmarks._harness import Acceptance, Row, at_most, standard_error

Results = Mapping[Cell, Sequence[Result]]

ERROR, NPLL = "error", "NPLL"
"""What is measured: NMSE, or the share of classes predicted wrong; and NPLL."""

_DUELS = (
    (KL_PAPER, VARIANCE),
    (KL_PAPER, DETERMINISTIC),
    (KL_PAPER, RANDOM),
    (KL_LIVING, RANDOM),
    (VARIANCE, RANDOM),
    (DETERMINISTIC, RANDOM),
)


def values(results: Sequence[Result], measure: str) -> list[float]:
    """Return what was measured, run by run; nothing if it was not."""
    found = [r.error if measure == ERROR else r.npll for r in results]
    return [value for value in found if value is not None]


def rates(results: Results) -> list[float]:
    """Return the label rates, least first; 1 is that of all labels."""
    return sorted({cell.rate for cell in results})


def against_rate(results: Results, measure: str, titles: Mapping[str, str]) -> list[Row]:
    """Return means and standard errors, a row for each rule.

    Parameters
    ----------
    results
        All runs.
    measure
        `ERROR` or `NPLL`.
    titles
        What it is called, for the problems to show.

    """
    rows: list[Row] = []
    lines = dict.fromkeys((c.preset, c.problem, c.rule) for c in results if c.problem in titles)
    for preset, problem, rule in lines:
        row: Row = {"problem": problem, "preset": preset, "rule": rule}
        for rate in rates(results):
            cell = Cell(problem=problem, preset=preset, rule=rule, rate=rate)
            found = values(results.get(cell, ()), measure)
            row[f"{titles[problem]} {rate:g}"] = mean(found) if found else None
            row[f"se {rate:g}"] = standard_error(found) if found else None
        rows.append(row)
    return rows


def duels(results: Results, classes: Sequence[str]) -> list[Row]:
    """Return in how many cells one rule is better than another, or worse, by two standard errors.

    Run by run: both had the same events and the same random features.
    """
    rows: list[Row] = []
    for preset in dict.fromkeys(cell.preset for cell in results):
        mine = {cell: runs for cell, runs in results.items() if cell.preset == preset}
        for measure, title in ((ERROR, "NMSE"), (NPLL, "NPLL"), (ERROR, "error of classes")):
            of_classes = title == "error of classes"
            some = {c: r for c, r in mine.items() if (c.problem in classes) is of_classes}
            rows += [row for pair in _DUELS if (row := _duel(some, preset, measure, title, pair))]
    return rows


def _duel(
    results: Results, preset: str, measure: str, title: str, pair: tuple[str, str]
) -> Row | None:
    this, against = pair
    better = worse = cells = 0
    for cell, runs in results.items():
        other = Cell(problem=cell.problem, preset=preset, rule=against, rate=cell.rate)
        if cell.rule != this or other not in results:
            continue
        gap = _differences(values(runs, measure), values(results[other], measure))
        margin = 2.0 * standard_error(gap)
        cells += 1
        better += mean(gap) < -margin
        worse += mean(gap) > margin
    if not cells:
        return None
    return {
        "preset": preset,
        "measure": title,
        "rule": this,
        "against": against,
        "better": better,
        "worse": worse,
        "cells": cells,
    }


def kept_rates(results: Results) -> list[Row]:
    """Return how well the budget kept its rate, for each rule."""
    rows = []
    for rule in dict.fromkeys(cell.rule for cell in results if cell.rule != ALL):
        row: Row = {"rule": rule}
        of_rule = {cell: runs for cell, runs in results.items() if cell.rule == rule}
        for rate in rates(of_rule):
            found = [r.rate for c, runs in of_rule.items() if c.rate == rate for r in runs]
            row[f"mean {rate:g}"] = mean(found)
            row[f"furthest {rate:g}"] = max(found, key=lambda value: abs(value - rate))
        rows.append(row)
    return rows


def accepted(results: Results, identities: Sequence[Gaps], *, slack: float) -> list[Acceptance]:
    """Compare with the limits; those of tables are widened by `slack` standard errors."""
    limits = [
        at_most(
            "recursion - ridge regression, in std of y", max(g.ridge for g in identities), 1e-8
        ),
        at_most(
            "sum of log predictives - log evidence, relative",
            max(g.evidence for g in identities),
            1e-8,
        ),
        at_most("|label rate - rate wanted|, furthest run", furthest_rate(results), 0.01),
    ]
    branin = Cell(problem="Branin", preset="default", rule=VARIANCE, rate=0.1)
    sarcos = Cell(problem="SARCOS", preset="default", rule=VARIANCE, rate=0.2)
    random = Cell(problem="SARCOS", preset="default", rule=RANDOM, rate=0.2)
    if branin in results:
        found = values(results[branin], ERROR)
        limits.append(_limited("Branin, 10 % labels, variance: NMSE", found, 0.04, slack))
    if sarcos in results:
        found = values(results[sarcos], ERROR)
        limits.append(_limited("SARCOS, 20 % labels, variance: NMSE", found, 0.085, slack))
        if random in results:
            gap = _differences(found, values(results[random], ERROR))
            name = "SARCOS, 20 % labels: NMSE of variance above random"
            limits.append(_limited(name, gap, 0.0, slack))
    return limits


def furthest_rate(results: Results) -> float:
    """Distance of the label rate from the one wanted, in the run where it is largest."""
    return max(
        abs(r.rate - cell.rate) for cell, runs in results.items() if cell.rule != ALL for r in runs
    )


def _limited(name: str, found: Sequence[float], limit: float, slack: float) -> Acceptance:
    if slack:
        name += f"; {limit:g} widened by {slack:g} standard errors"
    return at_most(name, mean(found), limit + slack * standard_error(found))


def _differences(these: Sequence[float], those: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(these, those, strict=True)]
