"""Runs of the EGP experiment, and identities of its recursion.

A run has initial labels, a stream of which a given share is asked about, and a test set. The
identities hold whatever is learned, and are measured on the labels of a problem.

"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from benchmarks.papers.egp.problems import Draw, Problem
from streamgp import EnsembleGPClassifier, EnsembleGPRegressor
from streamgp.base import Array
from streamgp.common.counter_rng import uniform
from streamgp.features import Columns
from streamgp.gp.expert_evidence import FittedExperts
from streamgp.gp.linear_experts import Experts
from streamgp.gp.random_features import RandomFeatures, median_distance
from streamgp.kernels import SquaredExponential
from streamgp.metrics import NMSE, NPLL
from streamgp.query import (
    KL,
    AlwaysAsk,
    Deterministic,
    RateBudget,
    Unlimited,
    Variance,
)

_N_LABELS, _N_TEST = 110, 200
# --- identities

_N_FREQUENCIES = 50
_SCALES = tuple(10.0 ** (c / 2.0) for c in range(-3, 4))  # as in the default preset


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Largest deviations of the recursion from what it should equal.

    Parameters
    ----------
    ridge
        Deviation of its predictions from those of ridge regression on all labels at once, in units
        of the standard deviation of the targets.
    evidence
        Deviation of the sum of its one-step log densities from the log marginal likelihood, as a
        share of the latter.

    """

    ridge: float
    evidence: float


def gaps(draw: Draw, seed: int) -> Gaps:
    """Learn with every expert of the default preset, fitted beforehand, and compare."""
    events = [*draw.initial, *draw.stream][:_N_LABELS]
    y = np.array([y for _, y in events])
    y = (y - y.mean()) / y.std()
    columns = Columns(list(events[0][0]))
    points = np.array([columns.vector(x) for x, _ in events])
    unit = median_distance(columns, points)
    features = RandomFeatures(
        [SquaredExponential(scale) for scale in _SCALES], _N_FREQUENCIES, seed, unit
    )
    features.widen(columns)
    Phi = np.array([features(point) for point in points])
    Psi = np.array([features(columns.vector(x)) for x, _ in draw.test[:_N_TEST]])
    fitted = _fitted(Phi, y)
    experts, summed = _recursion(fitted, Phi, y)
    predicted = np.array([experts.see(psi).means[:, 0] for psi in Psi])
    found = [
        _batch(Phi[:, m], y, experts.amplitudes[m], experts.noise_variances[m])
        for m in range(Phi.shape[1])
    ]
    ridge = [
        np.abs(Psi[:, m] @ theta - predicted[:, m]).max() for m, (theta, _) in enumerate(found)
    ]
    evidence = [abs(a - b) / max(1.0, abs(b)) for a, (_, b) in zip(summed, found, strict=True)]
    return Gaps(ridge=float(max(ridge)), evidence=float(max(evidence)))


def _fitted(Phi: Array, y: Array) -> Experts:
    """Return experts with the hyperparameters that maximise the evidence."""
    m, p = Phi.shape[1:]
    experts = FittedExperts(np.ones(m), np.full(m, 0.1), p)
    experts.add_target()
    for phi, target in zip(Phi, y, strict=True):
        experts.learn(experts.see(phi), np.array([target]))
    experts.fit(np.eye(1))
    return experts


def _recursion(fitted: Experts, Phi: Array, y: Array) -> tuple[Experts, Array]:
    """Learn one by one; return the experts, and the sum of their one-step log densities."""
    m, p = Phi.shape[1:]
    experts = Experts(fitted.amplitudes, fitted.noise_variances, p)
    experts.add_target()
    summed = np.zeros(m)
    for phi, target in zip(Phi, y, strict=True):
        seen = experts.see(phi)
        v = seen.variances + experts.noise_variances  # Eq. 6
        summed -= 0.5 * ((target - seen.means[:, 0]) ** 2 / v + np.log(2.0 * math.pi * v))
        experts.learn(seen, np.array([target]))
    return experts, summed


