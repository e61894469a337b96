"""What to pick: boosted forests beside a plain forest and a Gaussian process, on recorded logs.

Every event is predicted, then learned; all labels are right, or one of five is wrong. Logs whose
rows follow each other in time are played as recorded, others in random order.

"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any

from river import preprocessing

from benchmarks._boosting_play import CB, GB, NORMALISED
from benchmarks._harness import Row, progress, standard_error
from benchmarks._logs import Log
from streamgp import (
    ConfidenceBoostingClassifier,
    GPClassifier,
    OnlineForestClassifier,
    OnlineGradientBoostingClassifier,
)

LOGS: Mapping[str, str] = {
    "wifi_rooms": "random",
    "wisdm": "random",
    "keystroke": "random",
    "occupancy": "recorded",
    "places_1": "recorded",
}
"""The order in which each log is played."""
N_EVENTS = 2000
"""Events of each log that are read."""
NOISES = (0.0, 0.2)

LEARNERS: Mapping[str, Callable[[int], Any]] = {
    CB: lambda seed: ConfidenceBoostingClassifier(seed=seed),
    GB: lambda seed: OnlineGradientBoostingClassifier(seed=seed),
    NORMALISED: lambda seed: OnlineGradientBoostingClassifier(normalise_weights=True, seed=seed),
    "forest of 100 trees": lambda seed: OnlineForestClassifier(100, seed=seed),
    "GP, 500 points": lambda _: preprocessing.StandardScaler() | GPClassifier(max_points=500),
}


def rows(log: Log, n: int | None, seeds: Sequence[int]) -> list[Row]:
    """Return the share of events predicted wrong and the time of an event, for each learner.

    Parameters
    ----------
    log
        The log.
    n
        Largest number of events that are played; None for all.
    seeds
        One for each run.

    """
    found = []
    for noise in NOISES:
        for name, built in LEARNERS.items():
            progress(f"{log.name}, {noise:.0%} wrong: {name}")
            played = [_played(built(seed), log, n, noise, seed) for seed in seeds]
            errors = [error for error, _ in played]
            row: Row = {
                "log": log.name,
                "wrong labels": noise,
                "learner": name,
                "error": mean(errors),
                "error se": standard_error(errors),
                "ms per event": 1e3 * min(seconds for _, seconds in played),
            }
            found.append(row)
    return found


def _played(model: Any, log: Log, n: int | None, noise: float, seed: int) -> tuple[float, float]:
    """Return the share of events predicted wrong, and the seconds that an event took."""
    rng, n_wrong = random.Random(seed), 0
    events = log.played(LOGS[log.name], seed)[:n]
    started = time.perf_counter()
    for x, y in events:
        n_wrong += model.predict_one(x) != y
        others = [c for c in log.classes if c != y] if rng.random() < noise else [y]
        model.learn_one(x, rng.choice(others))
    return n_wrong / len(events), (time.perf_counter() - started) / len(events)
