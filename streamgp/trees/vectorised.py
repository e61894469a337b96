"""Growing trees and asking them in numpy: many trees at once, and no other tool.

The twin of `compiled`, function by function and to the last bit, for whoever has no numba. Weights
are whole numbers, whose sums are exact in any order; where others are added, it is in the order of
a loop.

"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamgp.base import Array
from streamgp.trees.draws import bag, draw
from streamgp.trees.splits import goes_right, split
from streamgp.trees.tables import (
    FRESH,
    LEAF,
    OWN_NODES,
    WEIGHT,
    WRITTEN,
    Integers,
    Records,
    Short,
    Tables,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 256
"""Events that are predicted at a time: what they need in between fits into a cache."""


def descend(X: Array, nodes: Records, n_trees: int) -> Short:
    """Return the leaf of each event in each tree, shape (events, trees)."""
    n = len(X)
    at = np.tile(np.arange(n_trees, dtype=np.int32), n)
    event = np.repeat(np.arange(n), n_trees)
    features = nodes["feature"]
    moving = (features[at] != LEAF).nonzero()[0]
    while moving.size:
        here = nodes[at[moving]]
        below = here["link"] + goes_right(X[event[moving], here["feature"]], here)
        at[moving] = below
        moving = moving[features[below] != LEAF]
    return at.reshape(n, n_trees)


def meet(slot: int, counters: Integers, tables: Tables) -> tuple[Short, Array]:
    """Return the leaf of an example of the pool in each tree, and draw a number for each tree."""
    leaves = descend(tables.X[slot : slot + 1], tables.nodes, len(tables.trees))[0]
    return leaves, draw(tables.bag_keys, counters)


def learn(
    first: int,
    leaves: Short,
    u: Array,
    w: float,
    nothing: float,
    whole: int,
    slot: int,
    n_classes: int,
    d: int,
    tables: Tables,
) -> tuple[bool, Array]:
    """Teach an example of the pool to the trees of a group, and ask them about it.

    Parameters
    ----------
    first
        The first of these trees.
    leaves, u
        What `meet` returned for each of them.
    w, nothing, whole
        Weight of the example, as for `bag`.
    slot
        Where in the pool it is.
    n_classes, d
        Number of classes and of columns.
    tables
        All trees, with room for as many splits.

    Returns
    -------
    Whether a leaf remembers the example, and what `probabilities` are after it was learned.

    """
    weights = bag(u, w, nothing, whole)
    rows = tables.nodes["link"][leaves]
    tables.counts[rows, tables.labels[slot]] += weights
    tables.leaves[rows, WEIGHT] += weights
    grown = leaves
    own_nodes = tables.trees[first : first + len(leaves), OWN_NODES]
    taking = ((weights > 0) & (own_nodes + 2 <= tables.limits.max_nodes)).nonzero()[0]
    if taking.size:
        due = _remember(rows[taking], weights[taking], slot, tables)
        if due.any():
            grown = leaves.copy()
            for t in taking[due].tolist():
                grown[t] = split(first + t, int(leaves[t]), slot, n_classes, d, tables)
    return bool(taking.size), probabilities(grown[None], len(leaves), n_classes, tables)[0, 0]


def predict(X: Array, n_trees: int, n_classes: int, tables: Tables) -> Array:
    """Return the probabilities of each group of `n_trees`, shape (events, groups, classes)."""
    n = len(tables.trees)
    blocks = [X[i : i + BLOCK] for i in range(0, max(len(X), 1), BLOCK)]
    return np.concatenate(
        [probabilities(descend(B, tables.nodes, n), n_trees, n_classes, tables) for B in blocks]
    )


def probabilities(leaves: Short, n_trees: int, n_classes: int, tables: Tables) -> Array:
    """Return the mean over the trees of each group, shape (events, groups, classes).

    In a leaf with class weights c and their sum n that is `(c + 1 / C) / (n + 1)`: as if it had
    learned one more example, which belonged to each of the C classes in part.

    Parameters
    ----------
    leaves
        Leaf of each event in each tree of some groups, shape (events, trees).
    n_trees
        Trees of a group.
    n_classes
        Number of classes.
    tables
        All trees.

    """
    rows = tables.nodes["link"][leaves]
    share = 1.0 / (tables.leaves[rows, WEIGHT] + 1.0)
    smooth = (tables.counts[rows, :n_classes] + 1.0 / n_classes) * share[:, :, None]
    n, n_groups = len(leaves), leaves.shape[1] // n_trees
    groups = smooth.reshape(n, n_groups, n_trees, n_classes)
    # One after the other: a sum would add in another order.
    mean: Array = groups.cumsum(axis=2)[:, :, -1] / n_trees
    return mean


# --- inside


def _remember(rows: Short, weights: Integers, slot: int, tables: Tables) -> NDArray[np.bool_]:
    """Write an example to the rings of leaves; return which of them are to be split."""
    about, rings = tables.leaves, tables.rings
    place = about[rows, WRITTEN] % rings.shape[1]
    rings[rows, place, 0] = slot
    rings[rows, place, 1] = weights
    about[rows, WRITTEN] += 1
    about[rows, FRESH] += weights
    due: NDArray[np.bool_] = about[rows, FRESH] >= tables.limits.min_weight
    return due
