"""Growth of trees and prediction, compiled by numba.

Mirrors `numpy_backend` function by function, with bitwise equal results, many times as fast; the
functions are documented there. All are in this file, since numba looks at no other to tell whether
its cached compilation is out of date. Constants of other modules are compiled in: a change to one
of them requires a change to this file.

"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar, cast

import numba
import numpy as np

from streamgp.base import Array
from streamgp.trees.numpy_backend import BLOCK, LEAST_GAIN
from streamgp.trees.storage import (
    FRESH,
    IS_EQUAL,
    LEAF,
    MISSING_RIGHT,
    MOST_DRAWN,
    N_LEAVES,
    N_NODES,
    OWN_NODES,
    TREE,
    TRIED,
    WEIGHT,
    WRITTEN,
    Integers,
    Records,
    Short,
    Tables,
)

F = TypeVar("F", bound=Callable[..., object])


_config: Any = numba.config
if _config.DISABLE_JIT:  # not compiled, these functions cannot read the tables
    raise ImportError("numba does not compile, as NUMBA_DISABLE_JIT says")
_caching: Any = import_module("numba.core.caching")


class _Cache:
    """numba's cache on disk; one that is damaged, or cannot be written, costs the compilation.

    numba would raise the error out of the first call of the function, at an event of a stream.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._cache = _caching.FunctionCache(function)

    def load_overload(self, *what: Any) -> Any:
        with suppress(Exception):  # bytes that are no pickle raise any error
            return self._cache.load_overload(*what)
        return None

    def save_overload(self, *what: Any) -> None:
        with suppress(Exception):  # a full disk; or the damaged index, which is read first
            self._cache.save_overload(*what)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


def _compiled(function: F) -> F:
    dispatcher = numba.njit(function)
    with suppress(RuntimeError):  # there is no folder for the cache
        dispatcher._cache = _Cache(function)
    return cast("F", dispatcher)


@_compiled
def _draw(key: np.uint64, counter: int) -> float:
    z = key + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (np.float64(z >> np.uint64(11)) + 0.5) / 9007199254740992.0


@_compiled
def _bag(u: float, w: float, nothing: float, whole: int) -> int:
    k, p, total = 0, nothing, nothing
    while u > total and k < MOST_DRAWN:
        k += 1
        p = p * w / k
        total += p
    return k + whole


@_compiled
def _goes_right(value: float, threshold: float, rule: int) -> bool:
    if rule & IS_EQUAL:
        return value == threshold
    if np.isnan(value):
        return (rule & MISSING_RIGHT) != 0
    return value >= threshold


@_compiled
def _leaf(x: Array, nodes: Records, at: int) -> int:
    while nodes[at].feature != LEAF:
        node = nodes[at]
        at = node.link + _goes_right(x[node.feature], node.threshold, node.rule)
    return at


@_compiled
def meet(slot: int, counters: Integers, tables: Tables) -> tuple[Short, Array]:
    """Return the leaf of an example of the pool in each tree, and draw a number for each tree."""
    n_trees = len(counters)
    leaves, u = np.empty(n_trees, np.int32), np.empty(n_trees)
    for t in range(n_trees):
        leaves[t] = _leaf(tables.X[slot], tables.nodes, t)
        u[t] = _draw(tables.bag_keys[t], counters[t])
    return leaves, u


@_compiled
def _add(proba: Array, weights: Array, total: int) -> None:
    """Add the probabilities of a leaf."""
    prior, share = 1.0 / len(proba), 1.0 / (total + 1.0)
    for c in range(len(proba)):
        proba[c] += (weights[c] + prior) * share


