"""What a model predicts, whatever the kind of its targets."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from streamgp.base import Features, Label
    from streamgp.interactive.learner import SkepticalLearner


class Guess(NamedTuple):
    """A prediction: the label, None if nothing is known, and how sure the model is of it.

    Either the probabilities of classes, or mean and standard deviation of a number.
    """

    y: Label | None
    proba: dict[Label, float]
    mean: float | None = None
    std: float | None = None


def guess(model: SkepticalLearner, x: Features) -> Guess:
    """Return what a model predicts.

    Raises
    ------
    ArithmeticError
        If that is not finite: it could neither be decided on nor written.

    Examples
    --------
    >>> from streamgp import GPRegressor, SkepticalRegressor
    >>> model = SkepticalRegressor(GPRegressor(), seed=1)
    >>> guess(model, {"hour": 1.0})
    Guess(y=None, proba={}, mean=None, std=None)
    >>> model.learn_one({"hour": 1.0}, 12.0)
    >>> guess(model, {"hour": 1.0}).y
    12.0

    """
    predict_proba: Any = getattr(model, "predict_proba_one", None)
    if predict_proba is not None:
        proba = predict_proba(x)
        if not isfinite(sum(proba.values())):
            raise ArithmeticError(f"probabilities must be finite, got {proba!r:.200}")
        return Guess(max(proba, key=proba.__getitem__) if proba else None, proba)
    numbers: Any = model
    # Also before the first target: features that cannot be used must be refused.
    forecast = numbers.predict_one(x, with_dist=True)
    if not model.n_learned:
        return Guess(None, {})
    mean, std = float(forecast.mu), float(forecast.sigma)
    if not (isfinite(mean) and isfinite(std)):
        raise ArithmeticError(f"a forecast must be finite, got mean {mean!r} and std {std!r}")
    return Guess(mean, {}, mean, std)
