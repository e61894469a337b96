"""Classifiers play streams of arrays: Gaussian processes alone, and with what is around them."""

from __future__ import annotations

import math
import time

import numpy as np
from river import base

from benchmarks._array_streams import ArrayStream, as_dictionaries
from streamgp.base import Array
from streamgp.gp.bounded import BoundedGP
from streamgp.gp.hyperparameters import Hyperparameters, predicted_before_learned
from streamgp.kernels import SquaredExponential
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


def right_one_by_one(stream: ArrayStream, gp: BoundedGP) -> Array:
    """Whether a process, taught all labels one by one, predicts each before it is told, (n,)."""
    right = np.zeros(len(stream.y), dtype=bool)
    for i, (x, y) in enumerate(zip(stream.X, stream.y.tolist(), strict=True)):
        if gp.n_targets:
            means, _ = gp.predict(x)
            right[i] = means.argmax() == y
        target = np.zeros(max(gp.n_targets, y + 1))
        target[y] = 1.0
        gp.append(x, target)
    return right


def played(stream: ArrayStream, model: base.Classifier) -> tuple[Array, Array]:
    """Let a classifier of River's kind predict each event, and learn it then.

    Returns
    -------
    Whether each prediction was right, (n,), and how long each event took, in seconds, (n,).

    """
    right = np.zeros(len(stream.y), dtype=bool)
    seconds, clock = np.zeros(len(stream.y)), time.perf_counter
    for i, (x, y) in enumerate(as_dictionaries(stream)):
        started = clock()
        right[i] = model.predict_one(x) == y
        model.learn_one(x, y)
        seconds[i] = clock() - started
    return right, seconds


def right_without_change(stream: ArrayStream) -> Array:
    """Whether each label is that of the event before, (n,)."""
    right: Array = np.append(False, stream.y[1:] == stream.y[:-1])
    return right
