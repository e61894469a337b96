"""Playing one contender of `benchmarks.strategies` over one stream, at given numbers of labels.

The knob is turned until the number of labels fits, and nothing else is looked at.

"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks._conversation import Score, averaged, played
from benchmarks._knobs import matched
from benchmarks._logs import Log
from benchmarks._strategies_rules import CONTENDERS, Setting
from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier
from streamgp.base import Belief
from streamgp.common.counter_rng import uniform
from streamgp.presets import MAX_POINTS
from streamgp.query import NeverChallenge

ERROR_RATE = 0.2
# Labels in units of the largest number wanted, beyond which a setting is not played on.
CAP = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One contender on one stream, at all numbers of labels."""

    log: Log
    order: str
    contender: str
    budgets: Sequence[int]
    seeds: Sequence[int]
    challenges: bool

    def scores(self) -> dict[int, Score]:
        """Play; return what came out at each number of labels."""
        contender = CONTENDERS[self.contender]
        known: dict[float, Score] = {}
        scores = {}
        for n in self.budgets:
            if contender.largest is None:
                scores[n] = self._score(1.0, n)
                continue
            start = n / len(self.log.events) if contender.start is None else contender.start
            scores[n] = matched(self._score, n, known, start, contender.largest)
        return scores

    def _score(self, knob: float, limit: int | None = None) -> Score:
        return averaged([self._play(knob, limit, seed) for seed in self.seeds])

    def _play(self, knob: float, limit: int | None, seed: int) -> Score:
        classes = self.log.classes
        most = int(CAP * max(self.budgets)) if limit is None else limit
        setting = Setting(knob=knob, most=most, n_classes=len(classes), seed=seed)
        model = built(self.contender, setting, challenges=self.challenges)
        annotator = SimulatedAnnotator(error_rate=ERROR_RATE, classes=classes, seed=seed)
        return played(self.log.played(self.order, seed), model, annotator, limit)


def built(contender: str, setting: Setting, *, challenges: bool = True) -> SkepticalClassifier:
    """Return the default classifier with the rule and the budget of a contender."""
    entry = CONTENDERS[contender]
    return SkepticalClassifier(
        GPClassifier(max_points=MAX_POINTS),
        entry.rule(setting),
        None if challenges else NeverChallenge(),
        entry.budget(setting),
        seed=setting.seed,
    )


def microseconds(contender: str, log: Log, n_learned: int, n_repeats: int) -> float:
    """Time of one decision, budget included and the classifier not: median of the repetitions."""
    beliefs = _beliefs(log, n_learned)
    setting = Setting(knob=0.1, most=10**6, n_classes=len(log.classes), seed=1)
    draws = [uniform(1, str(i), "ask") for i in range(len(beliefs))]
    durations = []
    for _ in range(n_repeats):
        entry = CONTENDERS[contender]
        rule, budget = entry.rule(setting), entry.budget(setting)
        started = time.perf_counter()
        for now, (belief, draw) in enumerate(zip(beliefs, draws, strict=True)):
            decision = rule.decide(belief, draw)
            asked = decision.ask and budget.allows(decision, now)
            budget.note(decision, asked, now)
        durations.append(time.perf_counter() - started)
    return median(durations) / len(beliefs) * 1e6


def _beliefs(log: Log, n_learned: int) -> list[Belief]:
    """What a classifier that has learned the first events believes about the others."""
    from river.preprocessing import StandardScaler

    scaler, learner = StandardScaler(), GPClassifier(max_points=MAX_POINTS)
    for x, _ in log.events:
        scaler.learn_one(x)
    scaled = [(scaler.transform_one(x), y) for x, y in log.played("random", 1)]
    for x, y in scaled[:n_learned]:
        learner.learn_one(x, y)
    return [learner.predict_proba_one(x, with_dist=True) for x, _ in scaled[n_learned:]]
