"""Results of the Confidence Boosting experiment: Tables I and II, baselines, limits, curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks._harness import (
    Acceptance,
    Row,
    at_most,
    differences,
    save_picture,
    standard_error,
    widened,
)
from benchmarks.papers.boosting.experiment import (
    ACTIVE,
    ASKED,
    CB,
    FOREST,
    GB,
    LARGER,
    NORMALISED,
    PASSIVE,
    RANDOM,
    SETTINGS,
    Cell,
    Run,
)

# --- tables and limits

Results = Mapping[Cell, Sequence[Run]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The paper's results for a cell: Tables I and II, means of 100 runs."""

    overconfidence: float
    error: float


PAPER: Mapping[tuple[str, str, str], Published] = {
    (problem, method, way): Published(overconfidence=over, error=error)
    for problem, numbers in {
        "USPS": ((0.1978, 0.1536), (0.1653, 0.1123), (0.1624, 0.0898), (0.1515, 0.0726)),
        "Letter": ((0.1854, 0.2628), (0.1395, 0.1876), (0.1416, 0.1161), (0.1338, 0.0840)),
        "Pendigits": ((0.2804, 0.1589), (0.2192, 0.0983), (0.1682, 0.0559), (0.1684, 0.0341)),
        "DNA": ((0.1475, 0.1410), (0.1258, 0.0867), (0.0895, 0.0811), (0.0871, 0.0724)),
    }.items()
    for (method, way), (over, error) in zip(
        ((GB, PASSIVE), (GB, ACTIVE), (CB, PASSIVE), (CB, ACTIVE)), numbers, strict=True
    )
}

LIMITS: Mapping[str, float] = {"Pendigits": 0.034, "Letter": 0.061, "USPS": 0.075, "DNA": 0.063}
"""Largest mean error of active Confidence Boosting in the setting `default`."""

_ORDERINGS = (
    ((CB, ACTIVE), (CB, PASSIVE)),
    ((CB, ACTIVE), (GB, ACTIVE)),
    ((GB, ACTIVE), (GB, PASSIVE)),
    ((CB, PASSIVE), (GB, PASSIVE)),
)


def errors(runs: Sequence[Run]) -> list[float]:
    """Return the error at the end of each run."""
    return [run.last.error for run in runs]


def last_rounds(results: Results) -> list[Row]:
    """Return the state after the last round, one row per cell, with the paper's numbers."""
    rows: list[Row] = []
    for cell, runs in results.items():
        ends = [run.last for run in runs]
        published = PAPER.get((cell.problem, cell.method, cell.way))
        if cell.setting != "paper":
            published = None
        row: Row = {
            "set": cell.problem,
            "setting": cell.setting,
            "way": cell.way,
            "method": cell.method,
        }
        row |= _with_error("error", [end.error for end in ends])
        row["paper's error"] = None if published is None else published.error
        row |= _with_error("over-confidence", [end.overconfidence for end in ends])
        row["paper's over-confidence"] = None if published is None else published.overconfidence
        row |= _with_error("under-confidence", [end.underconfidence for end in ends])
        row |= _with_error("AUC right v. wrong", [end.right_wrong_auc for end in ends])
        row["labels"] = mean(end.n_labels for end in ends)
        row["labels se"] = standard_error([end.n_labels for end in ends])
        row["nodes per tree"] = mean(run.n_nodes for run in runs)
        rows.append(row)
    return rows


def of_baselines(
    found: Mapping[tuple[str, str, str], Sequence[float]], results: Results
) -> list[Row]:
    """Return errors at equal numbers of labels, one row per learner and choice of labels.

    Parameters
    ----------
    found
        Errors of the runs, by data set, baseline and the labels it learned.
    results
        Runs of the boosted forests, in the setting `default`.

    """
    rows = []
    for problem in dict.fromkeys(problem for problem, _, _ in found):
        cell = Cell(problem=problem, setting="default", method=CB, way=ACTIVE)
        labels = mean(run.last.n_labels for run in results[cell])
        of_cb = {(problem, CB, which): found_cb for which, found_cb in _own(results, problem)}
        mine = {key: values for key, values in found.items() if key[0] == problem}
        for (_, learner, which), values in (of_cb | mine).items():
            row: Row = {"set": problem, "labels": labels, "learner": learner, "which labels": which}
            rows.append(row | _with_error("error", values))
    return rows


