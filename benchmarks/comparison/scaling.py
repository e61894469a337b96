"""Which length scale, and how long a warm-up: the study behind two default values.

`GPClassifier` has a length scale of `a` times the square root of the number of features, and
`SkepticalClassifier` learns its scaling from the first `N` events. Both trade labels for accuracy,
so accuracies are compared at equal numbers of questions: the advantage of a choice is its accuracy
minus that of the defaults with as many questions (labels and challenges), interpolated on their
curve over the parameter `c` of `SkepticalAsk`; beyond its ends the curve is held level, which
favours choices that ask very much. All else is as in `isgp`.

Logs of the data folder, the first 2000 events of each, in random order, class after class, and as
recorded where rows follow each other in time; 20 % wrong answers; three seeds. Every log has the
same weight; logs of two users of one study count as one. `wifi_rooms` is shown but not part of the
comparison, as the limits of `benchmarks.wifi` are based on it. Also compared: statistics that
change only once, at the end of the warm-up, instead of whenever the number of events has doubled.

"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

import numpy as np
from river import metrics, preprocessing

from benchmarks._harness import Options, Outcome, Row, at_most, progress, run, standard_error
from benchmarks._logs import NAMES, Log, read_all
from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier, interactive_val_score
from streamgp.base import FeatureName, Features, Label
from streamgp.features import Columns
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE
from streamgp.presets import isgp
from streamgp.query import SkepticalAsk

_ERROR_RATE = 0.2
_CHECK_ONLY = "wifi_rooms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One setting of the parameters."""

    a: float = LENGTH_SCALE_PER_ROOT_FEATURE
    warm_up: int = isgp(seed=0).warm_up
    c: float = 1.0
    refit: str = "doubling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = NAMES
    n_events: int = 2000
    n_seeds: int = 3
    scales: Sequence[float] = (0.5, 0.6, 0.75, 0.9, 1.0)
    warm_ups: Sequence[int] = (50, 100, 200, 400)
    knobs: Sequence[float] = (0.25, 0.5, 2.0, 4.0)
    refits: Sequence[str] = ("doubling", "at the end")

    def choices(self) -> list[Choice]:
        """Return the grid of both parameters, the curve of the defaults, and the other refits."""
        grid = [Choice(a=a, warm_up=n) for a in self.scales for n in self.warm_ups]
        curve = [Choice(c=c) for c in self.knobs]
        others = [Choice(warm_up=n, refit=r) for r in self.refits[1:] for n in self.warm_ups]
        return list(dict.fromkeys([Choice(), *grid, *curve, *others]))


