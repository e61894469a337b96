"""Results of the synthetic experiment: rows of its tables, limits, and the curves of Figure 2."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks._harness import (
    Acceptance,
    Row,
    at_least,
    at_most,
    differences,
    save_picture,
    standard_error,
    widened,
)
from benchmarks.papers.isgp.game import BAYES_F1, Condition, Trace
from benchmarks.papers.isgp.learners import (
    ALWAYS,
    DEFAULT,
    FOREST_F1,
    FOREST_QUESTIONS,
    ISGP,
    NEVER,
)

# Noise: number of questions, and the F1 that the default rules have to reach with them.
WITHIN = {0.1: (70, 0.84), 0.4: (100, 0.80)}
# Noise: the gain in F1 that challenging must have over never challenging.
_GAIN = {0.1: 0.02, 0.4: 0.06}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A learner by its name in tables and pictures, its knob, and its trace in every fold."""

    learner: str
    knob: float | None
    traces: list[Trace]


def row(condition: Condition, played: Played) -> Row:
    """Return a learner's row in the table of learners."""
    traces = played.traces
    f1_run = mean(float(trace.f1.mean()) for trace in traces)
    return {
        "order": condition.order,
        "noise": condition.noise,
        "learner": played.learner,
        "knob": played.knob,
        "folds": len(traces),
        "f1": mean_f1(traces),
        "f1_se": standard_error(_finals(traces)),
        "f1_run": None if math.isnan(f1_run) else f1_run,
        "labels": mean(int(trace.asked[-1]) for trace in traces),
        "challenges": mean(int(trace.challenges[-1]) for trace in traces),
        "justified": mean(int(trace.justified[-1]) for trace in traces),
        "precision": _precision(traces),
        "questions": mean_questions(traces),
        "wrong_kept": mean(trace.wrong / trace.learned for trace in traces),
        "us_per_event": 1e6 * mean(float(trace.seconds.mean()) for trace in traces),
    }


def row_of_variant(condition: Condition, played: Played) -> Row:
    """Return a learner's row in the table of variants; these are scored at the end only."""
    traces = played.traces
    refused = [int(trace.refused[-1]) for trace in traces]
    first = [int(np.argmax(trace.refused > 0)) + 1 for trace in traces if trace.refused[-1]]
    return {
        "order": condition.order,
        "noise": condition.noise,
        "variant": played.learner,
        "knob": played.knob,
        "f1": mean_f1(traces),
        "f1_se": standard_error(_finals(traces)),
        "labels": mean(int(trace.asked[-1]) for trace in traces),
        "challenges": mean(int(trace.challenges[-1]) for trace in traces),
        "justified": mean(int(trace.justified[-1]) for trace in traces),
        "precision": _precision(traces),
        "questions": mean_questions(traces),
        "wrong_kept": mean(trace.wrong / trace.learned for trace in traces),
        "refused": mean(refused),
        "first_refused": mean(first) if first else None,
    }


def accepted(
    played: Mapping[Condition, Mapping[str, Sequence[Trace]]], slack: float
) -> list[Acceptance]:
    """Compare with the limits, each widened by `slack` standard errors of the limited value."""
    rows: list[Acceptance] = []
    for condition, traces in played.items():
        limit, reach = WITHIN[condition.noise]
        isgp, default = traces[ISGP], traces[f"{DEFAULT}, within {limit}"]
        f1 = {name: _finals(traces[name]) for name in (NEVER, ISGP, ALWAYS)}
        # Fold by fold, as all get the same annotator.
        gain = differences(f1[ISGP], f1[NEVER])
        lead = differences(f1[ALWAYS], f1[ISGP])
        labels = [float(trace.asked[-1]) for trace in isgp]
        challenges = [float(trace.challenges[-1]) for trace in isgp]
        limits: list[tuple[Callable[..., Acceptance], str, Sequence[float], float]] = [
            (at_least, "paper: F1 of ISGP above never challenging", gain, _GAIN[condition.noise]),
            (at_most, "paper: F1 of always challenging above ISGP", lead, 0.06),
            (at_least, "paper: labels of ISGP", labels, 28.0),
            (at_most, "paper: labels of ISGP", labels, 34.0),
            (at_least, "paper: challenges of ISGP", challenges, 7.0),
            (at_most, "paper: challenges of ISGP", challenges, 17.0),
            (at_least, f"default: F1 within {limit} questions", _finals(default), reach),
            (at_most, "default: these questions", [float(t.questions) for t in default], limit),
        ]
        rows += [
            widened(judge, f"{condition}: {name}", values, value, slack)
            for judge, name, values, value in limits
        ]
    return rows


def mean_f1(traces: Sequence[Trace]) -> float:
    """Mean F1 after the last step."""
    return mean(_finals(traces))


def mean_questions(traces: Sequence[Trace]) -> float:
    """Mean number of questions."""
    return mean(trace.questions for trace in traces)


def _precision(traces: Sequence[Trace]) -> float | None:
    """Return the share of all challenges that contested a wrong label."""
    challenges = sum(int(trace.challenges[-1]) for trace in traces)
    return sum(int(trace.justified[-1]) for trace in traces) / challenges if challenges else None


def _finals(traces: Sequence[Trace]) -> list[float]:
    return [float(trace.f1[-1]) for trace in traces]


# --- curves

# Colours of Okabe and Ito, which colour-blind readers can tell apart; dashes differ as well.
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
    """Draw one picture per order, one column per noise level; return the files."""
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
        save_picture(figure, paths[-1])
    return paths


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
