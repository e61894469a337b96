"""River classifiers that are plugged into something of ours: taken apart, and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from river import base
from river.active.base import ActiveLearningClassifier


def split(model: Any, checked: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """Separate the transformers of a pipeline from the estimator at its end, which is checked."""
    from river.compose import Pipeline

    steps = list(model.steps.values()) if isinstance(model, Pipeline) else [model]
    *transformers, learner = steps
    return transformers, checked(learner)


def as_classifier(learner: Any) -> Any:
    """Return a classifier that can be wrapped; refuse anything else."""
    if not isinstance(learner, base.Classifier) or isinstance(learner, ActiveLearningClassifier):
        raise TypeError(
            "model must be a River classifier that is not an active learner itself, or a pipeline "
            f"that ends in one, got {type(learner).__name__}"
        )
    if type(learner).predict_proba_one is base.Classifier.predict_proba_one:
        raise TypeError(
            f"model must predict probabilities, which {type(learner).__name__} does not; "
            "take one with predict_proba_one"
        )
    return learner
