"""The cost of bounded memory in accuracy, and a check that the time per step stays constant.

*Accuracy.* Seven stationary streams, and logs whose events come in their own order or class after
class, all labels given; each event is predicted before it is learned. Shown is by how many
percentage points the accuracy of `SparseGP` with a given number of points falls short of that of
the exact process, which keeps every example. Kernel and noise are those of `GPClassifier`; features
are standardised by the first 200 events. ImageSegments and digits come in three random orders one
after the other, Shuttle and Bananas as recorded. The limits are for the stationary streams.

*Time.* A step is `predict` and `append` of the same new point: 20 features, 10 classes, one BLAS
thread. It is measured at the 1000th event or where the bound is passed, whichever comes later, and
after the last event; each step takes turns with the BLAS calls that its arithmetic consists of, on
arrays of the same sizes that lie elsewhere: covariances with the points (dgemv), projections (two
dsymv), means (dgemv); then the update (dsymv, dsyr, dger), and two more dsyr if a point replaced
another. Medians; the microseconds depend on the machine.

"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import TypeAlias

import numpy as np
from scipy.linalg.blas import dgemv, dger, dsymv, dsyr

from benchmarks._array_streams import (
    NOISE_VARIANCE,
    STATIONARY,
    ArrayStream,
    kernel_for,
    percent,
    recorded,
    right_exactly,
    right_one_by_one,
    stationary,
)
from benchmarks._harness import (
    Acceptance,
    Options,
    Outcome,
    Row,
    at_most,
    one_thread,
    progress,
    run,
    standard_error,
)
from benchmarks._logs import skipping
from streamgp.base import Array
from streamgp.gp.sparse import SparseGP
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE

# --- times of a step, early and late, compared with its BLAS calls

_N_FEATURES = 20
_N_CLASSES = 10
_LENGTH_SCALE = LENGTH_SCALE_PER_ROOT_FEATURE * _N_FEATURES**0.5


@dataclass(slots=True)
class _Durations:
    """Seconds, one entry per step."""

    predict: list[float] = field(default_factory=list)
    learn: list[float] = field(default_factory=list)
    blas: list[float] = field(default_factory=list)
    n_replaced: int = 0

    @property
    def step(self) -> float:
        """Median of a whole step."""
        return median(p + q for p, q in zip(self.predict, self.learn, strict=True))


def timed(m: int, n_steps: int, n_timed: int, seed: int) -> Row:
    """Take steps with `m` points and return their times in microseconds.

    Parameters
    ----------
    m
        Number of points.
    n_steps
        Total number of steps.
    n_timed
        Number of steps that are timed, once early and once late.
    seed
        Seed of the events.

    """
    progress(f"{n_steps} steps with {m} points")
    walk = _Walk(m, np.random.default_rng(seed))
    start = max(1000, m + 1)
    walk.go(start)
    early = walk.time(n_timed)
    walk.go(n_steps - start - 2 * n_timed)
    late = walk.time(n_timed)
    return {
        "points": m,
        "predict_us": 1e6 * median(late.predict),
        "learn_us": 1e6 * median(late.learn),
        "step_us": 1e6 * late.step,
        "blas_us": 1e6 * median(late.blas),
        "step_per_blas": late.step / median(late.blas),
        "replaced_%": 100.0 * late.n_replaced / n_timed,
        "early_step_us": 1e6 * early.step,
        "late_per_early": late.step / early.step,
    }


class _Walk:
    """A process that learns which of ten random projections is the largest."""

    def __init__(self, m: int, rng: np.random.Generator) -> None:
        self.gp = SparseGP(SquaredExponential(_LENGTH_SCALE), NOISE_VARIANCE, m)
        for _ in range(_N_CLASSES):
            self.gp.add_target()
        self._rng = rng
        self._projections = rng.normal(size=(_N_FEATURES, _N_CLASSES))
        self._calls = _Calls(m)

    def go(self, n: int) -> None:
        """Take steps."""
        for x, y in self._examples(n):
            self.gp.predict(x)
            self.gp.append(x, y)

    def time(self, n: int) -> _Durations:
        """Take steps and time them, and BLAS calls after each."""
        durations, clock, gp = _Durations(), time.perf_counter, self.gp
        for x, y in self._examples(n):
            number = gp.n
            t0 = clock()
            gp.predict(x)
            t1 = clock()
            [gone] = gp.append(x, y)
            t2 = clock()
            self._calls.make(replaced=gone != number)
            durations.blas.append(clock() - t2)
            durations.predict.append(t1 - t0)
            durations.learn.append(t2 - t1)
            durations.n_replaced += gone != number
        return durations

    def _examples(self, n: int) -> list[tuple[Array, Array]]:
        X = self._rng.normal(size=(n, _N_FEATURES))
        Y = np.eye(_N_CLASSES)[(X @ self._projections).argmax(axis=1)]
        return list(zip(X, Y, strict=True))


class _Calls:
    """The BLAS calls of one step, on arrays with arbitrary contents."""

    def __init__(self, m: int) -> None:
        # In the same memory order as in the step: BLAS would copy arrays in another order.
        self._rows = np.full((_N_FEATURES + 2, m), 1e-3, order="F")
        self._row = np.full(_N_FEATURES + 2, 1e-3)
        self._Q, self._S = (np.array(np.eye(m), order="F") for _ in range(2))
        self._means = np.zeros((m, _N_CLASSES), order="F")
        self._beliefs = np.zeros((2 * m, _N_CLASSES), order="F")
        self._q, self._step = np.full(_N_CLASSES, 1e-3), np.full(2 * m, 1e-3)

    def make(self, *, replaced: bool) -> None:
        """Make all calls, two more if a point replaced another."""
        Q, S = self._Q, self._S
        k = dgemv(1.0, self._rows, self._row, trans=1)
        e = dsymv(1.0, Q, k)
        h = dsymv(1.0, S, e)
        dgemv(1.0, self._means, e, trans=1)
        dsymv(1.0, Q, h)
        dsyr(-1e-9, h, a=S, overwrite_a=1)
        dger(1e-9, self._step, self._q, a=self._beliefs, overwrite_a=1)
        if replaced:
            for _ in range(2):
                dsyr(1e-12, h, a=Q, overwrite_a=1)


# --- the benchmark

# Largest ratios of a step to its BLAS calls, by number of points.
_LIMITS = {100: 5.0, 200: 3.0, 500: 2.0}
# Largest gaps in percentage points of accuracy with _AT points: on average, on the worst stream.
_AT = 200
_MEAN_GAP = 0.3
_WORST_GAP = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured."""

    streams: Sequence[str] = STATIONARY
    logs: Sequence[tuple[str, str]] = (
        ("wifi_rooms", "recorded"),
        ("occupancy", "recorded"),
        ("elec2", "recorded"),
        ("places_1", "recorded"),
        ("places_24", "recorded"),
        ("pendigits", "sequential"),
        ("letter", "sequential"),
        ("wisdm", "sequential"),
        ("keystroke", "sequential"),
    )
    sizes: Sequence[int] = (100, 200, 500)
    n_events: int = 5400
    n_seeds: int = 3
    n_steps: int = 50_000
    n_timed: int = 1000


