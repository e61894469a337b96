"""All learners and all rules in conversation, over the same logs with the same annotator.

Learners ask by the default rule, `SkepticalAsk(c)`; those with class probabilities only also *at a
rate*, `BestVersusSecond(0.0)` with a `RateBudget`; SRF, the skeptical random forest, in its stages.
Query rules have the default learner, except for those that compare the experts of an ensemble; so
have challenge rules.
The parameter of each (`c`, a rate, a threshold) is tuned, for each log, until the number of labels
fits: 10 % of the events, for learners also 3 %; for *all questions*, label requests and challenges
together, and also 5 and 20 %. Accuracies play no part in that. Where no setting fits, fewer labels
are asked for, or they are cut off at the number wanted (*hard limit*: the share of such runs).

Four of the logs of `benchmarks.strategies`, the first 2000 events of each: wifi_rooms, occupancy
and elec2 as recorded, wisdm in random order; three seeds. Every log has the same weight. 20 % of
the answers are wrong, 5 % of the questions are declined, an answer comes ten events later. Accuracy
and macro F1 are progressive; for accuracy an event without a prediction counts as wrong. *wrong
kept*: share of the labels that are wrong at the end. Times are processor time per event, with
everything that it causes, loop and annotator included.

The *tired annotator* errs more often the more questions there were about the last ten events or so;
response times reach the learners that use them.

"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_most,
    in_processes,
    progress,
    run_with_pictures,
    save_picture,
    standard_error,
    widened,
)
from benchmarks._logs import Log, read_all
from benchmarks.comparison.compare import entries
from benchmarks.comparison.compare.entries import GROUPS, Job
from benchmarks.comparison.conversation import Score
from benchmarks.comparison.skactiveml import HAS_SKACTIVEML
from benchmarks.comparison.strategies.rules import DEFAULT

# --- tables: means over logs, all with the same weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Result of one entry on one log at one number of labels."""

    group: str
    name: str
    log: str
    rate: float
    score: Score


def names_of(cells: Sequence[Cell], group: str) -> list[str]:
    """Names of the entries of a group, in the order of the cells."""
    return list(dict.fromkeys(cell.name for cell in cells if cell.group == group))


def accuracies(cells: Sequence[Cell], group: str, name: str, rate: float) -> list[float]:
    """Accuracies of an entry, log by log."""
    return [cell.score.accuracy for cell in _of(cells, group, name, rate)]


def gaps_to(cells: Sequence[Cell], group: str, name: str, other: str, rate: float) -> list[float]:
    """Accuracy of an entry minus that of another one of its group, log by log."""
    mine, theirs = (accuracies(cells, group, one, rate) for one in (name, other))
    return [a - b for a, b in zip(mine, theirs, strict=True)]


def summary(cells: Sequence[Cell], group: str, rate: float) -> list[Row]:
    """Mean results of each entry of a group, and how far it is above the first one."""
    rows: list[Row] = []
    first, *_ = names_of(cells, group)
    for name in names_of(cells, group):
        some = _of(cells, group, name, rate)
        gap = gaps_to(cells, group, name, first, rate)

        def over_logs(value: Callable[[Score], float], some: Sequence[Cell] = some) -> float:
            return mean(value(cell.score) for cell in some)

        rows.append(
            {
                group: name,
                "share": f"{rate:.0%}",
                "accuracy": over_logs(lambda s: s.accuracy),
                "F1": over_logs(lambda s: s.macro_f1),
                "above first": mean(gap),
                "se": standard_error(gap),
                "labels": over_logs(lambda s: s.n_asked),
                "hard limit": over_logs(lambda s: s.hard_limit),
                "challenges": over_logs(lambda s: s.n_challenges),
                "wrong kept": over_logs(lambda s: s.wrong_kept),
                "us per event": over_logs(lambda s: s.us_per_event),
            }
        )
    return rows


def by_log(cells: Sequence[Cell], group: str, rate: float) -> list[Row]:
    """Accuracy and labels asked for, log by log."""
    rows: list[Row] = []
    for name in names_of(cells, group):
        row: Row = {f"{group}, log by log": name, "share": f"{rate:.0%}"}
        for cell in _of(cells, group, name, rate):
            row[cell.log] = cell.score.accuracy
            row[f"{cell.log} labels"] = cell.score.n_asked
        rows.append(row)
    return rows


def _of(cells: Sequence[Cell], group: str, name: str, rate: float) -> list[Cell]:
    return [cell for cell in cells if (cell.group, cell.name, cell.rate) == (group, name, rate)]


# Colours of Okabe and Ito, which colour-blind readers can tell apart; marks differ as well.
_RIVERS, _OWN = "#D55E00", "#0072B2"
# --- curves: a line for each learner, a mark for each number of labels

_INCHES_PER_LINE = 0.24


def draw(by_share: Sequence[Sequence[Row]], path: Path) -> None:
    """Draw the rows of the learners, the same at each share; the best at the last share on top."""
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    ranked = sorted(by_share[-1], key=lambda row: row["accuracy"])
    places = {row["learner"]: place for place, row in enumerate(ranked)}
    colours = [_RIVERS if name.startswith("River") else _OWN for name in places]
    figure = Figure(figsize=(7.5, _INCHES_PER_LINE * len(places) + 1.2), layout="constrained")
    axis = figure.subplots()
    for rows in by_share:
        accuracy = {row["learner"]: row["accuracy"] for row in rows}
        axis.scatter(
            [accuracy[name] for name in places],
            range(len(places)),
            facecolors=colours if rows is by_share[-1] else "none",
            edgecolors=colours,
            label=f"{rows[0]['share']} of the events asked about",
        )
    axis.set_yticks(range(len(places)), places)
    axis.set_xlabel("accuracy, mean of the logs")
    axis.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=len(by_share), frameon=False)
    save_picture(figure, path)


