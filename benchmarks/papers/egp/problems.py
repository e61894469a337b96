"""Problems of the reproduction of the paper on ensembles of Gaussian processes.

A draw of a problem is an initial set whose labels are given, a stream, and a test set. All are
random rows of the data, or random points of the box where a function is defined, so that runs are
independent, as in the paper. Inputs of functions are in the unit box, those of tables are
standardised by the initial set; the learners standardise targets themselves.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from streamgp.base import Array

Point: TypeAlias = dict[str, float]

# Half the sides of the hand, the radius of the disc, where it has to go, and a step of the hand.
_HAND = np.array([0.3, 1.0])
_RADIUS = 1.0
_GOAL = np.array([3.0, 2.0])
_STEP = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Data of one run: features and label of each event.

    Parameters
    ----------
    initial
        Events whose labels are given.
    stream
        Events that may be asked about.
    test
        Events that are predicted at the end.

    """

    initial: list[tuple[Point, Any]]
    stream: list[tuple[Point, Any]]
    test: list[tuple[Point, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A function or a table from which runs are drawn.

    Parameters
    ----------
    name
        Its name.
    draws
        Function that returns a number of points and labels, the points in the unit box or in any
        unit.
    in_box
        Whether points are in the unit box.
    classes
        Whether labels are classes.
    n_initial, n_stream, n_test
        Size of each set.

    """

    name: str
    draws: Callable[[int, np.random.Generator], tuple[Array, Any]]
    in_box: bool = False
    classes: bool = False
    n_initial: int = 50
    n_stream: int = 1000
    n_test: int = 1000

    def draw(self, seed: int) -> Draw:
        """Return the sets of one run."""
        sizes = (self.n_initial, self.n_stream, self.n_test)
        X, y = self.draws(sum(sizes), np.random.default_rng(seed))
        if not self.in_box:
            X = standardised(X, self.n_initial)
        events = list(zip(as_points(X, "x"), y.tolist(), strict=True))
        first, last = self.n_initial, self.n_initial + self.n_stream
        return Draw(initial=events[:first], stream=events[first:last], test=events[last:])


def as_points(X: Array, name: str) -> list[Point]:
    """Return rows as dictionaries."""
    names = [f"{name}{j}" for j in range(X.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def standardised(X: Array, n: int) -> Array:
    """Return points with mean 0 and variance 1 over the first `n`; constant features become 0."""
    std = X[:n].std(axis=0)
    # The scale of a feature that did not vary is unknown.
    return np.where(std > 0.0, (X - X[:n].mean(axis=0)) / np.where(std > 0.0, std, 1.0), 0.0)


def branin(U: Array) -> Array:
    """Branin's function, its domain [-5, 10] x [0, 15] scaled to the unit box."""
    x1, x2 = 15.0 * U[:, 0] - 5.0, 15.0 * U[:, 1]
    bent = x2 - 5.1 / (4.0 * np.pi**2) * x1**2 + 5.0 / np.pi * x1 - 6.0
    found: Array = bent**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x1) + 10.0
    return found


def currin(U: Array) -> Array:
    """The exponential function of Currin et al. (1991)."""
    x1, x2 = U[:, 0], U[:, 1]
    above = 2300.0 * x1**3 + 1900.0 * x1**2 + 2092.0 * x1 + 60.0
    below = 100.0 * x1**3 + 500.0 * x1**2 + 4.0 * x1 + 20.0
    # 1 - exp(-1 / (2 x2)), which is 1 at x2 = 0.
    found: Array = -np.expm1(-0.5 / np.maximum(x2, 1e-12)) * above / below
    return found


def robot_pushing(U: Array) -> Array:
    """Distance of a disc from its goal after a hand has pushed it: a quasi-static stand-in.

    The paper's simulator is Box2D. Here a rectangular hand starts at a place in [-5, 5]², moves for
    1 to 30 steps towards the initial position of the disc, the origin, and shifts the disc along
    the normal of the contact by as much as they would overlap. Inputs: place, duration and
    orientation.
    """
    hand = 10.0 * U[:, :2] - 5.0
    n_steps = 1 + np.minimum(29, np.floor(30.0 * U[:, 2]))
    angle = 2.0 * np.pi * U[:, 3]
    # Rows are the sides of the hand.
    sides = np.stack(
        [
            np.stack([np.cos(angle), np.sin(angle)], axis=1),
            np.stack([-np.sin(angle), np.cos(angle)], axis=1),
        ],
        axis=1,
    )
    length = np.linalg.norm(hand, axis=1, keepdims=True)
    ahead = -hand / np.maximum(length, 1e-12) * _STEP
    disc = np.zeros_like(hand)
    for step in range(30):
        moving = (step < n_steps)[:, None]
        hand = hand + moving * ahead
        disc = disc + moving * _push(hand, sides, disc)
    found: Array = np.linalg.norm(disc - _GOAL, axis=1)
    return found


def _push(hand: Array, sides: Array, disc: Array) -> Array:
    """Return by how much discs (n, 2) are shifted so that they no longer overlap with hands."""
    # In the hand's coordinates: its centre is the origin, its sides are parallel to the axes.
    inside = np.einsum("nij,nj->ni", sides, disc - hand)
    nearest = np.clip(inside, -_HAND, _HAND)
    away = inside - nearest
    distance = np.linalg.norm(away, axis=1)
    shift = away / np.maximum(distance, 1e-12)[:, None]
    shift *= np.maximum(_RADIUS - distance, 0.0)[:, None]
    # A disc whose centre is within the hand leaves through the nearest side.
    depth = _HAND - np.abs(inside)
    side = depth.argmin(axis=1)
    rows = np.arange(len(inside))
    through = np.zeros_like(inside)
    through[rows, side] = np.where(inside[rows, side] < 0.0, -1.0, 1.0) * (
        _RADIUS + depth[rows, side]
    )
    shift = np.where((distance == 0.0)[:, None], through, shift)
    found: Array = np.einsum("nij,ni->nj", sides, shift)
    return found


def _of_box(function: Callable[[Array], Array], d: int) -> Callable[..., tuple[Array, Array]]:
    def draws(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        U = rng.random((n, d))
        return U, function(U)

    return draws


def of_table(X: Array, y: Any) -> Callable[..., tuple[Array, Any]]:
    """Return a function that draws rows of a table, each at most once."""

    def draws(n: int, rng: np.random.Generator) -> tuple[Array, Any]:
        if n > len(X):
            raise ValueError(f"the table has {len(X)} rows, a run needs {n}; use a larger one")
        rows = rng.permutation(len(X))[:n]
        return X[rows], y[rows]

    return draws


FUNCTIONS: dict[str, Problem] = {
    "Branin": Problem(
        name="Branin", draws=_of_box(branin, 2), in_box=True, n_initial=10, n_stream=500
    ),
    "Currin": Problem(
        name="Currin", draws=_of_box(currin, 2), in_box=True, n_initial=10, n_stream=500
    ),
    "robot pushing": Problem(name="robot pushing", draws=_of_box(robot_pushing, 4), in_box=True),
}
"""Problems that need no data folder."""

FILES = {
    "SARCOS": "regression/sarcos_subset.npz",
    "pumadyn32nm": "regression/pumadyn32nm.npz",
    "pendigits": "classification/pendigits.npz",
    "dna": "classification/dna.npz",
    "letter": "classification/letter.npz",
}
"""Tables, relative to the data folder."""

REGRESSION = (*FUNCTIONS, "SARCOS", "pumadyn32nm")
CLASSES = ("pendigits", "dna", "letter")


def read(names: Sequence[str], data: Path | None) -> tuple[list[Problem], list[str]]:
    """Return problems, and what had to be left out."""
    problems, skipped = [], []
    for name in names:
        if name in FUNCTIONS:
            problems.append(FUNCTIONS[name])
            continue
        path = None if data is None else data / FILES[name]
        if path is None or not path.exists():
            where = "needs --data" if path is None else f"no file {path}"
            skipped.append(f"{name} ({where})")
            continue
        problems.append(_of_file(name, path))
    return problems, skipped


def _of_file(name: str, path: Path) -> Problem:
    with np.load(path) as table:
        parts = [part for part in ("_train", "_test") if f"X{part}" in table] or [""]
        X = np.concatenate([table[f"X{part}"] for part in parts]).astype(float)
        y = np.concatenate([table[f"y{part}"] for part in parts])
    # The first of several targets, such as the torques of SARCOS.
    y = y[:, 0] if y.ndim == 2 else y
    classes = name in CLASSES
    return Problem(name=name, draws=of_table(X, y if classes else y.astype(float)), classes=classes)
