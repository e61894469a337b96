"""What does the temporal filter gain where events follow each other, and lose where they do not?

`isgp()` plays each log with its temporal filter. What it asks, and learns, does not depend on the
filter, so that one run tells what it predicts with the filter and without: both have the same
labels. The strictness `c` of `SkepticalAsk` is searched for, for each log and seed, until 5 or 10 %
of the events are asked about, to within 3 % of that number. 20 % of the answers are wrong, evenly
any of the other classes. Accuracy counts all events, the first among them, and macro F1 all
classes. Five seeds, which decide the errors, the draws of the learner, and the order of the logs
that are shuffled; the standard error is that of the difference, over the seeds.

Logs as recorded, the first 2500 events: wifi_rooms, occupancy, elec2, WISDM one user after the
other, the places of ExtraSensory's users 1 and 24, the activities of the two with most labelled
minutes. Shuffled, 2000 events: wisdm, keystroke, pendigits, letter, wifi_rooms, occupancy; these
have nothing for a filter to find. `memory` is the weight that the experts with memory have in
the end. The logs as recorded are also played with answers that come 10 and 30 events late.

Last, what the filter adds to an event, by the number of classes, the prediction included.

"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from benchmarks._logs import Labelled, Log, read_all
from streamgp import (
    SimulatedAnnotator,
    SkepticalClassifier,
    interactive_val_score,
    isgp,
)
from streamgp.base import Features, Label, Posterior
from streamgp.interactive import Answer, LabelRequest, Request
from streamgp.query import SkepticalAsk
from streamgp.query.temporal import FilteredStream, TemporalFilter

_ERROR_RATE = 0.2
_TOLERANCE = 0.03
_MOST_TRIES = 14
_WIDEST_STEP = 4.0

_LEAST_MEAN_GAIN = 0.012
_MOST_LOST = {"recorded": 0.010, "shuffled": 0.005}
_MOST_US = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played."""

    recorded: Sequence[str] = (
        "wifi_rooms",
        "occupancy",
        "elec2",
        "wisdm_by_user",
        "places_1",
        "places_24",
        "activities_10",
        "activities_5",
    )
    shuffled: Sequence[str] = (
        "wisdm",
        "keystroke",
        "pendigits",
        "letter",
        "wifi_rooms",
        "occupancy",
    )
    n_recorded: int = 2500
    n_shuffled: int = 2000
    n_seeds: int = 5
    rates: Sequence[float] = (0.05, 0.10)
    delays: Sequence[float] = (10.0, 30.0)
    n_timed: int = 20_000


