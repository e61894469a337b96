"""Protocols of the models that a loop drives."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, runtime_checkable

from msgspec import Struct

from streamgp.common.signatures import has_methods

if TYPE_CHECKING:
    from streamgp.base import (
        Decision,
        Doubt,
        Example,
        Features,
        Label,
        Neighbour,
        PendingQuestion,
    )


@runtime_checkable
class SkepticalLearner(Protocol):
    """Protocol of every model that a loop drives.

    The prediction and the two decisions are pure. A model of classes predicts with
    `predict_proba_one(x)`, the probability of each known label and `{}` before the first; a model
    of numbers has no such method, but `predict_one(x, with_dist=True)`, which returns `mu` and
    `sigma` of an observation. If its `settle_one` takes `asked`, it is told whether the label was
    asked for or came unasked, and if it takes `n_since`, how many events were observed after the
    labelled one. If its `settle_one`, `challenge_one` and `probability_wrong_one` take `std`, they
    are told how exact an answer is, if that was stated; if they, and `relabel_one`, take
    `privileged`, what else came with an answer. A corrected label without privileged features has
    those of the label before it. If `relabel_one` takes `annotator`, it is told who corrected the
    label. If `settle_one` takes `given_privileged`, it is told what came with the first answer when
    it is taught from the log, where a correction may be known. If
    `note_query` and `note_unanswered` take `event_id`, they are told for which event a label is
    awaited, and for which it no longer is.

    Features that the model cannot use raise `ValueError` or `TypeError` in `observe_one` or the
    prediction; an example that it cannot learn raises one of them in `settle_one` or `relabel_one`,
    and leaves the model unchanged. The loop may keep the dictionaries that are returned.

    """

    @property
    def n_learned(self) -> int:
        """Number of examples the model holds."""

    def observe_one(self, x: Features) -> None:
        """Record an event; called once per event, before its prediction."""

    def query_one(
        self, x: Features, *, event_id: str | None = None, now: float | None = None
    ) -> Decision:
        """Decide whether to ask for the label; the budget has been consulted."""

    def note_query(self, decision: Decision, *, asked: bool, now: float) -> None:
        """Record the outcome of a decision: whether a question was really asked."""

    def note_unanswered(self, now: float) -> None:
        """Record that a label request ended without an answer; also `asked_at`, if it is taken."""

    def challenge_one(
        self,
        x: Features,
        y: Label,
        *,
        annotator: str | None = None,
        event_id: str | None = None,
    ) -> Decision:
        """Decide whether to contest a label."""

    def probability_wrong_one(
        self, x: Features, y: Label, *, annotator: str | None = None
    ) -> float:
        """Return the probability that a given label is wrong."""

    def neighbours_one(self, x: Features, n: int = 3) -> list[Neighbour]:
        """Return the nearest labelled examples."""

    def settle_one(
        self,
        x: Features,
        y: Label,
        *,
        given: Label,
        challenged: bool,
        annotator: str | None = None,
        event_id: str | None = None,
    ) -> float:
        """Learn the final label; `given` was the first answer, by `annotator`.

        Returns how much that answer counts as wrong, between 0 and 1.
        """

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Replace the label of a learned example."""

    def forget_one(self, event_id: str) -> None:
        """Forget a learned example."""


@runtime_checkable
class PredictsClasses(Protocol):
    """A learner whose targets are classes."""

    def predict_proba_one(self, x: Features) -> dict[Label, float]:
        """Return the probability of each known class, `{}` before the first label."""


class PredictsAlone(PredictsClasses, Protocol):
    """A learner of classes whose prediction may depend on more than the event itself."""

    def own_proba_one(self, x: Features) -> dict[Label, float]:
        """Return the probability of each known class by the event alone, for suggestions."""


class KnowsNames(Protocol):
    """A learner that tells the names for which it keeps statistics, for limits."""

    def annotators(self) -> Collection[str | None]:
        """Return the annotators whose errors it estimates."""

    def n_features_with(self, x: Features) -> int:
        """Return the number of features that it knows, together with those of an event."""


@runtime_checkable
class HoldsExamples(Protocol):
    """A learner that tells which examples it holds."""

    def examples(self) -> list[Example]:
        """Return the labelled examples that it holds, in the order learned."""


class HoldsInPart(Protocol):
    """A learner that may keep only part of what is known of its examples."""

    def as_held(self, examples: Sequence[Example]) -> list[Example]:
        """Return examples as it would keep them."""


class Reviews(HoldsExamples, Protocol):
    """A learner that doubts labels that it has learned."""

    @property
    def review_due(self) -> bool:
        """Whether it is time to review the labels learned."""

    def review_one(self, annotators: Mapping[str, str | None], *, now: float) -> Doubt | None:
        """Return the most doubtful label, and whether to contest it.

        `annotators` holds who gave the labels that may be doubted, by event id. A method with the
        option `stds` also gets the standard deviations that were stated with them, by event id.
        """

    def note_review(self, doubt: Doubt | None, *, now: float) -> None:
        """Record a review of the labels, and its result."""

    def note_review_unanswered(self, now: float) -> None:
        """Record that the challenge of an old label ended without an answer."""


class Reach(Protocol):
    """Reach of retrospective queries."""

    @property
    def size(self) -> int:
        """Number of the latest events that it considers."""

    @property
    def max_age_s(self) -> float | None:
        """Seconds after which an event is no longer asked about; None for no limit."""


