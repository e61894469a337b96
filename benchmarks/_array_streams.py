"""Streams of labelled points as arrays, and functions that run classifiers over them.

Stationary streams, recorded ones, and ones with concept drift: from River's data sets and
generators, scikit-learn's digits, and the data folder. Features are standardised by the first
events, as in `SkepticalClassifier`; a missing value becomes 0.

"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from river import base, datasets
from river.datasets import synth

from benchmarks._logs import MissingLogError, read
from streamgp.base import Array, Features
from streamgp.gp.bounded import BoundedGP
from streamgp.gp.hyperparameters import Hyperparameters, prediction_steps
from streamgp.gp.marginal_likelihood import at_once
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE

_WARM_UP = 200  # as in `isgp()`

# Features and label of each event.
_Events: TypeAlias = Iterable[tuple[dict[Any, Any], Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayStream:
    """A stream of labelled points.

    Parameters
    ----------
    name
        Its name.
    X
        Points, shape (n, d), standardised.
    y
        Classes, shape (n,), numbered in the order in which they appear.

    """

    name: str
    X: Array
    y: Array

    def first(self, n: int) -> ArrayStream:
        """Return its first `n` events."""
        return replace(self, X=self.X[:n], y=self.y[:n])

    @property
    def indicators(self) -> Array:
        """A target of 0 and 1 for each class, shape (n, number of classes)."""
        Y: Array = np.eye(int(self.y.max()) + 1)[self.y]
        return Y


def stationary(name: str, n: int, seed: int) -> ArrayStream:
    """Return the first `n` events of one of the streams `STATIONARY`.

    Raises
    ------
    MissingLogError
        If it is not available here.

    """
    return _standardised(name, islice(_STATIONARY[name](seed), n))


def drifting(concept: str, kind: str, n: int, seed: int) -> ArrayStream:
    """Return `n` events of a stream that changes between two concepts.

    Parameters
    ----------
    concept
        One of `CONCEPTS`.
    kind
        One of `KINDS`: how the probability that an event comes from the second concept changes with
        time.
    n
        Number of events.
    seed
        Seed of the events, and of the random part of the change.

    """
    rng = np.random.default_rng(seed)
    parts = [iter(part.take(n)) for part in _CONCEPTS[concept](seed)]
    shares = _KINDS[kind](np.arange(n) / n)
    events = [next(parts[int(later)]) for later in rng.random(n) < shares]
    return _standardised(f"{concept}, {kind}", events)


def recorded(
    name: str, data: Path | None, n: int, *, order: str = "recorded", seed: int = 1
) -> ArrayStream:
    """Return the first `n` events of a log in one of its orders; raises MissingLogError."""
    return _standardised(f"{name}, {order}", read(name, data, n).played(order, seed))


def unshuffled(name: str, n: int) -> ArrayStream:
    """Return the first `n` events of a data set that comes with River, in its order."""
    return _standardised(name, islice(getattr(datasets, name)(), n))


def as_dictionaries(stream: ArrayStream) -> Iterator[tuple[Features, int]]:
    """Yield the events of a stream as River's classifiers take them."""
    names = [f"f{j}" for j in range(stream.X.shape[1])]
    for x, y in zip(stream.X.tolist(), stream.y.tolist(), strict=True):
        yield dict(zip(names, x, strict=True)), y


def _standardised(name: str, events: Iterable[tuple[Features, Any]]) -> ArrayStream:
    numbers: dict[Any, int] = {}
    points, classes = [], []
    for x, label in events:
        points.append(x)
        classes.append(numbers.setdefault(label, len(numbers)))
    names = list(dict.fromkeys(name for x in points for name in x))
    X = np.array([[float(x.get(name, math.nan)) for name in names] for x in points])
    first = np.ma.masked_invalid(X[:_WARM_UP])
    mean, std = first.mean(axis=0).filled(0.0), first.std(axis=0).filled(0.0)
    scaled = (X - mean) / np.where(std > 0.0, std, 1.0)
    return ArrayStream(name=name, X=np.nan_to_num(scaled), y=np.array(classes))


def _shuffled(events: _Events, seed: int) -> Iterator[tuple[dict[Any, Any], Any]]:
    """Yield all events in three random orders, one after the other."""
    rng, everything = np.random.default_rng(seed), list(events)
    for _ in range(3):
        for i in rng.permutation(len(everything)).tolist():
            yield everything[i]


