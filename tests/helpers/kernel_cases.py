"""Every kernel with its formula for two dictionaries of features; a new kernel adds a line.

Features are numbers or texts; an absent one is the number 0, or no text.

"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streamgp.common.signatures import parameters
from streamgp.features import Columns
from streamgp.kernels import (
    Categorical,
    Constant,
    Linear,
    Matern32,
    Matern52,
    On,
    RationalQuadratic,
    SquaredExponential,
    White,
)


@dataclass
class Case:
    """A kernel and its formula `of(x, y, is_one)`; `is_one` if both are the same event."""

    kernel: object
    of: object


def coordinates(x, name):
    """Return a feature as a number and as a text; None for the one that it is not."""
    value = x.get(name)
    if value is None or value != value:
        return None, None
    return (None, value) if isinstance(value, str) else (float(value), None)


def square(x, y, scale=1.0):
    """Squared distance; `scale` is a number, or a function of a feature's name."""
    total = 0.0
    for name in {*x, *y}:
        (a, s), (b, t) = coordinates(x, name), coordinates(y, name)
        here = ((a or 0.0) - (b or 0.0)) ** 2
        if s != t:
            here += (s is not None) + (t is not None)
        total += here / (scale(name) if callable(scale) else scale) ** 2
    return total


def product(x, y):
    total = 0.0
    for name in {*x, *y}:
        (a, s), (b, t) = coordinates(x, name), coordinates(y, name)
        total += (a or 0.0) * (b or 0.0) + (s == t and s is not None)
    return total


def differing(x, y, scale=1.0):
    """Number of columns that differ, each divided by its squared length scale."""
    total = 0.0
    for name in {*x, *y}:
        (a, s), (b, t) = coordinates(x, name), coordinates(y, name)
        n = ((a or 0.0) != (b or 0.0)) + (s != t)
        total += n / (scale(name) if callable(scale) else scale) ** 2
    return total


def only(x, *names):
    return {name: value for name, value in x.items() if name in names}


def by_name(scales):
    others = math.exp(sum(map(math.log, scales.values())) / len(scales))
    return lambda name: scales.get(name, others)


def rational(s):
    return 0.7 * (1 + s / 5.0) ** -2.5


def matern32(s):
    return (1 + math.sqrt(3 * s)) * math.exp(-math.sqrt(3 * s))


def matern52(s):
    return (1 + math.sqrt(5 * s) + 5 * s / 3) * math.exp(-math.sqrt(5 * s))


SCALES = {"a": 0.6, "place": 1.7, "mixed": 2.5}  # "b" and "open" have their geometric mean

CASES = {
    "squared exponential": Case(
        SquaredExponential(1.3, 2.0), lambda x, y, _: 2 * math.exp(-square(x, y, 1.3) / 2)
    ),
    "squared exponential by name": Case(
        SquaredExponential(SCALES, 2.0),
        lambda x, y, _: 2 * math.exp(-square(x, y, by_name(SCALES)) / 2),
    ),
    "rational quadratic": Case(
        RationalQuadratic(1.3, 0.7, 2.5), lambda x, y, _: rational(square(x, y, 1.3))
    ),
    "rational quadratic by name": Case(
        RationalQuadratic(SCALES, 0.7, 2.5),
        lambda x, y, _: rational(square(x, y, by_name(SCALES))),
    ),
    "Matern 3/2": Case(Matern32(1.3), lambda x, y, _: matern32(square(x, y, 1.3))),
    "Matern 3/2 by name": Case(
        Matern32(SCALES, 3.0), lambda x, y, _: 3 * matern32(square(x, y, by_name(SCALES)))
    ),
    "Matern 5/2": Case(Matern52(0.8, 2.0), lambda x, y, _: 2 * matern52(square(x, y, 0.8))),
    "Matern 5/2 by name": Case(
        Matern52(SCALES), lambda x, y, _: matern52(square(x, y, by_name(SCALES)))
    ),
    "linear": Case(Linear(0.4), lambda x, y, _: 0.4 * product(x, y)),
    "constant": Case(Constant(1.5), lambda *_: 1.5),
    "white": Case(White(0.3), lambda *points: 0.3 * points[-1]),
    "categorical": Case(Categorical(1.2, 2.0), lambda x, y, _: 2 * math.exp(-differing(x, y, 1.2))),
    "categorical by name": Case(
        Categorical(SCALES), lambda x, y, _: math.exp(-differing(x, y, by_name(SCALES)))
    ),
    "on two features": Case(
        On(["mixed", "a"], Matern32(1.3)),
        lambda x, y, _: matern32(square(only(x, "a", "mixed"), only(y, "a", "mixed"), 1.3)),
    ),
    "on a feature that never comes": Case(On(["never"], Matern52(1.0, 3.0)), lambda *_: 3.0),
    "sum": Case(
        SquaredExponential() + Linear(0.2),
        lambda x, y, _: math.exp(-square(x, y) / 2) + 0.2 * product(x, y),
    ),
    "product": Case(
        Matern52(2.0) * Categorical(0.9),
        lambda x, y, _: matern52(square(x, y, 2.0)) * math.exp(-differing(x, y, 0.9)),
    ),
    "sum of products": Case(
        Constant(0.5) * RationalQuadratic(1.3, 0.7, 2.5)
        + On(["a"], SquaredExponential({"a": 0.5})) * On({"place", "open"}, Categorical(2.0))
        + White(0.1),
        lambda x, y, is_one: (
            0.5 * rational(square(x, y, 1.3))
            + math.exp(-square(only(x, "a"), only(y, "a"), 0.5) / 2)
            * math.exp(-differing(only(x, "place", "open"), only(y, "place", "open"), 2.0))
            + 0.1 * is_one
        ),
    ),
}


def columns_of(events):
    columns = Columns()
    for x in events:
        columns = columns.widened(x)
    return columns


def bound_rows(kernel, events, columns=None):
    """Return the kernel bound to the columns of events, and the rows it stores for them."""
    columns = columns or columns_of(events)
    kernel = kernel.bound(columns)
    return kernel, np.array([kernel.embed(columns.vector(x)) for x in events])


def obvious(case, events):
    """Return the matrix of covariances, computed one by one."""
    return np.array(
        [[case.of(x, y, i == j) for j, y in enumerate(events)] for i, x in enumerate(events)]
    )


def hyperparameters(kernel):
    """Return the parameters of a kernel, in order."""
    for name in parameters(type(kernel)):
        value = getattr(kernel, name)
        if isinstance(value, Mapping):
            yield from value.values()
        elif isinstance(value, int | float):
            yield value
        elif hasattr(value, "embed"):
            yield from hyperparameters(value)
