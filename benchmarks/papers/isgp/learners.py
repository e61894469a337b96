"""Learners of the synthetic experiment, and the processes that run them over the folds.

Every learner has a name and, where there is a parameter to tune, a knob. Each of the `VARIANTS`
changes one thing that the paper leaves open or that the default preset changes.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

import numpy as np

from benchmarks.papers.isgp.game import (
    Condition,
    Trace,
    TruthfulSecondThought,
    annotator,
    fold,
    play,
)
from benchmarks.papers.isgp.three_stage import online_srf
from streamgp import (
    GPClassifier,
    SimulatedAnnotator,
    SkepticalClassifier,
    isgp,
)
from streamgp.base import Belief, Decision, Features, Posterior
from streamgp.kernels import SquaredExponential
from streamgp.query import (
    AlwaysAsk,
    AlwaysChallenge,
    NeverChallenge,
    PaperChallenge,
    SkepticalAsk,
    criteria,
)
from streamgp.query.strategies import AskRule, ChallengeRule

NEVER = "paper: never challenging"
ISGP = "paper: ISGP"
ALWAYS = "paper: always challenging"
DEFAULT = "default"
TRUSTED = "default: all labels, trusted"
FOREST = "SRF"
FOREST_F1 = "SRF at ISGP's F1"
FOREST_QUESTIONS = "SRF at ISGP's questions"
ONLINE = "SRF, online forest"
ONLINE_QUESTIONS = "SRF, online forest, at ISGP's questions"
PLAIN = "default, c = 1"
_TRUTHFUL = "paper, second answer always true"
PAPER = (NEVER, ISGP, ALWAYS)
_NOISE_VARIANCE = 0.5


@dataclass(frozen=True, slots=True)
class SoftmaxAsk:
    """Ask with probability 1 - max P, where P is the softmax of Eq. 5, as Sec. 4.4 proposes."""

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Compare the probability of all other classes with the draw."""
        assert isinstance(belief, Posterior)
        e = [exp(criteria.normal_cdf(mean, belief.variance)) for mean in belief.mean.values()]
        return Decision.of(1.0 - max(e) / sum(e) if e else 1.0, draw, "SoftmaxAsk")


@dataclass(frozen=True, slots=True)
class NoisyVarianceAsk:
    """Ask by Eq. 7 with the variance of Eq. 2 as printed, noise included."""

    c: float = 1.0

    def decide(self, belief: Belief, draw: float) -> Decision:
        """Compare the doubt about an observation with the draw."""
        assert isinstance(belief, Posterior)
        noisy = replace(belief, variance=belief.variance + _NOISE_VARIANCE)
        return Decision.of(min(1.0, self.c * criteria.doubt(noisy)), draw, "NoisyVarianceAsk")


@dataclass(frozen=True, slots=True)
class ThresholdAsk:
    """Ask when the doubt of Eq. 7 exceeds a threshold, without a coin flip."""

    threshold: float

    def decide(self, belief: Belief, draw: float) -> Decision:  # noqa: ARG002
        """Compare the doubt with the threshold."""
        return Decision.of(criteria.doubt(belief), self.threshold, "ThresholdAsk")


def _paper(
    seed: int, ask: AskRule | None = None, challenge: ChallengeRule | None = None
) -> SkepticalClassifier:
    preset = isgp("paper", seed=seed)
    return SkepticalClassifier(
        preset.model, ask or preset.query, challenge or preset.challenge, warm_up=0, seed=seed
    )


def _default(
    seed: int, ask: AskRule | None = None, challenge: ChallengeRule | None = None
) -> SkepticalClassifier:
    # The default preset on unscaled features: the paper's coordinates share one unit.
    learner = GPClassifier(SquaredExponential(length_scale=3.0), noise_variance=_NOISE_VARIANCE)
    return SkepticalClassifier(learner, ask, challenge, warm_up=0, seed=seed)


def _forest(knob: float, seed: int) -> Any:
    from benchmarks.papers.isgp.srf import srf as retrained

    return retrained(knob, seed=seed)


