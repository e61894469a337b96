"""What the default gains from its test for concept drift, and what it costs without drift.

`isgp()` with and without `DriftTest()`, at equal numbers of labels: for each stream and seed, the
strictness `c` of `SkepticalAsk` is searched until 5 % of the events are asked about, to within 3 %
of that number. 20 % of the answers are wrong, evenly distributed over the other classes. Accuracy
counts all events, including the first; gains are those with the test, and their standard error is
that of the difference.

Streams from River's generators that change between two concepts of the same kind, 4000 events: an
abrupt change in the middle, a slow one through the middle half, three changes there and back again,
and none. Four or eight normal classes in four features, as many events, of which from the middle on
two are swapped, or one has another name. Logs, of which it is not known whether and when they
change, as recorded, the first 2500 events, and shuffled, 2000 events, so that nothing changes:
those of `benchmarks.temporal`.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean

import numpy as np

from benchmarks._array_streams import CONCEPTS, ArrayStream, as_dictionaries, drifting
from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_least,
    differences,
    progress,
    run,
    standard_error,
)
from benchmarks._logs import Log, read_all
from benchmarks.comparison.temporal import DRIFT_TEST, Play, at_rate
from benchmarks.comparison.temporal import Plan as Logs

_KINDS = ("abrupt", "gradual", "recurring", "none")
_RATE = 0.05
# Number of classes, and the labels of the first two of them from the middle on.
_FEW = {
    "two of four swapped": (4, (1, 0)),
    "one of four renamed": (4, (4, 1)),
    "two of eight swapped": (8, (1, 0)),
}
_MOST_LOST = 0.003
_LEAST_GAIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    concepts: Sequence[str] = CONCEPTS
    kinds: Sequence[str] = _KINDS
    few: Sequence[str] = tuple(_FEW)
    n_events: int = 4000
    n_seeds: int = 3
    logs: Logs = field(default_factory=Logs)


QUICK = Plan(
    concepts=("Sine", "STAGGER"),
    kinds=("abrupt", "none"),
    few=("two of four swapped",),
    n_events=2000,
    n_seeds=2,
    logs=Logs(
        recorded=("occupancy",), shuffled=("wifi_rooms",), n_recorded=600, n_shuffled=600, n_seeds=2
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Runs of one stream and seed without and with the test."""

    without: Play
    tested: Play


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("drift_test", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Run all streams."""
    plan = plan or (QUICK if options.quick else Plan())
    seeds = range(options.seed, options.seed + plan.n_seeds)
    groups: dict[str, dict[str, list[Pair]]] = {kind: {} for kind in plan.kinds}
    for kind, concept in ((kind, concept) for kind in plan.kinds for concept in plan.concepts):
        streams = {seed: _stream(concept, kind, plan.n_events, seed) for seed in seeds}
        groups[kind][concept] = _pairs(streams, "recorded")
    groups["few"] = {
        change: _pairs({seed: _few(change, plan.n_events, seed) for seed in seeds}, "recorded")
        for change in plan.few
    }
    skipped: list[str] = []
    logs = plan.logs
    for order, names, n in (
        ("recorded", logs.recorded, logs.n_recorded),
        ("random", logs.shuffled, logs.n_shuffled),
    ):
        found, missing = read_all(names, options.data, n)
        skipped += missing
        of_logs = range(options.seed, options.seed + logs.n_seeds)
        groups[order] = {log.name: _pairs(dict.fromkeys(of_logs, log), order) for log in found}
    groups = {name: streams for name, streams in groups.items() if streams}
    rows = [
        _row(group, stream, pairs)
        for group, streams in groups.items()
        for stream, pairs in streams.items()
    ]
    means = {name: _row(name, "mean", _all(streams)) for name, streams in groups.items()}
    return Outcome(
        rows=[*rows, *means.values()],
        acceptance=[] if options.quick else _accepted(means),
        skipped=list(dict.fromkeys(skipped)),
    )


def _stream(concept: str, kind: str, n: int, seed: int) -> Log:
    events = as_dictionaries(drifting(concept, kind, n, seed))
    return Log(name=f"{concept}, {kind}", events=[(x, y) for x, y in events], orders=("recorded",))


def _few(change: str, n: int, seed: int) -> Log:
    n_classes, labels = _FEW[change]
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3.0, size=(n_classes, 4))
    drawn = rng.integers(n_classes, size=n)
    X = centres[drawn] + rng.normal(size=(n, 4))
    later = [*labels, *range(2, n_classes)]
    y = [k if i < n // 2 else later[k] for i, k in enumerate(drawn.tolist())]
    events = as_dictionaries(ArrayStream(name=change, X=X, y=np.array(y)))
    return Log(name=change, events=list(events), orders=("recorded",))


def _pairs(streams: dict[int, Log], order: str) -> list[Pair]:
    """Run a stream without and with the test, for each seed."""
    found, c = [], {"without": 1.0, "tested": 1.0}
    for seed, log in streams.items():
        progress(f"{log.name}, {order}, seed {seed}")
        without = at_rate(log, order, _RATE, seed, c["without"], drift_test=None)
        tested = at_rate(log, order, _RATE, seed, c["tested"], drift_test=DRIFT_TEST)
        c = {"without": without.c, "tested": tested.c}
        found.append(Pair(without=without, tested=tested))
    return found


def _all(streams: dict[str, list[Pair]]) -> list[Pair]:
    return [pair for pairs in streams.values() for pair in pairs]


def _row(group: str, stream: str, pairs: Sequence[Pair]) -> Row:
    without, tested = [one.without for one in pairs], [one.tested for one in pairs]
    gains = differences(_accuracies(tested), _accuracies(without))
    return {
        "streams": group,
        "stream": stream,
        "without": mean(_accuracies(without)),
        "labels": mean(one.n_asked for one in without),
        "drift_test": mean(_accuracies(tested)),
        "labels_asked_for": mean(one.n_asked for one in tested),
        "gain": mean(gains),
        "gain_se": standard_error(gains),
        "drifts_found": mean(one.n_drifts for one in tested),
    }


def _accuracies(plays: Iterable[Play]) -> list[float]:
    return [play.accuracy[1] for play in plays]


def _accepted(means: dict[str, Row]) -> list[Acceptance]:
    gains = [
        at_least(f"{name}: gain", means[name]["gain"], _LEAST_GAIN)
        for name in ("abrupt", "gradual", "recurring")
    ]
    losses = [
        at_least(
            f"{name}: gain, and two standard errors",
            means[name]["gain"] + 2.0 * means[name]["gain_se"],
            -_MOST_LOST,
        )
        for name in ("none", "recorded", "random")
        if name in means
    ]
    return [*gains, *losses]
