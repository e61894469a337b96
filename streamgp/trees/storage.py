"""Array storage of the trees of a forest and of the examples that they keep.

Nodes and leaves of all trees share one table each, which doubles when it is full. They are used by
`numpy_backend` and `numba_backend`.

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from streamgp.base import Array

if TYPE_CHECKING:
    from numpy.typing import NDArray


Integers: TypeAlias = "NDArray[np.int64]"
Short: TypeAlias = "NDArray[np.int32]"
Keys: TypeAlias = "NDArray[np.uint64]"
Records: TypeAlias = "NDArray[np.void]"

LEAF = -1
"""The feature of a node that tests none."""

MISSING_RIGHT, IS_EQUAL = 1, 2
"""Bits of a node's `rule`: a missing number goes right; a string is compared for equality."""

NODE = np.dtype(
    [("feature", np.int32), ("link", np.int32), ("rule", np.int64), ("threshold", np.float64)]
)
"""A node: a value goes right if it reaches the threshold or, for a string, equals it.

`link` is the left child, which the right one follows; for a leaf, its row in the table of leaves.
"""

FRESH, WRITTEN, TREE, WEIGHT = 0, 1, 2, 3
"""Columns of `leaves`: weight that counts for the next split, number of entries ever written to the
ring of examples, the tree, and the sum of `counts`."""

N_NODES, N_LEAVES = 0, 1
"""Entries of `used`."""

OWN_NODES, TRIED = 0, 1
"""Columns of `trees`: number of nodes, and number of attempts to split a leaf."""


class Limits(NamedTuple):
    """Limits that decide when a leaf is split.

    Parameters
    ----------
    n_tests
        Number of random tests, of which the best is used.
    min_weight
        Weight of examples learned after which a leaf is split.
    max_nodes
        Largest number of nodes of a tree.
    inherit
        1 if the children take over their examples, 0 if only the class weights.

    """

    n_tests: int
    min_weight: int
    max_nodes: int
    inherit: int


class Tables(NamedTuple):
    """The trees of all groups, and the examples that they keep.

    Parameters
    ----------
    nodes
        Of type `NODE`; the root of tree t is node t.
    counts
        Weight of each class in each leaf, whole numbers, shape (leaves, classes).
    leaves
        Other values of each leaf, shape (leaves, 4).
    rings
        The latest examples of each leaf: slot of the pool, and weight; shape (leaves, ring, 2).
    trees
        Values of each tree, shape (trees, 2).
    bag_keys, split_keys
        Keys of the draws of each tree.
    used
        Number of nodes and of leaves.
    X, labels
        The pool of examples: features, NaN for a missing number and 0 for a missing string, shape
        (slots, columns), and the number of the class.
    is_text
        Whether a column holds strings, 0 or 1.
    limits
        What splits a leaf.

    """

    nodes: Records
    counts: Array
    leaves: Integers
    rings: Short
    trees: Integers
    bag_keys: Keys
    split_keys: Keys
    used: Integers
    X: Array
    labels: Integers
    is_text: Integers
    limits: Limits


def single_leaves(bag_keys: Keys, split_keys: Keys, limits: Limits) -> Tables:
    """Return the tables of trees that have learned nothing, each a single leaf."""
    n = len(bag_keys)
    nodes: Records = np.zeros(2 * n, NODE)
    nodes["feature"] = LEAF
    nodes["link"][:n] = np.arange(n)
    leaves: Integers = np.zeros((2 * n, 4), np.int64)
    leaves[:n, TREE] = np.arange(n)
    trees: Integers = np.zeros((n, 2), np.int64)
    trees[:, OWN_NODES] = 1
    return Tables(
        nodes=nodes,
        counts=np.zeros((2 * n, 2)),
        leaves=leaves,
        # No entry weighs less than 1, so a leaf has at most this many when it is to be split.
        rings=np.zeros((2 * n, limits.min_weight, 2), np.int32),
        trees=trees,
        bag_keys=bag_keys,
        split_keys=split_keys,
        used=np.array([n, n]),
        X=np.zeros((16, 4)),
        labels=np.zeros(16, np.int64),
        is_text=np.zeros(4, np.int64),
        limits=limits,
    )


