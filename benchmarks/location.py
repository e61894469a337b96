"""Where people are: the experiment of the ISGP paper on location (Sec. 5.2), on a public log.

ExtraSensory (`--data`) holds what people's phones and watches measured, and where they said to be,
which counts as the truth here: home, school or workplace, or elsewhere. Each person has a learner
of their own, a stream of 300 moments in the order of the log, sensors that come and go, and an
annotator who is wrong in 10 or 40 % of the answers. F1 is the macro F1 on 75 other moments of the
same person, over the places that occur among them. The first label is free.

Learners: ISGP with the paper's rules and kernels (constant, rational quadratic, squared
exponential, white noise), the same never and always challenging; `isgp()`, as it is, and with the
knob `c` of its rule for asking tuned to ISGP's number of questions; SRF, skeptical learning with a
random forest (needs scikit-learn), its knob tuned to the same. Knobs are tuned with the first seed;
SRF is played with that one alone, since it takes very much longer.

One option of its own: --pictures DIR draws the curves into DIR (needs matplotlib).

"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    at_most,
    progress,
    run_with_pictures,
    standard_error,
)
from benchmarks._isgp_game import Condition, Trace
from benchmarks._isgp_learners import ALWAYS, ISGP, NEVER, knob_for
from benchmarks._isgp_tables import Played, mean_questions, row
from benchmarks._location_game import CONDITIONS, people
from benchmarks._location_learners import DEFAULT, FOREST, FRUGAL, GAUSSIAN, People
from benchmarks._logs import MissingLogError
from benchmarks._parallel import processes

_STEPS = (25, 50, 100, 200, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played; None for everybody."""

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
    """Play everybody's stream under all conditions."""
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
        everybody = People(options.data, users, pool)
        for condition in plan.conditions:
            found = played[condition] = {}
            for name in GAUSSIAN:
                progress(f"{condition}: {name}")
                traces = everybody.traces(condition, name, seeds)
                found[name] = Played(learner=name, knob=None, traces=traces)
            tuned = [(FRUGAL, plan.cs, seeds)]
            tuned += [(FOREST, plan.thetas, seeds[:1])] if with_forest else []
            for name, knobs, of_it in tuned:
                knob = _tuned(everybody, condition, name, seeds[:1], knobs)
                progress(f"{condition}: {name}, knob {knob:.3g}")
                traces = everybody.traces(condition, name, of_it, knob)
                found[name] = Played(learner=name, knob=knob, traces=traces)
    if pictures is not None:
        from benchmarks._location_picture import draw

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
    everybody: People, condition: Condition, name: str, seeds: Sequence[int], knobs: Sequence[float]
) -> float:
    """Return the knob at which a learner has as many questions as ISGP."""
    target = mean_questions(everybody.traces(condition, ISGP, seeds))
    counts = []
    for knob in knobs:
        progress(f"{condition}: {name}, trying {knob:g}")
        counts.append(mean_questions(everybody.traces(condition, name, seeds, knob)))
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
    """Judge the paper's claims, each widened by two standard errors over people."""
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


if __name__ == "__main__":
    sys.exit(main())
