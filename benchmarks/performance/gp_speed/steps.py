"""Steps of the classifier, compared with their parts and with the explicit inverse of the paper.

The inverse is the competitor, written to be fast in numpy: memory for all points is allocated
beforehand, nothing is copied to grow, and learning reuses what predicting computed. Its inputs and
outputs are those of `GPClassifier`, converted by the same code.

"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from typing import TypeAlias

import numpy as np
from scipy.linalg.blas import ddot, dtpsv

from benchmarks._harness import Row, progress
from benchmarks.performance.gp_speed.arrays import N_CLASSES, N_FEATURES, drawn
from streamgp import GPClassifier
from streamgp.base import Array, FeatureName, Features, Label, positive_parts
from streamgp.features import Columns
from streamgp.gp.bounded import UnboundedGP
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE

# --- the explicit inverse


class InverseGPClassifier:
    """Gaussian process classifier with `Γ = (K + noise_variance I)⁻¹` as a matrix.

    A new point changes Γ by the block matrix inversion formula: with `g = Γ k` and
    `s = k(x, x) + noise_variance - k' g`, `Γ` becomes `[[Γ + g g' / s, -g / s], [-g' / s, 1 / s]]`.

    Parameters
    ----------
    names
        Names of the features.
    labels
        All classes.
    capacity
        Number of points for which memory is allocated.
    length_scale, noise_variance
        Of the squared exponential kernel, and of the indicator targets.

    References
    ----------
    [^1]: Lütz, A., Rodner, E. and Denzler, J., 2013. I want to know more: efficient multi-class
        incremental learning using Gaussian processes. Pattern Recognition and Image Analysis 23.

    """

    def __init__(
        self,
        names: Sequence[FeatureName],
        labels: Sequence[Label],
        capacity: int,
        *,
        length_scale: float,
        noise_variance: float = 0.5,
    ) -> None:
        self.n = 0
        self._columns = Columns(names)
        self._targets = {label: j for j, label in enumerate(labels)}
        self._kernel = SquaredExponential(length_scale)
        self._noise_variance = noise_variance
        self._rows: Array = np.empty((capacity, len(names) + 2))
        self._gamma: Array = np.zeros((capacity, capacity))
        self._update: Array = np.zeros(capacity * capacity)
        self._alpha: Array = np.zeros((capacity, len(labels)))
        self._last: tuple[bytes, Array, Array, float, Array] | None = None

    def predict_proba_one(self, x: Features) -> dict[Label, float]:
        """Predict the probability of each class."""
        *_, means = self._solve(self._columns.vector(x))
        return positive_parts(self._targets, means.tolist())

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn an example."""
        _, row, g, variance, means = self._solve(self._columns.vector(x))
        n = self.n
        s = variance + self._noise_variance
        residual = -means
        residual[self._targets[y]] += 1.0
        residual /= s
        scaled = g / s
        update = np.multiply(scaled[:, None], g, self._update[: n * n].reshape(n, n))
        inner = self._gamma[:n, :n]
        np.add(inner, update, inner)
        self._gamma[:n, n] = self._gamma[n, :n] = -scaled
        self._gamma[n, n] = 1.0 / s
        # The same formula for Γ Y saves another multiplication by the targets.
        self._alpha[:n] -= g[:, None] * residual
        self._alpha[n] = residual
        self._rows[n] = row
        self.n = n + 1
        self._last = None

    def learn_at_once(self, events: Sequence[tuple[Features, Label]]) -> None:
        """Learn the first examples by one inversion, which gives the same Γ sooner."""
        n = len(events)
        for i, (x, _) in enumerate(events):
            self._rows[i] = self._kernel.embed(self._columns.vector(x))
        K = np.array([self._kernel.vector(self._rows[:n], row) for row in self._rows[:n]])
        gamma = np.linalg.inv(K + self._noise_variance * np.eye(n))
        self._gamma[:n, :n] = gamma
        targets = np.array([self._targets[y] for _, y in events])
        self._alpha[:n] = gamma @ np.eye(len(self._targets))[targets]
        self.n = n

    def _solve(self, x: Array) -> tuple[bytes, Array, Array, float, Array]:
        key = x.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last
        n = self.n
        row = self._kernel.embed(x)
        k = self._kernel.vector(self._rows[:n], row)
        g = self._gamma[:n, :n] @ k
        variance = self._kernel.prior_variance(row) - float(k @ g)
        self._last = (key, row, g, variance, k @ self._alpha[:n])
        return self._last


# --- steps

# Two matrices of more points take a gigabyte, and making them takes longer than measuring them.
LARGEST_INVERSE = 3000

Events: TypeAlias = list[tuple[Features, Label]]

_LENGTH_SCALE = LENGTH_SCALE_PER_ROOT_FEATURE * N_FEATURES**0.5


