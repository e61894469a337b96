"""Learning curves as a picture: accuracy against labels, a panel for each pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._isgp_picture import save
from benchmarks._pool_play import Run
from benchmarks._pool_strategies import HERDING, HVAR, L2FM, MARGIN, MVAR, RAND, RKHS

# Colours of Okabe and Ito, which the colour-blind tell apart; every line has a dash of its own too.
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
    save(figure, path)


def _draw_mean(axis: Any, name: str, runs: Sequence[Run], line: tuple[str, Any]) -> None:
    colour, dash = line
    marks = list(runs[0].accuracy)
    values = 100.0 * np.array([list(run.accuracy.values()) for run in runs])
    middle = values.mean(axis=0)
    error = values.std(axis=0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
    axis.plot(marks, middle, color=colour, linestyle=dash, linewidth=1.5, label=name)
    axis.fill_between(marks, middle - error, middle + error, color=colour, alpha=0.15, linewidth=0)
