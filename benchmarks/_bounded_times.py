"""What a step of a bounded process takes, early and late, beside the BLAS calls that it makes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from scipy.linalg.blas import dgemv, dger, dsymv, dsyr

from benchmarks._array_learners import NOISE_VARIANCE
from benchmarks._harness import Row, progress
from streamgp.base import Array
from streamgp.gp.sparse import SparseGP
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_classifier import LENGTH_SCALE_PER_ROOT_FEATURE

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
    """Take steps with `m` points and return what they take, in microseconds.

    Parameters
    ----------
    m
        Number of points.
    n_steps
        Number of steps in all.
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
    """The BLAS calls of one step, on arrays that hold nothing of interest."""

    def __init__(self, m: int) -> None:
        # As the step has them: BLAS would copy arrays in another order.
        self._rows = np.full((_N_FEATURES + 2, m), 1e-3, order="F")
        self._row = np.full(_N_FEATURES + 2, 1e-3)
        self._Q, self._S = (np.array(np.eye(m), order="F") for _ in range(2))
        self._means = np.zeros((m, _N_CLASSES), order="F")
        self._beliefs = np.zeros((2 * m, _N_CLASSES), order="F")
        self._q, self._step = np.full(_N_CLASSES, 1e-3), np.full(2 * m, 1e-3)

    def make(self, *, replaced: bool) -> None:
        """Make all calls, two more if a point took the place of another."""
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