LEARNERS: dict[str, Callable[[float, int], Any]] = {
    NEVER: lambda _, seed: _paper(seed, challenge=NeverChallenge()),
    ISGP: lambda _, seed: _paper(seed),
    ALWAYS: lambda _, seed: _paper(seed, challenge=AlwaysChallenge()),
    DEFAULT: lambda c, seed: _default(seed, SkepticalAsk(c)),
    TRUSTED: lambda _, seed: _default(seed, AlwaysAsk(), NeverChallenge()),
    FOREST: _forest,
    ONLINE: lambda theta, seed: online_srf(theta=theta, seed=seed),
}
VARIANTS: dict[str, Callable[[float, int], Any]] = {
    _TRUTHFUL: LEARNERS[ISGP],
    "paper, asking by Eq. 5": lambda _, seed: _paper(seed, SoftmaxAsk()),
    "paper, asking about everything": lambda _, seed: _paper(seed, AlwaysAsk()),
    PLAIN: lambda _, seed: _default(seed),
    "default, always challenging": lambda _, seed: _default(seed, challenge=AlwaysChallenge()),
    "default, challenging by Eq. 8": lambda _, seed: _default(seed, challenge=PaperChallenge()),
    "default, noise in the variance": lambda _, seed: _default(seed, NoisyVarianceAsk()),
    "the same, as many questions": lambda c, seed: _default(seed, NoisyVarianceAsk(c)),
    "default, never challenging": lambda c, seed: _default(seed, SkepticalAsk(c), NeverChallenge()),
    "default, asking above a threshold": lambda t, seed: _default(seed, ThresholdAsk(t)),
}
# Variants with a knob that is tuned to the number of questions of PLAIN, and the values tried.
TUNED: dict[str, Sequence[float]] = {
    "the same, as many questions": (0.1, 0.2, 0.4, 0.8),
    "default, never challenging": (0.5, 1.0, 2.0, 4.0),
    "default, asking above a threshold": (0.02, 0.05, 0.1, 0.15, 0.2, 0.3),
}


@dataclass(frozen=True, slots=True)
class Task:
    """One learner in one fold."""

    condition: Condition
    seed: int
    fold: int
    name: str
    knob: float
    scored: str


def play_task(task: Task) -> Trace:
    """Build the learner of a task and run it."""
    played = fold(task.condition, task.seed, task.fold)
    learner = {**LEARNERS, **VARIANTS}[task.name](task.knob, task.seed)
    kind = TruthfulSecondThought if task.name == _TRUTHFUL else SimulatedAnnotator
    who = annotator(played, kind)
    return play(played, learner, _predictor(learner), who, scored=task.scored)


def _predictor(learner: Any) -> Callable[[Sequence[Features]], Sequence[Any]]:
    # A SkepticalClassifier's own predict_one would count the held-out points as events.
    if hasattr(learner.learner, "predict_points"):
        return lambda points: learner.learner.predict_points(points)  # type: ignore[no-any-return]
    return lambda points: [learner.learner.predict_one(dict(x)) for x in points]


@dataclass(frozen=True, slots=True)
class Field:
    """The folds on which learners are compared, and the processes that run them.

    Parameters
    ----------
    seeds
        Seeds of points, orders, answers and coin flips.
    folds
        Numbers of the folds.
    pool
        Processes to use; None for this process. The results do not depend on it.

    """

    seeds: Sequence[int]
    folds: Sequence[int]
    pool: ProcessPoolExecutor | None = None

    def traces(
        self, condition: Condition, name: str, knob: float = 0.0, scored: str = "steps"
    ) -> list[Trace]:
        """Run a learner over every fold of every seed."""
        tasks = [Task(condition, s, k, name, knob, scored) for s in self.seeds for k in self.folds]
        played: Iterable[Trace] = (self.pool.map if self.pool else map)(play_task, tasks)
        return list(played)


def knob_for(knobs: Sequence[float], counts: Sequence[float], target: float) -> float:
    """Interpolate, in logarithms, the knob at which the count equals the target."""
    asking = sorted(zip(counts, knobs, strict=True))
    logs = np.log(np.maximum(asking, 1e-9))
    return float(np.exp(np.interp(log(target), logs[:, 0], logs[:, 1])))