QUICK = Plan(
    logs=("wisdm", "occupancy", "keystroke", "pendigits", "wifi_rooms"),
    n_events=600,
    n_seeds=1,
    scales=(0.5, 0.75, 0.9),
    warm_ups=(50, 200),
    knobs=(0.5, 2.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Score:
    """Means over the seeds."""

    accuracy: float
    n_asked: float
    n_questions: float
    wrong_kept: float


@dataclass(frozen=True, slots=True)
class _Stream:
    """A log in one order, and the score of every choice on it."""

    log: str
    order: str
    scores: Mapping[Choice, _Score]

    def advantage(self, choice: Choice) -> float:
        """Accuracy minus that of the defaults at as many questions."""
        curve = sorted(
            (math.log(score.n_questions), score.accuracy)
            for c, score in self.scores.items()
            if c == replace(Choice(), c=c.c)
        )
        score = self.scores[choice]
        questions, accuracy = zip(*curve, strict=True)
        return score.accuracy - float(np.interp(math.log(score.n_questions), questions, accuracy))


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("scaling", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Run every choice over every stream, and compare."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, skipped = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    streams = [_played(log, order, plan.choices(), seeds) for log in logs for order in log.orders]
    compared = [stream for stream in streams if stream.log != _CHECK_ONLY]
    check = [stream for stream in streams if stream.log == _CHECK_ONLY]
    shown = sorted(
        (c for c in plan.choices() if c.c == 1.0), key=lambda c: (c.refit, c.a, c.warm_up)
    )
    rows = [_row("compared", compared, choice) for choice in shown if compared]
    rows += [_row("wifi, check only", check, choice) for choice in shown if check]
    rows += [_row_of_stream(stream, plan.scales) for stream in streams]
    accepted = []
    if compared and not options.quick:
        best = max(_by_log(compared, [s.advantage(c) for s in compared])[0] or 0.0 for c in shown)
        accepted = [at_most("largest advantage over the defaults", best, 0.015)]
    notes = [f"Defaults: a = {Choice().a:g}, N = {Choice().warm_up}."]
    return Outcome(rows=rows, acceptance=accepted, skipped=skipped, notes=notes)


class _ScaledGPClassifier(GPClassifier):
    """The default classifier with another factor in its length scale."""

    def __init__(self, a: float) -> None:
        super().__init__()
        self.a = a

    def learn_one(self, x: Features, y: Label, *, event_id: str | None = None) -> None:
        if self.n_learned == 0:
            d = len(Columns().widened(x))
            super().__init__(SquaredExponential(self.a * math.sqrt(max(d, 1))))
        super().learn_one(x, y, event_id=event_id)


class _StandardScalerAtTheEnd(preprocessing.StandardScaler):
    """Scaler that leaves features unchanged for `warm_up` events, then standardises them."""

    def __init__(self, warm_up: int) -> None:
        super().__init__()
        self.warm_up = warm_up
        self.n_seen = 0

    def learn_one(self, x: Features) -> None:
        super().learn_one(x)
        self.n_seen += 1

    def transform_one(self, x: Features) -> Features:
        if self.n_seen < self.warm_up:
            return x
        # Rare features are left out, as in SkepticalClassifier itself.
        return super().transform_one({k: v for k, v in x.items() if self._is_frequent(k)})

    def _is_frequent(self, name: FeatureName) -> bool:
        return self.counts.get(name, 0) >= self.warm_up / 2


def _model(choice: Choice, seed: int) -> SkepticalClassifier:
    classifier = _ScaledGPClassifier(choice.a)
    scaler = _StandardScalerAtTheEnd(choice.warm_up)
    return SkepticalClassifier(
        scaler | classifier if choice.refit == "at the end" else classifier,
        SkepticalAsk(choice.c),
        warm_up=choice.warm_up,
        seed=seed,
    )


def _played(log: Log, order: str, choices: Sequence[Choice], seeds: Sequence[int]) -> _Stream:
    progress(f"{log.name}, {order}: {len(choices)} choices, {len(seeds)} seeds")
    return _Stream(log.name, order, {c: _mean_score(log, order, c, seeds) for c in choices})


def _mean_score(log: Log, order: str, choice: Choice, seeds: Sequence[int]) -> _Score:
    results = [
        interactive_val_score(
            log.played(order, seed),
            _model(choice, seed),
            metrics.Accuracy(),
            annotator=SimulatedAnnotator(error_rate=_ERROR_RATE, classes=log.classes, seed=seed),
        )
        for seed in seeds
    ]
    return _Score(
        accuracy=mean(r.metric.get() for r in results),
        n_asked=mean(r.n_asked for r in results),
        n_questions=mean(r.n_asked + r.n_challenges for r in results),
        wrong_kept=mean(r.wrong_kept or 0.0 for r in results),
    )


def _row(label: str, streams: Sequence[_Stream], choice: Choice) -> Row:
    advantages = [stream.advantage(choice) for stream in streams]
    row: Row = {"logs": label, "refit": choice.refit, "a": choice.a, "N": choice.warm_up}
    for name in ("accuracy", "n_questions", "n_asked", "wrong_kept"):
        row[name], _ = _by_log(streams, [getattr(s.scores[choice], name) for s in streams])
    row["advantage"], row["advantage_se"] = _by_log(streams, advantages)
    for order in ("random", "sequential", "recorded"):
        some = [stream for stream in streams if stream.order == order]
        value, _ = _by_log(some, [stream.advantage(choice) for stream in some])
        row[f"advantage_{order}"] = value
    return row


def _row_of_stream(stream: _Stream, scales: Sequence[float]) -> Row:
    row: Row = {"log": stream.log, "order": stream.order}
    for a in scales:
        score = stream.scores[Choice(a=a)]
        row[f"accuracy_a={a:g}"] = score.accuracy
        row[f"questions_a={a:g}"] = score.n_questions
    return row


def _by_log(
    streams: Sequence[_Stream], values: Sequence[float]
) -> tuple[float | None, float | None]:
    """Mean over the logs of the mean over their orders and users, and its standard error."""
    by_log: dict[str, list[float]] = defaultdict(list)
    for stream, value in zip(streams, values, strict=True):
        by_log[stream.log.partition("_")[0]].append(value)
    means = [mean(of_one) for of_one in by_log.values()]
    return (mean(means) if means else None, standard_error(means) if len(means) > 1 else None)
