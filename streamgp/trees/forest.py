"""Several online random forests over the same examples.

Vectors and class numbers in, probabilities out. What the trees do is in `numpy_backend`
and, many times as fast where numba is installed, in `numba_backend`: bitwise equal.

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

# A Poisson variable of a larger mean is one of this mean and a whole number: its inversion takes
# as many steps as it is large.
_LARGEST_MEAN = 16.0


@cache
def fastest() -> ModuleType:
    """Return what grows the trees: `numba_backend` if there is numba, else `numpy_backend`."""
    try:  # late: numba takes half a second to import
        return import_module("streamgp.trees.numba_backend")
    except ImportError:  # there is none, or one that does not go with this numpy
        return import_module("streamgp.trees.numpy_backend")


class Forest:
    """Several forests of random trees that learn the same examples, each with its own weights.

    A leaf remembers the examples that it has learned. Once their weight reaches `min_weight` it
    draws `n_tests` tests: a feature in which the examples differ, and a threshold uniform in the
    range that the feature has among them; or, of a text, one of the examples, whose text the others
    are compared with. The test that lessens Gini impurity most splits the leaf. An example that is
    learned with weight w is learned by each tree as often as a Poisson variable of mean w says.

    Draws are a function of seed, tree, and number of the example or of the attempt: a forest goes
    its own way whatever its neighbours do, and the same way wherever it is taken up again.

    Parameters
    ----------
    n_trees
        Trees of each forest.
    limits
        What splits a leaf.
    seeds
        A seed for each forest.
    kernels
        What grows the trees, `numpy_backend` or `numba_backend`; None for the faster one there is.

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
    >>> grove = Forest(5, Limits(n_tests=10, min_weight=8, max_nodes=99, inherit=1), seeds=[1, 2])
    >>> grove.widen([False])
    >>> grove.add_class()
    >>> grove.add_class()
    >>> for i in range(40):
    ...     grove.meet(np.array([i / 40]), label=i // 20)
    ...     for forest in range(2):
    ...         p = grove.learn(forest, 1.0)
    >>> grove.predict(np.array([[0.1], [0.9]]))[:, 0]
    array([[0.94611111, 0.05388889],
           [0.01940114, 0.98059886]])

    References
    ----------
    [^1]: Saffari, A., Leistner, C., Santner, J., Godec, M. and Bischof, H., 2009. On-line random
        forests. ICCV Workshops.

    """

    # _tables    trees and examples
    # _counters  number of examples that each tree has been offered
    # _free      slots of the pool that no leaf remembers; the last ones, from _n_free on, are taken
    # _slot      slot of the latest example, the last of the free ones until a leaf remembers it
    # _is_kept   whether one does
    # _met       of the latest example: its leaf in each tree, and a number drawn for each
    # _taught    forests that have learned it
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
        self._taught: set[int] = set()

    def __getstate__(self) -> dict[str, Any]:
        # What lies between meeting an example and learning it is no state.
        return {**self.__dict__, "_kernels": None, "_met": None, "_taught": set()}

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
        """Make another class known, of which there was no example."""
        self.n_classes += 1
        self._tables = with_room(self._tables, self.n_classes)

    def widen(self, is_text: Sequence[bool]) -> None:
        """Add columns, of numbers or of texts, that were missing in all examples so far."""
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
        """Take the example that is to be learned next, a vector and the number of its class."""
        self._tables = with_room(self._tables, self.n_classes)
        if not self._n_free:
            self._find_free()
        slot = self._slot = int(self._free[self._n_free - 1])
        self._is_kept = False
        self._tables.X[slot, : self.n_columns] = x
        self._tables.labels[slot] = label
        self._met = self._grow().meet(slot, self._counters, self._tables)
        self._taught.clear()

    def learn(self, forest: int, w: float) -> Array:
        """Teach one forest the example met, and return what it says of it afterwards.

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
            If no example was met, or this forest has learned it already.

        """
        if self._met is None or forest in self._taught:
            # There would be no room for what it grows.
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
        self._taught.add(forest)
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
            Vectors, shape (n, columns): NaN for a missing number, 0 for a missing text.

        """
        if not self.n_classes:
            return np.zeros((len(X), len(self.n_learned), 0))
        asked = self._grow().predict(X, self.n_trees, self.n_classes, self._tables)
        return cast("Array", asked)

    def _grow(self) -> ModuleType:
        return fastest() if self._kernels is None else self._kernels

    def _find_free(self) -> None:
        """Find slots whose examples no leaf remembers any more, and make more if they are few."""
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
