"""Online random forest: the weak learner of boosting, and a fast learner of its own.

Dictionaries and labels in, probabilities out; the trees are `streamgp.trees`.

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river import base

from streamgp.base import Array, Features, Label, State
from streamgp.learners.forests import Forests, ForestSettings, check_weight
from streamgp.learners.frames import feature_rows, frame_like, series_like
from streamgp.learners.unretained import Unretained

if TYPE_CHECKING:
    import pandas as pd


class OnlineForestClassifier(Unretained, base.MiniBatchClassifier):
    """Random trees that learn one example at a time, and new classes as they come.

    A leaf remembers its latest examples. Once their weight has grown by `min_weight`, it draws
    `n_tests` random tests of a feature in which they differ, and the test that tells their classes
    apart best splits it. Each tree learns an example as often as a Poisson variable says, whose
    mean is the example's weight. Nothing is ever pruned or forgotten; time and memory are bounded
    by `max_nodes`.

    Numbers need no scaling. A number is compared with a threshold, drawn uniformly in the range
    that it has in the leaf; a text with one of the texts in the leaf. A feature that is absent,
    None or NaN goes the way that suited such examples best when its leaf was split.

    Parameters
    ----------
    n_models
        Number of trees.
    n_tests
        Random tests of which the best splits a leaf.
    min_weight
        Weight of examples after which a leaf is split.
    max_nodes
        Largest number of nodes of a tree, which then only counts classes.
    inherit
        Let the two leaves of a split take over its examples, which count for their own splits. If
        not, they start with the weights of the classes alone, as in the paper, and trees grow half
        as fast (docs/forest.md).
    seed
        Seed of all draws. None draws one.

    Attributes
    ----------
    n_learned
        Number of examples learned; none is retained.
    n_nodes
        Number of nodes of each tree.
    labels
        Known classes, in the order in which they appeared.

    Examples
    --------
    >>> from streamgp import OnlineForestClassifier
    >>> model = OnlineForestClassifier(seed=1)
    >>> for hour in range(200):
    ...     model.learn_one({"hour": hour % 24}, "asleep" if hour % 24 < 8 else "awake")
    >>> model.predict_proba_one({"hour": 3})
    {'asleep': 0.99..., 'awake': 0.00...}

    References
    ----------
    [^1]: Saffari, A., Leistner, C., Santner, J., Godec, M. and Bischof, H., 2009. On-line random
        forests. ICCV Workshops.

    """

    # _forests  a single one
    def __init__(
        self,
        n_models: int = 10,
        n_tests: int = 50,
        min_weight: int = 30,
        max_nodes: int = 2000,
        inherit: bool = True,
        seed: int | None = None,
    ) -> None:
        self.n_models = n_models
        self.n_tests = n_tests
        self.min_weight = min_weight
        self.max_nodes = max_nodes
        self.inherit = inherit
        self.seed = seed
        self._forests = self.forests(None)

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def n_learned(self) -> int:
        """Number of examples learned; none is retained."""
        return self._forests.n_learned[0]

    @property
    def n_nodes(self) -> list[int]:
        """Number of nodes of each tree."""
        return self._forests.n_nodes

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return list(self._forests.labels)

    def predict_proba_one(self, x: Features) -> dict[Label, float]:  # type: ignore[override]
        """Predict the probability of each known class, `{}` before the first label.

        The mean over the trees of `(c + 1 / C) / (n + 1)` for a class of weight c in a leaf of
        weight n, with C classes known.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a text.
        ValueError
            If a feature is infinite.

        """
        forests = self._forests
        return dict(zip(forests.labels, forests.probabilities(x)[0].tolist(), strict=True))

    def predict_one(self, x: Features) -> Label | None:  # type: ignore[override]
        """Predict the most probable class, None before the first label."""
        return self._largest(self._forests.probabilities(x)[0])

    def learn_one(self, x: Features, y: Label, w: float = 1.0) -> None:
        """Learn that `x` is a `y`, as if it had been met `w` times; not at all if that is 0.

        Raises
        ------
        TypeError
            If a feature is neither a number nor a text, the label is missing, or the weight is no
            number.
        ValueError
            If a feature is infinite, or the weight is negative or above 1e5.

        """
        check_weight(w)
        if w == 0.0:
            self._forests.check(x, y)
            return
        self._forests.meet(x, y)
        self._forests.learn(0, w)

    # --- many at once

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: pd.Series | None = None) -> None:
        """Learn the rows of a data frame, one after the other; each weighs 1 if `w` is None."""
        weights = [1.0] * len(X) if w is None else w.tolist()
        for x, label, weight in zip(feature_rows(X), y.tolist(), weights, strict=True):
            self.learn_one(x, label, w=weight)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probability of each known class for each row, as one by one but faster."""
        proba = self._forests.probabilities_many(feature_rows(X))[:, 0]
        return frame_like(X, dict(zip(self._forests.labels, proba.T.tolist(), strict=True)))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the most probable class for each row of a data frame."""
        proba = self._forests.probabilities_many(feature_rows(X))[:, 0]
        return series_like(X, [self._largest(p) for p in proba])

    # --- several over the same examples

    def forests(self, n: int | None) -> Forests:
        """Return forests such as this one that have learned nothing and will learn together.

        Parameters
        ----------
        n
            How many; each draws for itself. None for a single one that draws as this one does.

        """
        settings = ForestSettings(
            n_models=self.n_models,
            n_tests=self.n_tests,
            min_weight=self.min_weight,
            max_nodes=self.max_nodes,
            inherit=self.inherit,
            seed=self.seed,
        )
        return Forests(settings, n)

    # --- restarts

    def state(self) -> State | None:
        """Return what is no function of the examples, as plain JSON values; None for nothing.

        That is a seed that was drawn. A forest that takes it over with `load_state`, and is taught
        all examples in their order, is this one to the last bit.
        """
        return self._forests.state()

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; this forest has learned nothing yet."""
        self._forests.load_state(state)

    def _largest(self, proba: Array) -> Label | None:
        return self._forests.labels[int(proba.argmax())] if len(proba) else None

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"seed": 1}
