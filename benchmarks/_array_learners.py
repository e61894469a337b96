"""Classifiers on arrays, to measure Gaussian processes without what is around them."""

from __future__ import annotations

import math

import numpy as np

from benchmarks._array_streams import ArrayStream
from streamgp.base import Array
from streamgp.gp.bounded import BoundedGP
from streamgp.gp.hyperparameters import Hyperparameters, predicted_before_learned
from streamgp.kernels import SquaredExponential
from streamgp.learners.drift import DriftWatch
from streamgp.learners.gp_classifier import LENGTH_SCALE_PER_ROOT_FEATURE

# That of `GPClassifier` and `isgp()`, as is the kernel.
NOISE_VARIANCE = 0.5


def kernel_for(stream: ArrayStream) -> SquaredExponential:
    """Return the default kernel for points with so many features."""
    return SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(stream.X.shape[1]))


def right_exactly(stream: ArrayStream) -> Array:
    """Whether the exact process, taught all labels, predicts each before it is told, (n,)."""
    these = Hyperparameters(kernel=kernel_for(stream), noise_variance=NOISE_VARIANCE)
    means, _ = predicted_before_learned(these, stream.X, stream.indicators)
    # Classes are not known before they appear.
    unknown = np.arange(means.shape[1]) > np.maximum.accumulate([-1, *stream.y[:-1]])[:, None]
    means[unknown] = -np.inf
    right: Array = means.argmax(axis=1) == stream.y
    right[0] = False  # there is nothing to predict yet
    return right


def right_one_by_one(stream: ArrayStream, gp: BoundedGP, watch: DriftWatch | None = None) -> Array:
    """Whether a process, taught all labels one by one, predicts each before it is told, (n,).

    With a watch, it falls back to the prior at every drift.
    """
    right = np.zeros(len(stream.y), dtype=bool)
    for i, (x, y) in enumerate(zip(stream.X, stream.y.tolist(), strict=True)):
        if gp.n_targets:
            means, _ = gp.predict(x)
            right[i] = means.argmax() == y
            if watch is not None and watch.note(wrong=not right[i]):
                gp.fall_back()
        target = np.zeros(max(gp.n_targets, y + 1))
        target[y] = 1.0
        gp.append(x, target)
    return right


def right_without_change(stream: ArrayStream) -> Array:
    """Whether each label is that of the event before, (n,)."""
    right: Array = np.append(False, stream.y[1:] == stream.y[:-1])
    return right
