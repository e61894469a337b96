"""The location experiment of the ISGP paper (Sec. 5.2), on a public log: where people are.

ExtraSensory (`--data`) holds what people's phones and watches measured, and where people said they
were, which counts as the truth here: home, school or workplace, or elsewhere. Each person has a
learner of their own, a stream of 300 moments in the order of the log, sensors that come and go, and
an annotator who is wrong in 10 or 40 % of the answers. F1 is the macro F1 on 75 other moments of
the same person, over the places that occur among them. The first label is free.

Learners: ISGP with the paper's rules and kernels (constant, rational quadratic, squared
exponential, white noise), also without any challenges and challenging always; `isgp()`, as it is,
and with the parameter `c` of its query rule tuned to ISGP's number of questions; SRF, skeptical
learning with a random forest (needs scikit-learn), its parameter tuned to the same. Parameters are
tuned with the first seed; SRF is run with that seed alone, since it takes much longer.

Extra option: --pictures DIR draws the curves into DIR (needs matplotlib).

"""

from __future__ import annotations

import importlib.util
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
    processes,
    progress,
    run_with_pictures,
    save_picture,
    standard_error,
)
from benchmarks._logs import MissingLogError
from benchmarks.papers.isgp.game import Condition, Trace
from benchmarks.papers.isgp.learners import ALWAYS, ISGP, NEVER, knob_for
from benchmarks.papers.isgp.results import Played, draw_mean, mean_questions, row
from benchmarks.papers.location.game import (
    CONDITIONS,
    DEFAULT,
    FOREST,
    FRUGAL,
    GAUSSIAN,
    People,
    people,
)

# --- curves, as in Figure 3 of the paper

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
    """Draw one row per noise level: F1, questions and run time as learning proceeds."""
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12.0, 3.6 * len(played)), layout="constrained")
    axes = figure.subplots(len(played), 3, sharex=True, squeeze=False)
    for panels, (condition, traces) in zip(axes, played.items(), strict=True):
        _draw_row(panels, condition, traces)
    for axis in axes[-1]:
        axis.set_xlabel("moments")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(_LINES),
        frameon=False,
    )
    save_picture(figure, path)


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


# --- the benchmark

_STEPS = (25, 50, 100, 200, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs; None for all people."""

    conditions: Sequence[Condition] = CONDITIONS
    n_people: int | None = None
    n_seeds: int = 3
    cs: Sequence[float] = (0.25, 0.5, 1.0)
    thetas: Sequence[float] = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    forest: bool = True


QUICK = Plan(n_people=6, n_seeds=1, forest=False)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run_with_pictures("location", measure, about=__doc__, argv=argv)


def measure(
    options: Options,
    *,
    plan: Plan | None = None,
    pictures: Path | None = None,
    n_processes: int | None = None,
) -> Outcome:
    """Run the stream of each person under all conditions."""
    plan = plan or (QUICK if options.quick else Plan())
    try:
        if options.data is None:
            raise MissingLogError("ExtraSensory (needs --data)")
        users = list(people(options.data))[: plan.n_people]
    except MissingLogError as error:
        return Outcome(rows=[], skipped=[str(error)])
    skipped = [] if plan.forest else ["SRF, which takes minutes"]
    with_forest = plan.forest and importlib.util.find_spec("sklearn") is not None
    if plan.forest and not with_forest:
        skipped.append("SRF (needs scikit-learn: the extra `bench`)")
    played: dict[Condition, dict[str, Played]] = {}
    seeds = range(options.seed, options.seed + plan.n_seeds)
    with processes(n_processes) as pool:
        persons = People(options.data, users, pool)
        for condition in plan.conditions:
            found = played[condition] = {}
            for name in GAUSSIAN:
                progress(f"{condition}: {name}")
                traces = persons.traces(condition, name, seeds)
                found[name] = Played(learner=name, knob=None, traces=traces)
            tuned = [(FRUGAL, plan.cs, seeds)]
            tuned += [(FOREST, plan.thetas, seeds[:1])] if with_forest else []
            for name, knobs, of_it in tuned:
                knob = _tuned(persons, condition, name, seeds[:1], knobs)
                progress(f"{condition}: {name}, knob {knob:.3g}")
                traces = persons.traces(condition, name, of_it, knob)
                found[name] = Played(learner=name, knob=knob, traces=traces)
    if pictures is not None:
        curves = {c: {name: p.traces for name, p in of.items()} for c, of in played.items()}
        draw(curves, pictures / "location.png")
    notes = [
        f"{len(users)} people, {plan.n_seeds} seed(s), SRF one; se: standard error over people.",
        "justified: challenges of labels that were wrong. knob: c, or theta of SRF.",
    ]
    return Outcome(
        rows=_rows(played, len(users)), acceptance=_accepted(played, len(users)),
        skipped=skipped, notes=notes,
    )  # fmt: skip


def _tuned(
    persons: People, condition: Condition, name: str, seeds: Sequence[int], knobs: Sequence[float]
) -> float:
    """Return the knob at which a learner asks as many questions as ISGP."""
    target = mean_questions(persons.traces(condition, ISGP, seeds))
    counts = []
    for knob in knobs:
        progress(f"{condition}: {name}, trying {knob:g}")
        counts.append(mean_questions(persons.traces(condition, name, seeds, knob)))
        if counts[-1] >= target:
            break
    return knob_for(knobs[: len(counts)], counts, target)


def _rows(played: Mapping[Condition, Mapping[str, Played]], n_people: int) -> list[Row]:
    ends, courses = [], []
    for condition, found in played.items():
        for one in found.values():
            f1 = _by_person([trace.f1[-1] for trace in one.traces], n_people)
            end = row(condition, one)
            del end["order"]
            ends.append({**end, "f1_se": standard_error(f1)})
            course = {f"f1_at_{n}": _at(one.traces, n) for n in _STEPS}
            courses.append({"noise": condition.noise, "learner": one.learner, **course})
    return ends + courses


def _at(traces: Sequence[Trace], step: int) -> float:
    return mean(float(trace.f1[step - 1]) for trace in traces)


def _by_person(values: Sequence[float], n_people: int) -> list[float]:
    means: list[float] = np.reshape(values, (n_people, -1)).mean(axis=1).tolist()
    return means


def _accepted(played: Mapping[Condition, Mapping[str, Played]], n_people: int) -> list[Acceptance]:
    """Check the paper's claims, each limit widened by two standard errors over people."""
    limits = []
    for condition, found in played.items():
        f1 = {
            name: np.array(_by_person([t.f1[-1] for t in one.traces], n_people))
            for name, one in found.items()
        }
        for name, difference in (
            ("F1 of ISGP above never challenging", f1[ISGP] - f1[NEVER]),
            ("F1 of always challenging above ISGP", f1[ALWAYS] - f1[ISGP]),
            ("F1 of the default preset above ISGP", f1[DEFAULT] - f1[ISGP]),
        ):
            margin = 2.0 * standard_error(difference.tolist())
            what = f"{condition.noise:.0%}: {name}, 0 widened by 2 standard errors"
            limits.append(at_least(what, float(difference.mean()), -margin))
        if FOREST in found:
            times = {name: _microseconds(found[name].traces) for name in (ISGP, FOREST)}
            what = f"{condition.noise:.0%}: run time of ISGP / SRF"
            limits.append(at_most(what, times[ISGP] / times[FOREST], 0.1))
    return limits


def _microseconds(traces: Sequence[Trace]) -> float:
    return 1e6 * mean(float(trace.seconds.mean()) for trace in traces)
