"""Base of skeptical learners: how events and labels pass through one, and how it is saved.

A skeptical learner is the outermost wrapper around a River estimator. What it believes, and which
answers, depends on the kind of target: see `SkepticalClassifier` and `SkepticalRegressor`.

"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

from river import base

from streamgp.base import (
    Budget,
    Decision,
    Doubt,
    Example,
    Features,
    Label,
    Neighbour,
    Rescale,
    State,
)
from streamgp.common.annotator_error import ErrorRate
from streamgp.common.budget_account import Saveable, state_of
from streamgp.common.counter_rng import check_seed, uniform
from streamgp.common.fingerprint import fingerprint
from streamgp.common.label_context import AcceptedOptions, LabelContext
from streamgp.common.signatures import has_methods, parameters
from streamgp.common.validation import check_whole
from streamgp.gp.joint_posterior import MIN_SHARE_OF_NOISE
from streamgp.learners.river_adapters import kind_of, reseeded, split, written_out
from streamgp.query.budgets import Unlimited, account_of, check_budget
from streamgp.query.equal_error import EqualErrorRounds
from streamgp.query.example_store import ExampleStore
from streamgp.query.learner import (
    BelievingJointly,
    HavingExperts,
    LeavingOneOut,
    RestorableLearner,
)
from streamgp.query.pipeline_scaling import scaling_of
from streamgp.query.registry import compares_experts
from streamgp.query.retrospective import (
    RecentEventsAsk,
    Review,
)
from streamgp.query.strategies import LearningAskRule
from streamgp.scaling import Scaling, standard_scaling, weighed_as

# --- Arguments of skeptical learners, checked before the first event.


def as_regressor(learner: Any) -> Any:
    """Return a regressor that can be wrapped; refuse anything else."""
    if not isinstance(learner, base.Regressor) or isinstance(learner, Skeptical):
        raise TypeError(
            "model must be a River regressor that is not skeptical itself, or a pipeline that ends "
            f"in one, got {kind_of(learner)}"
        )
    return learner


def check_not(
    name: str, value: object, kinds: tuple[type, ...], target: str, *, instead: str
) -> None:
    """Refuse a rule for another kind of target, `target`; say what to use `instead`."""
    if isinstance(value, kinds):
        raise TypeError(
            f"{name} must be a rule for the targets of the model, got {value!r}, one for {target}; "
            f"take {instead}"
        )


def check_experts(query: object, learner: Any) -> None:
    """Refuse a rule that compares experts where there are none."""
    n_experts = learner.n_experts if isinstance(learner, HavingExperts) else 1
    if compares_experts(query) and n_experts < 2:
        raise TypeError(
            f"query must be a rule that needs no experts, got {query!r} for "
            f"{type(learner).__name__}, which has not two of them to compare; take Variance(), or "
            "an ensemble, such as EnsembleGPRegressor"
        )


def check_streams(query: object) -> None:
    """Refuse a rule that waits for the end of a round: a stream has none."""
    if isinstance(query, EqualErrorRounds):
        raise TypeError(
            f"query must be a rule for streams, got {query!r}, which is for the rounds of a pool; "
            "take EqualErrorAsk()"
        )


def check_hears(query: object) -> None:
    """Refuse a strategy whose state only its own `decide` could change.

    `decide` may be called any number of times for an event, and its state would not be saved.
    """
    if isinstance(query, Saveable) and not isinstance(query, LearningAskRule):
        raise TypeError(
            f"query must have hear(belief, y) to have a state, got {query!r}; learn from the "
            "answers there, or count all events in a budget, which hears of each in note"
        )


def check_hears_nothing(query: object) -> None:
    """Refuse a strategy that learns from answers, for learners that do not tell it of them."""
    if isinstance(query, Saveable | LearningAskRule):
        raise TypeError(
            f"query must be a rule without hear and state, got {query!r}: a model of numbers does "
            "not tell it the answers; count events in a budget, which hears of each in note"
        )


def as_decision(rule: object, decision: object) -> Decision:
    """Return what a rule has decided; refuse anything but a decision, such as True."""
    if not isinstance(decision, Decision):
        raise TypeError(
            f"{type(rule).__name__}.decide must return a Decision, got {decision!r}; make one with "
            "Decision.of(score, threshold, criterion)"
        )
    return decision


def check_review(review: object, learner: object) -> None:
    """Refuse a review that the learner cannot support."""
    if review is None:
        return
    if isinstance(review, type) or not hasattr(review, "reviewer"):
        raise TypeError(
            "review must be a LeaveOneOutReview, or an object with a method reviewer, got "
            f"{review!r}"
        )
    budget = getattr(review, "budget", None)
    if budget is not None:
        check_budget("budget of review", budget)
    if not isinstance(learner, LeavingOneOut):
        raise TypeError(
            f"review needs a learner with leave_one_out, which {type(learner).__name__} has not; "
            "take GPClassifier or GPRegressor, or no review"
        )


def check_reservoir(reservoir: object, learner: Any) -> None:
    """Refuse a reservoir that the learner cannot support."""
    if reservoir is None:
        return
    if not isinstance(reservoir, RecentEventsAsk):
        raise TypeError(f"reservoir must be a RecentEventsAsk, got {reservoir!r}")
    if reservoir.budget is not None:
        check_budget("budget of reservoir", reservoir.budget)
    if not isinstance(learner, BelievingJointly):
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


def scaling_for(
    transformers: list[Any], learner: Any, warm_up: int, *, rescale: Rescale = False
) -> Scaling:
    """Return how features reach the learner; refuses transformers that could never learn."""
    if rescale and transformers:
        raise ValueError(
            f"rescale must be False for a pipeline, got {rescale!r}; its transformers scale the "
            "features, so leave them out, or rescale"
        )
    if transformers:
        return scaling_of(transformers, warm_up)
    return standard_scaling(warm_up, rescale=rescale, takes_texts=_takes_texts(learner))


def _takes_texts(learner: object) -> bool:
    """Return whether a learner takes texts; of others than ours, boosted ones too, only some do."""
    is_ours = any(kind.__module__.startswith("streamgp.") for kind in type(learner).__mro__)
    boosted = getattr(learner, "model", None)
    return is_ours and (boosted is None or _takes_texts(boosted))


def seeded(model: Any, seed: int | None) -> Any:
    """Return a model in which all that draws random numbers has a seed, if one is given.

    Otherwise it would learn something else the next time.
    """
    if seed is None or not [*_without_seed(model)]:
        return model
    check_seed(seed)
    return reseeded(model, seed, "model", missing_only=True)


def check_seeded(model: Any) -> None:
    """Refuse to save a model that would learn something else the next time."""
    for part in _unseeded(model):
        raise TypeError(
            f"{type(part).__name__} draws random numbers and has no seed, so it cannot be "
            "restored; give it one, or the skeptical model"
        )


def _unseeded(model: Any) -> list[Any]:
    """Return the parts of a model that draw random numbers and have no seed.

    A learner of ours keeps the seed that it has drawn in its own state, but only where it is the
    learner itself: inside another one, its state is not saved.
    """
    parts, learner = split(model, lambda learner: learner)
    kind: Any = type(learner)
    return [*_without_seed(parts if has_methods(kind, RestorableLearner) else [*parts, learner])]


def _without_seed(value: object) -> Iterator[Any]:
    """Yield what has no seed in a value, and in all that it was built with."""
    if isinstance(value, base.Base):
        given = {name: getattr(value, name, None) for name in parameters(type(value))}
        if given.get("seed", 0) is None:
            yield value
        yield from _without_seed([*given.values()])
    elif isinstance(value, Mapping):
        yield from _without_seed([*value.values()])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _without_seed(part)


def _of_labels(state: State) -> State:
    """Return the parts of a learner's state that are functions of the labels taught."""
    of_labels = ("annotators", "drift", "outcomes")
    return {name: part for name, part in state.items() if name in of_labels}


