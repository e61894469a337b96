"""Skeptical learning as it was before Gaussian processes: a random forest in three stages.

The rival of the ISGP paper ("SRF"), after Zeni et al., 2019, as far as the ISGP paper tells. What
it leaves open is chosen here and said so in the code. It converses through `InteractiveLoop`, as
every skeptical learner does, but labels are never corrected or taken back.

"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.ensemble import RandomForestClassifier

from streamgp.base import Array, Decision, FeatureName, Features, Label, Neighbour

STAGES = ("train", "refine", "regime")
_WINDOW = 10
_GROWTH = 0.05


class SkepticalForest:
    """A random forest that asks always, then asks and challenges, then asks only when unsure.

    Its *confidence* in a prediction is the probability that the forest gives, times `n / (n + 1)`
    for `n` labels learned; the *reliability* of the annotator is `(1 + kept) / (2 + challenged)`,
    where `kept` of the `challenged` answers were not changed. With the mean confidence of the last
    ten predictions whose label became known:

    * `train`: asks always, challenges never. Ends when that mean exceeds `theta` times the
      reliability: the forest is about as credible as the annotator.
    * `refine`: asks always, and challenges a label when the confidence in another one exceeds the
      reliability. Ends when the mean exceeds `theta`.
    * `regime`: asks when the confidence is below `theta`, and challenges as before.

    Parameters
    ----------
    theta
        Confidence that ends the stages; the larger, the longer they last.
    n_trees
        Number of trees.
    names
        Names of the features, where an event may lack some; scikit-learn's trees deal with that.
        None where every event has the same ones in the same order.
    seed
        Seed of the forest.

    Attributes
    ----------
    stage
        One of `STAGES`.
    n_fits
        How often the forest was trained: whenever the labels have grown by 5 %.

    References
    ----------
    [^1]: Zeni, M., Zhang, W., Bignotti, E., Passerini, A. and Giunchiglia, F., 2019. Fixing
        mislabeling by human annotators leveraging conflict resolution and prior knowledge. IMWUT 3.

    """

    # _points, _labels  what was learned
    # _forest   trained on the first _n_fitted of them; None before the first
    # _kept, _challenged  challenged answers that stood, and all; others are no evidence, as
    #           nobody looked for a mistake in them
    # _recent   confidences in the last predictions whose label became known
    # _last     the last features and the probabilities for them; None after a training
    def __init__(
        self,
        theta: float,
        *,
        n_trees: int = 100,
        names: Sequence[FeatureName] | None = None,
        seed: int = 0,
    ) -> None:
        self.theta = theta
        self.n_trees = n_trees
        self.names = names
        self.seed = seed
        self.stage = "train"
        self.n_fits = 0
        self._points: list[list[float]] = []
        self._labels: list[Label] = []
        self._forest: RandomForestClassifier | None = None
        self._n_fitted = 0
        self._kept = 0
        self._challenged = 0
        self._recent: deque[float] = deque(maxlen=_WINDOW)
        self._last: tuple[Features, dict[Label, float]] | None = None

    @property
    def n_learned(self) -> int:
        """Number of labels learned."""
        return len(self._labels)

    @property
    def reliability(self) -> float:
        """Share of challenged answers that stood, smoothed."""
        return (1 + self._kept) / (2 + self._challenged)

    def confidence(self, x: Features) -> float:
        """Confidence in the prediction for an event, 0 before the first label."""
        n = self.n_learned
        return max(self.predict_proba_one(x).values(), default=0.0) * n / (n + 1)

    def predict_proba_one(self, x: Features) -> dict[Label, float]:
        """Return the probability of each known label."""
        if self._forest is None:
            return {}
        if self._last is None or self._last[0] != x:
            proba = self._proba([x])[0].tolist()
            self._last = x, dict(zip(self._forest.classes_.tolist(), proba, strict=True))
        return dict(self._last[1])

    def predict_many(self, points: Sequence[Features]) -> list[Label]:
        """Predict the label of many events at once."""
        if self._forest is None:
            raise ValueError("nothing was learned yet")
        classes: list[Label] = self._forest.classes_[self._proba(points).argmax(axis=1)].tolist()
        return classes

    def observe_one(self, x: Features) -> None:
        """Nothing to learn from an event without its label."""

    def note_query(self, decision: Decision, *, asked: bool, now: float) -> None:
        """There is no budget."""

    def note_unanswered(self, now: float) -> None:
        """There is no budget."""

    def query_one(self, x: Features, **_: Any) -> Decision:
        """Ask always, or in the last stage when unsure."""
        if self.stage != "regime":
            return Decision.of(1.0, 0.0, self.stage)
        return Decision.of(1.0 - self.confidence(x), 1.0 - self.theta, self.stage)

    def challenge_one(self, x: Features, y: Label, **_: Any) -> Decision:
        """Contest a label when the forest is more credible than the annotator."""
        proba = self.predict_proba_one(x)
        agrees = not proba or max(proba, key=proba.__getitem__) == y
        score = 0.0 if agrees or self.stage == "train" else self.confidence(x)
        return Decision.of(score, self.reliability, self.stage)

    def probability_wrong_one(self, x: Features, y: Label, **_: Any) -> float:
        """Return what the forest leaves to other labels; nothing is decided by it."""
        return 1.0 - self.predict_proba_one(x).get(y, 0.0)

    def neighbours_one(self, x: Features, n: int = 3) -> list[Neighbour]:  # noqa: ARG002
        """A simulated annotator looks at no neighbours."""
        return []

    def settle_one(
        self, x: Features, y: Label, *, given: Label, challenged: bool, **_: Any
    ) -> float:
        """Learn the final label of an event, and enter the next stage if it is time."""
        changed = challenged and y != given
        self._challenged += challenged
        self._kept += challenged and not changed
        self._recent.append(self.confidence(x))
        self._points.append(self._row(x))
        self._labels.append(y)
        if self.n_learned >= math.ceil((1.0 + _GROWTH) * self._n_fitted):
            self._fit()
        self._advance()
        return float(changed)

    def _row(self, x: Features) -> list[float]:
        if self.names is None:
            return [*x.values()]
        return [x.get(name, math.nan) for name in self.names]

    def _advance(self) -> None:
        if len(self._recent) < _WINDOW:
            # The paper, too, makes it ask for at least ten labels.
            return
        mean = sum(self._recent) / _WINDOW
        if self.stage == "train" and mean > self.theta * self.reliability:
            self.stage = "refine"
        if self.stage == "refine" and mean > self.theta:
            self.stage = "regime"

    def _fit(self) -> None:
        forest = RandomForestClassifier(self.n_trees, random_state=self.seed)
        # Checking each tree's arguments takes a quarter of the time.
        with config_context(skip_parameter_validation=True, assume_finite=True):
            self._forest = forest.fit(np.array(self._points), np.array(self._labels))
        self.n_fits += 1
        self._n_fitted = self.n_learned
        self._last = None

    def _proba(self, points: Sequence[Features]) -> Array:
        # What RandomForestClassifier.predict_proba computes, without the ten times longer
        # preparations that it makes for large inputs.
        X = np.array([self._row(x) for x in points], dtype=np.float32)
        assert self._forest is not None
        trees = self._forest.estimators_
        proba: Array = sum(tree.tree_.predict(X) for tree in trees) / len(trees)
        return proba
