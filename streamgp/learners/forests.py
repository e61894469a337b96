"""Several online random forests over the same dictionaries of features.

Which feature is which column, and which class has which number, is settled here. What the forests
are for is the business of the learner around them.

"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from streamgp.arguments import check_number, check_whole
from streamgp.base import Array, Features, Label, State, check_label
from streamgp.draws import check_seed
from streamgp.features import ColumnsWithGaps
from streamgp.trees.grove import Grove
from streamgp.trees.tables import Limits

LARGEST_WEIGHT = 1e5
"""Largest weight of an example: sums of squares of weights are exact for a long while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestSettings:
    """The arguments of a forest, under their names.

    Raises
    ------
    TypeError
        If the seed is no whole number.
    ValueError
        If another argument is out of range.

    """

    n_models: int
    n_tests: int
    min_weight: int
    max_nodes: int
    inherit: bool
    seed: int | None

    def __post_init__(self) -> None:
        for name, least in (("n_models", 1), ("n_tests", 1), ("min_weight", 2), ("max_nodes", 1)):
            check_whole(name, getattr(self, name), least)
        check_seed(self.seed)

    @property
    def limits(self) -> Limits:
        """What splits a leaf."""
        return Limits(
            n_tests=int(self.n_tests),
            min_weight=int(self.min_weight),
            max_nodes=int(self.max_nodes),
            inherit=int(self.inherit),
        )


def member_seed(seed: int, member: int) -> int:
    """Return the seed of one of several forests that come from one seed.

    Examples
    --------
    >>> member_seed(1, 0), member_seed(1, 1)
    (66840870, 3564991678)

    """
    digest = blake2b(f"{seed}\x1fmember\x1f{member}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")


def check_weight(w: float) -> None:
    """Refuse a weight that no example can have."""
    # Every member of an ensemble asks, for every example: a plain float goes a short way.
    if not (w.__class__ is float and _is_weight(w)):
        check_number("w", w, f"between 0 and {LARGEST_WEIGHT:.0e}", _is_weight)


def _is_weight(w: float) -> bool:
    return 0.0 <= w <= LARGEST_WEIGHT


class Forests:
    """Several forests that learn the same examples, each with weights of its own.

    Forest m is, to the last bit, an `OnlineForestClassifier` with `member_seed(seed, m)` that has
    learned the same examples with the same weights.

    Parameters
    ----------
    settings
        How each of them is built.
    n
        How many. None for a single one, with the seed itself.

    Attributes
    ----------
    labels
        Known classes, in the order in which they appeared.
    n_learned
        Number of examples learned by each.
    seed
        What their seeds are made of: the one of the settings, or one that was drawn.

    Examples
    --------
    >>> from streamgp import OnlineForestClassifier
    >>> forests = OnlineForestClassifier(seed=1).forests(2)
    >>> forests.meet({"light": 0.9}, "awake")
    0
    >>> forests.learn(0, 1.0), forests.learn(1, 0.5)
    (array([1.]), array([1.]))
    >>> forests.meet({"light": 0.1}, "asleep")
    1
    >>> forests.learn(0, 1.0)
    array([0.56666667, 0.43333333])

    """

    # _columns  which feature is which column
    # _grove    the forests; they know classes by their numbers
    # _numbers  number of each class; `labels` is its inverse
    def __init__(self, settings: ForestSettings, n: int | None = None) -> None:
        self._settings = settings
        self._n = n
        self.labels: list[Label] = []
        self._numbers: dict[Label, int] = {}
        self._columns = ColumnsWithGaps()
        self._begin(secrets.randbits(32) if settings.seed is None else int(settings.seed))

    @property
    def n_learned(self) -> list[int]:
        """Number of examples learned by each forest."""
        return self._grove.n_learned

    @property
    def n_nodes(self) -> list[int]:
        """Number of nodes of each tree, forest after forest."""
        nodes: list[int] = self._grove.n_nodes.tolist()
        return nodes

    def check(self, x: Features, y: Label) -> None:
        """Refuse what cannot be learned, as `meet` does; changes nothing."""
        check_label(y)
        self._columns.vector(x)

    def meet(self, x: Features, y: Label) -> int:
        """Take the example that each forest may learn next; return the number of its class.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a text, or the label is missing.
        ValueError
            If a feature is infinite.

        """
        check_label(y)
        vector = self._columns.known_vector(x)
        if vector is None:
            columns = self._columns.widened(x)
            vector = columns.vector(x)
            if columns is not self._columns:
                first = len(self._columns)
                self._grove.widen([i in columns.texts for i in range(first, len(columns))])
                self._columns = columns
        number = self._numbers.get(y)
        if number is None:
            number = self._numbers[y] = len(self.labels)
            self.labels.append(y)
            self._grove.add_class()
        self._grove.meet(vector, number)
        return number

    def learn(self, m: int, w: float) -> Array:
        """Teach forest m the example met, and return what it makes of it afterwards.

        Parameters
        ----------
        m
            Number of the forest, which is taught this example for the first time.
        w
            Weight of the example; with 0 nothing is learned.

        Returns
        -------
        Probability of each class, in the order of `labels`.

        Raises
        ------
        ValueError
            If the weight is negative, infinite or above 1e5.

        """
        check_weight(w)
        return self._grove.learn(m, float(w))

    def probabilities(self, x: Features) -> Array:
        """Return the probability of each class by each forest, shape (forests, classes)."""
        proba: Array = self._grove.predict(np.array([self._columns.vector(x)]))[0]
        return proba

    def probabilities_many(self, xs: Sequence[Features]) -> Array:
        """Return the same for many events, shape (events, forests, classes)."""
        columns = self._columns
        X = np.array([columns.vector(x) for x in xs], dtype=float)
        return self._grove.predict(X.reshape(len(xs), len(columns)))

    def state(self) -> State | None:
        """Return what is no function of the examples, as plain JSON values; None for nothing."""
        return {"seed": self.seed} if self._settings.seed is None else None

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; these forests have learned nothing yet."""
        if state is not None and self._settings.seed is None:
            self._begin(int(state["seed"]))

    def _begin(self, seed: int) -> None:
        self.seed = seed
        own = [seed] if self._n is None else [member_seed(seed, m) for m in range(self._n)]
        self._grove = Grove(int(self._settings.n_models), self._settings.limits, own)
