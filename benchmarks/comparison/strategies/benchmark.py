"""When to ask: all query rules, River's sampler and scikit-activeml's, at equal numbers of labels.

Only the asking differs: classifier and challenges are those of `isgp()` throughout, and features
are scaled by the first 200 events. Every rule's parameter is tuned, for each log and number of
labels, until the number of labels fits, without regard to accuracy. Where no setting fits, the
labels are cut off at the number wanted (`hard limit` is the share of runs that ended this way). The
numbers of labels are 5, 10 and 20 % of the events: by itself `SkepticalAsk()` asks about 10 % here,
so these are half as many as it wants, as many, and twice as many.

Six logs, the first 2000 events of each, as recorded where rows follow each other in time, otherwise
in random order and class after class; 20 % wrong answers; three seeds. Every log has the same
weight. Accuracy and macro F1 are progressive: every event is predicted before it is learned, and
for accuracy an event without a prediction counts as wrong. The time of a decision is that of rule
and budget alone. Not compared: strategies that look at the features of an event or need more from a
classifier than probabilities (`StreamDensityBasedAL`, `StreamProbabilisticAL` and
`CognitiveDualQueryStrategy` of scikit-activeml).

"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_most,
    in_processes,
    progress,
    run,
    standard_error,
    widened,
)
from benchmarks._logs import Log, read, read_all
from benchmarks.comparison.conversation import Score
from benchmarks.comparison.skactiveml import HAS_SKACTIVEML
from benchmarks.comparison.strategies.rules import CONTENDERS, DEFAULT, Job, microseconds

# --- tables: means over logs, all with the same weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Result of one contender on one stream at one number of labels."""

    contender: str
    log: str
    rate: float
    n: int
    score: Score


_Value = Callable[[Cell], float]


def contenders_of(cells: Sequence[Cell]) -> list[str]:
    """Names of the contenders, in the order of the cells."""
    return list(dict.fromkeys(cell.contender for cell in cells))


def above_default(cells: Sequence[Cell], contender: str) -> list[float]:
    """Accuracy of a contender minus that of the default rule, log by log."""
    default = _means(_of(cells, DEFAULT), _accuracy)
    return [a - default[log] for log, a in _means(_of(cells, contender), _accuracy).items()]


def mean_off(cells: Sequence[Cell], contender: str) -> float:
    """Mean difference between labels asked for and wanted, as a share of the latter."""
    return _mean(_of(cells, contender), _off)


def by_rate(cells: Sequence[Cell]) -> list[Row]:
    """Accuracy and macro F1 at every number of labels."""
    rows = []
    for name in contenders_of(cells):
        some = _of(cells, name)
        row: Row = {"rule": name, "package": CONTENDERS[name].package}
        for title, value in (("accuracy", _accuracy), ("F1", _macro_f1)):
            for rate in _rates(cells):
                row[f"{title} {rate:.0%}"] = _mean([c for c in some if c.rate == rate], value)
            row[title] = _mean(some, value)
        gap = above_default(cells, name)
        row["above default"], row["se"] = mean(gap), standard_error(gap)
        rows.append(row)
    return rows


def costs(cells: Sequence[Cell], microseconds: Mapping[str, float]) -> list[Row]:
    """Labels relative to those wanted, challenges, and the time of a decision."""
    return [
        {
            "rule": name,
            "labels / wanted": _mean(_of(cells, name), _labels),
            "furthest off": max(map(_off, _of(cells, name))),
            "hard limit": _mean(_of(cells, name), lambda cell: cell.score.hard_limit),
            "challenges / labels": _mean(_of(cells, name), _challenges),
            "wrong labels kept": _mean(_of(cells, name), lambda cell: cell.score.wrong_kept),
            "us per decision": microseconds[name],
        }
        for name in contenders_of(cells)
    ]


def by_log(cells: Sequence[Cell]) -> list[Row]:
    """Accuracy log by log, over all numbers of labels."""
    return [{"rule": name, **_means(_of(cells, name), _accuracy)} for name in contenders_of(cells)]


def winners(cells: Sequence[Cell]) -> list[Row]:
    """Which rule is best where."""
    rows = []
    for log in dict.fromkeys(cell.log for cell in cells):
        for rate in _rates(cells):
            here = [cell for cell in cells if (cell.log, cell.rate) == (log, rate)]
            accuracy = {name: _mean(_of(here, name), _accuracy) for name in contenders_of(here)}
            best = max(accuracy, key=accuracy.__getitem__)
            rows.append(
                {
                    "log": log,
                    "share": rate,
                    "best": best,
                    "its accuracy": accuracy[best],
                    f"of {DEFAULT}": accuracy[DEFAULT],
                    "difference": accuracy[best] - accuracy[DEFAULT],
                }
            )
    return rows


