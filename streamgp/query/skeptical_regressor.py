"""The outermost wrapper around a regressor: it asks for target values, and doubts them.

What it shares with the classifier's is in `skeptical_base.py`, what it doubts in `criteria.py`.

"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from river import base

from streamgp.base import (
    Budget,
    Decision,
    Distribution,
    Example,
    Features,
    Label,
    SettledAnswer,
    State,
)
from streamgp.common.annotator_error import ErrorScale
from streamgp.common.normal import Normal
from streamgp.common.running_stats import Moments, Quartiles
from streamgp.learners.river_adapters import as_target, checked_target, split
from streamgp.query.budgets import Unlimited
from streamgp.query.criteria import StudentT, answer_expected, probability_outlier
from streamgp.query.equal_error import EqualErrorRounds
from streamgp.query.example_store import ExampleStore
from streamgp.query.learner import LeavingOneOut
from streamgp.query.registry import classes_only_for
from streamgp.query.retrospective import LeaveOneOutReview, Review
from streamgp.query.skeptical_base import (
    Skeptical,
    as_decision,
    as_regressor,
    check_experts,
    check_hears_nothing,
    check_not,
    check_review,
    scaling_for,
    seeded,
)
from streamgp.query.strategies import (
    Deterministic,
    NeverChallenge,
    OutsideInterval,
    Variance,
    check_decides,
    cold_start,
)
from streamgp.scaling import Scaling

if TYPE_CHECKING:
    from river.compose import Pipeline

__all__ = [
    "SkepticalRegressor",
]


class NumberAskRule(Protocol):
    """Decides whether to ask for the target of an event."""

    # Rules that do not use the belief are for classes, too: hence Any.
    def decide(self, belief: Any, draw: float) -> Decision:
        """Decide by the learner's forecast; `draw` is uniform in [0, 1)."""


class NumberChallengeRule(Protocol):
    """Decides whether to challenge a given number."""

    def decide(self, belief: Any, given: Any, *, probability_wrong: float, draw: float) -> Decision:
        """Decide by where the answer was expected, a `StudentT`, or None if that is not known."""


