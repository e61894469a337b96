"""What the default gains from its temporal filter and its scaling, and where it loses.

`isgp()` plays each log with three scalings: that of the first 200 events, frozen; the same clipped
at three standard deviations; and its own, which is also renewed at 400, 800, ... events, and then
weighs features by the labels. Questions and learning do not depend on the filter, so each run gives
predictions both with and without it.
`before` is the default without both: frozen scaling, and each event by itself; `filter`, `clip` and
`rescale` add one thing each (rescaling includes the clip), `all` is the default. For each log, seed
and scaling, the strictness `c` of `SkepticalAsk` is searched until 5 or 10 % of the events are
asked about, to within 3 % of that number. 20 % of the answers are wrong, evenly distributed over
the other classes. Accuracy counts all events, including the first, and macro F1 all classes. Five
seeds, which determine the errors, the draws of the learner, and the order of shuffled logs; gains
are those of `all` over `before`, and their standard error is that of the difference, over the
seeds.

Logs as recorded, the first 2500 events: wifi_rooms, occupancy, elec2, WISDM one user after the
other, the places of ExtraSensory's users 1 and 24, the activities of the two with most labelled
minutes. Shuffled, 2000 events: wisdm, keystroke, pendigits, letter, wifi_rooms, occupancy; these
have no temporal structure for a filter to find. `memory` is the weight of the experts with memory
at the end. The logs as recorded are also played with answers that come 10 and 30 events late, with
the same strictness as for immediate answers.

Finally, the CPU time that filter and scaling add to the prediction of an event with 20 features, by
the number of classes, with 200 labelled examples.

"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any, TypeAlias

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
    DriftTest,
    SimulatedAnnotator,
    SkepticalClassifier,
    interactive_val_score,
    isgp,
)
from streamgp.base import Features, Label
from streamgp.interactive import Answer, LabelRequest, Request
from streamgp.query import SkepticalAsk
from streamgp.query.example_store import ClassExampleStore
from streamgp.scaling import RenewedScaling

_ERROR_RATE = 0.2
_TOLERANCE = 0.03
_MOST_TRIES = 14
_WIDEST_STEP = 4.0

SCALINGS = ("frozen", "clipped", "renewed")
"""Scaling by the first events, the same clipped, and the default."""

DRIFT_TEST = DriftTest()
"""The test for concept drift of the default."""

_LEAST_MEAN_GAIN = 0.012
_MOST_LOST = {"recorded": 0.010, "shuffled": 0.005}
_MOST_US = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

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
    """Result of one run, without and with the filter."""

    c: float
    n_asked: int
    accuracy: tuple[float, float]
    f1: tuple[float, float]
    memory: float
    n_drifts: int


class TooManyError(Exception):
    """More labels were asked for than allowed."""


class _Counting(SimulatedAnnotator):
    """An annotator who counts label requests, and raises TooManyError if there are too many."""

    n_asked = 0
    at_most = math.inf

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        self.n_asked += isinstance(request, LabelRequest)
        if self.n_asked > self.at_most:
            raise TooManyError
        return super().answer(request, truth, now)


class _ClippedOnce(RenewedScaling):
    """Scaling that clips but is never renewed after the warm-up."""

    def _refresh(self) -> bool:
        return self._n <= self.warm_up and super()._refresh()


class _Both(SkepticalClassifier):
    """Records its predictions with and without its filter; a loop asks once per event."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.predicted: list[tuple[Label | None, Label | None]] = []

    def clip_once(self) -> None:
        """Never renew the scaling after the warm-up."""
        self._store = ClassExampleStore(self.model, _ClippedOnce(self.warm_up))

    def predict_proba_one(self, x: Features, **_: Any) -> dict[Label, float]:
        proba = super().predict_proba_one(x)
        self.predicted.append((_first(self.own_proba_one(x)), _first(proba)))
        return proba


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("temporal", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all logs, as recorded and shuffled."""
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


_Found: TypeAlias = Mapping[str, Sequence[Play]]
"""The runs of each scaling, one for each seed."""


def _found(log: Log, order: str, rate: float, seeds: Sequence[int]) -> _Found:
    progress(f"{log.name}, {order}, {rate:.0%} labels")
    found: dict[str, list[Play]] = {scaling: [] for scaling in SCALINGS}
    c = 1.0
    for scaling, runs in found.items():
        for seed in seeds:
            runs.append(at_rate(log, order, rate, seed, c, scaling))
            c = runs[-1].c
    return found


def at_rate(
    log: Log,
    order: str,
    rate: float,
    seed: int,
    c: float,
    scaling: str = "renewed",
    *,
    drift_test: DriftTest | None = DRIFT_TEST,
) -> Play:
    """Search, from `c` on, for the strictness at which a share of the events is asked about."""
    events = log.played(order, seed)
    wanted = rate * len(events)
    low, high = 0.0, math.inf
    nearest: Play | None = None
    for _ in range(_MOST_TRIES):
        try:
            most = (1.0 + _TOLERANCE) * wanted
            found = play(log, events, seed, c, scaling, at_most=most, drift_test=drift_test)
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
    # The number of questions jumps here: take the largest that is not too many.
    return nearest or play(log, events, seed, low or c, scaling, drift_test=drift_test)


def play(
    log: Log,
    events: Sequence[Labelled],
    seed: int,
    c: float,
    scaling: str = "renewed",
    *,
    delay: float = 0.0,
    at_most: float = math.inf,
    drift_test: DriftTest | None = DRIFT_TEST,
) -> Play:
    """Run over the events once; raises TooManyError if too many labels are asked for."""
    like = isgp(seed=seed)
    arguments = {name: getattr(like, name) for name in inspect.signature(type(like)).parameters}
    arguments["rescale"] = scaling == "renewed"
    arguments["drift_test"] = drift_test
    model = _Both(**{**arguments, "query": SkepticalAsk(c)})
    if scaling == "clipped":
        model.clip_once()
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
        n_drifts=model.n_drifts,
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


def _row(log: Log, order: str, rate: float, found: _Found) -> Row:
    row: Row = {"log": log.name, "order": order, "labels": rate}
    row["asked"] = mean(one.n_asked for one in found["renewed"])
    row["c"] = mean(one.c for one in found["renewed"])
    row |= _columns(found)
    row["memory"] = mean(one.memory for one in found["renewed"])
    return row


def _late_row(log: Log, rate: float, delay: float, found: _Found, seeds: Sequence[int]) -> Row:
    """Run with late answers and the strictness for immediate ones: about as many questions."""
    late = {
        scaling: [
            play(log, log.played("recorded", seed), seed, one.c, scaling, delay=delay)
            for seed, one in zip(seeds, runs, strict=True)
        ]
        for scaling, runs in found.items()
        if scaling != "clipped"
    }
    row: Row = {"log": log.name, "late": delay, "labels": rate}
    row["asked"] = mean(one.n_asked for one in late["renewed"])
    return row | _columns(late)


def _columns(found: _Found) -> Row:
    row: Row = {}
    for name, scores in (("", "accuracy"), ("F1_", "f1")):
        of = {scaling: [getattr(one, scores) for one in runs] for scaling, runs in found.items()}
        gains = [
            now - before for (before, _), (_, now) in zip(of["frozen"], of["renewed"], strict=True)
        ]
        shown = {
            "before": [alone for alone, _ in of["frozen"]],
            "filter": [filtered for _, filtered in of["frozen"]],
            "clip": [alone for alone, _ in of.get("clipped", [])],
            "rescale": [alone for alone, _ in of["renewed"]],
            "all": [filtered for _, filtered in of["renewed"]],
        }
        row |= {f"{name}{title}": round(mean(v), 4) for title, v in shown.items() if v}
        row[f"{name}gain"] = round(mean(gains), 4)
        row[f"{name}gain_se"] = round(standard_error(gains), 4)
    return row


_N_FEATURES = 20
_N_EXAMPLES = 200


def _cost(n_classes: int, n: int) -> Row:
    """Return the CPU time that filter and scaling add to an event: the median of many pairs."""
    rng = np.random.default_rng(1)
    labels = rng.integers(n_classes, size=_N_EXAMPLES).tolist()
    xs: list[Features] = [
        dict(enumerate(x)) for x in rng.normal(size=(_N_EXAMPLES, _N_FEATURES)).tolist()
    ]
    now = isgp(seed=1)
    models = now, now.clone({"temporal": None, "rescale": False})
    for x, y in zip(xs, labels, strict=True):
        for model in models:
            model.observe_one(x)
            model.settle_one(x, f"c{y}", given=f"c{y}", challenged=False)
    # Between two renewals of the scaling, which have a cost of their own.
    now.observe_one(xs[0])
    n_timed = _N_EXAMPLES - 1

    def predict(model: SkepticalClassifier) -> None:
        for x in xs[:n_timed]:
            model.predict_one(x)
            model.predict_proba_one(x)

    pairs = [[_seconds(predict, model) for model in models] for _ in range(max(1, n // n_timed))]
    added = median(seconds - before for seconds, before in pairs)
    return {"classes": n_classes, "us_per_event": 1e6 * added / n_timed}


def _seconds(what: Callable[[SkepticalClassifier], None], model: SkepticalClassifier) -> float:
    started = time.process_time()
    what(model)
    return time.process_time() - started


# --- limits


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
            # A loss counts only beyond two standard errors.
            sure = [row[name] + 2.0 * row[f"{name}_se"] for row in rows if row["order"] == order]
            if sure:
                title = f"least gain of {what} {order}, with two standard errors"
                accepted.append(at_least(title, min(sure), -most))
    slowest = max(cost["us_per_event"] for cost in costs)
    return [*accepted, at_most("us per event that is added", slowest, _MOST_US)]


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