@_compiled
def probabilities(leaves: Short, n_trees: int, n_classes: int, tables: Tables) -> Array:
    """Return the mean over the trees of each group, shape (events, groups, classes)."""
    proba = np.zeros((len(leaves), leaves.shape[1] // n_trees, n_classes))
    for i in range(len(leaves)):
        for t in range(leaves.shape[1]):
            row = tables.nodes[leaves[i, t]].link
            _add(proba[i, t // n_trees], tables.counts[row], tables.leaves[row, WEIGHT])
    return proba / n_trees


@_compiled
def _descend(
    X: Array, start: int, n: int, nodes: Records, tree: int, leaves: Short, moving: Short
) -> None:
    """Find the leaves of `n` events, moving all of them down one level at a time.

    Twice as fast as one after the other: the processor can overlap independent events.
    """
    for i in range(n):
        leaves[i] = tree
        moving[i] = i
    if nodes[tree].feature == LEAF:
        return
    while n > 0:
        n_left = 0
        for j in range(n):
            i = moving[j]
            node = nodes[leaves[i]]
            value = X[start + i, node.feature]
            below = node.link + _goes_right(value, node.threshold, node.rule)
            leaves[i] = below
            moving[n_left] = i
            n_left += nodes[below].feature != LEAF
        n = n_left


@_compiled
def predict(X: Array, n_trees: int, n_classes: int, tables: Tables) -> Array:
    """Return the probabilities of each group of `n_trees`, shape (events, groups, classes)."""
    nodes, counts, about = tables.nodes, tables.counts, tables.leaves
    proba = np.zeros((len(X), len(tables.trees) // n_trees, n_classes))
    leaves, moving = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    # Tree after tree, for a block of events at a time, so that both stay in the cache.
    for start in range(0, len(X), BLOCK):
        n = min(BLOCK, len(X) - start)
        for t in range(len(tables.trees)):
            _descend(X, start, n, nodes, t, leaves, moving)
            group = t // n_trees
            for i in range(n):
                row = nodes[leaves[i]].link
                _add(proba[start + i, group], counts[row], about[row, WEIGHT])
    return proba / n_trees


@_compiled
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
    """Let the trees of a group learn an example of the pool, and predict it."""
    label, about, rings = tables.labels[slot], tables.leaves, tables.rings
    proba, remembered = np.zeros(n_classes), False
    for t in range(len(leaves)):
        tree, leaf = first + t, leaves[t]
        row = tables.nodes[leaf].link
        weight = _bag(u[t], w, nothing, whole)
        tables.counts[row, label] += weight
        about[row, WEIGHT] += weight
        if weight > 0 and tables.trees[tree, OWN_NODES] + 2 <= tables.limits.max_nodes:
            remembered = True
            place = about[row, WRITTEN] % rings.shape[1]
            rings[row, place, 0] = slot
            rings[row, place, 1] = weight
            about[row, WRITTEN] += 1
            about[row, FRESH] += weight
            if about[row, FRESH] >= tables.limits.min_weight:
                leaf = _split(tree, leaf, slot, n_classes, d, tables)
        row = tables.nodes[leaf].link
        _add(proba, tables.counts[row], about[row, WEIGHT])
    return remembered, proba / len(leaves)


@_compiled
def _split(tree: int, leaf: int, slot: int, n_classes: int, d: int, tables: Tables) -> int:
    row = tables.nodes[leaf].link
    m = min(tables.leaves[row, WRITTEN], tables.rings.shape[1])
    entries = tables.rings[row, :m].copy()
    tables.leaves[row, FRESH] = 0
    total = np.zeros(n_classes)
    for i in range(m):
        total[tables.labels[entries[i, 0]]] += entries[i, 1]
    feature, threshold, rule = _best_test(tree, entries, total, d, tables)
    tables.trees[tree, TRIED] += 1
    if feature == LEAF:
        return leaf
    left, new_row = tables.used[N_NODES], tables.used[N_LEAVES]
    tables.used[N_NODES] += 2
    tables.used[N_LEAVES] += 1
    tables.trees[tree, OWN_NODES] += 2
    tables.nodes[leaf].feature = feature
    tables.nodes[leaf].link = left
    tables.nodes[leaf].rule = rule
    tables.nodes[leaf].threshold = threshold
    tables.nodes[left].feature = LEAF
    tables.nodes[left].link = row
    tables.nodes[left + 1].feature = LEAF
    tables.nodes[left + 1].link = new_row
    tables.leaves[new_row, TREE] = tree
    tables.counts[row, :n_classes] = 0.0
    tables.leaves[row, WRITTEN] = 0
    tables.leaves[row, WEIGHT] = 0
    for i in range(m):
        its_slot, weight = entries[i, 0], entries[i, 1]
        right = _goes_right(tables.X[its_slot, feature], threshold, rule)
        its_row = new_row if right else row
        tables.counts[its_row, tables.labels[its_slot]] += weight
        tables.leaves[its_row, WEIGHT] += weight
        if tables.limits.inherit:
            place = tables.leaves[its_row, WRITTEN]
            tables.rings[its_row, place, 0] = its_slot
            tables.rings[its_row, place, 1] = weight
            tables.leaves[its_row, WRITTEN] += 1
            tables.leaves[its_row, FRESH] += weight
    return int(left + _goes_right(tables.X[slot, feature], threshold, rule))


@_compiled
def _best_test(
    tree: int, entries: Short, total: Array, d: int, tables: Tables
) -> tuple[int, float, int]:
    """Return feature, threshold and rule of the best random test; `LEAF` if none helps."""
    n, m, n_classes = tables.limits.n_tests, len(entries), len(total)
    low, high, varied, n_varied = _ranges(entries, d, tables.X)
    weight = total.sum()
    least = (total * total).sum() / weight * (1.0 + LEAST_GAIN)
    best, chosen, chosen_threshold, chosen_rule = least, LEAF, 0.0, 0
    if n_varied == 0:
        return chosen, chosen_threshold, chosen_rule
    key, counter = tables.split_keys[tree], 2 * n * tables.trees[tree, TRIED]
    left, absent = np.empty(n_classes), np.empty(n_classes)
    for j in range(n):
        feature = varied[int(_draw(key, counter + 2 * j) * n_varied)]
        v = _draw(key, counter + 2 * j + 1)
        threshold, rule = low[feature] + v * (high[feature] - low[feature]), 0
        if tables.is_text[feature] == 1:
            threshold, rule = tables.X[entries[int(v * m), 0], feature], IS_EQUAL
        left[:] = 0.0
        absent[:] = 0.0
        for i in range(m):
            its_slot = entries[i, 0]
            value, label = tables.X[its_slot, feature], tables.labels[its_slot]
            if np.isnan(value):
                absent[label] += entries[i, 1]
            elif not _goes_right(value, threshold, rule):
                left[label] += entries[i, 1]
        has_absent = absent.sum() > 0.0
        right_too = has_absent or 2.0 * left.sum() < weight
        score = _score(left, total)
        if score > best:
            best, chosen, chosen_threshold = score, feature, threshold
            chosen_rule = rule | (MISSING_RIGHT if right_too else 0)
        if has_absent:
            left += absent
            score = _score(left, total)
            if score > best:
                best, chosen, chosen_threshold, chosen_rule = score, feature, threshold, rule
    return chosen, chosen_threshold, chosen_rule


@_compiled
def _ranges(entries: Short, d: int, X: Array) -> tuple[Array, Array, Integers, int]:
    """Return the least and largest value of each column, and the columns that vary."""
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    gaps = np.zeros(d, np.bool_)
    for i in range(len(entries)):
        x = X[entries[i, 0]]
        for j in range(d):
            if np.isnan(x[j]):
                gaps[j] = True
            else:
                low[j] = min(low[j], x[j])
                high[j] = max(high[j], x[j])
    varied, n = np.empty(d, np.int64), 0
    for j in range(d):
        low[j] += 0.0
        high[j] += 0.0
        if low[j] < high[j] or (gaps[j] and low[j] == high[j]):
            varied[n] = j
            n += 1
    return low, high, varied, n


@_compiled
def _score(left: Array, total: Array) -> float:
    squares_left, squares_right, n_left, n_right = 0.0, 0.0, 0.0, 0.0
    for c in range(len(total)):
        right = total[c] - left[c]
        squares_left += left[c] * left[c]
        squares_right += right * right
        n_left += left[c]
        n_right += right
    if n_left == 0.0 or n_right == 0.0:
        return 0.0
    return squares_left / n_left + squares_right / n_right