class SkepticalRegressor(
    Skeptical[Distribution, ErrorScale], base.Wrapper[base.Regressor], base.Regressor
):
    """Any River regressor, made to ask for targets when unsure and to challenge suspicious ones.

    A number is challenged if it lies outside the interval in which this annotator's answers are
    expected. This interval is around the forecast; its width follows from the learner's
    uncertainty, the uncertainty stated with the answer, and the scatter of this annotator's answers
    so far. See `OutsideInterval`.

    Inside `InteractiveLoop` it holds a conversation. River has no regressors that ask: under
    `evaluate.progressive_val_score` it learns every target.

    A learner that predicts no distribution (`predict_one(x, with_dist=True)`) is expected to be off
    by as much as before. For scaling, and what is kept, see `SkepticalClassifier`.

    Parameters
    ----------
    model
        A regressor, or a pipeline that ends in one. It serves as a template and stays unlearned.
    query
        When to ask for a target: a rule of `streamgp.query`. None stands for `Variance()`: always,
        or, if a budget such as `RateBudget` leaves a choice, where an observation is expected to
        vary most.
    challenge
        When to challenge a target: `OutsideInterval`, `SkepticalChallenge` or `NeverChallenge`.
        None stands for `OutsideInterval()`.
    budget
        How many questions are allowed. None stands for `Unlimited()`.
    warm_up
        Number of events from which scaling is learned; 0 leaves the features as they are.
    review
        When to doubt a number that was learned before, in `InteractiveLoop`; None for never. "auto"
        stands for `LeaveOneOutReview()` if the learner can leave an example out, as `GPRegressor`
        can, and new numbers are challenged as well; otherwise for None.
    seed
        Seed of the random decisions, and of what draws random numbers in `model` and has no seed.
        None draws one for the decisions.

    Attributes
    ----------
    learner
        The regressor in use.
    n_learned
        Number of labelled examples on record.

    Examples
    --------
    >>> from streamgp import GPRegressor, SkepticalRegressor
    >>> model = SkepticalRegressor(GPRegressor(noise_variance=0.01), seed=1)
    >>> for hour in range(24):
    ...     model.learn_one({"hour": hour}, 12.0 + 0.5 * hour)
    >>> model.predict_one({"hour": 10.5})
    17.2...
    >>> model.challenge_one({"hour": 10.5}, 17.4).ask, model.challenge_one({"hour": 10.5}, 174).ask
    (False, True)

    """

    _error_estimate_type = ErrorScale

    def __init__(
        self,
        model: base.Regressor | Pipeline,
        query: NumberAskRule | None = None,
        challenge: NumberChallengeRule | None = None,
        budget: Budget | None = None,
        *,
        warm_up: int = 200,
        review: Review | Literal["auto"] | None = "auto",
        seed: int | None = None,
    ) -> None:
        transformers, learner = split(seeded(model, seed), as_regressor)
        check_decides("query", query, "draw", not_taking="given")
        check_decides("challenge", challenge, "given")
        check_not(
            "query",
            query,
            (*classes_only_for("query", "label"), EqualErrorRounds),
            "classes",
            instead="Variance, AlwaysAsk, NeverAsk or RandomAsk, or, for an ensemble, KL or "
            "Deterministic",
        )
        check_hears_nothing(query)
        check_not(
            "challenge",
            challenge,
            classes_only_for("challenge", "label"),
            "classes",
            instead="OutsideInterval, SkepticalChallenge or NeverChallenge",
        )
        check_experts(query, learner)
        self.model = model
        self.query = query
        self.challenge = challenge
        self.budget = budget
        self.warm_up = warm_up
        if review == "auto":
            may = isinstance(learner, LeavingOneOut) and not isinstance(challenge, NeverChallenge)
            self._review = LeaveOneOutReview() if may else None
        else:
            check_review(review, learner)
            self._review = review
        self.review = review
        self.seed = seed
        self._set_up()
        self._store: NumberExampleStore = NumberExampleStore(
            learner, scaling_for(transformers, learner, warm_up)
        )
        self._query_rule = Variance() if query is None else query
        self._challenge_rule = OutsideInterval() if challenge is None else challenge

    @property
    def _wrapped_model(self) -> base.Regressor:
        return self.model  # type: ignore[no-any-return]

    def scatter(self, annotator: str | None = None) -> float:
        """Estimate the variance of an annotator's answers, in units of what the learner expects."""
        return self._error_estimate(annotator).scatter

    # --- predicting

    @overload
    def predict_one(self, x: Features, *, with_dist: Literal[False] = False, **_: Any) -> float: ...
    @overload
    def predict_one(self, x: Features, *, with_dist: Literal[True], **_: Any) -> Distribution: ...

    def predict_one(
        self, x: Features, *, with_dist: bool = False, **_: Any
    ) -> float | Distribution:
        """Predict the target; changes nothing.

        Parameters
        ----------
        x
            Features.
        with_dist
            Return the distribution of an observation, noise included, with `mu` and `sigma`.

        """
        forecast = self._store.belief(x)
        return forecast if with_dist else forecast.mu

    # --- doubting and learning

    def challenge_one(
        self,
        x: Features,
        y: Label,
        *,
        annotator: str | None = None,
        event_id: str | None = None,
        std: float | None = None,
    ) -> Decision:
        """Decide whether to challenge the number `y` that was given for `x`; changes nothing.

        A value that is not a number is not challenged: it cannot be learned either. Before the
        first target nothing is challenged: there is nothing else to suggest, and the decision names
        `agreement` as what refused.

        Parameters
        ----------
        x
            Features.
        y
            The number.
        annotator
            Who gave it.
        event_id
            Id of the event, to which a random draw belongs.
        std
            Standard deviation stated with it, None if none was.

        """
        number = _as_number(y)
        expected = None if number is None else self._expected(x, annotator, std)
        decided = self._challenge_rule.decide(
            expected,
            number,
            probability_wrong=self._probability_wrong(expected, number, annotator),
            draw=self._draw(event_id, "challenge"),
        )
        decision = as_decision(self._challenge_rule, decided)
        agrees = expected is None or number == expected.mu
        return decision.refused_by("agreement") if decision.ask and agrees else decision

    def probability_wrong_one(
        self,
        x: Features,
        y: Label,
        *,
        annotator: str | None = None,
        std: float | None = None,
    ) -> float:
        """Probability that the number `y`, given by this annotator for `x`, is wrong.

        See `streamgp.query.criteria.probability_outlier`. For a value that is not a number, the
        annotator's error rate.
        """
        number = _as_number(y)
        expected = None if number is None else self._expected(x, annotator, std)
        return self._probability_wrong(expected, number, annotator)

    def settle_one(
        self,
        x: Features,
        y: Label,
        *,
        given: Label,
        challenged: bool,
        annotator: str | None = None,
        event_id: str | None = None,
        std: float | None = None,
    ) -> float:
        """Learn the number with which a conversation has ended.

        Parameters
        ----------
        x
            Features.
        y
            The final number.
        given
            What the annotator said first.
        challenged
            Whether the annotator was asked to reconsider.
        annotator
            The annotator.
        event_id
            Id of the event, to relabel or forget it later.
        std
            Standard deviation stated with the first answer, None if none was.

        Returns
        -------
        How much the first answer counts as wrong in the error estimate of the annotator: the
        probability that it was; after a challenge 1 if the second answer is nearer to the forecast
        than to the first, and 0 if not, as no two measurements are exactly equal.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take the example. Nothing is learned then.
        TypeError
            If the target is not a number.
        ValueError
            If the target is not finite or too large, or the event was already learned.

        """
        # Earlier versions took True for 1; a correction to a number is still learned.
        first, final = as_target(given), _checked_number(y)
        if first is None or not math.isfinite(first):
            raise TypeError(f"given must be a finite number, got {given!r}")
        expected = self._expected(x, annotator, std)
        forecast = self._store.belief(x)
        if challenged:
            w = float(abs(final - first) > abs(final - forecast.mu))
        else:
            w = self._probability_wrong(expected, first, annotator)
        had_scale = self._has_scale
        self._store.teach(x, y, event_id)
        self._notice_scale(had_scale)
        estimate = self._error_estimate_to_update(annotator)
        estimate.note(w)
        if expected is not None and expected.sigma > 0.0:
            # The scatter must not measure itself, so it is taken out of the scale again.
            z = (first - expected.mu) / expected.sigma
            estimate.note_deviation(z * z * estimate.scatter, w)
        return w

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Change the number of an example; raises KeyError if it was not learned."""
        had_scale = self._has_scale
        super().relabel_one(event_id, y)
        self._notice_scale(had_scale)

    def forget_one(self, event_id: str) -> None:
        """Forget an example; raises KeyError if it was not learned."""
        had_scale = self._has_scale
        super().forget_one(event_id)
        self._notice_scale(had_scale)

    # --- inside

    def _apply_query_rule(self, belief: Distribution, draw: float) -> Decision:
        decision = super()._apply_query_rule(belief, draw)
        targets = self._store.targets
        if not self._least_variance:
            return decision
        if self._has_scale:
            if not self._budget.turns:
                return decision
            # A budget that decides in place of the rule would take the threshold for a draw.
            return Decision.of(decision.score, 0.0, decision.criterion)
        # Hardly any variance exceeds the threshold as long as that of all targets does not.
        cold = cold_start({targets.mean: 1.0} if targets.n else {}, draw, decision.criterion)
        return decision if cold is None else cold

    def _decide(self, belief: Distribution, *, event_id: str | None, now: float | None) -> Decision:
        decision = super()._decide(belief, event_id=event_id, now=now)
        if self._least_variance is None or not decision.ask or self._has_scale:
            return decision
        # The loop takes a question back once its event scores no more than the threshold, but
        # later scores are in another unit.
        return Decision.of(decision.score, 0.0, decision.criterion)

    @property
    def _has_scale(self) -> bool:
        """Whether targets differ, so that variances are in their unit, beyond the threshold."""
        targets = self._store.targets
        return targets.varies and targets.variance > (self._least_variance or 0.0)

    @property
    def _least_variance(self) -> float | None:
        """Threshold of the query rule if its scores are in units of y², else None."""
        rule = self._query_rule
        return rule.threshold if isinstance(rule, Variance | Deterministic) else None

    def _notice_scale(self, had_scale: bool) -> None:
        """Tell the budget once the scale is known, or no longer: scores were in another unit."""
        if had_scale != self._has_scale:
            self._budget.forget_scores()

    @property
    def _reviews_in_fingerprint(self) -> bool:
        # With and without the default one, so that snapshots stay valid from before it was that.
        rule = self._review
        if isinstance(rule, LeaveOneOutReview) and isinstance(rule.budget, Unlimited):
            rule = replace(rule, budget=None)  # as a configuration writes it
        return rule not in (None, LeaveOneOutReview())

    def _expected(self, x: Features, annotator: str | None, std: float | None) -> StudentT | None:
        store = self._store
        return answer_expected(
            store.belief(x), store.targets, self.scatter(annotator), std, store.usual_spread
        )

    def _probability_wrong(
        self, expected: StudentT | None, number: float | None, annotator: str | None
    ) -> float:
        rate = self.error_rate(annotator)
        if number is None:
            return rate
        return probability_outlier(expected, self._store.targets, number, rate)

    def _wrong_by_others(
        self, annotators: Mapping[str, str | None], stds: Mapping[str, float]
    ) -> Callable[[str, Distribution, Label], float]:
        targets, spread = self._store.targets, self._store.usual_spread

        def wrong(event_id: str, forecast: Distribution, y: Label) -> float:
            annotator, number = annotators[event_id], float(y)
            others = Moments.of(*targets.plain())
            others.remove(number)
            expected = answer_expected(
                forecast, others, self.scatter(annotator), stds.get(event_id), spread
            )
            return probability_outlier(expected, others, number, self.error_rate(annotator))

        return wrong

    @classmethod
    def _unit_test_params(cls) -> Any:
        from river.linear_model import BayesianLinearRegression

        yield {"model": BayesianLinearRegression(), "seed": 1}


def _checked_number(y: object) -> float:
    """Return an annotator's number; True, which Python and the learner take for 1, is none."""
    if isinstance(y, bool):
        raise TypeError(f"y must be a number, got {y}")
    return checked_target(y)


