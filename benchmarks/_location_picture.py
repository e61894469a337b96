"""The curves of the location experiment, as Figure 3 of the ISGP paper shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._isgp_game import Condition, Trace
from benchmarks._isgp_learners import ALWAYS, ISGP, NEVER
from benchmarks._isgp_picture import draw_mean, save
from benchmarks._location_learners import DEFAULT, FOREST

# As in the pictures of the synthetic experiment.
_LINES: dict[str, tuple[str, Any]] = {
    NEVER: ("#E69F00", (0, (1, 1.2))),
    ISGP: ("#0072B2", "solid"),
    ALWAYS: ("#56B4E9", (0, (4, 1.5))),
    DEFAULT: ("#000000", "solid"),
    FOREST: ("#D55E00", (0, (5, 1.5, 1, 1.5))),
}
_SMOOTH = 20  # moments over which run times are averaged


def draw(played: Mapping[Condition, Mapping[str, Sequence[Trace]]], path: Path) -> None:
    """Draw one row for each noise: F1, questions and run time as learning proceeds."""
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12.0, 3.6 * len(played)), layout="constrained")
    axes = figure.subplots(len(played), 3, sharex=True, squeeze=False)
    for row, (condition, traces) in zip(axes, played.items(), strict=True):
        _draw_row(row, condition, traces)
    for axis in axes[-1]:
        axis.set_xlabel("moments")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(_LINES),
        frameon=False,
    )
    save(figure, path)


def _draw_row(row: Any, condition: Condition, traces: Mapping[str, Sequence[Trace]]) -> None:
    f1, questions, times = row
    f1.set(title=f"{condition.noise:.0%} wrong answers", ylabel="macro F1", ylim=(0.0, 1.0))
    questions.set(title="label requests (thin: challenges)", ylabel="in all")
    times.set(title="run time", ylabel="µs per event", yscale="log")
    for name, (colour, dash) in _LINES.items():
        if name not in traces:
            continue
        style = {"color": colour, "linestyle": dash, "linewidth": 1.8}
        draw_mean(f1, [trace.f1 for trace in traces[name]], style, label=name)
        draw_mean(questions, [trace.asked for trace in traces[name]], style)
        challenges = [trace.challenges for trace in traces[name]]
        draw_mean(questions, challenges, {**style, "linewidth": 0.9})
        seconds = np.mean([trace.seconds for trace in traces[name]], axis=0)
        kernel = np.ones(_SMOOTH) / _SMOOTH
        steps = np.arange(_SMOOTH, len(seconds) + 1)
        times.plot(steps, 1e6 * np.convolve(seconds, kernel, "valid"), **style)
    for axis in row:
        axis.grid(alpha=0.25)
