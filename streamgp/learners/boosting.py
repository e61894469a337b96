"""Online boosting of weighted classifiers, by gradients or by confidence."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from river import base

from streamgp.base import (
    Array,
    Features,
    Label,
    Preset,
    check_label,
    check_preset,
)
from streamgp.common.counter_rng import uniform
from streamgp.common.uncertainty import Uncertainty, most_probable
from streamgp.common.uncertainty import uncertainty as uncertainty_named
from streamgp.common.validation import check_flag, check_whole
from streamgp.learners.forest import Forests, OnlineForestClassifier
from streamgp.learners.numbering import Classes
from streamgp.learners.river_adapters import (
    EstimatorOptions,
    Seeded,
    as_classifier,
    check_frame,
    feature_rows,
    frame_like,
    labelled_rows,
    reseeded,
    series_like,
    split,
    written_out,
)

if TYPE_CHECKING:
    import pandas as pd
    from river.compose import Pipeline


# --- Base of boosting ensembles: Algorithm 1 with any measure of agreement, and River's methods.

FORESTS: Mapping[Preset, Mapping[str, Any]] = {
    # As early as a forest on its own splits: for ten of them, half of the labels are few.
    "default": {"n_tests": 50, "min_weight": 30},
    "paper": {"n_tests": 20, "min_weight": 100, "inherit": False},
}
"""The forests used where no model is given, by preset."""
# Alg. 1 has no such factor; the paper's settings come nearest to its tables with 1/2.
SHRINKAGE: Mapping[Preset, float] = {"default": 1.0, "paper": 0.5}
"""Factor applied to each agreement, by preset."""

# An example that nine weak learners got wrong has a weight of e^9 in the tenth, by Alg. 1.
MAX_WEIGHT = 10.0
# The exponential of a larger number is no float, and that of its negative is 0, by which no weight
# can be divided.
_LARGEST_EXPONENT = 700.0
# What has been learned is predicted from then on, so weights shrink: their mean is taken over
# the latest hundred or so.
_FORGETTING = 0.01
# Rows of a data frame predicted at a time: the probabilities of every weak learner take memory.
_ROWS = 1000

# All weak learners are created at once, and each learns every example.
_MOST_MODELS = 10_000


class BoostedClassifier(Seeded, base.MiniBatchClassifier):
    """Online boosting of weak learners; subclasses define the measure of agreement."""

    # _weak      the weak learners
    # _n_learned number of examples learned
    # _mean_weights  mean of the latest weights of each weak learner, before normalisation
    def __init__(
        self,
        model: base.Classifier | Pipeline | None = None,
        n_models: int = 10,
        uncertainty: str = "bvsb",
        normalise_weights: bool = False,
        preset: Preset = "default",
        seed: int | None = None,
    ) -> None:
        self.model = model
        self.n_models = n_models
        self.uncertainty = uncertainty
        self.normalise_weights = normalise_weights
        self.preset = preset
        self.seed = seed
        check_preset(preset)
        check_whole("n_models", n_models, 1, _MOST_MODELS)
        check_flag("normalise_weights", normalise_weights)
        self._uncertainty = uncertainty_named(uncertainty)
        # Its seed does not matter: the weak learners get their own.
        self._template: base.Classifier | Pipeline = (
            OnlineForestClassifier(**FORESTS[preset], seed=0) if model is None else model
        )
        self._begin_seeded()

    def _begin(self) -> None:
        self._weak = _weak_learners(self._template, int(self.n_models), self._seed)
        self._n_learned = 0
        self._mean_weights = [0.0] * len(self._weak)

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"n_models": 3, "seed": 1}

    @abstractmethod
    def _agreement(self, p: Mapping[Label, float], y: Label) -> float:
        """Return how well the probabilities of all known classes agree with a label."""

    @property
    def _multiclass(self) -> bool:
        multiclass: bool = self._template._multiclass
        return multiclass

    @property
    def n_learned(self) -> int:
        """Number of examples learned."""
        return self._n_learned

    def __repr__(self) -> str:
        return written_out(self, super().__repr__())

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""
        return list(self._weak.labels)

    @property
    def mean_weights(self) -> list[float]:
        """Mean weight of the latest examples in each weak learner, before normalisation."""
        return list(self._mean_weights)

    @property
    def n_nodes(self) -> list[int] | None:
        """Number of nodes of each tree, by weak learner; None unless they are forests."""
        return self._weak.n_nodes if isinstance(self._weak, Forests) else None

    @property
    def refuses_whole(self) -> bool:
        """Whether a refused example changes nothing."""
        # Other weak learners may have learned it before one of them refuses.
        return isinstance(self._template, OnlineForestClassifier)

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn that `x` is a `y`.

        Raises
        ------
        TypeError
            If the label is missing, or a weak learner cannot use a feature.
        ValueError
            If a weak learner cannot use a feature, or the label equals a class of another type.

        """
        check_label(y)
        weak, share = self._weak, SHRINKAGE[self.preset]
        weak.meet(x, y)
        weight, total = 1.0, 0.0  # Alg. 1, lines 3-4
        for m in range(len(weak)):
            p = weak.learn(m, self._scaled(m, weight))  # lines 6-7
            total += share * self._agreement(p, y)  # lines 8-9
            exponent = max(-_LARGEST_EXPONENT, min(-total, _LARGEST_EXPONENT))
            weight = min(math.exp(exponent), MAX_WEIGHT)  # line 10
        self._n_learned += 1

    def predict_proba_one(self, x: Features) -> dict[Label, float]:  # type: ignore[override]
        """Predict the probability of each known class: the mean over the weak learners.

        `{}` before the first label.
        """
        return dict(zip(self.labels, _mean(self._weak.probabilities(x)).tolist(), strict=True))

    def confidence_one(self, x: Features) -> float:
        """Return how confident the ensemble is of its prediction: 1 minus its uncertainty."""
        return 1.0 - self._uncertainty(self.predict_proba_one(x))

    # --- many at once

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a data frame, one after the other."""
        for x, label in labelled_rows(X, y):
            self.learn_one(x, label)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probability of each known class for each row of a data frame."""
        check_frame(X)
        parts = [X.iloc[n : n + _ROWS] for n in range(0, max(len(X), 1), _ROWS)]
        P = np.concatenate([_mean(self._weak.probabilities_many(part)) for part in parts])
        return frame_like(X, dict(zip(self.labels, P.T, strict=True)))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the most probable class of each row of a data frame."""
        labels = self.labels
        P = self.predict_proba_many(X).to_numpy()
        return series_like(X, [labels[i] for i in P.argmax(axis=1)] if labels else [None] * len(X))

    # --- inside

    def _scaled(self, m: int, weight: float) -> float:
        """Return the weight with which a weak learner learns; record the one given."""
        rate = max(1.0 / (self._n_learned + 1), _FORGETTING)
        self._mean_weights[m] += rate * (weight - self._mean_weights[m])
        if not self.normalise_weights:
            return weight
        # Leaves split by weight: where most examples weigh next to nothing, trees hardly grow.
        return min(weight / self._mean_weights[m], MAX_WEIGHT)


def _mean(P: Array) -> Array:
    """Return the mean of probabilities (..., n, C) over the weak learners, shape (..., C)."""
    # Summed one after the other, so that one example and many give the same bits.
    mean: Array = np.cumsum(P, axis=-2)[..., -1, :] / P.shape[-2]
    return mean


def _weak_learners(model: base.Classifier | Pipeline, n: int, seed: int) -> WeakLearners:
    if isinstance(model, OnlineForestClassifier):
        return model.forests([member_seed(seed, m) for m in range(n)])
    return clones(model, n, seed)


# --- Agreement of a prediction with a label, by which boosting weights examples.
#
# Agreement is positive where the label is predicted and negative where it is not. Probabilities
# cover all known classes, the label among them.


def gradient_agreement(p: Mapping[Label, float], y: Label) -> float:
    """Probability of the label, less that of a random guess (Eq. 5).

    Examples
    --------
    >>> gradient_agreement({"home": 0.75, "work": 0.25}, "home")
    0.25

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA.

    """
    return p[y] - 1.0 / len(p)  # Eq. 5


def confidence_agreement(p: Mapping[Label, float], y: Label, uncertainty: Uncertainty) -> float:
    """Confidence of the prediction, negative if it is not the label (Eqs. 6-7).

    If the prediction is wrong, its uncertainty is divided by the number of other classes, so that
    even an unsure one is a disagreement. Among equally probable classes the first is predicted.

    Parameters
    ----------
    p
        Probability of each class.
    y
        The label.
    uncertainty
        Measure of the probabilities, between 0 and 1.

    Examples
    --------
    >>> from streamgp.common.uncertainty import best_versus_second
    >>> p = {"home": 0.8, "work": 0.2, "gym": 0.0}
    >>> [confidence_agreement(p, y, best_versus_second) for y in ("home", "work")]
    [0.75, -0.875]

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA.

    """
    h = uncertainty(p)
    if most_probable(p) == y:  # Eq. 7
        return 1.0 - h  # Eq. 6, xi = 0
    return h / (len(p) - 1) - 1.0  # Eq. 6, xi = 1


class OnlineGradientBoostingClassifier(BoostedClassifier):
    """Online multi-class gradient boosting: what is already predicted counts for less.

    Every weak learner learns every example, with a weight that shrinks as the learners before it
    give the label a higher probability. Predicted probabilities are the mean over the weak
    learners. Trees grow by weight: with these weights the last of ten forests hardly grow unless
    weights are normalised (docs/boosting.md).

    Parameters
    ----------
    model
        Weak learner: a River classifier, or a pipeline that ends in one. One whose `learn_one` has
        no parameter `w` instead learns an example several times, or not at all. None stands for an
        online forest.
    n_models
        Number of weak learners.
    uncertainty
        Measure behind `confidence_one`: `bvsb`, the second largest probability divided by the
        largest, or `entropy`, divided by that of a tie between all classes.
    normalise_weights
        Divide the weights of each weak learner by their mean over the latest hundred or so.
    preset
        `default`: an agreement counts in full. `paper`: it counts by half, and forests try fewer
        splits, and later.
    seed
        Seed from which those of the weak learners are derived. None draws one.

    Attributes
    ----------
    n_learned
        Number of examples learned.
    labels
        Known classes, in the order in which they appeared.
    mean_weights
        Mean weight of the latest hundred examples or so in each weak learner, before normalisation.
    n_nodes
        Number of nodes of each tree; None unless the weak learners are online forests.

    Examples
    --------
    >>> from river import tree
    >>> from streamgp import OnlineGradientBoostingClassifier
    >>> model = OnlineGradientBoostingClassifier(tree.HoeffdingTreeClassifier(), n_models=3, seed=1)
    >>> for light in range(20):
    ...     model.learn_one({"light": light / 10 - 1.0}, "awake" if light > 10 else "asleep")
    >>> model.predict_proba_one({"light": 0.8})["awake"]
    0.9...
    >>> model.mean_weights
    [1.0, 0.914..., 0.845...]

    References
    ----------
    [^1]: Saffari, A., Godec, M., Pock, T., Leistner, C. and Bischof, H., 2010. Online multi-class
        LPBoost. CVPR.
    [^2]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Algorithm 1 and Eq. 5.

    """

    def _agreement(self, p: Mapping[Label, float], y: Label) -> float:
        return gradient_agreement(p, y)


class ConfidenceBoostingClassifier(BoostedClassifier):
    """Confidence Boosting: what is predicted wrongly and confidently counts for more.

    Every weak learner learns every example, with a weight that shrinks with the confidence of the
    learners before it that predict the label, and grows with that of those that do not. Predicted
    probabilities are the mean over the weak learners.

    Parameters
    ----------
    model, n_models, normalise_weights, preset, seed
        As in `OnlineGradientBoostingClassifier`.
    uncertainty
        Measure of the predictions of the weak learners, and behind `confidence_one`: `bvsb`, the
        second largest probability divided by the largest, or `entropy`, divided by that of a tie.

    Attributes
    ----------
    n_learned, labels, mean_weights, n_nodes
        As in `OnlineGradientBoostingClassifier`.

    Examples
    --------
    >>> from river import tree
    >>> from streamgp import ConfidenceBoostingClassifier
    >>> model = ConfidenceBoostingClassifier(tree.HoeffdingTreeClassifier(), n_models=3, seed=1)
    >>> for light in range(20):
    ...     model.learn_one({"light": light / 10 - 1.0}, "awake" if light > 10 else "asleep")
    >>> model.predict_proba_one({"light": 0.8})["awake"], model.confidence_one({"light": 0.8})
    (0.9..., 0.9...)

    References
    ----------
    [^1]: Mund, D., Triebel, R. and Cremers, D., 2015. Active online confidence boosting for
        efficient object classification. ICRA, Algorithm 1 and Eqs. 6-7.

    """

    def _agreement(self, p: Mapping[Label, float], y: Label) -> float:
        return confidence_agreement(p, y, self._uncertainty)


# --- Weak learners: what boosting requires of them, and clones of any classifier. `Forests`, which
# keeps all its forests in the same arrays, is many times as fast as clones of an online forest.


class WeakLearners(Protocol):
    """Classifiers that learn the same examples, each with its own weight."""

    @property
    def labels(self) -> list[Label]:
        """Known classes, in the order in which they appeared."""

    def __len__(self) -> int: ...

    def meet(self, x: Features, y: Label) -> None:
        """Take in the example that is to be learned next."""

    def learn(self, m: int, w: float) -> Mapping[Label, float]:
        """Let learner `m` (from 0) learn it; return its probabilities of all known classes."""

    def probabilities(self, x: Features) -> Array:
        """Return the probabilities of the known classes by each learner, shape (n, C)."""

    def probabilities_many(self, X: pd.DataFrame) -> Array:
        """Return the same for each row of a data frame, shape (N, n, C)."""


class Clones:
    """Clones of a classifier as weak learners.

    A classifier whose `learn_one` takes no weight learns an example `w` times on average instead.
    One that returns no probabilities counts as giving all classes the same one.

    Parameters
    ----------
    learners
        The clones, which have learned nothing; this object takes ownership of them.
    seed
        Seed of the random rounding of weights.

    """

    # _takes_weight  whether `learn_one` has a parameter `w`
    # _labels        classes that an example had, or that a learner has named; a dict for its order
    # _given         classes that an example had
    # _n_learned     examples learned by each; it numbers the draws
    # _met           the example to be learned
    def __init__(self, learners: list[Any], seed: int) -> None:
        _, last = split(learners[0], as_classifier)
        self._takes_weight = EstimatorOptions(last, "predict_proba_one").weight
        self._learners = learners
        self._seed = seed
        # A binary classifier knows both of its classes beforehand.
        self._labels: dict[Label, None] = {} if last._multiclass else {False: None, True: None}
        self._given = Classes()
        self._n_learned = [0] * len(learners)
        self._met: tuple[Features, Label]

    @property
    def labels(self) -> list[Label]:
        return list(self._labels)

    def __len__(self) -> int:
        return len(self._learners)

    def meet(self, x: Features, y: Label) -> None:
        self._given.add(y)
        self._met = dict(x), y

    def learn(self, m: int, w: float) -> Mapping[Label, float]:
        learner, (x, y) = self._learners[m], self._met
        if self._takes_weight:
            learner.learn_one(x, y, w=w)
        else:
            for _ in range(self._times(m, w)):
                learner.learn_one(x, y)
        self._n_learned[m] += 1
        proba = learner.predict_proba_one(x)
        self._labels.update(dict.fromkeys([y, *proba]))
        return dict(zip(self._labels, _row(proba, self._labels), strict=True))

    def probabilities(self, x: Features) -> Array:
        proba = [learner.predict_proba_one(x) for learner in self._learners]
        return np.array([_row(p, self._labels) for p in proba], dtype=float)

    def probabilities_many(self, X: pd.DataFrame) -> Array:
        if not isinstance(self._learners[0], base.MiniBatchClassifier):
            rows = [self.probabilities(x) for x in feature_rows(X)]
            return np.array(rows).reshape(len(rows), len(self), len(self._labels))
        frames = [learner.predict_proba_many(X) for learner in self._learners]
        return np.stack([_rows(frame, list(self._labels)) for frame in frames], axis=1)

    def _times(self, m: int, w: float) -> int:
        # Rounded at random: an example of weight 1, which all have in the first learner, is learned
        # once, where a Poisson draw would leave out a third of the examples.
        whole = int(w)
        draw = uniform(self._seed, str(self._n_learned[m]), f"times {m}")
        return whole + (draw < w - whole)


def _row(proba: Mapping[Label, float], labels: Collection[Label]) -> list[float]:
    """Return probabilities in the order of the classes; refuse NaN, which would spoil weights."""
    if not proba:
        return [1.0 / len(labels) for _ in labels]
    row = [proba.get(y, 0.0) for y in labels]
    if not math.isfinite(sum(row)):
        raise ValueError(
            f"weak learners must make finite probabilities of the features, got {proba!r:.80}; "
            "leave out what is missing, or scale what comes late"
        )
    return row


def _rows(frame: pd.DataFrame, labels: list[Label]) -> Array:
    """Return probabilities in the order of the classes, shape (N, C)."""
    if frame.columns.empty:
        return np.tile(np.array(_row({}, labels)), (len(frame), 1))
    rows: Array = frame.reindex(columns=labels, fill_value=0.0).to_numpy(dtype=float)
    for i in np.flatnonzero(~np.isfinite(rows).all(axis=1)):
        _row(frame.iloc[i].to_dict(), labels)  # refuses it
    return rows


def clones(model: Any, n: int, seed: int) -> Clones:
    """Return clones of a classifier whose seeds, at any depth, follow from one and differ.

    Parameters
    ----------
    model
        The classifier, or a pipeline that ends in one; it learns nothing itself.
    n
        How many.
    seed
        Seed of everything random in them.

    Raises
    ------
    TypeError
        If the model is not a classifier that predicts probabilities, or is an active learner.

    """
    split(model, as_classifier)
    return Clones([reseeded(model, seed, f"weak learner {m}") for m in range(n)], seed)


def member_seed(seed: int, member: int) -> int:
    """Return the seed of one of several forests that come from one seed.

    Examples
    --------
    >>> member_seed(1, 0), member_seed(1, 1)
    (66840870, 3564991678)

    """
    digest = blake2b(f"{seed}\x1fmember\x1f{member}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")
