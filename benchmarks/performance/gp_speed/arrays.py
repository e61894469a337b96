"""Gains from single precision, from many points at once and from one factorisation, on arrays."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import ParamSpec, TypeVar

import numpy as np
from scipy.linalg.blas import ddot

from benchmarks._array_streams import ArrayStream, kernel_for
from benchmarks._harness import Row, progress
from streamgp.base import Array
from streamgp.gp.cholesky import MIN_NOISE_IN_SINGLE_PRECISION
from streamgp.gp.exact import ExactGP
from streamgp.gp.hyperparameters import Hyperparameters, prediction_steps
from streamgp.gp.marginal_likelihood import at_once

N_FEATURES = 20
N_CLASSES = 10
NOISE_VARIANCE = 0.5  # as in `GPClassifier` and `isgp()`
_BATCH = 32

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(slots=True)
class _Steps:
    """Seconds, one entry per step or reading."""

    in_a_row: list[float] = field(default_factory=list)
    after_readings: list[float] = field(default_factory=list)
    readings: list[float] = field(default_factory=list)

    def row(self, name: str) -> Row:
        """Return medians in microseconds and in readings."""
        reading = median(self.readings)
        in_a_row, after = median(self.in_a_row), median(self.after_readings)
        return {
            f"{name}_us": 1e6 * in_a_row,
            f"{name}_per_reading": in_a_row / reading,
            f"{name}_disturbed_us": 1e6 * after,
            f"{name}_disturbed_per_reading": after / reading,
        }


def drawn(n: int, seed: int) -> ArrayStream:
    """Return points without structure, with random classes."""
    rng = np.random.default_rng(seed)
    return ArrayStream(
        name="normal",
        X=rng.normal(size=(n, N_FEATURES)),
        y=np.append(np.arange(N_CLASSES), rng.integers(N_CLASSES, size=n))[:n],
    )


def rows_at(n: int, n_steps: int, n_places: int, seed: int) -> Iterator[Row]:
    """Measure steps in both precisions, with memory in several places, and batches."""
    progress(f"{n} points, in arrays")
    stream = drawn(n + n_steps, seed)
    packed = np.random.default_rng(seed).normal(size=n * (n + 1) // 2)
    steps: Row = {"points": n, "step_of": "ExactGP"}
    batches: list[Row] = []
    for name, single_precision in (("double", False), ("single", True)):
        gp = _process(stream, single_precision=single_precision)
        for x, y in _examples(stream, 0, n):
            gp.append(x, y)
        steps |= _steps(gp, stream, n_places, packed).row(name)
        batches.append({"points": n, "precision": name, **_batches(gp, n_steps, seed)})
    yield steps
    yield from batches


def replay_row(n: int, n_repetitions: int, seed: int) -> Row:
    """Measure a replay of `n` events, each predicted before it is learned, both ways."""
    progress(f"replay of {n} events")
    stream = drawn(n, seed)
    these = Hyperparameters(kernel=kernel_for(stream), noise_variance=NOISE_VARIANCE)
    X, Y = stream.X, stream.indicators
    replays = [_timed(at_once, prediction_steps(these, X, Y)) for _ in range(n_repetitions)]
    one_by_one, found = _timed(_predicted, _process(stream), stream)
    seconds = median(duration for duration, _ in replays)
    return {
        "replayed_events": n,
        "one_factorisation_ms": 1e3 * seconds,
        "one_by_one_ms": 1e3 * one_by_one,
        "gain": one_by_one / seconds,
        "largest_difference": _difference(replays[0][1], found),
    }


def same_classes_row(stream: ArrayStream, noise_variance: float) -> Row:
    """Count the events for which single precision predicts another class."""
    progress(f"{stream.name}, noise variance {noise_variance}")
    double, single = (
        np.array([means for means, _ in _predicted(gp, stream)])
        for gp in (
            _process(stream, noise_variance=noise_variance),
            _process(stream, noise_variance=noise_variance, single_precision=True),
        )
    )
    classes = double.argmax(axis=1)
    return {
        "log": stream.name,
        "events": len(stream.y),
        "noise_variance": noise_variance,
        "accuracy_%": 100.0 * float((classes == stream.y).mean()),
        "of_another_class": int((classes != single.argmax(axis=1)).sum()),
        "largest_difference": float(np.abs(double - single).max()),
    }


def same_classes(streams: Iterable[ArrayStream]) -> list[Row]:
    """Count them with the usual noise, and with the smallest that single precision allows."""
    return [
        same_classes_row(stream, noise_variance)
        for stream in streams
        for noise_variance in (NOISE_VARIANCE, MIN_NOISE_IN_SINGLE_PRECISION)
    ]


def _process(
    stream: ArrayStream, *, noise_variance: float = NOISE_VARIANCE, single_precision: bool = False
) -> ExactGP:
    gp = ExactGP(kernel_for(stream), noise_variance, single_precision=single_precision)
    for _ in range(stream.indicators.shape[1]):
        gp.add_target()
    return gp


def _examples(stream: ArrayStream, first: int, end: int) -> Iterator[tuple[Array, Array]]:
    return zip(stream.X[first:end], stream.indicators[first:end], strict=True)


def _predicted(gp: ExactGP, stream: ArrayStream) -> list[tuple[Array, float]]:
    """Predict each event before it is learned."""
    found = []
    for x, y in _examples(stream, 0, len(stream.y)):
        found.append(gp.predict(x))
        gp.append(x, y)
    return found


def _steps(process: ExactGP, stream: ArrayStream, n_places: int, triangle: Array) -> _Steps:
    """Take steps in a row, and as many directly after readings of a triangle of doubles.

    The place in memory makes a difference of a few percent, so everything is copied elsewhere from
    time to time.
    """
    steps = _Steps()
    examples = list(_examples(stream, process.n, len(stream.y)))
    half = len(examples) // 2
    for _ in range(n_places):
        gp, packed = copy.deepcopy(process), triangle.copy()
        steps.in_a_row += [_step(gp, x, y) for x, y in examples[:half]]
        for x, y in examples[half:]:
            seconds, _ = _timed(ddot, packed, packed)
            steps.readings.append(seconds)
            steps.after_readings.append(_step(gp, x, y))
    return steps


def _step(gp: ExactGP, x: Array, y: Array) -> float:
    t0 = time.perf_counter()
    gp.predict(x)
    gp.append(x, y)
    return time.perf_counter() - t0


def _batches(gp: ExactGP, n_batches: int, seed: int) -> Row:
    rng = np.random.default_rng(seed)
    one_by_one, together, differences = [], [], []
    for X in rng.normal(size=(n_batches, _BATCH, N_FEATURES)):
        seconds, found = _timed(lambda X: [gp.predict(x) for x in X], X)
        one_by_one.append(seconds)
        seconds, many = _timed(gp.predict_many, X)
        together.append(seconds)
        differences.append(_difference(many, found))
    return {
        "batch": _BATCH,
        "one_by_one_us": 1e6 * median(one_by_one) / _BATCH,
        "together_us": 1e6 * median(together) / _BATCH,
        "gain": median(one_by_one) / median(together),
        "largest_difference": max(differences),
    }


def _difference(many: tuple[Array, Array], found: list[tuple[Array, float]]) -> float:
    means, variances = (np.array(part) for part in zip(*found, strict=True))
    return float(max(np.abs(many[0] - means).max(), np.abs(many[1] - variances).max()))


def _timed(function: Callable[_P, _T], *arguments: _P.args, **more: _P.kwargs) -> tuple[float, _T]:
    """Return how many seconds a call took, and what it returned."""
    t0 = time.perf_counter()
    found = function(*arguments, **more)
    return time.perf_counter() - t0, found