QUICK = Plan(
    recorded=("wifi_rooms", "occupancy", "wisdm_by_user"),
    shuffled=("wisdm", "wifi_rooms"),
    n_recorded=600,
    n_shuffled=600,
    n_seeds=2,
    rates=(0.10,),
    delays=(10.0,),
    n_timed=2_000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What came of one run: with the filter, and without it."""

    c: float
    n_asked: int
    accuracy: tuple[float, float]
    f1: tuple[float, float]
    memory: float


class TooManyError(Exception):
    """More labels were asked for than may be."""


class _Counting(SimulatedAnnotator):
    """An annotator who counts the labels asked for, and gives up where there are too many."""

    n_asked = 0
    at_most = math.inf

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        self.n_asked += isinstance(request, LabelRequest)
        if self.n_asked > self.at_most:
            raise TooManyError
        return super().answer(request, truth, now)


class _Both(SkepticalClassifier):
    """Notes what it predicts with and without its filter; a loop asks once for each event."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.predicted: list[tuple[Label | None, Label | None]] = []

    def predict_proba_one(self, x: Features, **_: Any) -> dict[Label, float]:
        proba = super().predict_proba_one(x)
        self.predicted.append((_first(self.own_proba_one(x)), _first(proba)))
        return proba


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("temporal", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Play all logs, as recorded and shuffled."""
    plan = plan or (QUICK if options.quick else Plan())
    seeds = range(options.seed, options.seed + plan.n_seeds)
    recorded, missing = read_all(plan.recorded, options.data, plan.n_recorded)
    shuffled, others = read_all(plan.shuffled, options.data, plan.n_shuffled)
    rows: list[Row] = []
    late: list[Row] = []
    for log in recorded:
        for rate in plan.rates:
            found = _found(log, "recorded", rate, seeds)
            rows.append(_row(log, "recorded", rate, found))
            late += [_late_row(log, rate, delay, found, seeds) for delay in plan.delays]
    for log in shuffled:
        for rate in plan.rates:
            rows.append(_row(log, "shuffled", rate, _found(log, "random", rate, seeds)))
    costs = [_cost(n_classes, plan.n_timed) for n_classes in (2, 5, 10)]
    return Outcome(
        rows=[*rows, *late, *costs],
        acceptance=_accepted(rows, costs, quick=options.quick),
        skipped=list(dict.fromkeys([*missing, *others])),
        notes=[f"{plan.n_seeds} seeds, {_ERROR_RATE:.0%} wrong answers.", *_means(rows, late)],
    )


def _found(log: Log, order: str, rate: float, seeds: Sequence[int]) -> list[Play]:
    progress(f"{log.name}, {order}, {rate:.0%} labels")
    found: list[Play] = []
    for seed in seeds:
        found.append(at_rate(log, order, rate, seed, found[-1].c if found else 1.0))
    return found


def at_rate(log: Log, order: str, rate: float, seed: int, c: float) -> Play:
    """Search for the strictness at which a share of the events is asked about, from `c` on."""
    events = log.played(order, seed)
    wanted = rate * len(events)
    low, high = 0.0, math.inf
    nearest: Play | None = None
    for _ in range(_MOST_TRIES):
        try:
            found = play(log, events, seed, c, at_most=(1.0 + _TOLERANCE) * wanted)
        except TooManyError:
            high, step = c, 1.0 / 1.5
        else:
            low, step = c, min(_WIDEST_STEP, (wanted / max(found.n_asked, 1)) ** 1.5)
            if nearest is None or found.n_asked > nearest.n_asked:
                nearest = found
            if found.n_asked >= (1.0 - _TOLERANCE) * wanted:
                return found
        c *= step
        if not low < c < high:
            c = math.sqrt(low * high)
    # The number of questions jumps here: the most that are not too many.
    return nearest or play(log, events, seed, low or c)


def play(
    log: Log,
    events: Sequence[Labelled],
    seed: int,
    c: float,
    *,
    delay: float = 0.0,
    at_most: float = math.inf,
) -> Play:
    """Play events once; raises TooManyError where too many labels are asked for."""
    like = isgp(seed=seed)
    arguments = {name: getattr(like, name) for name in inspect.signature(type(like)).parameters}
    model = _Both(**{**arguments, "query": SkepticalAsk(c)})
    annotator = _Counting(error_rate=_ERROR_RATE, classes=log.classes, delay=delay, seed=seed)
    annotator.at_most = at_most
    result = interactive_val_score(events, model, metrics.Accuracy(), annotator=annotator)
    truths = [y for _, y in events]
    alone, filtered = zip(*model.predicted, strict=True)
    used = model.temporal_in_use
    assert used is not None  # the default has a filter
    memory = sum(w for w, (stay, _) in zip(used.weights(), used.experts, strict=True) if stay > 0.0)
    return Play(
        c=c,
        n_asked=result.n_asked,
        accuracy=(_accuracy(truths, alone), _accuracy(truths, filtered)),
        f1=(_macro_f1(truths, alone), _macro_f1(truths, filtered)),
        memory=memory,
    )


def _first(proba: dict[Label, float]) -> Label | None:
    return max(proba, key=proba.__getitem__) if proba else None


def _accuracy(truths: Sequence[Label], predicted: Sequence[Label | None]) -> float:
    return mean(float(y == p) for y, p in zip(truths, predicted, strict=True))


def _macro_f1(truths: Sequence[Label], predicted: Sequence[Label | None]) -> float:
    scores = []
    for label in dict.fromkeys(truths):
        hits = sum(y == p == label for y, p in zip(truths, predicted, strict=True))
        scores.append(2.0 * hits / (truths.count(label) + predicted.count(label)))
    return mean(scores)


# --- rows


def _gains(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    differences = [filtered - alone for alone, filtered in values]
    return mean(differences), standard_error(differences)


def _row(log: Log, order: str, rate: float, found: Sequence[Play]) -> Row:
    row: Row = {"log": log.name, "order": order, "labels": rate}
    row["asked"] = mean(one.n_asked for one in found)
    row["c"] = mean(one.c for one in found)
    row |= _columns(found)
    row["memory"] = mean(one.memory for one in found)
    return row


def _late_row(
    log: Log, rate: float, delay: float, found: Sequence[Play], seeds: Sequence[int]
) -> Row:
    """Play with late answers, as strictly as with answers at once: about as many questions."""
    late = [
        play(log, log.played("recorded", seed), seed, one.c, delay=delay)
        for seed, one in zip(seeds, found, strict=True)
    ]
    row: Row = {"log": log.name, "late": delay, "labels": rate}
    row["asked"] = mean(one.n_asked for one in late)
    return row | _columns(late)


def _columns(found: Sequence[Play]) -> Row:
    accuracy, f1 = [one.accuracy for one in found], [one.f1 for one in found]
    gain, error = _gains(accuracy)
    gain_f1, error_f1 = _gains(f1)
    return {
        "alone": round(mean(alone for alone, _ in accuracy), 4),
        "filter": round(mean(filtered for _, filtered in accuracy), 4),
        "gain": round(gain, 4),
        "gain_se": round(error, 4),
        "F1_alone": round(mean(alone for alone, _ in f1), 4),
        "F1_filter": round(mean(filtered for _, filtered in f1), 4),
        "F1_gain": round(gain_f1, 4),
        "F1_gain_se": round(error_f1, 4),
    }


def _cost(n_classes: int, n: int) -> Row:
    """Return what a filter adds to an event, as the fastest of several rounds."""
    rng = np.random.default_rng(1)
    beliefs = [
        Posterior(mean={f"c{i}": v for i, v in enumerate(means)}, variance=0.1)
        for means in rng.normal(size=(200, n_classes)).tolist()
    ]
    xs: list[Features] = [dict(enumerate(x)) for x in rng.normal(size=(200, 20)).tolist()]
    stream = FilteredStream(TemporalFilter())

    def with_filter() -> None:
        for x, belief in zip(xs, beliefs, strict=True):
            stream.observe(x, belief)
            if stream.is_present(x):
                stream.filter.probabilities()

    def without() -> None:
        for belief in beliefs:
            dict(belief.probabilities())

    rounds = max(1, n // len(xs))
    fastest = [min(_seconds(what) for _ in range(rounds)) for what in (with_filter, without)]
    return {"classes": n_classes, "us_per_event": 1e6 * (fastest[0] - fastest[1]) / len(xs)}


def _seconds(what: Any) -> float:
    started = time.perf_counter()
    what()
    return time.perf_counter() - started


# --- what is demanded


def _accepted(rows: Sequence[Row], costs: Sequence[Row], *, quick: bool) -> list[Acceptance]:
    accepted: list[Acceptance] = []
    for name, what in (("gain", "accuracy"), ("F1_gain", "macro F1")):
        for rate in dict.fromkeys(row["labels"] for row in rows):
            gains = [
                row[name] for row in rows if row["order"] == "recorded" and row["labels"] == rate
            ]
            if gains and not quick:
                title = f"mean gain of {what} as recorded, {rate:.0%} labels"
                accepted.append(at_least(title, mean(gains), _LEAST_MEAN_GAIN))
        for order, most in _MOST_LOST.items():
            # What is lost for sure, by two standard errors.
            sure = [row[name] + 2.0 * row[f"{name}_se"] for row in rows if row["order"] == order]
            if sure:
                title = f"least gain of {what} {order}, with two standard errors"
                accepted.append(at_least(title, min(sure), -most))
    slowest = max(cost["us_per_event"] for cost in costs)
    return [*accepted, at_most("us per event that the filter adds", slowest, _MOST_US)]


def _means(rows: Sequence[Row], late: Sequence[Row]) -> Iterator[str]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(f"{row['order']}, {row['labels']:.0%} labels", []).append(row)
    for row in late:
        title = f"answers {row['late']:g} events late, {row['labels']:.0%} labels"
        groups.setdefault(title, []).append(row)
    for title, of_group in groups.items():
        parts = [
            f"{what} {mean(gains):+.4f} ± {standard_error(gains):.4f}"
            for name, what in (("gain", "accuracy"), ("F1_gain", "macro F1"))
            for gains in [[row[name] for row in of_group]]
        ]
        yield f"Mean gain, {title}: {', '.join(parts)} ({len(of_group)} logs)."