def ranks(alone: Sequence[Cell], with_challenges: Sequence[Cell]) -> list[Row]:
    """Accuracy with and without challenges, at one number of labels."""
    rows: dict[str, Row] = {name: {"rule": name} for name in contenders_of(alone)}
    for title, cells in (("with challenges", with_challenges), ("without", alone)):
        accuracy = {name: _mean(_of(cells, name), _accuracy) for name in rows}
        ranked = sorted(rows, key=accuracy.__getitem__, reverse=True)
        for name, row in rows.items():
            row[title] = accuracy[name]
            row[f"rank {title}"] = ranked.index(name) + 1
    return list(rows.values())


def ends(cells: Sequence[Cell], names: Mapping[str, str]) -> list[Row]:
    """Results of rules without any limit on labels."""
    return [
        {
            "unlimited": names[name],
            "accuracy": _mean(_of(cells, name), _accuracy),
            "F1": _mean(_of(cells, name), _macro_f1),
            "share of events asked about": _mean(_of(cells, name), _labels),
        }
        for name in contenders_of(cells)
    ]


def _accuracy(cell: Cell) -> float:
    return cell.score.accuracy


def _macro_f1(cell: Cell) -> float:
    return cell.score.macro_f1


def _labels(cell: Cell) -> float:
    return cell.score.n_asked / cell.n


def _off(cell: Cell) -> float:
    return abs(_labels(cell) - 1.0)


def _challenges(cell: Cell) -> float:
    return cell.score.n_challenges / cell.score.n_asked


def _of(cells: Sequence[Cell], contender: str) -> list[Cell]:
    return [cell for cell in cells if cell.contender == contender]


def _rates(cells: Sequence[Cell]) -> list[float]:
    return list(dict.fromkeys(cell.rate for cell in cells))


def _means(cells: Sequence[Cell], value: _Value) -> dict[str, float]:
    """Mean over the orders and numbers of labels of each log."""
    values: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        values[cell.log].append(value(cell))
    return {log: mean(of_one) for log, of_one in values.items()}


def _mean(cells: Sequence[Cell], value: _Value) -> float:
    return mean(_means(cells, value).values())


# --- the benchmark

_EVERY_LABEL = "AlwaysAsk + AtMost"
_AS_IT_COMES = "PaperAsk + AtMost"  # PaperAsk() and SkepticalAsk() are the same rule
_LABELS_FOR_TIMING = 100
# A mean over fewer logs says nothing about rules.
_FEWEST_LOGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

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
    """Run every contender over every stream, and compare."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, skipped = read_all(plan.logs, options.data, plan.n_events)
    if not HAS_SKACTIVEML:
        skipped.append("the strategies of scikit-activeml (not installed; install the extra bench)")
    progress("time of a decision")
    timed = read("wifi_rooms", None, 600)
    us = {name: microseconds(name, timed, _LABELS_FOR_TIMING, 5) for name in plan.contenders}
    seeds = range(options.seed, options.seed + plan.n_seeds)
    cells = _played(plan, logs, plan.contenders, plan.rates, seeds)
    rows = [*by_rate(cells), *costs(cells, us)]
    rows += [*by_log(cells), *winners(cells)]
    if plan.rate_without_challenges is not None:
        rate = plan.rate_without_challenges
        alone = _played(plan, logs, plan.contenders, [rate], seeds, challenges=False)
        rows += ranks(alone, [cell for cell in cells if cell.rate == rate])
        # Asking about everything is slow, and hardly depends on the seed.
        rows += ends(
            _played(plan, logs, (_EVERY_LABEL, _AS_IT_COMES), [1.0], seeds[:1]),
            {_EVERY_LABEL: "AlwaysAsk", _AS_IT_COMES: "PaperAsk = SkepticalAsk, c = 1"},
        )
    streams = ", ".join(f"{log.name} {o} ({len(log.events)})" for log in logs for o in _orders(log))
    return Outcome(
        rows=rows,
        acceptance=_accepted(cells, slack=2.0 if options.quick else 0.0),
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


def _accepted(cells: Sequence[Cell], *, slack: float) -> list[Acceptance]:
    if len({cell.log for cell in cells}) < _FEWEST_LOGS:
        return []
    others = [name for name in contenders_of(cells) if name != DEFAULT]
    gaps = {name: above_default(cells, name) for name in others}
    best = max(gaps, key=lambda name: mean(gaps[name]))
    name = f"mean accuracy of the best other rule ({best}) above that of {DEFAULT}"
    return [
        widened(at_most, name, gaps[best], 0.01, slack),
        at_most(f"labels of {DEFAULT} off the number wanted", mean_off(cells, DEFAULT), 0.05),
    ]
