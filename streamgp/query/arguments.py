"""What skeptical learners take: checked and taken apart before the first event."""

from __future__ import annotations

from typing import Any

from river import base

from streamgp.gp.pool import MIN_SHARE_OF_NOISE
from streamgp.learners.plugged import as_classifier as as_classifier
from streamgp.learners.plugged import split as split
from streamgp.query.acquisition import KL, Deterministic
from streamgp.query.equal_error import EqualErrorRounds
from streamgp.query.pipeline_scaling import PipelineScaling
from streamgp.query.reservoir import ReservoirAsk
from streamgp.query.review import LeaveOneOutReview
from streamgp.scaling import NoScaling, Scaling, StandardScaling
from streamgp.signatures import parameters


def as_regressor(learner: Any) -> Any:
    """Return a regressor that can be wrapped; refuse anything else."""
    if not isinstance(learner, base.Regressor) or hasattr(learner, "settle_one"):
        raise TypeError(
            "model must be a River regressor that is not skeptical itself, or a pipeline that ends "
            f"in one, got {type(learner).__name__}"
        )
    return learner


def check_not(
    name: str, value: object, kinds: tuple[type, ...], target: str, *, instead: str
) -> None:
    """Refuse a rule that is about another kind of target, `target`; say what to take `instead`."""
    if isinstance(value, kinds):
        raise TypeError(
            f"{name} must be a rule for the targets of the model, got {value!r}, one for {target}; "
            f"take {instead}"
        )


def check_experts(query: object, learner: Any) -> None:
    """Refuse a rule that compares experts where there are none."""
    if isinstance(query, KL | Deterministic) and getattr(learner, "n_experts", 1) < 2:
        raise TypeError(
            f"query must be a rule that needs no experts, got {query!r} for "
            f"{type(learner).__name__}, which has not two of them to compare; take Variance(), or "
            "an ensemble, such as EnsembleGPRegressor"
        )


def check_has(
    name: str, value: object, method: str, taking: str, *, not_taking: str | None = None
) -> None:
    """Refuse an argument that could not do its work, before the first event finds out."""
    if value is None:
        return
    taken = parameters(getattr(value, method)) if hasattr(value, method) else ()
    if isinstance(value, type) or taking not in taken or not_taking in taken:
        raise TypeError(
            f"{name} must be an object of streamgp.query with a method {method} that takes "
            f"{taking!r}, got {value!r}"
        )


def check_streams(query: object) -> None:
    """Refuse a rule that waits for the end of a round: a stream has none."""
    if isinstance(query, EqualErrorRounds):
        raise TypeError(
            f"query must be a rule for streams, got {query!r}, which is for the rounds of a pool; "
            "take EqualErrorAsk()"
        )


def check_review(review: object, learner: base.Classifier) -> None:
    """Refuse a review that could not be made."""
    if review is None:
        return
    if not isinstance(review, LeaveOneOutReview):
        raise TypeError(f"review must be a LeaveOneOutReview, got {review!r}")
    check_has("budget of review", review.budget, "allows", "decision")
    if not hasattr(learner, "leave_one_out"):
        raise TypeError(
            f"review needs a learner with leave_one_out, which {type(learner).__name__} has not; "
            "take GPClassifier, or no review"
        )


def check_reservoir(reservoir: object, learner: Any) -> None:
    """Refuse a reservoir that could not be looked through."""
    if reservoir is None:
        return
    if not isinstance(reservoir, ReservoirAsk):
        raise TypeError(f"reservoir must be a ReservoirAsk, got {reservoir!r}")
    check_has("budget of reservoir", reservoir.budget, "allows", "decision")
    if not hasattr(learner, "joint"):
        raise TypeError(
            "reservoir needs a learner that believes something of several events at once, which "
            f"{type(learner).__name__} does not; take GPClassifier, or no reservoir"
        )
    noise = learner.noise_variance
    if noise < MIN_SHARE_OF_NOISE:
        raise ValueError(
            "reservoir needs a learner with a noise_variance of at least "
            f"{MIN_SHARE_OF_NOISE}, got {noise!r}; raise it, or take no reservoir"
        )


def scaling_for(transformers: list[Any], warm_up: int) -> Scaling:
    """Return how features reach the learner; refuses transformers that could never learn."""
    learning = [t for t in transformers if type(t).learn_one is not base.Transformer.learn_one]
    if warm_up == 0 and learning:
        raise ValueError(
            f"warm_up must be at least 1 for {type(learning[0]).__name__} to learn from events, "
            "got 0"
        )
    if transformers:
        return PipelineScaling([t.clone() for t in transformers], warm_up)
    return StandardScaling(warm_up) if warm_up else NoScaling()


def check_seeded(model: base.Estimator) -> None:
    """Refuse to save a learner that would learn other things the next time.

    One of ours keeps the seed that it has drawn in its own state.
    """
    if hasattr(model, "load_state"):
        return
    for name, value in model._get_params().items():
        inner = value[1] if isinstance(value, tuple) and len(value) == 2 else value
        if isinstance(inner, base.Estimator):
            check_seeded(inner)
        elif name == "seed" and value is None:
            raise TypeError(
                f"{type(model).__name__} draws random numbers and has no seed, so it cannot be "
                "restored; give it one"
            )