def _batch(Phi: Array, y: Array, amplitude: float, noise: float) -> tuple[Array, float]:
    """Return weights (p,) of ridge regression on all labels at once, and the log evidence.

    Least squares with `sqrt(r) I` below the features, where `r = noise / amplitude`. Normal
    equations, or the covariance of the targets, would lose twice as many digits.
    """
    n, p = Phi.shape
    r = noise / amplitude
    above = np.vstack([Phi, math.sqrt(r) * np.eye(p)])
    targets = np.concatenate([y, np.zeros(p)])
    Q, R = np.linalg.qr(above)
    theta = solve_triangular(R, Q.T @ targets)
    misfit = float(((targets - above @ theta) ** 2).sum()) / noise
    # det(noise I + amplitude Phi Phi') = noise^n det(Phi'Phi + r I) / r^p
    log_det = n * math.log(noise) + 2.0 * float(np.log(np.abs(np.diag(R))).sum()) - p * math.log(r)
    return theta, -0.5 * (misfit + log_det + n * math.log(2.0 * math.pi))  # GPML Eq. 2.30


RANDOM, ALL = "random", "all labels"
KL_PAPER, KL_LIVING, VARIANCE, DETERMINISTIC = (
    "KL (paper)",
    "KL (living)",
    "variance",
    "deterministic",
)

# --- runs

# All scores of `AlwaysAsk` are the same, so the budget chooses at random, at exactly its rate.
RULES: dict[str, Callable[[], Any]] = {
    RANDOM: AlwaysAsk,
    KL_PAPER: KL,
    KL_LIVING: lambda: KL(least_weight=0.01),
    VARIANCE: Variance,
    DETERMINISTIC: Deterministic,
    ALL: AlwaysAsk,
}
PRESETS = ("default", "paper")
# While scores shrink, the budget is up to horizon * (1 - rate) labels behind: with 5 events, never
# more than 1 % of 500; with the default of 8, up to 1.5 %.
HORIZON = 5
RATES = (0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Configuration that several runs share.

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
    """Result of one run.

    Parameters
    ----------
    rate
        Share of the stream that was labelled.
    error
        NMSE on the test set; for classes, the share of wrong predictions.
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

    The paper fits hyperparameters to the initial set; by default they are fitted after the first
    ten labels, and again whenever the number of labels has doubled.
    """
    kind = EnsembleGPClassifier if problem.classes else EnsembleGPRegressor
    # Rules that compare experts compare all of them.
    options = {} if problem.classes else {"drop_experts": False}
    if preset == "paper":
        return kind(preset=preset, seed=seed, n_initial=problem.n_initial, **options)
    return kind(preset=preset, seed=seed, **options)


def asked_along(model: Any, draw: Draw, cell: Cell, seed: int) -> float:
    """Teach what is asked for; return the label rate."""
    rule, budget, n_asked = RULES[cell.rule](), budget_of(cell, seed), 0
    for n, (x, y) in enumerate(draw.stream):
        # Neither asking at random nor asking for all labels needs a belief.
        belief = {} if cell.rule in (RANDOM, ALL) else believed(model, x)
        decision = rule.decide(belief, draw=uniform(seed, str(n), "ask"))
        asked = decision.ask and budget.allows(decision, now=n)
        budget.note(decision, asked, now=n)
        if asked:
            model.learn_one(x, y)
            n_asked += 1
    return n_asked / len(draw.stream)


def budget_of(cell: Cell, seed: int) -> Any:
    """Return the budget that keeps the label rate."""
    if cell.rule == ALL:
        return Unlimited()
    return RateBudget(cell.rate, horizon=HORIZON, seed=seed)


def believed(model: Any, x: Any) -> Any:
    """Return the predictive distribution or the posterior."""
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