# Parts of a state that states of earlier versions lack.
_ADDED = frozenset(("review", "outcomes"))
_NONE_STATED: Mapping[str, float] = MappingProxyType({})

B = TypeVar("B")
T = TypeVar("T", bound=ErrorRate)


class Skeptical(ABC, Generic[B, T]):
    """A learner that asks for labels and doubts them; `B` a belief, `T` an annotator's error.

    Attributes
    ----------
    learner
        The estimator in use.
    n_learned
        Number of labelled examples on record.

    """

    # _store      the learner, its examples and the scaling
    # _query_rule, _challenge_rule  the rules in use
    # _budget     a copy of `budget`, which counts
    # _review     the rule of reviews in use, None if off
    # _reviewer   reviews the labels learned, None if off
    # _accepted   optional arguments of `challenge_one` and `settle_one`, subclasses included
    # _n_events   events ever observed
    # _error_estimates  error estimates by annotator
    # _error_estimate_type  the class of these
    model: Any
    query: Any
    budget: Budget | None
    review: Any
    warm_up: int
    seed: int | None
    _store: ExampleStore[B]
    _review: Review | None
    _query_rule: Any
    _challenge_rule: Any
    _error_estimate_type: type[T]

    def _set_up(self) -> None:
        """Check the arguments common to both kinds, and start with nothing learned."""
        seed = self.seed
        check_whole("warm_up", self.warm_up, 0)
        check_seed(seed)
        if self.budget is not None:
            check_budget("budget", self.budget)
        self._seed = secrets.randbits(32) if seed is None else seed
        self._budget = account_of(self.budget)
        self._reviewer = None if self._review is None else self._review.reviewer()
        self._accepted = AcceptedOptions(self)
        self._n_events = 0
        self._error_estimates: dict[str | None, T] = {}

    def __repr__(self) -> str:
        return written_out(self, super().__repr__())

    @property
    def learner(self) -> Any:
        """The estimator in use, behind the scaling."""
        return self._store.learner

    @property
    def n_learned(self) -> int:
        """Number of labelled examples on record."""
        return len(self._store)

    def error_rate(self, annotator: str | None = None) -> float:
        """Estimate how often an annotator's first answers are wrong."""
        return self._error_estimate(annotator).estimate

    # --- asking

    def query_one(
        self, x: Features, *, event_id: str | None = None, now: float | None = None
    ) -> Decision:
        """Decide whether to ask for the label of `x`; changes nothing.

        The draw of a randomised rule belongs to the event, not to `x`: the same id gives the same
        draw. So observe each event before (by `observe_one`, or `predict_one` of a classifier), or
        name its id: without, it has the draw of the event observed last.

        Parameters
        ----------
        x
            Features.
        event_id
            Id of the event, to which the random draw belongs. None stands for the number of the
            event observed last: `predict_one(x)` decides as `query_one(x)` does after it, not
            before.
        now
            Time for the budget, in seconds; that number if None.

        """
        return self._decide(self._store.belief(x), event_id=event_id, now=now)

    def observe_one(self, x: Features) -> None:
        """Observe an event, once each, before predicting it: scaling learns from all events.

        Raises
        ------
        TypeError
            If a feature is not a number and the learner or its scaling needs one.
        ValueError
            If a feature is infinite.

        """
        self._store.observe(x)
        self._n_events += 1

    def annotators(self) -> Collection[str | None]:
        """Return the annotators whose errors are estimated."""
        return self._error_estimates.keys()

    def n_features_with(self, x: Features) -> int:
        """Return the number of features that scaling knows, together with those of an event."""
        return self._store.scaling.n_with(x)

    def note_query(self, decision: Decision, *, asked: bool, now: float) -> None:
        """Tell the budget, once for each event, whether it was asked about."""
        self._budget.note(decision, asked, now)

    def note_unanswered(self, now: float, *, asked_at: float | None = None) -> None:
        """Tell the budget that a label request ended without an answer, and when it was made."""
        self._budget.refund(now, asked_at)

    def note_outcome(self, *, asked_at: float, answered: bool) -> None:
        """Tell the budget whether a label request was answered, or declined, before it expired."""
        self._budget.note_outcome(asked_at=asked_at, answered=answered)

    # --- learning

    @abstractmethod
    def challenge_one(
        self,
        x: Features,
        y: Label,
        *,
        annotator: str | None = None,
        event_id: str | None = None,
    ) -> Decision:
        """Decide whether to challenge the label `y` that was given for `x`; changes nothing."""

    def learn_one(
        self,
        x: Features,
        y: Label,
        annotation: Label | None = None,
        *,
        annotator: str | None = None,
        event_id: str | None = None,
        privileged: Features | None = None,
        **_: Any,
    ) -> None:
        """Learn a label as River's evaluator hands it over.

        The annotator said `annotation` (or `y`, if None). If that is challenged, the annotator
        reconsiders and says `y`, which is learned; otherwise the annotation is. `privileged` is
        what else is known of the answer; a regressor ignores it. Other options are ignored, as
        River's wrappers pass weights.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take the example; raise its `noise_variance`.

        """
        if self._store.n_taught >= self._n_events:
            # A learner that is only ever taught must observe its events as well.
            self.observe_one(x)
        given = y if annotation is None else annotation
        context, accepted = LabelContext(privileged=privileged), self._accepted
        whose = {"annotator": annotator, "event_id": event_id}
        known = accepted.of("challenge_one", context)
        challenged = self.challenge_one(x, given, **whose, **known).ask
        final = y if challenged else given
        known = accepted.of("settle_one", context)
        self.settle_one(x, final, given=given, challenged=challenged, **whose, **known)

    @abstractmethod
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
        """Learn the label with which a conversation has ended; return how far `given` was wrong."""

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Change the label of an example; raises KeyError if it was not learned."""
        self._store.relabel(event_id, y)

    def forget_one(self, event_id: str) -> None:
        """Forget an example; raises KeyError if it was not learned."""
        self._store.forget(event_id)

    def neighbours_one(self, x: Features, n: int = 3) -> list[Neighbour]:
        """Return the `n` labelled examples nearest to `x` as the learner sees it, nearest first."""
        return self._store.neighbours(x, check_whole("n", n, 0))

    # --- reviewing learned labels; needs `InteractiveLoop`, which keeps the conversations

    @property
    def review_due(self) -> bool:
        """Whether it is time to review the labels learned."""
        reviewer = self._reviewer
        return reviewer is not None and reviewer.is_due(self._store.n_taught, self.n_learned)

    def review_one(
        self,
        annotators: Mapping[str, str | None],
        *,
        now: float,
        stds: Mapping[str, float] = _NONE_STATED,
    ) -> Doubt | None:
        """Return the most doubtful label and whether to challenge it; changes nothing.

        Parameters
        ----------
        annotators
            Who gave the labels that may be doubted, by event id.
        now
            Time for the budget of these challenges, in seconds.
        stds
            Standard deviations stated with them, if they are numbers, by event id.

        Returns
        -------
        The doubt, or None if the others support every label.

        """
        reviewer = self._reviewer
        if reviewer is None:
            return None
        left_out: Mapping[str, Any] = self._store.leave_one_out()
        beliefs = {e: b for e, b in left_out.items() if e in annotators}
        return reviewer.doubt(
            self.examples(), beliefs, self._wrong_by_others(annotators, stds), now
        )

    def note_review(self, doubt: Doubt | None, *, now: float) -> None:
        """Record a review of the labels, once each, and the challenge it led to."""
        if self._reviewer is not None:
            self._reviewer.note(doubt, self._store.n_taught, now)

    def note_review_unanswered(self, now: float) -> None:
        """Refund the budget: the challenge of an old label expired unanswered."""
        if self._reviewer is not None:
            self._reviewer.note_unanswered(now)

    # --- surviving a restart

    def fingerprint(self) -> str:
        """Return a digest of the configuration: how this was built, not what it learned."""
        return fingerprint(*self._configuration())

    def _configuration(self) -> list[object]:
        budget = Unlimited() if self.budget is None else self.budget
        # The strategy passed in, not the copy in use, which may have learned from answers.
        query = self._query_rule if self.query is None else self.query
        rules = query, self._challenge_rule, budget
        reviews = [self._review] if self._reviews_in_fingerprint else []
        return [self.model, *rules, self.warm_up, self.seed, *reviews]

    def examples(self) -> list[Example]:
        """Return the labelled examples on record, in the order learned."""
        return self._store.examples()

    def as_held(self, examples: Sequence[Example]) -> list[Example]:
        """Return examples as this learner would keep them: without what it does not use."""
        return self._store.as_held(examples)

    def state(self) -> State:
        """Return what decisions depend on besides the labelled examples, as plain JSON values.

        Scaling statistics, the budget, what is known of each annotator, counters and the seed.

        Raises
        ------
        TypeError
            If a budget cannot be saved, or the learner draws random numbers without a seed.

        Examples
        --------
        >>> from streamgp import isgp
        >>> model = isgp(seed=1)
        >>> model.learn_one({"light": 0.3}, "home")
        >>> model.state()["annotators"]
        [[None, 1, 0.0]]

        """
        if self.seed is None:
            check_seeded(self.model)
        return {
            "seed": self._seed,
            "n_events": self._n_events,
            "budget": self._budget.state(),
            "annotators": [
                [name, *estimate.numbers()] for name, estimate in self._error_estimates.items()
            ],
            "taught": self._store.state(),
            **{name: state_of(part) for name, part in self._parts().items()},
        }

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Restore a learner from its `state` and `examples`, bitwise.

        Parameters
        ----------
        state
            What `state` returned.
        examples
            What `examples` returned, or what remains of it in a consensus log. They are learned
            again, one by one, through the scaling of the state.

        Raises
        ------
        ValueError
            If this learner has seen events already.

        """
        if self._n_events or self._store.n_taught:
            raise ValueError("only a learner that has seen nothing can take over a state")
        self._seed = int(state["seed"])
        self._n_events = int(state["n_events"])
        self._budget.load_state(state["budget"])
        kind = self._error_estimate_type
        self._error_estimates = {name: kind.of(numbers) for name, *numbers in state["annotators"]}
        self._store.load_state(state["taught"], examples)
        for name, part in self._parts().items():
            if name in state or name not in _ADDED:
                part.load_state(state[name])

    def reset_to(self, state: State, examples: Sequence[Example]) -> None:
        """Reset to `state` and `examples`, whatever was learned since."""
        this: Any = self
        fresh = this.clone()
        fresh.load_state(state, examples)
        # In place: callers hold a reference to this object.
        self.__dict__.update(fresh.__dict__)

    # --- retracting labels

    def unlearned(self, examples: Sequence[Example] | None = None) -> Self:
        """Return a model that has observed the same events but was taught no label.

        Scaling, budgets, the temporal filter and rules that learn keep their present state;
        hyperparameters and a drift test are those of a new model.

        Parameters
        ----------
        examples
            What it will be taught, whose labels then give the features their weights; None keeps
            the present weights.

        """
        this: Any = self
        fresh, state = this.clone(), self.state()
        initial = fresh.state()
        untaught = {
            **state,
            **_of_labels(initial),
            "taught": self._store.untaught(state["taught"], initial["taught"]),
        }
        fresh.load_state(untaught, ())
        if examples is not None:
            fresh._store.weigh_by(examples)
        return fresh  # type: ignore[no-any-return]

    def state_taught_as(self, other: Self) -> State:
        """Return the state that this model would have if it had been taught what `other` was.

        Parameters
        ----------
        other
            A model that `unlearned` returned, taught since.

        """
        state, theirs = self.state(), other.state()
        return {
            **state,
            **_of_labels(theirs),
            # Events are not observed, and examples not numbered, a second time.
            "taught": {
                **theirs["taught"],
                "n_taught": state["taught"]["n_taught"],
                "scaling": weighed_as(state["taught"]["scaling"], theirs["taught"]["scaling"]),
            },
        }

    # --- inside

    def _parts(self) -> dict[str, Any]:
        """Return the parts with a state of their own, by name, without those that are unset."""
        # Omitted when unset, so that older snapshots stay valid.
        return {} if self._reviewer is None else {"review": self._reviewer}

    @property
    def _reviews_in_fingerprint(self) -> bool:
        # Omitted when unset, so that older snapshots stay valid.
        return self._review is not None

    @abstractmethod
    def _wrong_by_others(
        self, annotators: Mapping[str, str | None], stds: Mapping[str, float]
    ) -> Callable[[str, B, Label], float]:
        """Return what gives the probability that a learned label is wrong.

        From its event, the belief about it without the label, and the label.
        """

    def _error_estimate(self, annotator: str | None) -> T:
        """Return the error estimate of an annotator, for reading only."""
        return self._error_estimates.get(annotator) or self._error_estimate_type()

    def _error_estimate_to_update(self, annotator: str | None) -> T:
        """Return the error estimate of an annotator, for updating."""
        return self._error_estimates.setdefault(annotator, self._error_estimate_type())

    def _decide(self, belief: B, *, event_id: str | None, now: float | None) -> Decision:
        decision = self._apply_query_rule(belief, self._draw(event_id, "ask"))
        return self._budget.decided(decision, self._n_events if now is None else now)

    def _apply_query_rule(self, belief: B, draw: float) -> Decision:
        """Decide whether a label would help, regardless of the budget."""
        return as_decision(self._query_rule, self._query_rule.decide(belief, draw))

    def _draw(self, event_id: str | None, purpose: str) -> float:
        return uniform(self._seed, str(self._n_events) if event_id is None else event_id, purpose)
