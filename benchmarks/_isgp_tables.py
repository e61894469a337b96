"""What the synthetic experiment shows: rows of its tables, and limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from benchmarks._harness import Acceptance, Row, at_least, at_most, standard_error
from benchmarks._isgp_game import Condition, Trace
from benchmarks._isgp_learners import (
    ALWAYS,
    DEFAULT,
    ISGP,
    NEVER,
)

# Noise: questions in all, and the F1 that the default rules have to reach with them.
WITHIN = {0.1: (70, 0.84), 0.4: (100, 0.80)}
# Noise: what challenging has to gain over never challenging.
_GAIN = {0.1: 0.02, 0.4: 0.06}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A learner as the tables and pictures name it, its knob and what it did in every fold."""

    learner: str
    knob: float | None
    traces: list[Trace]


def row(condition: Condition, played: Played) -> Row:
    """Return a learner's line of the table of learners."""
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
        "questions": mean_questions(traces),
        "wrong_kept": mean(trace.wrong / trace.learned for trace in traces),
        "us_per_event": 1e6 * mean(float(trace.seconds.mean()) for trace in traces),
    }


def row_of_variant(condition: Condition, played: Played) -> Row:
    """Return a learner's line of the table of variants; they are scored at the end only."""
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
        "questions": mean_questions(traces),
        "wrong_kept": mean(trace.wrong / trace.learned for trace in traces),
        "refused": mean(refused),
        "first_refused": mean(first) if first else None,
    }


def accepted(
    played: Mapping[Condition, Mapping[str, Sequence[Trace]]], slack: float
) -> list[Acceptance]:
    """Compare with the limits, each widened by `slack` standard errors of what it limits."""
    rows: list[Acceptance] = []
    for condition, traces in played.items():
        limit, reach = WITHIN[condition.noise]
        isgp, default = traces[ISGP], traces[f"{DEFAULT}, within {limit}"]
        f1 = {name: _finals(traces[name]) for name in (NEVER, ISGP, ALWAYS)}
        # Fold by fold: all meet the same annotator.
        gain = _differences(f1[ISGP], f1[NEVER])
        lead = _differences(f1[ALWAYS], f1[ISGP])
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
        for judge, name, values, value in limits:
            margin = slack * standard_error(values)
            name = f"{condition}: {name}"
            if slack:
                name += f"; {value:g} widened by {slack:g} standard errors"
            widened = value + (margin if judge is at_most else -margin)
            rows.append(judge(name, mean(values), widened))
    return rows


def mean_f1(traces: Sequence[Trace]) -> float:
    """Mean F1 after the last step."""
    return mean(_finals(traces))


def mean_questions(traces: Sequence[Trace]) -> float:
    """Mean number of questions."""
    return mean(trace.questions for trace in traces)


def _finals(traces: Sequence[Trace]) -> list[float]:
    return [float(trace.f1[-1]) for trace in traces]


def _differences(these: Sequence[float], those: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(these, those, strict=True)]
