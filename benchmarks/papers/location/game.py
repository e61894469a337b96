"""Location experiment, after Sec. 5.2 of the ISGP paper: data, conditions and learners.

The paper's own log is not public. ExtraSensory has, for every minute of some days, statistics of
the sensors of a person's phone and watch, and where the person reported to be. Places are reduced
to the paper's three: home, school or workplace, others. Minutes without a place are left out.

Of each person's minutes, 375 are taken, evenly spaced over the log, in their order. They are cut
into 25 pieces of 15; every fifth piece is held out to be predicted, so that hardly any held-out
moment is next to one in the stream of 300. A person needs ten moments of each place.

"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._logs import EXTRASENSORY, Labelled, MissingLogError, is_feature
from benchmarks.papers.isgp.game import Condition, Fold, Trace, play
from benchmarks.papers.isgp.learners import ALWAYS, FOREST_QUESTIONS, ISGP, NEVER
from streamgp import GPClassifier, SimulatedAnnotator, SkepticalClassifier, isgp
from streamgp.base import Features
from streamgp.kernels import Constant, RationalQuadratic, SquaredExponential, White
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE
from streamgp.query import (
    AlwaysChallenge,
    NeverChallenge,
    PaperAsk,
    PaperChallenge,
    SkepticalAsk,
)
from streamgp.query.strategies import ChallengeRule

PLACES = ("home", "school or workplace", "others")
N_FOLDS = 5
N_MOMENTS = 375
_PIECE = 15
_FEWEST = 10

CONDITIONS = (Condition("recorded", 0.1), Condition("recorded", 0.4))
_NO_FEATURES = frozenset({"timestamp", "user", "device", "cv_fold", "activity", "label_source"})
_NUMBERS = {"home": 0, "school": 1, "workplace": 1}


@lru_cache(maxsize=1)
def people(data: Path) -> dict[int, list[Labelled]]:
    """Return the moments of every person who has enough of them.

    Parameters
    ----------
    data
        The data folder.

    Returns
    -------
    User -> features (missing ones left out) and number of the place of each moment.

    Raises
    ------
    MissingLogError
        If the log, or a library to read it, is missing.

    """
    path = data / EXTRASENSORY
    if not path.is_file():
        raise MissingLogError(f"ExtraSensory (no {EXTRASENSORY} in the data folder)")
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingLogError(
            f"ExtraSensory (needs {error.name}; install the extra bench)"
        ) from None
    table = parquet.read_table(path, columns=["user", "place"])
    users, places = table["user"].to_numpy(), np.array(table["place"].to_pylist())
    taken = {int(user): _moments(users == user, places) for user in np.unique(users)}
    whole = parquet.read_table(path)
    found = {}
    for user, rows in taken.items():
        if rows is not None:
            found[user] = [_labelled(row) for row in whole.take(rows).to_pylist()]
    return found


def _moments(mine: Any, places: Any) -> Any:
    """Return the rows of a person's moments; None if a place has too few."""
    labelled = np.flatnonzero(mine & (places != "unknown"))
    if len(labelled) < N_MOMENTS:
        return None
    rows = labelled[np.linspace(0, len(labelled) - 1, N_MOMENTS).astype(int)]
    counts = Counter(_NUMBERS.get(place, 2) for place in places[rows].tolist())
    return rows if all(counts[k] >= _FEWEST for k in range(len(PLACES))) else None


def _labelled(row: dict[str, Any]) -> Labelled:
    place = row.pop("place")
    x = {name: float(v) for name, v in row.items() if is_feature(name, v, _NO_FEATURES)}
    return x, _NUMBERS.get(place, 2)


def fold(data: Path, condition: Condition, user: int, seed: int) -> Fold:
    """Return a person's stream and held-out moments, both of which depend on the seed."""
    moments = people(data)[user]
    out = [i // _PIECE % N_FOLDS == seed % N_FOLDS for i in range(len(moments))]
    return Fold(
        condition,
        seed,
        user,
        stream=[moment for moment, left_out in zip(moments, out, strict=True) if not left_out],
        test=[moment for moment, left_out in zip(moments, out, strict=True) if left_out],
    )


def annotator(played: Fold) -> SimulatedAnnotator:
    """Return the annotator of a fold, whose wrong answers are one of the other two places."""
    return SimulatedAnnotator(played.condition.noise, classes=range(len(PLACES)), seed=played.seed)


# --- learners

DEFAULT = "default preset"
FRUGAL = "default at ISGP's questions"
FOREST = FOREST_QUESTIONS
GAUSSIAN = (NEVER, ISGP, ALWAYS, DEFAULT)

_PAPERS_NOISE = 1e-16  # as in `isgp("paper")`; the noise is part of the kernel here
_WHITE = 0.1


def papers_kernel(n_features: int) -> Any:
    """Return the paper's combination: constant, rational quadratic, squared exponential and white.

    The paper gives neither its form nor any values. The length scale is that of `GPClassifier()`;
    factors of 1/2 make the prior variance 1, as there, not counting the white noise.
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
    # Sensor statistics come in a dozen units, so they are scaled, as in the default preset.
    return SkepticalClassifier(learner, PaperAsk(), _CHALLENGES[name], seed=seed)


def build(name: str, knob: float, played: Fold) -> tuple[Any, Callable[[Sequence[Features]], Any]]:
    """Return a fresh learner for a person, and a function that predicts many moments."""
    moments = [*played.stream, *played.test]
    names = list(dict.fromkeys(feature for x, _ in moments for feature in x))
    if name == FOREST:
        from benchmarks.papers.isgp.srf import srf

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
    """Build the learner of a task and run it."""
    played = fold(task.data, task.condition, task.user, task.seed)
    learner, predict = build(task.name, task.knob, played)
    return play(played, learner, predict, annotator(played))


@dataclass(frozen=True, slots=True)
class People:
    """The people on whose moments learners are compared, and the processes that run them.

    Parameters
    ----------
    data
        The data folder.
    users
        Their numbers.
    pool
        Processes to use; None for this process. The results do not depend on it.

    """

    data: Path
    users: Sequence[int]
    pool: ProcessPoolExecutor | None = None

    def traces(
        self, condition: Condition, name: str, seeds: Sequence[int], knob: float = 0.0
    ) -> list[Trace]:
        """Run a learner over the streams of all people, all seeds of one person in a row."""
        tasks = [
            Task(self.data, condition, user, seed, name, knob)
            for user in self.users
            for seed in seeds
        ]
        played: Iterable[Trace] = (self.pool.map if self.pool else map)(play_task, tasks)
        return list(played)
