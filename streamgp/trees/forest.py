"""Several online random forests over the same examples.

Vectors and class numbers in, probabilities out. Trees grow and predict in `numpy_backend` or, many
times faster where numba is installed, in `numba_backend`, with bitwise equal results.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from importlib import import_module
from types import ModuleType
from typing import Any, cast

import numpy as np

from streamgp.base import Array
from streamgp.trees.storage import (
    Integers,
    Keys,
    Limits,
    Short,
    longer,
    single_leaves,
    slots_in_use,
    with_room,
)

# A Poisson variable of a larger mean is drawn as one of this mean plus a whole number: inversion
# takes as many steps as the value drawn.
_LARGEST_MEAN = 16.0


@cache
def fastest() -> ModuleType:
    """Return the module that grows the trees: `numba_backend` if it loads, else `numpy_backend`."""
    try:  # late: numba takes half a second to import
        return import_module("streamgp.trees.numba_backend")
    except ImportError:  # not installed, incompatible with this numpy, or switched off
        return import_module("streamgp.trees.numpy_backend")


class Forest:
    """Several forests of random trees that learn the same examples, each with its own weights.

    A leaf keeps the latest examples that it has learned. Once their weight reaches `min_weight`, it
    draws `n_tests` tests: a feature in which the examples differ, and a threshold uniform in the
    range of the feature among them; or, for a string, one of the examples, with whose string the
    others are compared. The leaf is split by the test that reduces Gini impurity most. Each tree
    learns an example of weight w a Poisson-distributed number of times, with mean w.

    Draws are a function of the seed, the tree, and the number of the example or of the attempt: a
    forest grows independently of its neighbours, and the same way after being restored.

    Parameters
    ----------
    n_trees
        Trees of each forest.
    limits
        When and how a leaf is split.
    seeds
        A seed for each forest.
    kernels
        The module that grows the trees, `numpy_backend` or `numba_backend`; None for the fastest
        available.

    Attributes
    ----------
    n_classes
        Number of classes.
    n_columns
        Number of columns of a vector.
    n_learned
        Number of examples that each forest has learned.

    Examples
    --------
    >>> model = Forest(5, Limits(n_tests=10, min_weight=8, max_nodes=99, inherit=1), seeds=[1, 2])
    >>> model.widen([False])
    >>> model.add_class()
    >>> model.add_class()
    >>> for i in range(40):
    ...     model.meet(np.array([i / 40]), label=i // 20)
    ...     for forest in range(2):
    ...         p = model.learn(forest, 1.0)
    >>> model.predict(np.array([[0.1], [0.9]]))[:, 0]
    array([[0.94611111, 0.05388889],
           [0.01940114, 0.98059886]])

    References
    ----------
    [^1]: Saffari, A., Leistner, C., Santner, J., Godec, M. and Bischof, H., 2009. On-line random
        forests. ICCV Workshops.

    """

    # _tables    trees and examples
    # _counters  number of examples that each tree has been offered
    # _free      slots of the pool whose examples no leaf keeps; those from _n_free on are taken
    # _slot      slot of the latest example, the last of the free ones until a leaf keeps it
    # _is_kept   whether a leaf keeps it
    # _met       for the latest example: its leaf in each tree, and a number drawn for each tree
    # _learned_by  forests that have learned the latest example
    def __init__(
        self,
        n_trees: int,
        limits: Limits,
        seeds: Sequence[int],
        kernels: ModuleType | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.n_classes = 0
        self.n_columns = 0
        self._kernels = kernels
        self._tables = single_leaves(
            _keys(seeds, n_trees, "bag"), _keys(seeds, n_trees, "split"), limits
        )
        self._counters: Integers = np.zeros(len(seeds) * n_trees, np.int64)
        self._free: Integers = np.arange(len(self._tables.X))[::-1].copy()
        self._n_free = len(self._free)
        self._slot = 0
        self._is_kept = False
        self._met: tuple[Short, Array] | None = None
        self._learned_by: set[int] = set()

    def __getstate__(self) -> dict[str, Any]:
        # An example that was met but not learned is not state.
        return {**self.__dict__, "_kernels": None, "_met": None, "_learned_by": set()}

    @property
    def n_learned(self) -> list[int]:
        """Number of examples that each forest has learned."""
        counts: list[int] = self._counters[:: self.n_trees].tolist()
        return counts

    @property
    def n_nodes(self) -> Integers:
        """Number of nodes of each tree."""
        return self._tables.trees[:, 0].copy()

    def add_class(self) -> None:
        """Add a class that has had no example."""
        self.n_classes += 1
        self._tables = with_room(self._tables, self.n_classes)

    def widen(self, is_text: Sequence[bool]) -> None:
        """Add columns, of numbers or strings, that were missing in all examples so far."""
        old, new = self.n_columns, self.n_columns + len(is_text)
        X, kinds = self._tables.X, self._tables.is_text
        if new > X.shape[1]:
            n = max(new, 2 * X.shape[1])
            X, kinds = np.ascontiguousarray(longer(X.T, n).T), longer(kinds, n)
        kinds[old:new] = is_text
        X[:, old:new] = np.where(is_text, 0.0, math.nan)
        self._tables = self._tables._replace(X=X, is_text=kinds)
        self.n_columns = new

    def meet(self, x: Array, label: int) -> None:
        """Take in the example to be learned next: a vector and the number of its class."""
        self._tables = with_room(self._tables, self.n_classes)
        if not self._n_free:
            self._find_free()
        slot = self._slot = int(self._free[self._n_free - 1])
        self._is_kept = False
        self._tables.X[slot, : self.n_columns] = x
        self._tables.labels[slot] = label
        self._met = self._grow().meet(slot, self._counters, self._tables)
        self._learned_by.clear()

    def learn(self, forest: int, w: float) -> Array:
        """Let one forest learn the example met, and return its prediction for it afterwards.

        Parameters
        ----------
        forest
            Number of the forest, which has not learned this example yet.
        w
            Weight of the example; with 0 nothing is learned.

        Returns
        -------
        Probability of each class, shape (classes,).

        Raises
        ------
        RuntimeError
            If no example was met, or this forest has already learned it.

        """
        if self._met is None or forest in self._learned_by:
            # There might be no room for the nodes that it adds.
            raise RuntimeError(f"forest {forest} has learned this example; meet another one first")
        leaves, u = self._met
        first, last = forest * self.n_trees, (forest + 1) * self.n_trees
        if w == 0.0:
            asked = self._grow().probabilities(
                leaves[None, first:last], self.n_trees, self.n_classes, self._tables
            )
            return cast("Array", asked[0, 0])
        whole = 0 if w <= _LARGEST_MEAN else math.floor(w - _LARGEST_MEAN)
        w -= whole
        remembered, proba = self._grow().learn(
            first,
            leaves[first:last],
            u[first:last],
            w,
            math.exp(-w),
            whole,
            self._slot,
            self.n_classes,
            self.n_columns,
            self._tables,
        )
        self._learned_by.add(forest)
        self._counters[first:last] += 1
        if remembered and not self._is_kept:
            self._n_free -= 1
            self._is_kept = True
        return cast("Array", proba)

    def predict(self, X: Array) -> Array:
        """Return the probabilities of each class by each forest, shape (n, forests, classes).

        Parameters
        ----------
        X
            Vectors, shape (n, columns): NaN for a missing number, 0 for a missing string.

        """
        if not self.n_classes:
            return np.zeros((len(X), len(self.n_learned), 0))
        asked = self._grow().predict(X, self.n_trees, self.n_classes, self._tables)
        return cast("Array", asked)

    def _grow(self) -> ModuleType:
        return fastest() if self._kernels is None else self._kernels

    def _find_free(self) -> None:
        """Find slots whose examples no leaf keeps any more, and add slots if these are few."""
        tables = self._tables
        n = len(tables.X)
        taken = np.zeros(n, np.bool_)
        taken[slots_in_use(tables)] = True
        if 2 * np.count_nonzero(taken) > n:
            self._tables = tables._replace(
                X=longer(tables.X, 2 * n), labels=longer(tables.labels, 2 * n)
            )
            taken = longer(taken, 2 * n)
        self._free = np.flatnonzero(~taken)[::-1].copy()
        self._n_free = len(self._free)


def _keys(seeds: Sequence[int], n_trees: int, purpose: str) -> Keys:
    """Return a key for each tree of each forest, for the draws of one purpose."""
    digests = [
        blake2b(f"{seed}\x1f{purpose}\x1f{tree}".encode(), digest_size=8).digest()
        for seed in seeds
        for tree in range(n_trees)
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
