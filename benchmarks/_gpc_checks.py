"""Identities of expectation propagation with two functions, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import numpy as np

from benchmarks._gpc_problems import annotator, noise
from benchmarks._harness import Acceptance, Row, at_most
from streamgp import PrivilegedGPClassifier
from streamgp.base import Array
from streamgp.gp.latent_noise.model import LabelledPoints, LabelModel, explain, log_evidence
from streamgp.kernels import SquaredExponential

_STEP = 1e-4
_TIGHT = 1e-9


def identities(seed: int) -> tuple[list[Row], list[Acceptance]]:
    """Return how exactly derivatives and special cases hold."""
    draw = noise(np.random.default_rng(seed))
    points = LabelledPoints.of(draw.X, draw.y, draw.privileged)
    model = LabelModel(
        kernel=SquaredExponential(1.2),
        privileged_kernel=SquaredExponential(1.5, 2.0),
        noise_mean=-1.0,
    )
    found = log_evidence(model, points, tolerance=_TIGHT).gradient
    gap = float(np.abs(found - _differences(model, points)).max())
    gpc = explain(
        LabelModel(kernel=model.kernel, privileged_kernel=None, noise_mean=-1.0),
        points,
        tolerance=_TIGHT,
    )[0]
    vanishing = LabelModel(
        kernel=model.kernel, privileged_kernel=SquaredExponential(1.5, 1e-9), noise_mean=-1.0
    )
    nearly = explain(vanishing, points, tolerance=_TIGHT)[0]
    values = {
        "gradient of the evidence - differences": (gap, 1e-4),
        "amplitude of the noise 1e-9 - GPC": (
            float(np.abs(nearly.f.means - gpc.f.means).max()),
            1e-5,
        ),
        "by log amplitude of f + by mean of g": (abs(float(found[1] + found[-1])), 1e-5),
    }
    rows: list[Row] = [{"identity": name, "gap": value} for name, (value, _) in values.items()]
    return rows, [at_most(name, value, limit) for name, (value, limit) in values.items()]


def batches(sizes: Sequence[int], seed: int) -> list[Row]:
    """Return how long expectation propagation of so many labels takes, and with a fit before it."""
    rows: list[Row] = []
    for n in sizes:
        draw = annotator(np.random.default_rng(seed), n)
        scaled = (draw.privileged - draw.privileged.mean(axis=0)) / draw.privileged.std(axis=0)
        points = LabelledPoints.of(draw.X, draw.y, scaled)
        model = LabelModel(
            kernel=SquaredExponential(1.2),
            privileged_kernel=SquaredExponential(1.2),
            noise_mean=-2.0,
        )
        started = time.perf_counter()
        fixed = explain(model, points)[0]
        once = time.perf_counter() - started
        row: Row = {"labels": n, "sweeps": fixed.n_sweeps, "batch_s": once}
        for name, privileged in (("with_fit", draw.privileged_points), ("gpc_with_fit", None)):
            learner = PrivilegedGPClassifier(max_points=None)
            started = time.perf_counter()
            learner.learn_log(draw.points, draw.y.tolist(), privileged=privileged)
            row[f"{name}_s"] = time.perf_counter() - started
        rows.append(row)
    return rows


def steps(seed: int, max_points: int = 300) -> dict[int, float]:
    """Return median times of single labels in microseconds, by the number of labels at the end.

    Of the last sixth of those that fit, of as many right behind them, and of as many at the end of
    a stream three times as long. Fits of hyper-parameters, which come now and then, do not count.
    """
    draw, span = annotator(np.random.default_rng(seed), 3 * max_points), max_points // 6
    model = PrivilegedGPClassifier(max_points=max_points)
    times = []
    for x, y, p in zip(draw.points, draw.y.tolist(), draw.privileged_points, strict=True):
        started = time.perf_counter()
        model.learn_one(x, y, privileged=p)
        times.append(time.perf_counter() - started)
    ends = (max_points, max_points + span, 3 * max_points)
    return {n: 1e6 * median(times[n - span : n]) for n in ends}


def speed(sizes: Sequence[int], seed: int) -> tuple[list[Row], list[Acceptance]]:
    """Return times of batches and of single labels."""
    limits = {100: 1.0, 500: 60.0}
    rows, single = batches(sizes, seed), steps(seed)
    accepted = [
        at_most(f"batch of {row['labels']} labels, seconds", row["batch_s"], limits[row["labels"]])
        for row in rows
        if row["labels"] in limits
    ]
    (n, us), (_, behind), (last, at_end) = single.items()
    accepted += [
        at_most(f"one label at {n}, microseconds", us, 1500.0),
        at_most(f"one label at {last}, of which {n} are kept, microseconds", at_end, 1500.0),
        # Flat: what differs is the machine's noise.
        at_most(f"one label at {last} / right behind {n}", at_end / behind, 1.3),
    ]
    rows += [{"max_points": n, "labels": k, "step_us": value} for k, value in single.items()]
    return rows, accepted


def _differences(model: LabelModel, points: LabelledPoints) -> Array:
    vector = model.vector
    found = []
    for i in range(len(vector)):
        off = _STEP * (np.arange(len(vector)) == i)
        up, down = (
            log_evidence(model.moved_to(vector + sign * off), points, tolerance=_TIGHT).value
            for sign in (1.0, -1.0)
        )
        found.append((up - down) / (2.0 * _STEP))
    return np.array(found)
