"""What questions about earlier events are worth, alone and besides questions about new ones.

With `RecentEventsAsk`, at every tenth event the loop may ask about the most informative of the
latest 200. It is run alone (no question about the current event), with three criteria, and together
with `SkepticalAsk`, at every fiftieth event. `RandomAsk`, which asks about a tenth of the current
events, is run as well.

Each is compared with `SkepticalAsk(c)` at the same number of labels, interpolated on the curve over
`c`. `accuracy` is progressive: every event is predicted before it is learned, and one without a
prediction counts as wrong. `whole_log` is the share of all events that the learner predicts right
at the end, looking back at the log, as if the rest of it were then labelled by machine. Advantages
are differences to the curve; ± is the standard error over seeds.

20 % wrong answers, which come ten events later; challenges as in `isgp()`. 2000 events of logs as
recorded, but wisdm and pendigits in random order, since their rows do not follow each other in
time. The last table is about time, in a log with 20 features: that of a search through 200 events,
and that of predicting one event, which happens ten times as often.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from time import perf_counter

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
from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier, interactive_val_score
from streamgp.query import AskRule, NeverAsk, RandomAsk, RecentEventsAsk, SkepticalAsk

_AS_RECORDED = ("wifi_rooms", "occupancy", "places_1", "elec2")
_FEWEST_LOGS = 3
_ALONE = "l2fm alone"
CONTENDERS: dict[str, tuple[AskRule, RecentEventsAsk | None]] = {
    "RandomAsk": (RandomAsk(0.1), None),
    "rand alone": (NeverAsk(), RecentEventsAsk("rand")),
    "hvar alone": (NeverAsk(), RecentEventsAsk("hvar")),
    _ALONE: (NeverAsk(), RecentEventsAsk("l2fm")),
    "SkepticalAsk, l2fm": (SkepticalAsk(0.8), RecentEventsAsk("l2fm", every=50)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = (*_AS_RECORDED, "wisdm", "pendigits")
    n_events: int = 2000
    n_seeds: int = 5
    knobs: Sequence[float] = (0.1, 0.25, 0.5, 1.0, 2.0)
    sizes: Sequence[int] = (50, 200, 500)  # numbers of labels at which a search is timed


QUICK = Plan(n_events=800, n_seeds=2, knobs=(0.25, 0.5, 1.0), sizes=(50, 200))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Result of one run."""

    accuracy: float
    whole_log: float
    n_labels: int


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("reservoir", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all logs."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, missing = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows: list[Row] = []
    lost: list[list[float]] = []
    won: list[list[float]] = []
    for log in logs:
        progress(f"{log.name}, SkepticalAsk")
        curve = [[play(log, seed, SkepticalAsk(c)) for seed in seeds] for c in plan.knobs]
        for name, (query, reservoir) in CONTENDERS.items():
            progress(f"{log.name}, {name}")
            scores = [play(log, seed, query, reservoir) for seed in seeds]
            rows.append({"log": log.name, "asks": name, **_compared(scores, curve)})
            if name == _ALONE:
                won.append(_advantages(scores, curve, "whole_log"))
            if name == _ALONE and log.name in _AS_RECORDED:
                lost.append(_advantages(scores, curve, "accuracy"))
    if rows:
        rows += [_mean([row for row in rows if row["asks"] == name], name) for name in CONTENDERS]
    rows += [_times(n) for n in plan.sizes]
    slack = 2.0 if options.quick else 0.0
    accepted = _accepted(lost, won, slack) if len(lost) >= _FEWEST_LOGS else []
    return Outcome(
        rows=rows,
        acceptance=accepted,
        skipped=missing,
        notes=[f"{plan.n_seeds} seeds, {plan.n_events} events."],
    )


def play(log: Log, seed: int, query: AskRule, reservoir: RecentEventsAsk | None = None) -> Score:
    """Run a log once, then predict all of it again."""
    events = log.played("recorded" if log.name in _AS_RECORDED else "random", seed)
    model = SkepticalClassifier(GPClassifier(max_points=500), query, reservoir=reservoir, seed=seed)
    annotator = SimulatedAnnotator(error_rate=0.2, delay=10.0, classes=log.classes, seed=seed)
    result = interactive_val_score(events, model, metrics.Accuracy(), annotator=annotator)
    right = 0
    for x, y in events:
        proba = model.predict_proba_one(x)
        right += bool(proba) and max(proba, key=proba.__getitem__) == y
    return Score(
        accuracy=of_all_events(result.metric.get(), result),
        whole_log=right / len(events),
        n_labels=result.n_asked,
    )


def _compared(scores: Sequence[Score], curve: Sequence[Sequence[Score]]) -> Row:
    row: Row = {"labels": mean(score.n_labels for score in scores)}
    for measured in ("accuracy", "whole_log"):
        gains = _advantages(scores, curve, measured)
        row[measured] = mean(getattr(score, measured) for score in scores)
        row[f"{measured}_advantage"] = mean(gains)
        row[f"{measured}_se"] = standard_error(gains)
    return row


def _advantages(
    scores: Sequence[Score], curve: Sequence[Sequence[Score]], measured: str
) -> list[float]:
    """Return, seed by seed, the difference to the curve at as many labels."""
    labels = [mean(score.n_labels for score in at_knob) for at_knob in curve]
    reached = [mean(getattr(score, measured) for score in at_knob) for at_knob in curve]
    return [
        getattr(score, measured) - float(np.interp(score.n_labels, labels, reached))
        for score in scores
    ]


def _mean(rows: Sequence[Row], name: str) -> Row:
    """Return means over the logs, all with the same weight."""
    advantages = ("accuracy_advantage", "whole_log_advantage")
    of_logs = {one: mean(row[one] for row in rows) for one in advantages}
    return {"log": "mean", "asks": name, **of_logs}


def _times(n: int) -> Row:
    """Time a search through 200 events, and a prediction, for a learner of `n` examples."""
    rng = np.random.default_rng(0)
    events = [dict(enumerate(x)) for x in rng.normal(size=(n + 200, 20)).tolist()]
    model = SkepticalClassifier(GPClassifier(), warm_up=0, reservoir=RecentEventsAsk(), seed=0)
    for i, x in enumerate(events[:n]):
        model.learn_one(x, i % 5)
    candidates = {str(i): x for i, x in enumerate(events[n:])}
    looks, steps = [], []
    for _ in range(5):
        began = perf_counter()
        model.ask_among_one(candidates, now=0.0)
        looks.append(perf_counter() - began)
        began = perf_counter()
        for x in candidates.values():
            model.query_one(x)
        steps.append((perf_counter() - began) / len(candidates))
    look, step = median(looks), median(steps)
    return {
        "examples": n,
        "look_ms": 1e3 * look,
        "predict_ms": 1e3 * step,
        "look_of_each_tenth_over_predict": look / (10.0 * step),
    }


def _accepted(
    lost: Sequence[Sequence[float]], won: Sequence[Sequence[float]], slack: float
) -> list[Acceptance]:
    """Check why it is off by default, no gain in predictions, and that it labels logs better."""
    words = f"; 0 widened by {slack:g} standard errors" if slack else ""
    before, after = (
        [mean(of_seed) for of_seed in zip(*gains, strict=True)] for gains in (lost, won)
    )
    return [
        at_most(
            f"advantage of {_ALONE} in progressive accuracy, logs as recorded{words}",
            mean(before),
            slack * standard_error(before),
        ),
        at_least(
            f"advantage of {_ALONE} in the accuracy of the whole log{words}",
            mean(after),
            -slack * standard_error(after),
        ),
    ]
