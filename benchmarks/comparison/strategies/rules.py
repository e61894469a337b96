"""Query strategies with their budgets, and runs of one at given numbers of labels.

Each has a knob, a positive number: the larger, the more labels are asked for. It is tuned until the
number of labels fits, without regard to accuracy.

"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks._logs import Log
from benchmarks.comparison.conversation import Score, averaged, matched, played
from benchmarks.comparison.skactiveml import HAS_SKACTIVEML, RiverAsk, SkactivemlAsk
from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier
from streamgp.base import Belief
from streamgp.common.counter_rng import uniform
from streamgp.presets import MAX_POINTS
from streamgp.query import (
    AlwaysAsk,
    AskRule,
    AtMost,
    BestVersusSecond,
    Budget,
    Entropy,
    LeastConfidence,
    NeverChallenge,
    PaperAsk,
    RandomAsk,
    RateBudget,
    SkepticalAsk,
)

# --- rules

DEFAULT = "SkepticalAsk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Arguments from which a contender is built.

    Parameters
    ----------
    knob
        How much to ask.
    most
        Largest number of labels: the hard limit, or a number beyond which the run is useless.
    n_classes
        Number of classes in the whole stream.
    seed
        Seed of the contender's own draws.

    """

    knob: float
    most: int
    n_classes: int
    seed: int


_Rule = Callable[[Setting], AskRule]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A rule with its budget.

    Parameters
    ----------
    package
        Where it comes from.
    rule
        The rule.
    budget
        The budget. Where the rule itself limits the labels, it is only a hard limit.
    start
        The knob tried first; None for the share of events that is to be asked about.
    largest
        The largest knob; None for a contender without one, which takes the number of labels itself.

    """

    package: str
    rule: _Rule
    budget: Callable[[Setting], Budget] = lambda s: AtMost(s.most, gives_back=False)
    start: float | None = None
    largest: float | None = 1.0


def _at_rate(rule: AskRule) -> Contender:
    """Rank by the rule's score all events that it would ask about."""
    return Contender(
        package="streamgp",
        rule=lambda _: rule,
        budget=lambda s: RateBudget(s.knob, seed=s.seed),
    )


def _at_most(rule: AskRule) -> Contender:
    """Ask about what the rule picks until the labels are used up."""
    return Contender(package="streamgp", rule=lambda _: rule, largest=None)


def _tuned(rule: _Rule, start: float | None = None, largest: float = 1.0) -> Contender:
    return Contender(package="streamgp", rule=rule, start=start, largest=largest)


def _of_skactiveml(name: str) -> Contender:
    return Contender(package="scikit-activeml", rule=partial(_skactiveml_ask, name))


def _skactiveml_ask(name: str, s: Setting) -> AskRule:
    return SkactivemlAsk(name, s.knob, s.n_classes, s.seed)


_SKACTIVEML = (
    "StreamRandomSampling",
    "PeriodicSampling",
    "FixedUncertainty",
    "VariableUncertainty",
    "RandomVariableUncertainty",
    "Split",
)

CONTENDERS: dict[str, Contender] = {
    DEFAULT: _tuned(lambda s: SkepticalAsk(s.knob), 1.0, 100.0),
    "PaperAsk + AtMost": _at_most(PaperAsk()),
    "RandomAsk": _tuned(lambda s: RandomAsk(s.knob)),
    "AlwaysAsk + AtMost": _at_most(AlwaysAsk()),
    "Entropy": _tuned(lambda s: Entropy((1.0 - s.knob) * math.log(s.n_classes)), 0.5),
    "LeastConfidence": _tuned(
        lambda s: LeastConfidence((1.0 - s.knob) * (1.0 - 1.0 / s.n_classes)), 0.5
    ),
    "BestVersusSecond": _tuned(lambda s: BestVersusSecond(1.0 - s.knob), 0.5),
    "Entropy + RateBudget": _at_rate(Entropy(0.0)),
    "LeastConfidence + RateBudget": _at_rate(LeastConfidence(0.0)),
    "BestVersusSecond + RateBudget": _at_rate(BestVersusSecond(0.0)),
    "EntropySampler": Contender(
        package="River", rule=lambda s: RiverAsk(1.0 / s.knob, s.seed), start=1.0, largest=100.0
    ),
    **({name: _of_skactiveml(name) for name in _SKACTIVEML} if HAS_SKACTIVEML else {}),
}


# --- runs

ERROR_RATE = 0.2
# A run stops beyond this many labels, in units of the largest number wanted.
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
        """Run; return the result at each number of labels."""
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
    """Return the beliefs of a classifier that has learned the first events about the others."""
    from river.preprocessing import StandardScaler

    scaler, learner = StandardScaler(), GPClassifier(max_points=MAX_POINTS)
    for x, _ in log.events:
        scaler.learn_one(x)
    scaled = [(scaler.transform_one(x), y) for x, y in log.played("random", 1)]
    for x, y in scaled[:n_learned]:
        learner.learn_one(x, y)
    return [learner.predict_proba_one(x, with_dist=True) for x, _ in scaled[n_learned:]]