def _digits(_: int) -> _Events:
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise MissingLogError("digits (needs sklearn; install the extra bench)") from None
    found = load_digits()
    return [
        (dict(enumerate(x)), y)
        for x, y in zip(found.data.tolist(), found.target.tolist(), strict=True)
    ]


_STATIONARY: dict[str, Callable[[int], _Events]] = {
    "digits": lambda seed: _shuffled(_digits(seed), seed),
    "ImageSegments": lambda seed: _shuffled(datasets.ImageSegments(), seed),
    "Shuttle": lambda _: datasets.Shuttle(),
    "Bananas": lambda _: datasets.Bananas(),
    "RandomRBF": lambda seed: synth.RandomRBF(
        seed_model=seed, seed_sample=seed, n_classes=10, n_features=20, n_centroids=60
    ),
    "Waveform": lambda seed: synth.Waveform(seed=seed),
    "LED": lambda seed: synth.LED(seed=seed, noise_percentage=0.1),
}
STATIONARY = tuple(_STATIONARY)


def _random_rbf(seed: int) -> Any:
    return synth.RandomRBF(
        seed_model=seed, seed_sample=seed, n_classes=5, n_features=10, n_centroids=30
    )


_CONCEPTS: dict[str, Callable[[int], list[Any]]] = {
    "RandomRBF": lambda seed: [_random_rbf(2 * seed), _random_rbf(2 * seed + 1)],
    "SEA": lambda seed: [synth.SEA(variant=v, seed=seed + v, noise=0.1) for v in (0, 3)],
    "Sine": lambda seed: [synth.Sine(classification_function=f, seed=seed + f) for f in (0, 1)],
    "Mixed": lambda seed: [synth.Mixed(classification_function=f, seed=seed + f) for f in (0, 1)],
    "STAGGER": lambda seed: [
        synth.STAGGER(classification_function=f, seed=seed + f) for f in (0, 2)
    ],
    "Agrawal": lambda seed: [
        synth.Agrawal(classification_function=f, seed=seed + f) for f in (0, 3)
    ],
}
CONCEPTS = tuple(_CONCEPTS)

_KINDS: dict[str, Callable[[Array], Array]] = {
    "none": lambda t: np.zeros_like(t),
    "abrupt": lambda t: (t >= 0.5).astype(float),
    "gradual": lambda t: np.clip(2.0 * t - 0.5, 0.0, 1.0),
    "recurring": lambda t: np.floor(4.0 * t) % 2.0,
}
KINDS = tuple(_KINDS)


# --- classifiers on these streams

# As in `GPClassifier` and `isgp()`; so is the kernel.
NOISE_VARIANCE = 0.5


def kernel_for(stream: ArrayStream) -> SquaredExponential:
    """Return the default kernel for points with as many features as the stream's."""
    return SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(stream.X.shape[1]))


def right_exactly(stream: ArrayStream) -> Array:
    """Whether the exact process, taught all labels, predicts each one beforehand, shape (n,)."""
    these = Hyperparameters(kernel=kernel_for(stream), noise_variance=NOISE_VARIANCE)
    means, _ = at_once(prediction_steps(these, stream.X, stream.indicators))
    # Classes are not known before they appear.
    unknown = np.arange(means.shape[1]) > np.maximum.accumulate([-1, *stream.y[:-1]])[:, None]
    means[unknown] = -np.inf
    right: Array = means.argmax(axis=1) == stream.y
    right[0] = False  # there is nothing to predict yet
    return right


def right_one_by_one(stream: ArrayStream, gp: BoundedGP) -> Array:
    """Whether a process, taught all labels one by one, predicts each one first, shape (n,)."""
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
    """Let a River classifier predict each event, then learn it.

    Returns
    -------
    Whether each prediction was right, and how long each event took, in seconds; both of shape (n,).

    """
    right = np.zeros(len(stream.y), dtype=bool)
    seconds, clock = np.zeros(len(stream.y)), time.perf_counter
    for i, (x, y) in enumerate(as_dictionaries(stream)):
        started = clock()
        right[i] = model.predict_one(x) == y
        model.learn_one(x, y)
        seconds[i] = clock() - started
    return right, seconds


def percent(right: Array) -> float:
    """Return the share of right predictions in percent."""
    return 100.0 * float(right.mean())


def right_without_change(stream: ArrayStream) -> Array:
    """Whether each label is the same as that of the previous event, shape (n,)."""
    right: Array = np.append(False, stream.y[1:] == stream.y[:-1])
    return right
