"""A threshold that learns, compared with rules that ask for as many labels.

`EqualErrorAsk` has no parameter to tune, so it sets the number of labels: the parameters of the
other rules (the `c` of `SkepticalAsk`, the rates of `RandomAsk` and of `RateBudget` with
`BestVersusSecond(0.0)`) are tuned, for each log and learner, until the mean number of labels over
the seeds is within 3 % of that, or five settings have been tried, without regard to accuracy. Where
no setting fits, the closest with fewer labels counts, or labels are cut off.

Two learners: a Gaussian process, which knows where it knows nothing, and River's forest, which has
class probabilities only. Challenges are those of `isgp()`, and features are scaled by the first 200
events. The first 2000 events of five logs, as recorded, but wisdm and pendigits in random order,
since their rows do not follow each other in time; 20 % wrong answers, evenly distributed over the
other classes; three seeds. Accuracy is progressive, and an event without a prediction counts as
wrong. `above` is the mean over the logs of the accuracy minus that of `EqualErrorAsk`; ± is the
standard error over logs.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any

from river import forest

from benchmarks._harness import Options, Outcome, Row, progress, run, standard_error
from benchmarks._logs import Log, read_all
from benchmarks.comparison.conversation import Score, averaged, matched, played
from benchmarks.comparison.strategies.rules import CAP, CONTENDERS, Setting
from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier
from streamgp.presets import MAX_POINTS
from streamgp.query import AskRule, Budget, EqualErrorAsk

_ERROR_RATE = 0.2
_AS_RECORDED = ("wifi_rooms", "elec2", "occupancy")
LEARNERS: dict[str, Callable[[int], Any]] = {
    "ARFClassifier": lambda seed: forest.ARFClassifier(seed=seed),
    "GPClassifier": lambda _: GPClassifier(max_points=MAX_POINTS),
}
OURS = "EqualErrorAsk"
OTHERS = ("SkepticalAsk", "BestVersusSecond + RateBudget", "RandomAsk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the benchmark runs."""

    logs: Sequence[str] = ("wifi_rooms", "elec2", "wisdm", "occupancy", "pendigits")
    learners: Sequence[str] = tuple(LEARNERS)
    n_events: int = 2000
    n_seeds: int = 3


QUICK = Plan(logs=("wifi_rooms", "elec2", "pendigits"), n_events=400, n_seeds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A log, and the learner to run over it."""

    log: Log
    learner: str
    seeds: Sequence[int]

    def scores(self) -> dict[str, Score]:
        """Run each rule; the others at the number of labels of the one that has no knob."""
        ours = averaged([self._play(seed, EqualErrorAsk()) for seed in self.seeds])
        n = round(ours.n_asked)
        return {OURS: ours, **{rule: self._matched(rule, n) for rule in OTHERS}}

    def _matched(self, rule: str, n: int) -> Score:
        contender = CONTENDERS[rule]
        start = contender.start or n / len(self.log.events)
        return matched(partial(self._at, rule, n), n, {}, start, contender.largest or start)

    def _at(self, rule: str, n: int, knob: float, limit: int | None = None) -> Score:
        """Run a rule with one setting of its knob."""
        contender, scores = CONTENDERS[rule], []
        for seed in self.seeds:
            setting = Setting(
                knob=knob,
                most=int(CAP * n) if limit is None else limit,
                n_classes=len(self.log.classes),
                seed=seed,
            )
            query, budget = contender.rule(setting), contender.budget(setting)
            scores.append(self._play(seed, query, budget, limit))
        return averaged(scores)

    def _play(
        self, seed: int, query: AskRule, budget: Budget | None = None, limit: int | None = None
    ) -> Score:
        learner, classes = LEARNERS[self.learner](seed), self.log.classes
        model = SkepticalClassifier(learner, query, None, budget, seed=seed)
        annotator = SimulatedAnnotator(error_rate=_ERROR_RATE, classes=classes, seed=seed)
        order = "recorded" if self.log.name in _AS_RECORDED else "random"
        return played(self.log.played(order, seed), model, annotator, limit)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("equal_error", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plan: Plan | None = None) -> Outcome:
    """Run both learners over all logs."""
    plan = plan or (QUICK if options.quick else Plan())
    logs, missing = read_all(plan.logs, options.data, plan.n_events)
    seeds = range(options.seed, options.seed + plan.n_seeds)
    rows: list[Row] = []
    for learner in plan.learners:
        found: list[dict[str, Score]] = []
        for log in logs:
            progress(f"{learner}, {log.name}")
            found.append(Stream(log=log, learner=learner, seeds=seeds).scores())
        rows += _rows(learner, [log.name for log in logs], found)
    notes = [f"{plan.n_seeds} seeds, {plan.n_events} events."]
    return Outcome(rows=rows, skipped=missing, notes=notes)


def _rows(learner: str, logs: Sequence[str], found: Sequence[dict[str, Score]]) -> Iterator[Row]:
    for log, scores in zip(logs, found, strict=True):
        for rule, score in scores.items():
            yield {
                "learner": learner,
                "log": log,
                "rule": rule,
                "labels": score.n_asked,
                "accuracy": score.accuracy,
                "F1": score.macro_f1,
                "challenges": score.n_challenges,
            }
    for rule in (OURS, *OTHERS):
        above = [scores[rule].accuracy - scores[OURS].accuracy for scores in found]
        yield {
            "learner": learner,
            "log": "mean",
            "rule": rule,
            "labels": mean(scores[rule].n_asked for scores in found),
            "accuracy": mean(scores[rule].accuracy for scores in found),
            "above": mean(above),
            "se": standard_error(above),
        }
