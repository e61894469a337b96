"""How close one step of the Gaussian process comes to reading its factor once.

A step is `GPClassifier.predict_proba_one` and `learn_one` of the same new event: 20 features in a
dictionary, 10 classes, one BLAS thread. Three kinds of steps take turns, some of each at a time:
steps right after which one triangular solve (`dtpsv`) or one reading (`ddot` of a buffer with
itself) is timed on a packed triangle of the same size that lies elsewhere, so that step and measure
meet the same state of the caches; steps undisturbed by that; and steps of the paper's explicit
inverse, with the same input and output, which the undisturbed ones are compared with.

Shown are medians, and their ratios within this run. What the microseconds are depends on the
machine, and on what else it does. Not measured: scaling, rules and the loop (`benchmarks.loop`),
and how long the first points took.

"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

import numpy as np
from scipy.linalg.blas import ddot, dtpsv

from benchmarks._harness import Acceptance, Options, Outcome, Row, at_least, at_most, progress, run
from benchmarks._inverse import InverseGPClassifier
from streamgp import GPClassifier
from streamgp.base import Array, Features, Label
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_classifier import LENGTH_SCALE_PER_ROOT_FEATURE

_N_FEATURES = 20
_N_CLASSES = 10
_LENGTH_SCALE = LENGTH_SCALE_PER_ROOT_FEATURE * _N_FEATURES**0.5

# Number of points -> steps of the inverse in a row, repetitions. There are three times as many
# steps with a measure and twice as many undisturbed ones; few at 50 points, to stay near 50.
_PLAN = {50: (4, 60), 200: (20, 30), 500: (12, 12), 1000: (12, 8), 3000: (10, 4)}
_QUICK = {50: (4, 20), 200: (20, 12), 500: (12, 4), 1000: (12, 2), 3000: (10, 1)}

_Events: TypeAlias = list[tuple[Features, Label]]


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("gp_speed", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: dict[int, tuple[int, int]] | None = None) -> Outcome:
    """Measure at every size of the plan, the smallest first."""
    plan = plan or (_QUICK if options.quick else _PLAN)
    with _one_thread() as how:
        rows = [_row(n, *steps, seed=options.seed) for n, steps in plan.items()]
    return Outcome(rows=rows, acceptance=_accepted(rows), notes=[f"One BLAS thread: {how}."])


@dataclass(slots=True)
class _Durations:
    """Seconds, one entry per step."""

    predict: list[float] = field(default_factory=list)
    learn: list[float] = field(default_factory=list)
    undisturbed: list[float] = field(default_factory=list)
    solve: list[float] = field(default_factory=list)
    read: list[float] = field(default_factory=list)
    inverse: list[float] = field(default_factory=list)

    def row(self, n: int) -> Row:
        """Return medians in microseconds, and ratios."""
        step = median(p + q for p, q in zip(self.predict, self.learn, strict=True))
        solve, read = median(self.solve), median(self.read)
        undisturbed, inverse = median(self.undisturbed), median(self.inverse)
        return {
            "points": n,
            "predict_us": 1e6 * median(self.predict),
            "learn_us": 1e6 * median(self.learn),
            "step_us": 1e6 * step,
            "dtpsv_us": 1e6 * solve,
            "reading_us": 1e6 * read,
            "undisturbed_step_us": 1e6 * undisturbed,
            "inverse_us": 1e6 * inverse,
            "step_per_dtpsv": step / solve,
            "step_per_reading": step / read,
            "inverse_per_step": inverse / undisturbed,
        }


def _row(n: int, in_a_row: int, repetitions: int, *, seed: int) -> Row:
    progress(f"{n} points")
    durations = _Durations()
    for repetition in range(repetitions):
        _walk(n, in_a_row, seed + repetition, durations)
    return durations.row(n)


def _walk(n: int, b: int, seed: int, durations: _Durations) -> None:
    """Take `b > 2` steps of the inverse and `5 b` of the classifier, all around `n` points."""
    before, after = 5 * b // 2, 5 * b - 5 * b // 2
    events = _events(n + after, seed)
    learner = GPClassifier(SquaredExponential(_LENGTH_SCALE))
    for x, y in events[: n - before]:
        learner.learn_one(x, y)
    rival = InverseGPClassifier(
        list(events[0][0]), range(_N_CLASSES), n + b, length_scale=_LENGTH_SCALE
    )
    first = n - b // 2
    rival.learn_at_once(events[:first])
    for x, y in events[first : first + 2]:  # touches its memory for the first time
        rival.learn_one(x, y)
    _time_inverse(rival, events[first + 2 : first + b], durations)
    start, end = n - before + b, n + after - b
    _time_undisturbed(learner, events[n - before : start], durations)
    _time_with_measures(learner, events[start:end], n, seed, durations)
    _time_undisturbed(learner, events[end:], durations)


def _time_inverse(rival: InverseGPClassifier, events: _Events, durations: _Durations) -> None:
    clock = time.perf_counter
    for x, y in events:
        t0 = clock()
        rival.predict_proba_one(x)
        rival.learn_one(x, y)
        durations.inverse.append(clock() - t0)


def _time_undisturbed(learner: GPClassifier, events: _Events, durations: _Durations) -> None:
    clock = time.perf_counter
    for x, y in events:
        t0 = clock()
        learner.predict_proba_one(x)
        learner.learn_one(x, y)
        durations.undisturbed.append(clock() - t0)


def _time_with_measures(
    learner: GPClassifier, events: _Events, n: int, seed: int, durations: _Durations
) -> None:
    packed, k = _triangle(n, seed)
    clock = time.perf_counter
    for i, (x, y) in enumerate(events):
        t0 = clock()
        learner.predict_proba_one(x)
        t1 = clock()
        learner.learn_one(x, y)
        t2 = clock()
        durations.predict.append(t1 - t0)
        durations.learn.append(t2 - t1)
        if i % 2:
            overwritten = k.copy()
            t0 = clock()
            dtpsv(n, packed, overwritten, 1, 0, 0, 1, 0, 1)
            durations.solve.append(clock() - t0)
        else:
            t0 = clock()
            ddot(packed, packed)
            durations.read.append(clock() - t0)


def _events(n: int, seed: int) -> _Events:
    rng = np.random.default_rng(seed)
    names = [f"f{j}" for j in range(_N_FEATURES)]
    X = rng.normal(size=(n, _N_FEATURES)).tolist()
    y = rng.integers(_N_CLASSES, size=n).tolist()
    return [(dict(zip(names, x, strict=True)), label) for x, label in zip(X, y, strict=True)]


def _triangle(n: int, seed: int) -> tuple[Array, Array]:
    """Return a well-conditioned packed triangle of `n` rows, and a right-hand side."""
    rng = np.random.default_rng(seed)
    packed = rng.normal(size=n * (n + 1) // 2)
    i = np.arange(n)
    packed[i * (i + 3) // 2] = n + 10.0
    return packed, rng.normal(size=n)


def _accepted(rows: list[Row]) -> list[Acceptance]:
    accepted = []
    for row in rows:
        n = row["points"]
        if n == 200:
            accepted.append(at_most("step / one dtpsv at 200 points", row["step_per_dtpsv"], 5.0))
        if n in (1000, 3000):
            limit = 1.6 if n == 1000 else 1.4
            name = f"step / one reading at {n} points"
            accepted.append(at_most(name, row["step_per_reading"], limit))
        if n >= 500:
            name = f"explicit inverse / step at {n} points"
            accepted.append(at_least(name, row["inverse_per_step"], 10.0))
    return accepted


@contextlib.contextmanager
def _one_thread() -> Iterator[str]:
    """Limit BLAS to one thread, and say how it was done."""
    variable = f"OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS')}"
    try:
        import threadpoolctl
    except ModuleNotFoundError:
        yield f"{variable} when numpy loaded"
        return
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield f"{variable}, and threadpoolctl"


if __name__ == "__main__":
    sys.exit(main())