def with_room(tables: Tables, n_classes: int) -> Tables:
    """Return tables with room to split a leaf of each tree, and to count this many classes."""
    n_trees: int = len(tables.trees)
    n_nodes, n_leaves = tables.used.tolist()
    nodes, counts, leaves, rings = tables.nodes, tables.counts, tables.leaves, tables.rings
    # There are never more nodes than this, however large the tables.
    most = max(n_trees * tables.limits.max_nodes, n_nodes)
    if n_nodes + 2 * n_trees > len(nodes) and len(nodes) < most:
        nodes = longer(nodes, min(2 * len(nodes) + 2 * n_trees, most))
        nodes["feature"][n_nodes:] = LEAF
    most = (most + n_trees) // 2
    if n_leaves + n_trees > len(leaves) and len(leaves) < most:
        n = min(2 * len(leaves) + n_trees, most)
        counts, leaves, rings = longer(counts, n), longer(leaves, n), longer(rings, n)
    if n_classes > counts.shape[1]:
        counts = np.ascontiguousarray(longer(counts.T, max(n_classes, 2 * counts.shape[1])).T)
    return tables._replace(nodes=nodes, counts=counts, leaves=leaves, rings=rings)


def slots_in_use(tables: Tables) -> Integers:
    """Return the slots of the examples that leaves keep and may still need."""
    rings = tables.rings[: tables.used[N_LEAVES]]
    about = tables.leaves[: len(rings)]
    grows = tables.trees[about[:, TREE], OWN_NODES] + 2 <= tables.limits.max_nodes
    held = np.where(grows, about[:, WRITTEN], 0)
    slots: Integers = rings[np.arange(rings.shape[1]) < held[:, None], 0].astype(np.int64)
    return slots


def longer(table: Any, n: int) -> Any:
    """Return a table of `n` rows that begins with this one; new rows are 0.

    Examples
    --------
    >>> longer(np.array([7, 8]), 3)
    array([7, 8, 0])

    """
    more = np.zeros((n, *table.shape[1:]), table.dtype)
    more[: len(table)] = table
    return more


# --- Random numbers of the trees: functions of a key and a counter only.


# SplitMix64: the step of its counter, and its mixing constants.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_2_TO_53 = 9007199254740992.0

MOST_DRAWN = 128
"""Upper bound of a Poisson draw, whose mean is at most 17."""


def draw(keys: Keys, counters: Integers) -> Array:
    """Draw a number uniform in (0, 1) for each key and counter.

    Examples
    --------
    >>> draw(np.array([1, 1, 2], np.uint64), np.array([0, 1, 0]))
    array([0.56656158, 0.74578176, 0.59118973])

    References
    ----------
    [^1]: Steele, G.L., Lea, D. and Flood, C.H., 2014. Fast splittable pseudorandom number
        generators. OOPSLA (SplitMix64).

    """
    z = keys + (counters.astype(np.uint64) + np.uint64(1)) * _STEP
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    z = z ^ (z >> _31)
    drawn: Array = ((z >> _11).astype(np.float64) + 0.5) / _2_TO_53
    return drawn


def bag(u: Array, w: float, nothing: float, whole: int) -> Integers:
    """Draw how often each tree learns an example: `whole` plus a Poisson variable of mean `w`.

    Parameters
    ----------
    u
        Uniform numbers.
    w
        Mean of the Poisson variables.
    nothing
        Probability that one is 0, exp(-w).
    whole
        Number that is added.

    Examples
    --------
    >>> bag(np.array([0.3, 0.7, 0.9]), 1.0, np.exp(-1.0), 0)
    array([0, 1, 2])

    """
    top, p, sums = u.max(), nothing, [nothing]
    while sums[-1] < top and len(sums) < MOST_DRAWN:
        p = p * w / len(sums)
        sums.append(sums[-1] + p)
    return np.array(sums).searchsorted(u) + whole
