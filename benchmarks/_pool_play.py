"""One run: labels picked one by one, how much of a test set they make right, and the time taken."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks._pool_problems import Draw
from benchmarks._pool_strategies import strategy

MARKS = (*range(1, 20), *range(20, 51, 2))
"""Numbers of labels at which a run is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came out.

    Parameters
    ----------
    accuracy
        Share of the test set that is right, by number of labels.
    ms
        Milliseconds for a label: to be picked and, where that is learned at once, told.

    """

    accuracy: dict[int, float]
    ms: float


def play(draw: Draw, name: str, seed: int, n_labels: int) -> Run:
    """Pick and tell so many labels, from none on."""
    picks, seconds = picked(draw, name, seed, n_labels)
    accuracy = {n: draw.accuracy(picks[:n]) for n in MARKS if n <= n_labels}
    return Run(accuracy=accuracy, ms=1e3 * seconds / n_labels)


def picked(draw: Draw, name: str, seed: int, n_labels: int) -> tuple[list[int], float]:
    """Return the picks, and the seconds that they took."""
    chooser = strategy(name, draw, seed)
    picks: list[int] = []
    start = time.perf_counter()
    for _ in range(n_labels):
        picks.append(chooser.pick())
        chooser.tell(picks[-1], int(draw.y[picks[-1]]))
    return picks, time.perf_counter() - start


def ms_of_one_pick(draw: Draw, name: str, seed: int, told: Sequence[int]) -> float:
    """Return the milliseconds of one pick where these points have been told."""
    chooser = strategy(name, draw, seed)
    for i in told:
        chooser.tell(i, int(draw.y[i]))
    start = time.perf_counter()
    chooser.pick()
    return 1e3 * (time.perf_counter() - start)