@dataclass(slots=True)
class _Durations:
    """Seconds, one entry per step; steps are grouped by what follows them."""

    predict: list[float] = field(default_factory=list)
    learn: list[float] = field(default_factory=list)
    read: list[float] = field(default_factory=list)
    before_solve: list[float] = field(default_factory=list)
    solve: list[float] = field(default_factory=list)
    undisturbed: list[float] = field(default_factory=list)
    inverse: list[float] = field(default_factory=list)
    n_bytes: int = 0  # of the factor, when it was last read

    def row(self, n: int) -> Row:
        """Return medians in microseconds, and ratios."""
        step = median(p + q for p, q in zip(self.predict, self.learn, strict=True))
        solve, read = median(self.solve), median(self.read)
        undisturbed = median(self.undisturbed)
        inverse = median(self.inverse) if self.inverse else None
        return {
            "points": n,
            "predict_us": 1e6 * median(self.predict),
            "learn_us": 1e6 * median(self.learn),
            "step_us": 1e6 * step,
            "reading_us": 1e6 * read,
            "reading_gb_per_s": 1e-9 * self.n_bytes / read,
            "step_before_dtpsv_us": 1e6 * median(self.before_solve),
            "dtpsv_us": 1e6 * solve,
            "undisturbed_step_us": 1e6 * undisturbed,
            "inverse_us": None if inverse is None else 1e6 * inverse,
            "step_per_dtpsv": median(self.before_solve) / solve,
            "step_per_reading": step / read,
            "inverse_per_step": None if inverse is None else inverse / undisturbed,
        }


def step_row(n: int, in_a_row: int, repetitions: int, *, seed: int) -> Row:
    """Measure steps around `n` points; see `benchmarks.gp_speed`."""
    progress(f"{n} points")
    durations = _Durations()
    for repetition in range(repetitions):
        _walk(n, in_a_row, seed + repetition, durations)
    return durations.row(n)


def _walk(n: int, b: int, seed: int, durations: _Durations) -> None:
    """Take `b > 2` steps of the inverse and `5 b` of the classifier, all around `n` points."""
    before, after = 5 * b // 2, 5 * b - 5 * b // 2
    events = events_of(n + after, seed)
    learner = GPClassifier(SquaredExponential(_LENGTH_SCALE))
    for x, y in events[: n - before]:
        learner.learn_one(x, y)
    if n <= LARGEST_INVERSE:
        _time_inverse(events[: n - b // 2 + b], b, durations)
    rest = iter(events[n - before :])
    _time_undisturbed(learner, list(islice(rest, b)), durations)
    _time_with_solves(learner, list(islice(rest, 3 * b // 2)), n, seed, durations)
    _time_with_readings(learner, list(islice(rest, 3 * b - 3 * b // 2)), durations)
    _time_undisturbed(learner, list(rest), durations)


def _time_inverse(events: Events, b: int, durations: _Durations) -> None:
    """Take the last `b` steps; the first two touch the memory for the first time."""
    rival = InverseGPClassifier(
        list(events[0][0]), range(N_CLASSES), len(events), length_scale=_LENGTH_SCALE
    )
    rival.learn_at_once(events[:-b])
    for x, y in events[-b : 2 - b]:
        rival.learn_one(x, y)
    clock = time.perf_counter
    for x, y in events[2 - b :]:
        t0 = clock()
        rival.predict_proba_one(x)
        rival.learn_one(x, y)
        durations.inverse.append(clock() - t0)


def _time_undisturbed(learner: GPClassifier, events: Events, durations: _Durations) -> None:
    clock = time.perf_counter
    for x, y in events:
        t0 = clock()
        learner.predict_proba_one(x)
        learner.learn_one(x, y)
        durations.undisturbed.append(clock() - t0)


def _time_with_solves(
    learner: GPClassifier, events: Events, n: int, seed: int, durations: _Durations
) -> None:
    """Solve with a triangle of the same size in other memory after each step."""
    packed, k = _triangle(n, seed)
    clock = time.perf_counter
    for x, y in events:
        t0 = clock()
        learner.predict_proba_one(x)
        learner.learn_one(x, y)
        durations.before_solve.append(clock() - t0)
        overwritten = k.copy()
        t0 = clock()
        dtpsv(n, packed, overwritten, 1, 0, 0, 1, 0, 1)
        durations.solve.append(clock() - t0)


def _time_with_readings(learner: GPClassifier, events: Events, durations: _Durations) -> None:
    """Read the factor once after each step."""
    clock = time.perf_counter
    for x, y in events:
        t0 = clock()
        learner.predict_proba_one(x)
        t1 = clock()
        learner.learn_one(x, y)
        t2 = clock()
        durations.predict.append(t1 - t0)
        durations.learn.append(t2 - t1)
        parts = _factor(learner)
        t0 = clock()
        for part in parts:
            ddot(part, part)
        durations.read.append(clock() - t0)
        durations.n_bytes = sum(part.nbytes for part in parts)


def _factor(learner: GPClassifier) -> list[Array]:
    """Return the arrays in which the classifier stores its factor; they have no public name."""
    process = learner._core.gp
    assert isinstance(process, UnboundedGP)
    parts = []
    for block in process._gp._factor._blocks:
        n = block.n
        parts += [block.panel[:n].reshape(-1), block.triangle[: n * (n + 1) // 2]]
    return [part for part in parts if len(part)]


def events_of(n: int, seed: int) -> Events:
    """Return points without structure, with random classes, as dictionaries."""
    stream = drawn(n, seed)
    names = [f"f{j}" for j in range(N_FEATURES)]
    return [
        (dict(zip(names, x, strict=True)), y)
        for x, y in zip(stream.X.tolist(), stream.y.tolist(), strict=True)
    ]


def _triangle(n: int, seed: int) -> tuple[Array, Array]:
    """Return a well-conditioned packed triangle of `n` rows, and a right-hand side."""
    rng = np.random.default_rng(seed)
    packed = rng.normal(size=n * (n + 1) // 2)
    i = np.arange(n)
    packed[i * (i + 3) // 2] = n + 10.0
    return packed, rng.normal(size=n)
