"""Questions per day, and questions whose answers come late.

Does a limit on questions per day find the strictness that fits a log?

`[questions] per_day` (`PacedBudget`) is compared with the strictness `c` of `SkepticalAsk` that, in
hindsight, asks about as many events of the whole log: accuracy against labels is interpolated on
the curve of `SkepticalAsk(c)` without a budget, over `c`. That rule may ask most of its questions
on the first day; `capped` is the best strictness, in hindsight, under the same limit (`AtMostPer`).
A plain `RateBudget`, which ranks the latest scores, is shown as well.

The first 2000 events of five logs; wifi_rooms, places_1 (an ExtraSensory user) and occupancy as
recorded, the others in random order. A day has 600 evenly spaced events; 30 questions per day are
5 % of the events, 60 are 10 %. 10 % of the answers are wrong, evenly distributed over the other
classes. Three seeds, which determine the errors, the draws of the learner, and random orders.
`used` is the number of questions as a share of those that the limit allows over the whole log;
`most` is the largest number within any 24 hours, divided by the limit. `start` and what begins with
it are the same with as many questions more at the start as the limit of a day (`at_start`), against
hindsight with as many labels as were asked for (`start_all`: as may be asked for). `start_most`
leaves these first questions out, and `start_used` is the share of all that may be asked. They may
be asked, they need not be: so `start_of_limit`, the share of what the limit alone allows, is to be
at least .9.

The constants of the controller were chosen on other logs (keystroke, letter, elec2, other users of
ExtraSensory, streams of River) with other seeds.

The second table is about answers that come a number of events late: labels asked for and accuracy
of `isgp()` without and with open questions counted (`SkepticalAsk(pending=True)`), on the first
5000 events of the same logs, with the same errors and draws. `saved` is the share of questions
saved.

The third is about an annotator who sleeps (`night`: available from 7 to 23 hours) or also works
(`work`: available from 7 to 9 and from 18 to 23). Questions expire after an hour. A day has 240
events, the first 5000 events are played, with at most 20 questions per day: share of the questions
that were answered, questions and accuracy, without and with `AvailabilityBudget`.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import mean
from typing import Any

import numpy as np
from river import metrics

from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    at_most,
    progress,
    run,
    standard_error,
)
from benchmarks._logs import Log, read_all
from benchmarks.comparison.conversation import of_all_events
from streamgp import SimulatedAnnotator, interactive_val_score, isgp
from streamgp.base import Budget, Label
from streamgp.budgets import AllOf, AtMostPer, AvailabilityBudget, PacedBudget, RateBudget
from streamgp.interactive import Answer, LabelRequest, Request
from streamgp.query import AskRule, LeastConfidence, SkepticalAsk
from streamgp.simulation import AwayAnnotator

_ERROR_RATE = 0.1
_DAY_S = 86400.0
_EVENTS_PER_DAY = 600
_ORDERS = {
    "wifi_rooms": "recorded",
    "wisdm": "random",
    "pendigits": "random",
    "places_1": "recorded",
    "occupancy": "recorded",
}
_HOURS = {"night": ((7, 23),), "work": ((7, 9), (18, 23))}
_AVAILABILITY_PER_DAY = 20
_AVAILABILITY_EVENTS_PER_DAY = 240
_EXPIRES_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = tuple(_ORDERS)
    n_events: int = 2000
    n_seeds: int = 3
    per_day: Sequence[int] = (30, 60)
    knobs: Sequence[float] = (0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 6.0, 15.0, 50.0)
    n_late_events: int = 5000
    delays: Sequence[int] = (10, 30, 100)
    schedules: Sequence[str] = tuple(_HOURS)


QUICK = Plan(
    logs=("wifi_rooms",),
    n_events=700,
    n_seeds=1,
    per_day=(60,),
    knobs=(0.3, 1.0),
    n_late_events=700,
    delays=(30,),
    schedules=("work",),
)
# Delay in events -> smallest share of questions that must be saved.
_SAVED = {10: 0.06, 30: 0.12, 100: 0.22}


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Result of one run: accuracy, and times of questions in seconds from the first event."""

    accuracy: float
    asked_at: Sequence[float]

    @property
    def n_asked(self) -> int:
        """Number of labels asked for."""
        return len(self.asked_at)

    @property
    def most_within_a_day(self) -> int:
        """Largest number of questions within any 24 hours."""
        starts = self.asked_at
        return max((sum(0 <= at - start < _DAY_S for at in starts) for start in starts), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Result of one run with an annotator who is away at times."""

    accuracy: float
    n_asked: int
    answered: float


class _Noting(SimulatedAnnotator):
    """An annotator who records when labels are asked for."""

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        if isinstance(request, LabelRequest):
            self.asked_at = [*getattr(self, "asked_at", ()), now]
        return super().answer(request, truth, now)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("asking", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Run all logs at every limit and delay."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, skipped = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows: list[Row] = []
    for log in logs:
        progress(f"{log.name}: curve in hindsight")
        most = max(plan.per_day) * (len(log.events) / _EVENTS_PER_DAY + 1.0)
        curves = [_curve(log, seed, plan.knobs, most) for seed in seeds]
        for n in plan.per_day:
            progress(f"{log.name}: {n} questions per day")
            rows.append(_row(log, n, seeds, curves, plan.knobs))
    accepted = []
    for n in plan.per_day:
        found = [row for row in rows if row["per_day"] == n]
        name = f"{n} a day, {n / _EVENTS_PER_DAY:.0%} of the events"
        gap = mean(row["paced"] - row["hindsight"] for row in found)
        used = mean(row["used"] for row in found)
        accepted += [
            at_least(f"{name}: paced - hindsight, mean of {len(found)} logs", gap, -0.010),
            at_least(f"{name}: used", used, 0.9),
            at_most(f"{name}: most within 24 hours", max(row["most"] for row in found), 1.0),
        ]
        name = f"{n} a day, {n} more at the start"
        used = mean(row["start_of_limit"] for row in found)
        for labels, hindsight in (("asked", "start_hindsight"), ("allowed", "start_all")):
            gap = mean(row["start"] - row[hindsight] for row in found)
            what = f"paced - hindsight with as many labels as {labels}"
            accepted.append(at_least(f"{name}: {what}, mean of {len(found)} logs", gap, -0.010))
        accepted += [
            at_least(f"{name}: questions, as a share of the limit alone", used, 0.9),
            at_most(
                f"{name}: most within 24 hours after these",
                max(row["start_most"] for row in found),
                1.0,
            ),
        ]
    late, wanted = _late_rows(plan, options, seeds)
    rows, accepted = rows + late, accepted + wanted
    away, wanted = _away_rows(plan, options, seeds)
    rows, accepted = rows + away, accepted + wanted
    rows += [*_means(rows, "per_day"), *_means(rows, "delay"), *_means(rows, "schedule")]
    # A short log is mostly start-up, and says little about the rest.
    return Outcome(rows=rows, acceptance=[] if options.quick else accepted, skipped=skipped)


def _means(rows: Sequence[Row], by: str) -> list[Row]:
    """Return means over the logs, for each value of a column."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        if by in row:
            found.setdefault(row[by], []).append(row)
    return [
        {"log": "mean", by: value}
        | {
            name: mean(row[name] for row in several)
            for name in several[0]
            if name not in ("log", by, "saved") and not name.endswith("_se")
        }
        for value, several in found.items()
    ]


def play(
    log: Log, seed: int, query: AskRule, budget: Budget | None = None, *, n_late: int = 0
) -> Score:
    """Run a log once, with answers that come `n_late` events after their questions."""
    spacing_s = _DAY_S / _EVENTS_PER_DAY
    delay_s = n_late * spacing_s
    annotator = _Noting(error_rate=_ERROR_RATE, delay=delay_s, classes=log.classes, seed=seed)
    model = isgp(seed=seed).clone({"query": query, "budget": budget})
    result = interactive_val_score(
        log.played(_ORDERS[log.name], seed),
        model,
        metrics.Accuracy(),
        annotator=annotator,
        moment=_every(spacing_s),
    )
    accuracy = of_all_events(result.metric.get(), result)
    return Score(accuracy=accuracy, asked_at=getattr(annotator, "asked_at", ()))


def _every(spacing_s: float) -> Callable[[object], float]:
    """Return a function that tells the times of evenly spaced events, one after the other."""
    numbers = count(1)
    return lambda _: next(numbers) * spacing_s


def _late_rows(
    plan: Plan, options: Options, seeds: Sequence[int]
) -> tuple[list[Row], list[Acceptance]]:
    """Run all logs at every delay, without and with open questions counted."""
    logs, _ = read_all(plan.logs, options.data, plan.n_late_events)
    rows: list[Row] = []
    for delay in plan.delays:
        for log in logs:
            progress(f"{log.name}: answers {delay} events late")
            without, counted = (
                [play(log, seed, SkepticalAsk(pending=pending), n_late=delay) for seed in seeds]
                for pending in (False, True)
            )
            asked = mean(score.n_asked for score in without)
            asked_counted = mean(score.n_asked for score in counted)
            gaps = [b.accuracy - a.accuracy for a, b in zip(without, counted, strict=True)]
            rows.append(
                {
                    "log": log.name,
                    "delay": delay,
                    "asked": asked,
                    "asked_counted": asked_counted,
                    "saved": 1.0 - asked_counted / asked,
                    "accuracy": mean(score.accuracy for score in without),
                    "accuracy_counted": mean(score.accuracy for score in counted),
                    "difference_se": standard_error(gaps),
                }
            )
    accepted = []
    for delay in plan.delays:
        found = [row for row in rows if row["delay"] == delay]
        saved = 1.0 - sum(row["asked_counted"] for row in found) / sum(
            row["asked"] for row in found
        )
        gaps = [row["accuracy_counted"] - row["accuracy"] for row in found]
        name = f"{delay} events late"
        accepted += [
            at_least(f"{name}: share of questions saved", saved, _SAVED[delay]),
            at_least(
                f"{name}: accuracy, counted - not, mean of {len(found)} logs",
                mean(gaps),
                -2.0 * standard_error(gaps),
            ),
        ]
    return rows, accepted


def play_away(log: Log, seed: int, schedule: str, *, learns: bool) -> Reached:
    """Run a log with an annotator on a schedule; `learns` says whether the schedule is learned."""
    person = SimulatedAnnotator(error_rate=_ERROR_RATE, classes=log.classes, seed=seed)
    hours = _HOURS[schedule]
    outcomes: list[tuple[float, bool]] = []

    class Asked(AwayAnnotator):
        def answer(self, request: Request, truth: Label | None, now: float) -> Answer | None:
            answer = super().answer(request, truth, now)
            if isinstance(request, LabelRequest):
                outcomes.append((now, answer is not None))
            return answer

    paced = PacedBudget(_AVAILABILITY_PER_DAY, _DAY_S, seed=seed)
    budget = AllOf(paced, AvailabilityBudget()) if learns else paced
    model = isgp(seed=seed).clone({"budget": budget})
    result = interactive_val_score(
        log.played(_ORDERS[log.name], seed),
        model,
        metrics.Accuracy(),
        annotator=Asked(person, hours=hours),
        moment=_every(_DAY_S / _AVAILABILITY_EVENTS_PER_DAY),
        expires_after_s=_EXPIRES_AFTER_S,
    )
    return Reached(
        accuracy=of_all_events(result.metric.get(), result),
        n_asked=len(outcomes),
        answered=mean(answered for _, answered in outcomes),
    )


def _away_rows(
    plan: Plan, options: Options, seeds: Sequence[int]
) -> tuple[list[Row], list[Acceptance]]:
    """Run all logs with every schedule, without and with learning it."""
    logs, _ = read_all(plan.logs, options.data, plan.n_late_events)
    rows: list[Row] = []
    for schedule in plan.schedules:
        for log in logs:
            progress(f"{log.name}: annotator on the schedule {schedule}")
            without, learned = (
                [play_away(log, seed, schedule, learns=learns) for seed in seeds]
                for learns in (False, True)
            )
            gaps = [b.answered - a.answered for a, b in zip(without, learned, strict=True)]
            gains = [b.accuracy - a.accuracy for a, b in zip(without, learned, strict=True)]
            rows.append(
                {
                    "log": log.name,
                    "schedule": schedule,
                    "asked": mean(run.n_asked for run in without),
                    "asked_available": mean(run.n_asked for run in learned),
                    "answered": mean(run.answered for run in without),
                    "answered_available": mean(run.answered for run in learned),
                    "answered_se": standard_error(gaps),
                    "accuracy": mean(run.accuracy for run in without),
                    "accuracy_available": mean(run.accuracy for run in learned),
                    "accuracy_se": standard_error(gains),
                }
            )
    accepted = []
    for schedule in plan.schedules:
        found = [row for row in rows if row["schedule"] == schedule]
        gap = mean(row["answered_available"] - row["answered"] for row in found)
        accepted.append(at_least(f"{schedule}: share answered, gain", gap, 0.2))
    return rows, accepted


def _curve(log: Log, seed: int, knobs: Sequence[float], most: float) -> list[Score]:
    """Run a log with every strictness, up to the first that asks about more than `most` events."""
    curve: list[Score] = []
    for c in knobs:
        curve.append(play(log, seed, SkepticalAsk(c)))
        if curve[-1].n_asked > most:
            break
    return curve


def _row(
    log: Log,
    n: int,
    seeds: Sequence[int],
    curves: Sequence[Sequence[Score]],
    knobs: Sequence[float],
) -> Row:
    allowed = n * len(log.events) / _EVENTS_PER_DAY
    hindsight = [_at(allowed, curve) for curve in curves]
    paced = [play(log, seed, SkepticalAsk(), PacedBudget(n, _DAY_S, seed=seed)) for seed in seeds]
    start = [
        play(log, seed, SkepticalAsk(), PacedBudget(n, _DAY_S, seed=seed, at_start=n))
        for seed in seeds
    ]
    start_hindsight = [
        _at(score.n_asked, curve) for score, curve in zip(start, curves, strict=True)
    ]
    rate = [
        play(log, seed, LeastConfidence(0.0), RateBudget(n / _EVENTS_PER_DAY, seed=seed))
        for seed in seeds
    ]
    capped = [
        mean(play(log, seed, SkepticalAsk(c), AtMostPer(n, _DAY_S)).accuracy for seed in seeds)
        for c in knobs
    ]
    start_asked = mean(score.n_asked for score in start)
    after_start = [replace(score, asked_at=score.asked_at[n:]) for score in start]
    return {
        "log": log.name,
        "per_day": n,
        "hindsight": mean(hindsight),
        "capped": max(capped),
        "paced": mean(score.accuracy for score in paced),
        "difference_se": _difference_se(paced, hindsight),
        "rate": mean(score.accuracy for score in rate),
        "used": mean(score.n_asked for score in paced) / allowed,
        "most": max(score.most_within_a_day for score in paced) / n,
        "start_hindsight": mean(start_hindsight),
        "start_all": mean(_at(allowed + n, curve) for curve in curves),
        "start": mean(score.accuracy for score in start),
        "start_se": _difference_se(start, start_hindsight),
        "start_used": start_asked / (allowed + n),
        "start_of_limit": start_asked / allowed,
        "start_most": max(score.most_within_a_day for score in after_start) / n,
    }


def _at(n_labels: float, curve: Sequence[Score]) -> float:
    """Return the accuracy at a number of labels, interpolated on a curve."""
    n_asked, accuracies = [s.n_asked for s in curve], [s.accuracy for s in curve]
    return float(np.interp(n_labels, n_asked, accuracies))


def _difference_se(scores: Sequence[Score], hindsight: Sequence[float]) -> float:
    gaps = [score.accuracy - best for score, best in zip(scores, hindsight, strict=True)]
    return standard_error(gaps)