class AsksBack(Protocol):
    """A learner that can ask about earlier events."""

    @property
    def reservoir(self) -> Reach | None:
        """Reach of its retrospective queries; None if it makes none."""

    @property
    def reservoir_due(self) -> bool:
        """Whether it is time to review the latest events."""

    def ask_among_one(
        self, candidates: Mapping[str, Features], *, now: float
    ) -> tuple[str, Decision] | None:
        """Return the most informative event and whether to ask about it, None if no event; pure.

        `candidates` holds the features of the events, by event id.
        """

    def note_reservoir(self, decision: Decision | None, *, now: float) -> None:
        """Record a review of the latest events, and its result."""

    def note_reservoir_unanswered(self, now: float, *, asked_at: float) -> None:
        """Record that a question about an earlier event, made at `asked_at`, ended unanswered."""


class FoundDrift(NamedTuple):
    """A concept drift: labels learned before the change are outdated, `n_kept` are not."""

    n_kept: int
    n_outdated: int


class FindsDrifts(Protocol):
    """A learner that tests whether what it was taught is still true."""

    @property
    def n_drifts(self) -> int:
        """Number of concept drifts found."""

    @property
    def n_outdated(self) -> int:
        """Number of examples on record, the earliest, that are outdated by the last drift."""


def as_finding_drifts(model: SkepticalLearner) -> FindsDrifts | None:
    """Return a model if it finds concept drifts, else None."""
    # By the class, since checking the model would compute the properties.
    finds = all(hasattr(type(model), name) for name in ("n_drifts", "n_outdated"))
    return cast("FindsDrifts", model) if finds else None


class CountsPending(Protocol):
    """A learner that takes questions with pending answers into account."""

    def pending_one(self, x: Features) -> float | None:
        """Return the value for the answer to a question about an event; None if not counted."""

    def query_one(
        self,
        x: Features,
        *,
        event_id: str | None = None,
        now: float | None = None,
        pending: Sequence[PendingQuestion] = (),
        scores_all: bool = False,
    ) -> Decision:
        """Decide whether to ask for the label; `pending` holds the open questions that count.

        Without `scores_all`, the score may leave them out if the label is not asked for.
        """


class HearsOutcomes(Protocol):
    """A learner that is told which label requests are answered in time."""

    def note_outcome(self, *, asked_at: float, answered: bool) -> None:
        """Record whether a label request was answered, or declined, before it expired."""


class ComparesAnswers(Protocol):
    """A learner that draws and weighs second answers about events it has learned."""

    def draw_one(self, event_id: str, purpose: str) -> float:
        """Return the number in [0, 1) that is drawn for an event and a purpose; pure."""

    def aggregate_one(
        self,
        event_id: str,
        given: Label,
        y: Label,
        *,
        given_by: str | None = None,
        annotator: str | None = None,
    ) -> Label:
        """Return which of two answers about a learned event stands; pure.

        `given` is the label that stood, by `given_by`, and `y` the answer to a second question, by
        `annotator`. A label that cannot be learned raises `ValueError` or `TypeError`.
        """

    def note_second(
        self,
        event_id: str,
        y: Label,
        *,
        annotator: str | None = None,
        probability_wrong: float | None = None,
    ) -> None:
        """Record another annotator's answer about a learned event, for the estimates of both.

        `probability_wrong` is how much the first answer has counted as wrong so far, None if that
        is not known.
        """


# --- Predictions of classes and of numbers.


class PredictedTarget(Struct, frozen=True, gc=False):
    """A prediction: the label, None if nothing is known, and how sure the model is of it.

    Either the probabilities of classes, or mean and standard deviation of a number.
    """

    y: Label | None
    proba: dict[Label, float]
    mean: float | None = None
    std: float | None = None


def predicted_target(
    model: SkepticalLearner, x: Features, *, alone: bool = False
) -> PredictedTarget:
    """Return what a model predicts.

    Parameters
    ----------
    alone
        Whether to leave out what the model knows of neighbouring events; see
        `PredictsAlone`.

    Raises
    ------
    ArithmeticError
        If the prediction is not finite: it could be neither used nor written.

    Examples
    --------
    >>> from streamgp import GPRegressor, SkepticalRegressor
    >>> model = SkepticalRegressor(GPRegressor(), seed=1)
    >>> predicted_target(model, {"hour": 1.0})
    PredictedTarget(y=None, proba={}, mean=None, std=None)
    >>> model.learn_one({"hour": 1.0}, 12.0)
    >>> predicted_target(model, {"hour": 1.0}).y
    12.0

    """
    predicting: Any = model
    if has_methods(type(model), PredictsClasses):
        if alone and has_methods(type(model), PredictsAlone):
            proba = predicting.own_proba_one(x)
        else:
            proba = predicting.predict_proba_one(x)
        proba = getattr(proba, "plain", proba)  # it goes into a message
        if not isfinite(sum(proba.values())):
            raise ArithmeticError(f"probabilities must be finite, got {proba!r:.200}")
        return PredictedTarget(max(proba, key=proba.__getitem__) if proba else None, proba)
    # Even before the first target: features that cannot be used must be refused.
    forecast = predicting.predict_one(x, with_dist=True)
    if not model.n_learned:
        return PredictedTarget(None, {})
    mean, std = float(forecast.mu), float(forecast.sigma)
    if not (isfinite(mean) and isfinite(std)):
        raise ArithmeticError(f"a forecast must be finite, got mean {mean!r} and std {std!r}")
    return PredictedTarget(mean, {}, mean, std)
