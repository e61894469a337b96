"""Online boosting of weighted classifiers, by gradients or by confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgp.base import Label
from streamgp.learners.agreement import confidence_agreement, gradient_agreement
from streamgp.learners.boosted import BoostedClassifier


class OnlineGradientBoostingClassifier(BoostedClassifier):
    """Online multi-class gradient boosting: what is predicted already, counts for less.

    Every weak learner learns every example, with a weight that shrinks with the probability that
    those before it give to its label. Probabilities are the mean of those of the weak learners.
    Trees grow by weight: with these weights the last of ten forests hardly grow, unless weights are
    normalised (docs/boosting.md).

    Parameters
    ----------
    model
        Weak learner: a River classifier, or a pipeline that ends in one. One whose `learn_one` has
        no parameter `w` learns an example several times, or not at all, instead. None stands for
        an online forest.
    n_models
        Number of weak learners.
    uncertainty
        Measure behind `confidence_one`: `bvsb`, the second largest probability divided by the
        largest, or `entropy`, divided by that of a tie.
    normalise_weights
        Divide the weights of each weak learner by their mean over the latest hundred or so.
    preset
        `default`: an agreement counts as it is. `paper`: by half; and forests try fewer splits.
    seed
        Seed from which those of the weak learners follow. None draws one.

    Attributes
    ----------
    n_learned
        Number of examples learned.
    labels
        Known classes, in the order in which they appeared.
    mean_weights
        Mean weight of the latest hundred examples or so in each weak learner, before it is
        normalised.
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

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"n_models": 3, "seed": 1}


class ConfidenceBoostingClassifier(BoostedClassifier):
    """Confidence Boosting: what is predicted wrongly and confidently, counts for more.

    Every weak learner learns every example, with a weight that shrinks with the confidence of those
    before it that predict its label, and grows with that of those that do not. Probabilities are
    the mean of those of the weak learners.

    Parameters
    ----------
    model
        Weak learner: a River classifier, or a pipeline that ends in one. One whose `learn_one` has
        no parameter `w` learns an example several times, or not at all, instead. None stands for
        an online forest.
    n_models
        Number of weak learners.
    uncertainty
        Measure of the predictions of the weak learners, and behind `confidence_one`: `bvsb`, the
        second largest probability divided by the largest, or `entropy`, divided by that of a tie.
    normalise_weights
        Divide the weights of each weak learner by their mean over the latest hundred or so.
    preset
        `default`: an agreement counts as it is. `paper`: by half; and forests try fewer splits.
    seed
        Seed from which those of the weak learners follow. None draws one.

    Attributes
    ----------
    n_learned
        Number of examples learned.
    labels
        Known classes, in the order in which they appeared.
    mean_weights
        Mean weight of the latest hundred examples or so in each weak learner, before it is
        normalised.
    n_nodes
        Number of nodes of each tree; None unless the weak learners are online forests.

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

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"n_models": 3, "seed": 1}
