"""Learning curves of the reproduction: test error against labels, a panel for each data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._boosting_play import (
    ACTIVE,
    CB,
    FOREST,
    GB,
    LARGER,
    NORMALISED,
    PASSIVE,
    SETTINGS,
    Cell,
    Run,
)
from benchmarks._boosting_tables import PAPER, Results
from benchmarks._isgp_picture import save

# Colours of Okabe and Ito, which the colour-blind tell apart.
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
    """Write a row of panels for each setting; crosses are what the paper ends with."""
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
    # Once for each line: those of the first panel.
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", frameon=False, ncols=1 + len(problems)
    )
    save(figure, path)


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