# --- the benchmark

# Logs, each with the order in which it is played.
_ORDERS = {
    "wifi_rooms": "recorded",
    "occupancy": "recorded",
    "wisdm": "random",
    "elec2": "recorded",
}
_FEW, _MANY = 0.03, 0.1
# A mean over fewer logs says nothing.
_FEWEST_LOGS = 3
_LEARNER, _ASKS, _CHALLENGES = "learner", "asks by", "challenges by"
_QUESTIONS = "all questions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs.

    Parameters
    ----------
    logs
        Names of the logs.
    names
        Names of the entries, by group.
    rates
        Shares of the events to be asked about, by group.
    n_events, n_seeds
        Length and number of the runs.
    n_workers
        Number of processes.

    """

    logs: Sequence[str] = tuple(_ORDERS)
    names: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {group: tuple(one.entries) for group, one in GROUPS.items()}
    )
    rates: Mapping[str, Sequence[float]] = field(
        default_factory=lambda: {
            **dict.fromkeys(GROUPS, (_MANY,)),
            _LEARNER: (_FEW, _MANY),
            _QUESTIONS: (0.05, _MANY, 0.2),
        }
    )
    n_events: int = 2000
    n_seeds: int = 3
    n_workers: int = os.cpu_count() or 1


QUICK = Plan(
    logs=("wifi_rooms", "occupancy", "elec2"),
    names={
        _LEARNER: (
            entries.ISGP,
            entries.ENSEMBLE,
            "OnlineForestClassifier(100 trees) at a rate",
            "ConfidenceBoostingClassifier() at a rate",
            "River Gaussian naive Bayes at a rate",
        ),
        _ASKS: ("SkepticalAsk", "RandomAsk", "BestVersusSecond + RateBudget"),
        _CHALLENGES: (entries.CHALLENGED, entries.BELIEVED),
    },
    rates=dict.fromkeys(GROUPS, (_MANY,)),
    n_events=800,
    n_seeds=1,
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run_with_pictures("compare", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None, pictures: Path | None = None) -> Outcome:
    """Run every entry over every log, and compare."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, skipped = read_all(plan.logs, options.data, plan.n_events)
    if not HAS_SKACTIVEML:
        skipped.append("the strategies of scikit-activeml (not installed; install the extra bench)")
    seeds = range(options.seed, options.seed + plan.n_seeds)
    cells = _played(plan, logs, seeds)
    rows: list[Row] = []
    for group in plan.names:
        for rate in plan.rates[group]:
            rows += summary(cells, group, rate)
    for group in plan.names:
        for rate in plan.rates[group]:
            rows += by_log(cells, group, rate)
    if pictures is not None:
        by_share = [summary(cells, _LEARNER, rate) for rate in plan.rates[_LEARNER]]
        draw(by_share, pictures / "compare.png")
    streams = ", ".join(f"{log.name} {_ORDERS[log.name]} ({len(log.events)})" for log in logs)
    return Outcome(
        rows=rows,
        acceptance=_accepted(cells, slack=2.0 if options.quick else 0.0),
        skipped=skipped,
        notes=[
            f"Streams: {streams}; means of {plan.n_seeds} runs.",
            "se: standard error over logs.",
        ],
    )


def _played(plan: Plan, logs: Sequence[Log], seeds: Sequence[int]) -> list[Cell]:
    jobs = [
        Job(
            log=log,
            order=_ORDERS[log.name],
            group=group,
            name=name,
            rates=plan.rates[group],
            seeds=seeds,
        )
        for group, names in plan.names.items()
        for name in names
        for log in logs
    ]
    cells = []
    for job, scores in zip(jobs, in_processes(Job.scores, jobs, plan.n_workers), strict=True):
        progress(f"{job.group}, {job.name}: {job.log.name}")
        cells += [
            Cell(group=job.group, name=job.name, log=job.log.name, rate=rate, score=score)
            for rate, score in scores.items()
        ]
    return cells


def _accepted(cells: Sequence[Cell], *, slack: float) -> list[Acceptance]:
    """Check what the defaults promise; nothing if there are too few logs."""
    if len({cell.log for cell in cells}) < _FEWEST_LOGS:
        return []
    rivals = [
        name
        for name in names_of(cells, _ASKS)
        if name != DEFAULT and not name.startswith("ensemble")
    ]
    outsiders = [name for name in names_of(cells, _LEARNER) if name.startswith("River")]
    return [
        _below(cells, group, default, others, limit, slack)
        for group, default, others, limit in (
            (_ASKS, DEFAULT, rivals, 0.01),
            (_LEARNER, entries.ISGP, outsiders, 0.0),
            (_CHALLENGES, entries.CHALLENGED, [entries.BELIEVED], 0.0),
        )
    ]


def _below(
    cells: Sequence[Cell],
    group: str,
    default: str,
    others: Sequence[str],
    limit: float,
    slack: float,
) -> Acceptance:
    """Accept a default unless the best of some others is above it by more than a limit."""
    gaps = {name: gaps_to(cells, group, name, default, _MANY) for name in others}
    best = max(gaps, key=lambda name: mean(gaps[name]))
    name = f"mean accuracy of {best} above that of {default}"
    return widened(at_most, name, gaps[best], limit, slack)