QUICK = Plan(
    logs=(("wifi_rooms", "recorded"), ("letter", "sequential")),
    n_events=1500,
    n_seeds=1,
    n_steps=20_000,
    n_timed=500,
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("bounded", measure, about=__doc__, argv=argv)


def measure(options: Options, plan: Plan | None = None) -> Outcome:
    """Measure accuracies on all streams, then times."""
    plan = plan or (QUICK if options.quick else Plan())
    with one_thread() as how:
        times = [timed(m, plan.n_steps, plan.n_timed, options.seed) for m in plan.sizes]
        seeds = range(options.seed, options.seed + plan.n_seeds)
        gaps, skipped = _gaps(_stationary(plan), seeds, plan.sizes)
        others, missing = _gaps(_logs(plan, options.data), seeds, plan.sizes)
    rows = [*_gap_rows(gaps, plan.sizes), *_gap_rows(others, plan.sizes, "log"), *times]
    accepted = [*_accepted_gaps(gaps, quick=options.quick), *_accepted_times(times)]
    return Outcome(
        rows=rows,
        acceptance=accepted,
        skipped=[*skipped, *missing],
        notes=[f"One BLAS thread: {how}."],
    )


# --- accuracy


@dataclass(slots=True)
class _Gap:
    """Accuracies on one stream, in percent, one entry per seed."""

    exact: list[float] = field(default_factory=list)
    bounded: dict[int, list[float]] = field(default_factory=dict)

    def at(self, m: int) -> list[float]:
        """Percentage points of accuracy that are lost with `m` points."""
        return [e - b for e, b in zip(self.exact, self.bounded[m], strict=True)]


_Make: TypeAlias = Callable[[int], ArrayStream]


def _stationary(plan: Plan) -> dict[str, _Make]:
    return {name: partial(stationary, name, plan.n_events) for name in plan.streams}


def _logs(plan: Plan, data: Path | None) -> dict[str, _Make]:
    return {
        f"{name}, {order}": lambda seed, name=name, order=order: recorded(
            name, data, plan.n_events, order=order, seed=seed
        )
        for name, order in plan.logs
    }


def _gaps(
    streams: Mapping[str, _Make], seeds: Iterable[int], sizes: Sequence[int]
) -> tuple[dict[str, _Gap], list[str]]:
    """Return the loss on each available stream, and which streams are missing."""
    gaps: dict[str, _Gap] = {}
    skipped: list[str] = []
    for name, make in streams.items():
        gap = _Gap()
        with skipping(skipped):
            # A log as recorded does not depend on the seed.
            for seed in list(seeds)[: 1 if name.endswith("recorded") else None]:
                progress(f"{name}, seed {seed}")
                _add(gap, make(seed), sizes)
            gaps[name] = gap
    return gaps, skipped


def _add(gap: _Gap, stream: ArrayStream, sizes: Sequence[int]) -> None:
    gap.exact.append(percent(right_exactly(stream)))
    for m in sizes:
        gp = SparseGP(kernel_for(stream), NOISE_VARIANCE, m)
        gap.bounded.setdefault(m, []).append(percent(right_one_by_one(stream, gp)))


def _gap_rows(gaps: dict[str, _Gap], sizes: Sequence[int], what: str = "stream") -> list[Row]:
    rows: list[Row] = [
        {
            what: name,
            "exact_%": mean(gap.exact),
            **{f"points_lost_m={m}": mean(gap.at(m)) for m in sizes},
        }
        for name, gap in gaps.items()
    ]
    if rows:
        names = list(rows[0])[1:]
        rows.append({what: "mean", **{n: mean(row[n] for row in rows) for n in names}})
    return rows


def _accepted_gaps(gaps: dict[str, _Gap], *, quick: bool) -> list[Acceptance]:
    at = {name: mean(gap.at(_AT)) for name, gap in gaps.items() if _AT in gap.bounded}
    if not at:
        return []
    lost = list(at.values())
    # Over the streams, as a shorter run has only one seed.
    widened = 2.0 * standard_error(lost) if quick else 0.0
    told = f", {{}} widened by 2 standard errors of {len(lost)} streams" if quick else ""
    return [
        at_most(
            f"points lost with {_AT} points, mean{told.format(_MEAN_GAP)}",
            mean(lost),
            _MEAN_GAP + widened,
        ),
        at_most(
            f"points lost with {_AT} points, worst{told.format(_WORST_GAP)}",
            max(lost),
            _WORST_GAP + widened,
        ),
    ]


# --- time


def _accepted_times(times: list[Row]) -> list[Acceptance]:
    accepted = []
    for row in times:
        m = row["points"]
        if m in _LIMITS:
            name = f"step / its BLAS calls, {m} points"
            accepted.append(at_most(name, row["step_per_blas"], _LIMITS[m]))
        accepted.append(at_most(f"late / early step, {m} points", row["late_per_early"], 1.2))
    return accepted
