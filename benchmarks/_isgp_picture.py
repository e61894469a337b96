"""The curves of the synthetic experiment, as Figure 2 of the ISGP paper shows them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._isgp_game import BAYES_F1, Condition, Trace
from benchmarks._isgp_learners import ALWAYS, DEFAULT, FOREST_F1, FOREST_QUESTIONS, ISGP, NEVER

# Colours of Okabe and Ito, which the colour-blind tell apart; every line has a dash of its own too.
_LINES: dict[str, tuple[str, Any]] = {
    NEVER: ("#E69F00", (0, (1, 1.2))),
    ISGP: ("#0072B2", "solid"),
    ALWAYS: ("#56B4E9", (0, (4, 1.5))),
    f"{DEFAULT}, 80 questions": ("#000000", "solid"),
    FOREST_QUESTIONS: ("#D55E00", (0, (5, 1.5, 1, 1.5))),
    FOREST_F1: ("#CC79A7", (0, (3, 1.2, 1, 1.2, 1, 1.2))),
}
_MOST_LABELS = 100
_EVERY = 5


def draw(played: Mapping[Condition, Mapping[str, Sequence[Trace]]], folder: Path) -> list[Path]:
    """Draw one picture for each order, one column for each noise; return the files."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for order in dict.fromkeys(condition.order for condition in played):
        columns = [condition for condition in played if condition.order == order]
        figure = Figure(figsize=(4.9 * len(columns), 8.0), layout="constrained")
        axes = figure.subplots(3, len(columns), sharex=True, sharey="row", squeeze=False)
        for column, condition in zip(axes.T, columns, strict=True):
            _draw_column(column, condition, played[condition])
        f1, labels, challenges = axes[:, 0]
        f1.set(ylabel="macro F1 on the fold left out", ylim=(0.0, 1.0))
        labels.set(ylabel="label requests", ylim=(0, _MOST_LABELS))
        challenges.set_ylabel("challenges (thin: of wrong labels)")
        challenges.set_ylim(bottom=0)
        figure.legend(
            *f1.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
        )
        paths.append(folder / f"isgp-{order}.png")
        save(figure, paths[-1])
    return paths


def save(figure: Any, path: Path) -> None:
    """Write with 128 colours: a third of the bytes, and no difference to the eye."""
    from PIL import Image  # comes with matplotlib

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100)
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(128).save(path, optimize=True)


def _draw_column(column: Any, condition: Condition, traces: Mapping[str, Sequence[Trace]]) -> None:
    f1, labels, challenges = column
    f1.set_title(f"{condition.order} order, {condition.noise:.0%} wrong answers")
    f1.axhline(BAYES_F1, color="#999999", linewidth=0.8)
    for name, (colour, dash) in _LINES.items():
        if name not in traces:
            continue
        style = {"color": colour, "linestyle": dash, "linewidth": 1.8}
        draw_mean(f1, [trace.f1 for trace in traces[name]], style, label=name)
        draw_mean(labels, [trace.asked for trace in traces[name]], style)
        draw_mean(challenges, [trace.challenges for trace in traces[name]], style)
        justified = np.mean([trace.justified for trace in traces[name]], axis=0)
        if justified[-1]:
            steps = np.arange(1, len(justified) + 1)
            challenges.plot(steps, justified, color=colour, linewidth=0.9)
    challenges.set_xlabel("events")
    for axis in column:
        axis.grid(alpha=0.25)


def draw_mean(axis: Any, curves: Sequence[Any], style: dict[str, Any], **options: Any) -> None:
    """Draw a mean and the band of its standard error."""
    values = np.array(curves, dtype=float)
    # From the end, so that the last step is drawn.
    steps = np.arange(values.shape[1], 0, -_EVERY)[::-1]
    values = values[:, steps - 1]
    middle = values.mean(axis=0)
    error = values.std(axis=0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
    axis.plot(steps, middle, **style, **options)
    axis.fill_between(
        steps, middle - error, middle + error, color=style["color"], alpha=0.15, linewidth=0
    )
