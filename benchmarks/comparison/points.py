"""How many points a classifier should keep, in conversation and with learned hyperparameters.

`isgp()` keeps 500 points. In conversation with an annotator who errs in 20 % of the answers, evenly
distributed over the other classes, it is compared with the same model without a bound and with 200
points: how often it is right, in % (an event without a prediction counts as wrong), and how many
labels it asks for. Means of two seeds, which determine errors, draws and orders.

Then `GPClassifier` with all labels given, 3000 events of each log as recorded, features
standardised by the first 200: with fixed hyperparameters, and with learned ones, which are adopted
as far as they are better with as many points.

"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks._array_streams import ArrayStream, as_dictionaries, recorded
from benchmarks._harness import Options, Outcome, Row, progress, run
from benchmarks._logs import Log, read, skipping
from benchmarks.comparison.conversation import averaged, played
from streamgp import GPClassifier, SimulatedAnnotator, isgp

_ERROR_RATE = 0.2
EXACT = "exact"
POINTS: dict[str, int | None] = {EXACT: None, "m = 500": 500, "m = 200": 200}


@dataclass(frozen=True, slots=True)
class Stream:
    """The first events of a log, in one order."""

    log: str
    order: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    streams: Sequence[Stream] = (
        Stream("elec2", "recorded", 12_000),
        Stream("wisdm", "recorded", 3000),
        Stream("wisdm", "sequential", 5000),
        Stream("letter", "random", 6000),
        Stream("pendigits", "random", 4000),
        Stream("places_1", "recorded", 3000),
        Stream("wifi_rooms", "recorded", 2000),
        Stream("occupancy", "recorded", 3000),
    )
    n_seeds: int = 2
    learned: Sequence[str] = ("pendigits", "letter", "elec2", "occupancy", "wisdm", "wifi_rooms")
    n_learned: int = 3000
    most: int = sys.maxsize  # events of a conversation


QUICK = Plan(most=400, n_seeds=1, n_learned=300)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("points", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all streams with each number of points."""
    plan = plan or (QUICK if options.quick else Plan())
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows: list[Row] = []
    skipped: list[str] = []
    for stream in plan.streams:
        with skipping(skipped):
            log = read(stream.log, options.data, min(stream.n, plan.most))
            rows += [_conversed(log, stream.order, points, seeds) for points in POINTS]
    for name in plan.learned:
        with skipping(skipped):
            given = recorded(name, options.data, plan.n_learned)
            rows += [
                _given(name, given, points, learns) for learns in (False, True) for points in POINTS
            ]
    return Outcome(rows=rows, skipped=list(dict.fromkeys(skipped)))


def _conversed(log: Log, order: str, points: str, seeds: Sequence[int]) -> Row:
    progress(f"{log.name}, {order}: {points}")
    scores = []
    for seed in seeds:
        learner = GPClassifier(max_points=POINTS[points])
        model = isgp(seed=seed).clone({"model": learner})
        annotator = SimulatedAnnotator(error_rate=_ERROR_RATE, classes=log.classes, seed=seed)
        scores.append(played(log.played(order, seed), model, annotator))
    score = averaged(scores)
    return {
        "log": f"{log.name}, {order}",
        "events": len(log.events),
        "points": points,
        "right_%": 100.0 * score.accuracy,
        "asked": score.n_asked,
        "challenges": score.n_challenges,
        "wrong_kept": score.wrong_kept,
    }


def _given(name: str, stream: ArrayStream, points: str, learns: bool) -> Row:
    progress(f"{name}, all labels: {points}{', learned' if learns else ''}")
    model = GPClassifier(max_points=POINTS[points], learn_hyperparameters=learns)
    right = []
    for x, y in as_dictionaries(stream):
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    return {
        "given": name,
        "points": points,
        "hyperparameters": "learned" if learns else "given",
        "right_%": 100.0 * mean(right),
    }