def _own(results: Results, problem: str) -> list[tuple[str, list[float]]]:
    ways = {ASKED: ACTIVE, RANDOM: PASSIVE}
    return [
        (which, errors(results[Cell(problem=problem, setting="default", method=CB, way=way)]))
        for which, way in ways.items()
    ]


def accepted(results: Results, *, slack: float) -> list[Acceptance]:
    """Compare with the limits, widened by `slack` standard errors."""
    limits = []
    for problem in dict.fromkeys(cell.problem for cell in results):
        for less, more in _ORDERINGS:
            these, those = (
                errors(results[Cell(problem=problem, setting="paper", method=method, way=way)])
                for method, way in (less, more)
            )
            gap = differences(these, those)
            name = f"{problem}, paper: error of {_name(less)} above {_name(more)}"
            limits.append(widened(at_most, name, gap, 0.0, slack))
        if problem in LIMITS:
            cell = Cell(problem=problem, setting="default", method=CB, way=ACTIVE)
            name = f"{problem}, default: error of {ACTIVE} {CB}"
            limits.append(widened(at_most, name, errors(results[cell]), LIMITS[problem], slack))
    return limits


def _name(pair: tuple[str, str]) -> str:
    method, way = pair
    return f"{way} {method}"


def _with_error(name: str, values: Sequence[float]) -> Row:
    return {name: mean(values), f"{name} se": standard_error(values)}


# --- curves: test error against labels, a panel for each data set

# Colours of Okabe and Ito, which colour-blind readers can tell apart.
_COLOURS = {
    GB: "#D55E00",
    CB: "#0072B2",
    NORMALISED: "#E69F00",
    LARGER: "#CC79A7",
    FOREST: "#999999",
}
_TICKS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)
_DASHES: dict[str, Any] = {ACTIVE: "solid", PASSIVE: (0, (2, 1.5))}


def draw(results: Results, path: Path) -> None:
    """Write a row of panels for each setting; crosses mark the paper's final results."""
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    problems = list(dict.fromkeys(cell.problem for cell in results))
    settings = [s for s in SETTINGS if any(cell.setting == s for cell in results)]
    figure = Figure(figsize=(4.0 * len(problems), 3.6 * len(settings)), layout="constrained")
    axes = figure.subplots(len(settings), len(problems), squeeze=False)
    for row, setting in zip(axes, settings, strict=True):
        for axis, problem in zip(row, problems, strict=True):
            _draw_panel(axis, results, problem, setting)
        row[0].set_ylabel("error on the test set")
    # One legend entry per line, from the first panel.
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", frameon=False, ncols=1 + len(problems)
    )
    save_picture(figure, path)


def curve(runs: Sequence[Run]) -> tuple[Any, Any, Any]:
    """Return mean labels, mean error and its standard error, round by round."""
    n = min(len(run.rounds) for run in runs)
    labels = np.array([[r.n_labels for r in run.rounds[:n]] for run in runs], dtype=float)
    errors = np.array([[r.error for r in run.rounds[:n]] for run in runs])
    spread = errors.std(axis=0, ddof=min(1, len(runs) - 1)) / np.sqrt(len(runs))
    return labels.mean(axis=0), errors.mean(axis=0), spread


def _draw_panel(axis: Any, results: Results, problem: str, setting: str) -> None:
    axis.set_title(f"{problem}, {setting}")
    for method, colour in _COLOURS.items():
        for way, dash in _DASHES.items():
            cell = Cell(problem=problem, setting=setting, method=method, way=way)
            if cell not in results:
                continue
            labels, errors, spread = curve(results[cell])
            axis.plot(labels, errors, color=colour, linestyle=dash, label=f"{way} {method}")
            axis.fill_between(
                labels, errors - spread, errors + spread, color=colour, alpha=0.15, linewidth=0
            )
            published = PAPER.get((problem, method, way)) if setting == "paper" else None
            if published is not None and way == ACTIVE:
                axis.plot(labels[-1], published.error, "x", color=colour)
    axis.set(yscale="log", xlabel="labels")
    ends = axis.get_ylim()
    axis.set_yticks(_TICKS, labels=[f"{tick:g}" for tick in _TICKS])
    axis.tick_params(axis="y", which="minor", labelleft=False)
    axis.set_ylim(ends)  # ticks beyond them widen the axis
    axis.grid(alpha=0.25, which="both")
