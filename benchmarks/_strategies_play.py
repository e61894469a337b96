"""Playing one contender of `benchmarks.strategies` over one stream, at given numbers of labels.

The knob is turned until the number of labels fits, and nothing else is looked at. It is one knob
for all seeds: counts are means over them. Where counts jump past the number wanted, the setting
just above it is played once more, with a hard limit.

"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from river import metrics

from benchmarks._logs import Log
from benchmarks._strategies_rules import CONTENDERS, Setting
from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier, interactive_val_score
from streamgp.base import Belief
from streamgp.draws import uniform
from streamgp.presets import MAX_POINTS
from streamgp.query import NeverChallenge

ERROR_RATE = 0.2
TOLERANCE = 0.03
_TRIES = 5
# Labels in units of the largest number wanted, beyond which a setting is not played on.
_CAP = 1.5
# A knob that asks far too little or too much is multiplied or divided by at most this.
_STRIDE = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Means over the seeds."""

    accuracy: float
    macro_f1: float
    n_asked: float
    n_challenges: float
    wrong_kept: float
    hard_limit: float = 0.0  # share of runs whose labels were cut off at the number wanted


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
        return _mean([self._play(knob, limit, seed) for seed in self.seeds])

    def _play(self, knob: float, limit: int | None, seed: int) -> Score:
        classes = self.log.classes
        most = int(_CAP * max(self.budgets)) if limit is None else limit
        setting = Setting(knob=knob, most=most, n_classes=len(classes), seed=seed)
        model = built(self.contender, setting, challenges=self.challenges)
        result = interactive_val_score(
            self.log.played(self.order, seed),
            model,
            metrics.Accuracy() + metrics.MacroF1(),
            annotator=SimulatedAnnotator(error_rate=ERROR_RATE, classes=classes, seed=seed),
        )
        accuracy, macro_f1 = result.metric.get()
        return Score(
            # An event that nothing was predicted for counts as wrong: who asks late shall pay.
            accuracy=accuracy * result.n_scored / result.n_events,
            macro_f1=macro_f1,
            n_asked=result.n_asked,
            n_challenges=result.n_challenges,
            wrong_kept=result.wrong_kept or 0.0,
            hard_limit=float(result.n_asked == limit),
        )


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


def matched(
    measure: Callable[..., Score],
    n: int,
    known: dict[float, Score],
    start: float,
    largest: float,
) -> Score:
    """Turn a knob until about `n` labels are asked for, and return what came out.

    Parameters
    ----------
    measure
        What comes out at a setting of the knob, and at one with a hard limit.
    n
        Number of labels.
    known
        Settings measured so far; grows.
    start, largest
        First and largest setting.

    Returns
    -------
    A result that fits `n`; if there is none, the closest that is below, or under a hard limit.

    """

    def fits(score: Score) -> bool:
        return abs(score.n_asked / n - 1.0) <= TOLERANCE

    tries = 0
    while tries < _TRIES and not any(fits(score) for score in known.values()):
        knob = _next_knob(known, n, start, largest)
        if knob in known:
            break
        known[knob] = measure(knob)
        tries += 1
    modest = [score for score in known.values() if score.n_asked <= n or fits(score)]
    above = [knob for knob, score in known.items() if score.n_asked > n]
    if above and not any(map(fits, modest)):
        modest.append(measure(min(above), n))
    return min(modest, key=lambda score: abs(score.n_asked - n))


def _next_knob(known: dict[float, Score], n: float, start: float, largest: float) -> float:
    """Interpolate between the neighbours of `n`, logarithmically; go on where one is missing."""
    if not known:
        return start
    above = min((k for k, score in known.items() if score.n_asked > n), default=None)
    below = max(
        (k for k, score in known.items() if score.n_asked <= n and (above is None or k < above)),
        default=None,
    )
    if above is None or below is None:
        knob = below or above or start
        # Counts grow slower than knobs.
        factor = (n / max(known[knob].n_asked, 1.0)) ** 1.2
        return min(knob * min(max(factor, 1.0 / _STRIDE), _STRIDE), largest)
    low, high = max(known[below].n_asked, 0.5), known[above].n_asked
    t = math.log(n / low) / math.log(high / low)
    t = min(max(t, 0.15), 0.85)  # counts jump: never crawl along one side
    return below ** (1.0 - t) * above**t


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


def _mean(scores: Sequence[Score]) -> Score:
    return Score(
        **{name: mean(getattr(score, name) for score in scores) for name in Score.__slots__}
    )
