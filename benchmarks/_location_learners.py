"""Who takes part in the location experiment, and playing a person's stream in any process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._isgp_game import Condition, Fold, Trace, play
from benchmarks._isgp_learners import ALWAYS, FOREST_QUESTIONS, ISGP, NEVER
from benchmarks._location_game import annotator, fold
from streamgp import GPClassifier, SkepticalClassifier, isgp
from streamgp.base import Features
from streamgp.kernels import Constant, RationalQuadratic, SquaredExponential, White
from streamgp.learners.gp_classifier import LENGTH_SCALE_PER_ROOT_FEATURE
from streamgp.query import (
    AlwaysChallenge,
    NeverChallenge,
    PaperAsk,
    PaperChallenge,
    SkepticalAsk,
)
from streamgp.query.strategies import ChallengeRule

DEFAULT = "default preset"
FRUGAL = "default at ISGP's questions"
FOREST = FOREST_QUESTIONS
GAUSSIAN = (NEVER, ISGP, ALWAYS, DEFAULT)

_PAPERS_NOISE = 1e-16  # as `isgp("paper")`; what is noise here is in the kernel
_WHITE = 0.1


def papers_kernel(n_features: int) -> Any:
    """Return the paper's combination: constant, rational quadratic, squared exponential and white.

    The paper gives neither its form nor a number. The length scale is that of `GPClassifier()`, and
    halves make a prior variance of 1, as there, besides the white noise.
    """
    scale = LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(n_features)
    wide = Constant(0.5) * RationalQuadratic(scale)
    return wide + SquaredExponential(scale, 0.5) + White(_WHITE)


_CHALLENGES: dict[str, ChallengeRule] = {
    NEVER: NeverChallenge(),
    ISGP: PaperChallenge(),
    ALWAYS: AlwaysChallenge(),
}


def _gaussian(name: str, knob: float, n_features: int, seed: int) -> SkepticalClassifier:
    if name not in _CHALLENGES:
        preset = isgp(seed=seed)
        query = SkepticalAsk(knob) if name == FRUGAL else preset.query
        return SkepticalClassifier(preset.model, query, preset.challenge, seed=seed)
    learner = GPClassifier(papers_kernel(n_features), noise_variance=_PAPERS_NOISE)
    # Statistics of sensors in a dozen units must be scaled, as the default preset does.
    return SkepticalClassifier(learner, PaperAsk(), _CHALLENGES[name], seed=seed)


def build(name: str, knob: float, played: Fold) -> tuple[Any, Callable[[Sequence[Features]], Any]]:
    """Return a fresh learner for a person, and what it predicts for many moments."""
    moments = [*played.stream, *played.test]
    names = list(dict.fromkeys(feature for x, _ in moments for feature in x))
    if name == FOREST:
        from benchmarks._srf import srf

        forest = srf(knob, names=tuple(names), seed=played.seed)
        return forest, lambda points: forest.learner.predict_points(points)
    learner = _gaussian(name, knob, len(names), played.seed)
    return learner, lambda points: [_most_likely(learner, x) for x in points]


def _most_likely(learner: SkepticalClassifier, x: Features) -> Any:
    proba = learner.predict_proba_one(x)
    return max(proba, key=proba.__getitem__)


@dataclass(frozen=True, slots=True)
class Task:
    """One learner and one person."""

    data: Path
    condition: Condition
    user: int
    seed: int
    name: str
    knob: float


def play_task(task: Task) -> Trace:
    """Build the learner of a task and let it play."""
    played = fold(task.data, task.condition, task.user, task.seed)
    learner, predict = build(task.name, task.knob, played)
    return play(played, learner, predict, annotator(played))


@dataclass(frozen=True, slots=True)
class People:
    """Those on whose moments learners are compared, and the processes that play them.

    Parameters
    ----------
    data
        The data folder.
    users
        Their numbers.
    pool
        Where to play; None for this process. The results do not depend on it.

    """

    data: Path
    users: Sequence[int]
    pool: ProcessPoolExecutor | None = None

    def traces(
        self, condition: Condition, name: str, seeds: Sequence[int], knob: float = 0.0
    ) -> list[Trace]:
        """Let a learner play everybody's stream, all seeds of one person in a row."""
        tasks = [
            Task(self.data, condition, user, seed, name, knob)
            for user in self.users
            for seed in seeds
        ]
        played: Iterable[Trace] = (self.pool.map if self.pool else map)(play_task, tasks)
        return list(played)
