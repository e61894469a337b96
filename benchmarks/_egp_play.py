"""One run of the reproduction: initial labels, a stream that is asked about at a rate, a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks._egp_problems import Draw, Problem
from streamgp import EnsembleGPClassifier, EnsembleGPRegressor
from streamgp.common.counter_rng import uniform
from streamgp.metrics import NMSE, NPLL
from streamgp.query import (
    KL,
    AlwaysAsk,
    Deterministic,
    RateBudget,
    Unlimited,
    Variance,
)

RANDOM, ALL = "random", "all labels"
KL_PAPER, KL_LIVING, VARIANCE, DETERMINISTIC = (
    "KL (paper)",
    "KL (living)",
    "variance",
    "deterministic",
)

# All scores of `AlwaysAsk` are the same, so that the budget chooses at random, at exactly its rate.
RULES: dict[str, Callable[[], Any]] = {
    RANDOM: AlwaysAsk,
    KL_PAPER: KL,
    KL_LIVING: lambda: KL(least_weight=0.01),
    VARIANCE: Variance,
    DETERMINISTIC: Deterministic,
    ALL: AlwaysAsk,
}
PRESETS = ("default", "paper")
# While scores shrink, the budget is up to horizon * (1 - rate) labels behind: with 5 events never
# more than 1 % of 500, with the default of 8 up to 1.5 %.
HORIZON = 5
RATES = (0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What runs have in common.

    Parameters
    ----------
    problem
        Name of the problem.
    preset
        Preset of the ensemble.
    rule
        Name of the rule that scores.
    rate
        Label rate that the budget keeps; 1 for all labels.

    """

    problem: str
    preset: str
    rule: str
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out of one run.

    Parameters
    ----------
    rate
        Share of the stream that was labelled.
    error
        NMSE on the test set; of classes, the share predicted wrong.
    npll
        Negative predictive log likelihood on the test set; None for classes.

    """

    rate: float
    error: float
    npll: float | None = None


def play(problem: Problem, draw: Draw, cell: Cell, seed: int) -> Result:
    """Teach the initial labels, ask along the stream, predict the test set."""
    model = learner(problem, cell.preset, seed)
    for x, y in draw.initial:
        model.learn_one(x, y)
    rate = asked_along(model, draw, cell, seed)
    if problem.classes:
        return Result(rate=rate, error=_share_wrong(model, draw))
    nmse, npll = _tested(model, draw)
    return Result(rate=rate, error=nmse, npll=npll)


def learner(problem: Problem, preset: str, seed: int) -> Any:
    """Return an ensemble that has learned nothing.

    The paper finds hyper-parameters from the initial set; by default they are found at the first
    ten labels and whenever there are twice as many.
    """
    kind = EnsembleGPClassifier if problem.classes else EnsembleGPRegressor
    if preset == "paper":
        return kind(preset=preset, seed=seed, n_initial=problem.n_initial)
    return kind(preset=preset, seed=seed)


def asked_along(model: Any, draw: Draw, cell: Cell, seed: int) -> float:
    """Teach what is asked for; return the label rate."""
    rule, budget, n_asked = RULES[cell.rule](), budget_of(cell, seed), 0
    for n, (x, y) in enumerate(draw.stream):
        # Who asks about everything does not look.
        belief = {} if cell.rule in (RANDOM, ALL) else believed(model, x)
        decision = rule.decide(belief, draw=uniform(seed, str(n), "ask"))
        asked = decision.ask and budget.allows(decision, now=n)
        budget.note(decision, asked, now=n)
        if asked:
            model.learn_one(x, y)
            n_asked += 1
    return n_asked / len(draw.stream)


def budget_of(cell: Cell, seed: int) -> Any:
    """Return what keeps the label rate."""
    if cell.rule == ALL:
        return Unlimited()
    return RateBudget(cell.rate, horizon=HORIZON, seed=seed)


def believed(model: Any, x: Any) -> Any:
    """Return distribution or posterior."""
    if isinstance(model, EnsembleGPRegressor):
        return model.predict_one(x, with_dist=True)
    return model.predict_proba_one(x, with_dist=True)


def _tested(model: EnsembleGPRegressor, draw: Draw) -> tuple[float, float]:
    nmse, npll = NMSE(), NPLL()
    for x, y in draw.test:
        predicted = model.predict_one(x, with_dist=True)
        nmse.update(y, predicted)
        npll.update(y, predicted)
    return nmse.get(), npll.get()


def _share_wrong(model: EnsembleGPClassifier, draw: Draw) -> float:
    return sum(model.predict_one(x) != y for x, y in draw.test) / len(draw.test)
