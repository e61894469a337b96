"""The contenders of `benchmarks.strategies`: every rule with its budget, and what turns it.

A knob is a positive number, and the larger it is, the more labels are asked for. What a knob does
to accuracy plays no part here.

"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks._peers import HAS_SKACTIVEML, RiverAsk, SkactivemlAsk
from streamgp.query import (
    AlwaysAsk,
    AskRule,
    AtMost,
    BestVersusSecond,
    Budget,
    Entropy,
    LeastConfidence,
    PaperAsk,
    RandomAsk,
    RateBudget,
    SkepticalAsk,
)

DEFAULT = "SkepticalAsk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a contender is built for.

    Parameters
    ----------
    knob
        How much to ask.
    most
        Number of labels after which there are no more: the hard limit, or what is of no use anyway.
    n_classes
        Number of classes in the end.
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
        The budget. Where the rule itself limits the labels, there is only a hard limit.
    start
        The knob tried first; None stands for the share of events that is to be asked about.
    largest
        The largest knob; None for a contender that has none and takes the number of labels itself.

    """

    package: str
    rule: _Rule
    budget: Callable[[Setting], Budget] = lambda s: AtMost(s.most, gives_back=False)
    start: float | None = None
    largest: float | None = 1.0


def _at_rate(rule: AskRule) -> Contender:
    """All it would ask about, ranked by its score."""
    return Contender(
        package="streamgp",
        rule=lambda _: rule,
        budget=lambda s: RateBudget(s.knob, seed=s.seed),
    )


def _at_most(rule: AskRule) -> Contender:
    """What it would ask about, until the labels are used up."""
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