def _as_number(y: object) -> float | None:
    """Return a finite number, None for anything else, such as True."""
    value = None if isinstance(y, bool) else as_target(y)
    return value if value is not None and math.isfinite(value) else None


# --- The regressor, the raw examples that it was taught, and the scaling between the two.


_NOTHING_KNOWN = Normal(mu=0.0, sigma=1.0)


# Quartiles of fewer targets say little.
_FEWEST_TARGETS = 8


class NumberExampleStore(ExampleStore[Distribution]):
    """A River regressor with a record of what it was taught, behind a scaling.

    A regressor that gives no distribution with its predictions is expected to be off by as much as
    before: its forecast is normal, with the mean square of its past errors as variance, each made
    before the target was learned. The variance of the targets counts as one more such error.

    Parameters
    ----------
    template
        The regressor; it is never taught.
    scaling
        How features reach it.

    Attributes
    ----------
    targets
        Mean and spread of the targets on record.

    """

    # targets    a function of the examples on record, in their order
    # _n_errors, _squares  errors of a learner without distributions, and the sum of their squares
    _belief_method = "predict_one"

    def __init__(self, template: Any, scaling: Scaling) -> None:
        super().__init__(template, scaling)
        # They are not passed on here, so those in a log are not learned after a restart either.
        self._takes_privileged = False
        # The statistics of the targets would differ by rounding from those of one trained again.
        self._relabels_exactly = False
        self.targets = Moments()
        self._n_errors = 0
        self._squares = 0.0

    def teach(
        self,
        x: Features,
        y: Label,
        event_id: str | None,
        *,
        privileged: Features | None = None,
        answer: SettledAnswer | None = None,  # noqa: ARG002 - see `load_state`
    ) -> None:
        """Teach an example; if the learner cannot take it, nothing changes.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take it.
        TypeError
            If the target is not a number.
        ValueError
            If the target is not finite or too large, the event was already taught, or the learner
            is off by more than its forecasts can express.

        """
        checked = checked_target(y)
        if self._options:
            super().teach(x, y, event_id, privileged=privileged)
            return
        forecast = self.belief(x).mu
        squares = self._squares + (checked - forecast) * (checked - forecast)
        if not math.isfinite(squares):
            # It would be the variance of all forecasts to come.
            raise ValueError(
                f"{type(self._template).__name__} forecasts {forecast:.3g} where {y!r} was "
                "observed, expected an error whose square is finite; scale the features"
            )
        super().teach(x, y, event_id, privileged=privileged)
        self._n_errors += 1
        self._squares = squares

    def state(self) -> State:
        """Return what must survive a restart besides the examples."""
        errors = {} if self._options else {"errors": [self._n_errors, self._squares]}
        return {**super().state(), **errors}

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Restore `state` and `examples` into an object that has learned nothing."""
        self._n_errors, self._squares = state.get("errors", [0, 0.0])
        # Annotators who give numbers are judged by running sums alone.
        super().load_state(state, [replace(example, answer=None) for example in examples])

    def _believed(self, learner: Any, seen: Features) -> Distribution:
        answer = learner.predict_one(seen, **self._options)
        if answer is None:
            # Among River's regressors, AMFRegressor before its first label.
            return _NOTHING_KNOWN
        if not self._options:
            answer = Normal(mu=float(answer), sigma=self._usual_error)
        elif not (type(answer.mu) is type(answer.sigma) is float):
            # Those of River's BayesianLinearRegression are of numpy, which no state record takes.
            answer = Normal(mu=float(answer.mu), sigma=float(answer.sigma))
        if not (math.isfinite(answer.mu) and 0.0 <= answer.sigma < math.inf):
            if not self._examples:
                # Some scalers return nothing finite for the first event, as nothing came before it.
                return _NOTHING_KNOWN
            raise ValueError(
                f"{type(self._template).__name__} or its transformers make no finite forecast of "
                "these features; leave out what is missing, or scale what comes late"
            )
        return answer  # type: ignore[no-any-return]

    @property
    def _usual_error(self) -> float:
        spread = self.targets.std
        return math.sqrt((spread * spread + self._squares) / (1 + self._n_errors))

    @property
    def usual_spread(self) -> float:
        """Standard deviation of most targets, by their quartiles; infinite while there are few."""
        quartiles = Quartiles(float(example.y) for example in self._examples.values())
        return quartiles.scale if quartiles.n >= _FEWEST_TARGETS else math.inf

    def _count_label(self, y: Label) -> None:
        self.targets.add(float(y))

    def _check_label(self, y: Label) -> None:
        _checked_number(y)

    def _rebuild(self, state: State | None = None) -> None:
        self.targets = Moments()
        for example in self._examples.values():
            self._count_label(example.y)
        super()._rebuild(state)
