"""Growth of trees and prediction in plain numpy, for many trees at once.

Mirrors `numba_backend` function by function, with bitwise equal results, where there is no numba.
Weights are whole numbers, whose sums are exact in any order; other numbers are added in the order
of a loop.

"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamgp.base import Array
from streamgp.trees.storage import (
    FRESH,
    IS_EQUAL,
    LEAF,
    MISSING_RIGHT,
    N_LEAVES,
    N_NODES,
    NODE,
    OWN_NODES,
    TREE,
    TRIED,
    WEIGHT,
    WRITTEN,
    Integers,
    Records,
    Short,
    Tables,
    bag,
    draw,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


# --- Splitting a leaf by the best of some random tests, in numpy.


LEAST_GAIN = 1e-9
"""A smaller gain, as a share of the score, is rounding error."""


def goes_right(values: Array, nodes: Records) -> NDArray[np.bool_]:
    """Whether values pass the tests of nodes: one value per node, or many for one node."""
    threshold, rule = nodes["threshold"], nodes["rule"]
    right: NDArray[np.bool_] = values >= threshold
    gaps = np.isnan(values)
    if gaps.any():
        right |= gaps & ((rule & MISSING_RIGHT) != 0)
    texts = (rule & IS_EQUAL) != 0
    if texts.any():
        right = np.where(texts, values == threshold, right)
    return right


def split(tree: int, leaf: int, slot: int, n_classes: int, d: int, tables: Tables) -> int:
    """Split a leaf by the best of some random tests, if one separates classes.

    Returns the leaf of the example in this slot.
    """
    row = int(tables.nodes["link"][leaf])
    entries = tables.rings[row, : min(int(tables.leaves[row, WRITTEN]), tables.rings.shape[1])]
    E, labels, weights = tables.X[entries[:, 0], :d], tables.labels[entries[:, 0]], entries[:, 1]
    tables.leaves[row, FRESH] = 0  # without a split, the next attempt needs as much weight again
    one_hot = np.zeros((len(entries), n_classes))
    one_hot[np.arange(len(entries)), labels] = weights
    tests = _random_tests(tree, E, tables)
    tables.trees[tree, TRIED] += 1
    best = _best(tests, E, one_hot)
    if best is None:
        return leaf
    left = int(tables.used[N_NODES])
    new_row = int(tables.used[N_LEAVES])
    tables.used[N_NODES] += 2
    tables.used[N_LEAVES] += 1
    tables.trees[tree, OWN_NODES] += 2
    right = goes_right(E[:, best["feature"]], best)
    best["link"] = left
    tables.nodes[leaf] = best
    tables.leaves[new_row, TREE] = tree
    entries = entries.copy()
    for child, (where, its_row) in enumerate(((~right, row), (right, new_row))):
        tables.nodes[left + child]["feature"] = LEAF
        tables.nodes[left + child]["link"] = its_row
        weights = one_hot[where].sum(axis=0)
        tables.counts[its_row, :n_classes] = weights
        tables.leaves[its_row, WEIGHT] = weights.sum()
        mine = entries[where] if tables.limits.inherit else entries[:0]
        tables.rings[its_row, : len(mine)] = mine
        tables.leaves[its_row, FRESH] = mine[:, 1].sum()
        tables.leaves[its_row, WRITTEN] = len(mine)
    return left + int(goes_right(tables.X[slot, best["feature"]], best))


def _random_tests(tree: int, E: Array, tables: Tables) -> Records:
    """Draw tests of features that differ among the examples (m, d) of a leaf."""
    n = tables.limits.n_tests
    # Adding 0 turns -0.0 into 0.0.
    low, high = np.fmin.reduce(E, axis=0) + 0.0, np.fmax.reduce(E, axis=0) + 0.0
    gaps = np.isnan(E).any(axis=0)
    varied = np.flatnonzero((low < high) | (gaps & (low == high)))
    if not varied.size:
        return np.zeros(0, NODE)
    key = tables.split_keys[tree : tree + 1]
    u = draw(key, 2 * n * tables.trees[tree, TRIED] + np.arange(2 * n)).reshape(n, 2)
    tests = np.zeros(n, NODE)
    features = varied[(u[:, 0] * len(varied)).astype(np.int64)]
    tests["feature"] = features
    tests["threshold"] = low[features] + u[:, 1] * (high[features] - low[features])
    texts = tables.is_text[features] == 1
    if texts.any():
        some = (u[texts, 1] * len(E)).astype(np.int64)
        tests["threshold"][texts] = E[some, features[texts]]
        tests["rule"][texts] = IS_EQUAL
    return tests


def _best(tests: Records, E: Array, one_hot: Array) -> Records | None:
    """Return the test of least Gini impurity, None if none reduces it.

    Parameters
    ----------
    tests
        Of type `NODE`, shape (n,).
    E
        Examples, shape (m, d).
    one_hot
        Weight of each example at its class, shape (m, classes).

    """
    total = one_hot.sum(axis=0)
    values = E[:, tests["feature"]]
    missing: NDArray[np.bool_] = np.isnan(values)
    left = ~missing & ~goes_right(values, tests)
    weights = left.T.astype(float) @ one_hot
    absent = missing.T.astype(float) @ one_hot
    has_absent: NDArray[np.bool_] = absent.sum(axis=1) > 0.0
    # Missing values go right, or left; where there are none, only one option is scored.
    scores = np.stack([_score(weights, total), _score(weights + absent, total)], axis=1)
    scores[~has_absent, 1] = 0.0
    best = int(scores.argmax()) if len(tests) else 0
    least = (total * total).sum() / total.sum() * (1.0 + LEAST_GAIN)
    if not len(tests) or scores.flat[best] <= least:
        return None
    test, goes_left = divmod(best, 2)
    chosen = tests[test : test + 1].reshape(()).copy()
    # If the feature was never missing, missing values go with the majority.
    heavier_right = 2.0 * weights[test].sum() < total.sum()
    if not goes_left if has_absent[test] else heavier_right:
        chosen["rule"] |= MISSING_RIGHT
    return chosen


def _score(left: Array, total: Array) -> Array:
    """Return the purity of the two sides of each test; 0 if one is empty.

    The sum over both sides of `sum of c ** 2 / sum of c`, with their class weights c: the total
    weight times 1 minus the Gini impurity.
    """
    right = total - left
    n_left, n_right = left.sum(axis=1), right.sum(axis=1)
    purity: Array = (left * left).sum(axis=1) / np.maximum(n_left, 1.0) + (right * right).sum(
        axis=1
    ) / np.maximum(n_right, 1.0)
    return np.where((n_left > 0.0) & (n_right > 0.0), purity, 0.0)


BLOCK = 256
"""Number of events predicted at a time: their intermediate results fit into a cache."""


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
    """Let the trees of a group learn an example of the pool, and predict it.

    Parameters
    ----------
    first
        The first of these trees.
    leaves, u
        What `meet` returned for each of them.
    w, nothing, whole
        Weight of the example, as for `bag`.
    slot
        Its slot of the pool.
    n_classes, d
        Number of classes and of columns.
    tables
        All trees, with room for as many splits.

    Returns
    -------
    Whether a leaf keeps the example, and the `probabilities` after it was learned.

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
    learned one more example, divided equally among the C classes.

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
    # One after the other: `sum` would add in another order.
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
