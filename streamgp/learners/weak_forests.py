"""Online forests as weak learners: all of them in the same arrays, one descent for an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamgp.base import Array, Features, Label
from streamgp.learners.forest import OnlineForestClassifier
from streamgp.learners.frames import feature_rows

if TYPE_CHECKING:
    import pandas as pd


class WeakForests:
    """Forests as weak learners; to the last bit what as many clones with their seeds are.

    Parameters
    ----------
    model
        What each forest is like; it stays unlearned.
    n
        How many.
    seed
        Seed from which theirs follow.

    """

    def __init__(self, model: OnlineForestClassifier, n: int, seed: int) -> None:
        self._n = n
        self._forests = model.clone({"seed": seed}).forests(n)

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return self._forests.labels

    @property
    def n_nodes(self) -> list[int]:
        """Number of nodes of each tree, forest after forest."""
        return self._forests.n_nodes

    def __len__(self) -> int:
        return self._n

    def meet(self, x: Features, y: Label) -> None:
        """Take in the example that is to be learned next."""
        self._forests.meet(x, y)

    def learn(self, m: int, w: float) -> Mapping[Label, float]:
        """Let forest `m`, 0 first, learn it; return its probabilities of all known classes."""
        return dict(zip(self._forests.labels, self._forests.learn(m, w).tolist(), strict=True))

    def probabilities(self, x: Features) -> Array:
        """Return what each predicts for the known classes, shape (n, C)."""
        return self._forests.probabilities(x)

    def probabilities_many(self, X: pd.DataFrame) -> Array:
        """Return what each predicts for each row of a data frame, shape (N, n, C)."""
        return self._forests.probabilities_many(feature_rows(X))
