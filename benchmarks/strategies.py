"""When to ask: all query rules, River's sampler and scikit-activeml's, at equal numbers of labels.

Only the asking differs: the classifier, its scaling and the challenges are those of `isgp()`
throughout. Every rule's knob is turned, for each log and number of labels, until the number of
labels fits; accuracies play no part in that. Where no setting fits, the labels are cut off at the
number wanted (`hard limit` is the share of runs that this ended). The numbers of labels are 5, 10
and 20 % of the events: `isgp()` as it comes asks about 10 %, so they are half of what it wants, as
much, and twice.

Six logs, the first 2000 events of each, as recorded where rows follow each other in time, else in
random order and class after class; 20 % wrong answers; three seeds. Every log has the same weight.
Accuracy and macro F1 are progressive: every event is predicted before anything is learned of it,
and for accuracy an event without a prediction counts as wrong. The time of a decision is that of
rule and budget alone. Not compared: strategies that look at the features of an event or want more
of a classifier than probabilities (`StreamDensityBasedAL`, `StreamProbabilisticAL` and
`CognitiveDualQueryStrategy` of scikit-activeml).

"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks import _strategies_tables as tables
from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    at_most,
    progress,
    run,
    standard_error,
)
from benchmarks._logs import Log, read, read_all
from benchmarks._parallel import in_processes
from benchmarks._peers import HAS_SKACTIVEML
from benchmarks._strategies_play import Job, microseconds
from benchmarks._strategies_rules import CONTENDERS, DEFAULT
from benchmarks._strategies_tables import Cell

_EVERY_LABEL = "AlwaysAsk + AtMost"
_AS_IT_COMES = "PaperAsk + AtMost"  # PaperAsk() and SkepticalAsk() are the same rule
_LABELS_FOR_TIMING = 100
# A mean over fewer logs says nothing about rules.
_FEWEST_LOGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played."""

    logs: Sequence[str] = ("wifi_rooms", "occupancy", "wisdm", "places_1", "elec2", "pendigits")
    contenders: Sequence[str] = tuple(CONTENDERS)
    n_events: int = 2000
    n_seeds: int = 3
    rates: Sequence[float] = (0.05, 0.1, 0.2)
    rate_without_challenges: float | None = 0.1
    n_workers: int = os.cpu_count() or 1


QUICK = Plan(
    logs=("wifi_rooms", "occupancy", "elec2"),
    contenders=tuple(
        name
        for name in (
            DEFAULT,
            "RandomAsk",
            "BestVersusSecond + RateBudget",
            "EntropySampler",
            "PeriodicSampling",
            "VariableUncertainty",
        )
        if name in CONTENDERS
    ),
    n_events=800,
    n_seeds=1,
    rates=(0.1, 0.2),
    rate_without_challenges=None,
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("strategies", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Play every contender over every stream, and compare."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, skipped = read_all(plan.logs, options.data, plan.n_events)
    if not HAS_SKACTIVEML:
        skipped.append("the strategies of scikit-activeml (not installed; install the extra bench)")
    progress("time of a decision")
    timed = read("wifi_rooms", None, 600)
    us = {name: microseconds(name, timed, _LABELS_FOR_TIMING, 5) for name in plan.contenders}
    seeds = range(options.seed, options.seed + plan.n_seeds)
    cells = _played(plan, logs, plan.contenders, plan.rates, seeds)
    rows = [*tables.by_rate(cells), *tables.costs(cells, us)]
    rows += [*tables.by_log(cells), *tables.winners(cells)]
    if plan.rate_without_challenges is not None:
        rate = plan.rate_without_challenges
        alone = _played(plan, logs, plan.contenders, [rate], seeds, challenges=False)
        rows += tables.ranks(alone, [cell for cell in cells if cell.rate == rate])
        # Asking about everything takes long, and hardly depends on the seed.
        rows += tables.ends(
            _played(plan, logs, (_EVERY_LABEL, _AS_IT_COMES), [1.0], seeds[:1]),
            {_EVERY_LABEL: "AlwaysAsk", _AS_IT_COMES: "PaperAsk = SkepticalAsk, c = 1"},
        )
    streams = ", ".join(f"{log.name} {o} ({len(log.events)})" for log in logs for o in _orders(log))
    return Outcome(
        rows=rows,
        acceptance=_accepted(cells, quick=options.quick),
        skipped=skipped,
        notes=[f"Streams: {streams}.", "NeverAsk learns nothing and predicts nothing: 0."],
    )


def _played(
    plan: Plan,
    logs: Sequence[Log],
    contenders: Sequence[str],
    rates: Sequence[float],
    seeds: Sequence[int],
    *,
    challenges: bool = True,
) -> list[Cell]:
    jobs = [
        Job(
            log=log,
            order=order,
            contender=contender,
            budgets=[round(rate * len(log.events)) for rate in rates],
            seeds=seeds,
            challenges=challenges,
        )
        for log in logs
        for order in _orders(log)
        for contender in contenders
    ]
    cells = []
    for job, scores in zip(jobs, in_processes(Job.scores, jobs, plan.n_workers), strict=True):
        progress(f"{job.log.name}, {job.order}: {job.contender}")
        cells += [
            Cell(contender=job.contender, log=job.log.name, rate=rate, n=n, score=scores[n])
            for rate, n in zip(rates, job.budgets, strict=True)
        ]
    return cells


def _orders(log: Log) -> tuple[str, ...]:
    return ("recorded",) if "recorded" in log.orders else log.orders


def _accepted(cells: Sequence[Cell], *, quick: bool) -> list[Acceptance]:
    if len({cell.log for cell in cells}) < _FEWEST_LOGS:
        return []
    others = [name for name in tables.contenders(cells) if name != DEFAULT]
    gaps = {name: tables.above_default(cells, name) for name in others}
    best = max(gaps, key=lambda name: mean(gaps[name]))
    name, limit = f"mean accuracy of the best other rule ({best}) above that of {DEFAULT}", 0.01
    if quick:
        name += f"; {limit:g} widened by 2 standard errors"
        limit += 2.0 * standard_error(gaps[best])
    return [
        at_most(name, mean(gaps[best]), limit),
        at_most(
            f"labels of {DEFAULT} off the number wanted", tables.mean_off(cells, DEFAULT), 0.05
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
