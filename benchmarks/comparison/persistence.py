"""Gain from the temporal filter's expert that trusts labels alone, on synthetic streams.

Classes last for a while, and a single reading tells little, so that repeating the last label is
hard to beat. One event in fourteen, chosen at random, gets its label, which is right. Each event is
predicted before its label is known: by the learner alone, by the filter with the twelve other
experts, by the default filter with thirteen, and by the last label; all get the same labels. 1500
events each, five seeds, which determine readings, the order of classes, and which events are
labelled. `gain` is thirteen minus twelve, ± the standard error over the seeds.

The streams have four features: the readings of a class are normal around a centre of its own, and
centres are normal around 0 with the standard deviation `spread`. Where readings wander, an error
with a memory of fifty events is added to all readings.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from benchmarks._harness import Options, Outcome, Row, progress, run, standard_error
from benchmarks._logs import Labelled
from streamgp import GPClassifier, SkepticalClassifier, TemporalFilter
from streamgp.base import Label
from streamgp.common.uncertainty import most_probable
from streamgp.presets import MAX_POINTS
from streamgp.query.temporal import EXPERTS

_N_FEATURES = 4
_LABELLED = 1.0 / 14.0
_LABELS_ALONE = 0.0  # the weight that this expert gives to readings


@dataclass(frozen=True, slots=True, kw_only=True)
class Regimes:
    """Classes that last for a number of events each.

    Parameters
    ----------
    length
        Events of a class in a row.
    spread
        Standard deviation of the centres, in units of that of the readings around them.
    n_classes
        Number of classes; they come one after the other, then again from the first.
    wander
        Standard deviation of an error that all readings share for about fifty events.

    """

    length: int
    spread: float
    n_classes: int = 4
    wander: float = 0.0

    def events(self, n: int, seed: int) -> list[Labelled]:
        """Return the first events."""
        rng = np.random.default_rng(seed)
        centres = self.spread * rng.normal(size=(self.n_classes, _N_FEATURES))
        stays = 0.98
        off = np.zeros(_N_FEATURES)
        events: list[Labelled] = []
        for i in range(n):
            y = i // self.length % self.n_classes
            shock = np.sqrt(1.0 - stays**2) * rng.normal(size=_N_FEATURES)
            off = stays * off + self.wander * shock
            reading = centres[y] + off + rng.normal(size=_N_FEATURES)
            events.append(({f"s{j}": v for j, v in enumerate(reading.tolist())}, y))
        return events


STREAMS: Mapping[str, Regimes] = {
    "regimes of 200 events": Regimes(length=200, spread=0.7),
    "regimes of 50, weak readings": Regimes(length=50, spread=0.5),
    "readings that wander": Regimes(length=100, spread=1.0, wander=1.0),
    "a new class every 150 events": Regimes(length=150, spread=0.7, n_classes=10),
    "regimes of 50, clear readings": Regimes(length=50, spread=1.2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    streams: Sequence[str] = tuple(STREAMS)
    n_events: int = 1500
    n_seeds: int = 5


QUICK = Plan(n_events=400, n_seeds=1)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("persistence", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run all streams."""
    plan = plan or (QUICK if options.quick else Plan())
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows: list[Row] = []
    for name in plan.streams:
        progress(name)
        runs = [play(STREAMS[name].events(plan.n_events, seed), seed) for seed in seeds]
        gains = [found["thirteen"] - found["twelve"] for found in runs]
        means = {what: mean(found[what] for found in runs) for what in runs[0]}
        rows.append(
            {"stream": name, **means, "gain": mean(gains), "gain_se": standard_error(gains)}
        )
    return Outcome(rows=rows, notes=[f"{plan.n_seeds} seeds, {plan.n_events} events."])


def play(events: Sequence[Labelled], seed: int) -> dict[str, float]:
    """Return the share of right predictions of each predictor, and the number of labels."""
    twelve = [expert for expert in EXPERTS if expert[1] != _LABELS_ALONE]
    models = {
        "twelve": _model(TemporalFilter(twelve), seed),
        "thirteen": _model(TemporalFilter(), seed),
    }
    rng = np.random.default_rng(seed)
    right = dict.fromkeys(("alone", *models, "repeated"), 0)
    last: Label | None = None
    n_labels = 0
    for x, y in events:
        for name, model in models.items():
            model.observe_one(x)
            right[name] += most_probable(model.predict_proba_one(x)) == y
        right["alone"] += most_probable(models["thirteen"].own_proba_one(x)) == y
        right["repeated"] += last == y
        if rng.random() < _LABELLED or last is None:
            last = y
            n_labels += 1
            for model in models.values():
                model.learn_one(x, y)
    return {**{name: n / len(events) for name, n in right.items()}, "labels": float(n_labels)}


def _model(temporal: TemporalFilter, seed: int) -> SkepticalClassifier:
    """Return `isgp()` with a filter of its own."""
    learner = GPClassifier(max_points=MAX_POINTS)
    return SkepticalClassifier(learner, temporal=temporal, rescale=True, seed=seed)
