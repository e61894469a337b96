"""What skeptical learners share: the path of an event, of its label, and over a restart.

A skeptical learner is the outermost wrapper around a River estimator. What it believes, and whom,
depends on the kind of target: `SkepticalClassifier` and `SkepticalRegressor` say.

"""

from __future__ import annotations

import copy
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from streamgp.arguments import check_whole
from streamgp.base import Decision, Example, Features, Label, Neighbour, State
from streamgp.draws import check_seed, uniform
from streamgp.fingerprint import fingerprint
from streamgp.query.arguments import check_has, check_seeded
from streamgp.query.budgets import Unlimited
from streamgp.query.taught import TaughtLearner
from streamgp.signatures import taken
from streamgp.spending import Budget, give_back, name_of_refusal, state_of
from streamgp.trust import ErrorRate

B = TypeVar("B")
T = TypeVar("T", bound=ErrorRate)


class Skeptical(ABC, Generic[B, T]):
    """A learner that asks for labels and doubts them; `B` is a belief, `T` the trust in somebody.

    Attributes
    ----------
    learner
        The estimator in use.
    n_learned
        Number of labelled examples on record.

    """

    # _taught     the learner, its examples and the scaling
    # _query_rule, _challenge_rule  the rules in use
    # _budget     a copy of `budget`, which counts
    # _n_events   events ever observed
    # _is_seeded  whether the model was found to draw by seeds only
    # _trust      what is known of each annotator
    # _trust_type the class of that
    model: Any
    budget: Budget | None
    warm_up: int
    seed: int | None
    _taught: TaughtLearner[B]
    _query_rule: Any
    _challenge_rule: Any
    _trust_type: type[T]

    def _set_up(self) -> None:
        """Check the arguments that both kinds take, and begin with nothing learned."""
        seed = self.seed
        check_whole("warm_up", self.warm_up, 0)
        check_seed(seed)
        check_has("budget", self.budget, "allows", "decision")
        self._seed = secrets.randbits(32) if seed is None else seed
        self._budget: Budget = Unlimited() if self.budget is None else copy.deepcopy(self.budget)
        self._is_seeded = False
        self._n_events = 0
        self._trust: dict[str | None, T] = {}

    @property
    def learner(self) -> Any:
        """The estimator in use, behind the scaling."""
        return self._taught.learner

    @property
    def n_learned(self) -> int:
        """Number of labelled examples on record."""
        return len(self._taught)

    def error_rate(self, annotator: str | None = None) -> float:
        """Estimate how often an annotator's first answers are wrong."""
        return self._trust_in(annotator).estimate

    # --- asking

    def query_one(
        self, x: Features, *, event_id: str | None = None, now: float | None = None
    ) -> Decision:
        """Decide whether to ask for the label of `x`; changes nothing.

        The draw of a randomised rule belongs to the event, not to `x`: the same id, the same draw.

        Parameters
        ----------
        x
            Features.
        event_id
            Id of the event, to which the random draw belongs; the number of the event if None.
        now
            Time for the budget, in seconds; the number of the event if None.

        """
        return self._decide(self._taught.belief(x), event_id=event_id, now=now)

    def observe_one(self, x: Features) -> None:
        """Take note of an event, once each, before predicting it: scaling learns from all events.

        Raises
        ------
        TypeError
            If a feature is not a number and the learner or its scaling needs one.
        ValueError
            If a feature is infinite.

        """
        self._taught.observe(x)
        self._n_events += 1

    def note_query(self, decision: Decision, *, asked: bool, now: float) -> None:
        """Tell the budget, once for each event, whether it was asked about."""
        self._budget.note(decision, asked, now)

    def note_unanswered(self, now: float, *, asked_at: float | None = None) -> None:
        """Tell the budget that a label request ended without an answer, and when it was made."""
        give_back(self._budget, now, asked_at)

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
        event_id: str | None = None,
        privileged: Features | None = None,
        **_: Any,
    ) -> None:
        """Learn a label as River's evaluator hands it over.

        The annotator said `annotation` (or `y`, if None). If that is challenged, the annotator
        reconsiders and says `y`, which is learned; otherwise the annotation is. `privileged` is
        what else is known of the answer; a learner of numbers does not hear of it.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take the example; raise its `noise_variance`.

        """
        if self._taught.n_taught >= self._n_events:
            # A learner that is only ever taught must see its events as well.
            self.observe_one(x)
        given = y if annotation is None else annotation
        stated = taken(self.settle_one, privileged=privileged)
        challenged = self.challenge_one(x, given, event_id=event_id, **stated).ask
        final = y if challenged else given
        self.settle_one(x, final, given=given, challenged=challenged, event_id=event_id, **stated)

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
        """Learn the label that a conversation has ended with; say how much `given` was wrong."""

    def relabel_one(self, event_id: str, y: Label) -> None:
        """Change the label of an example; raises KeyError if it was not learned."""
        self._taught.relabel(event_id, y)

    def forget_one(self, event_id: str) -> None:
        """Forget an example; raises KeyError if it was not learned."""
        self._taught.forget(event_id)

    def neighbours_one(self, x: Features, n: int = 3) -> list[Neighbour]:
        """Return the labelled examples nearest to `x` as the learner sees it, nearest first."""
        return self._taught.neighbours(x, n)

    # --- surviving a restart

    def fingerprint(self) -> str:
        """Return what stands for the configuration: how this was built, not what it learned."""
        return fingerprint(*self._configuration())

    def _configuration(self) -> list[object]:
        budget = Unlimited() if self.budget is None else self.budget
        rules = self._query_rule, self._challenge_rule, budget
        return [self.model, *rules, self.warm_up, self.seed]

    def examples(self) -> list[Example]:
        """Return the labelled examples on record, in the order learned."""
        return self._taught.examples()

    def state(self) -> State:
        """Return what decisions depend on beside the labelled examples, as plain JSON values.

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
        if not self._is_seeded:  # once: it looks through all parameters of the model
            check_seeded(self.model)
            self._is_seeded = True
        return {
            "seed": self._seed,
            "n_events": self._n_events,
            "budget": state_of(self._budget),
            "annotators": [[name, *trust.numbers()] for name, trust in self._trust.items()],
            "taught": self._taught.state(),
        }

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Become what `state` and `examples` were taken from, to the last bit.

        Parameters
        ----------
        state
            What `state` returned.
        examples
            What `examples` returned, or what a consensus log leaves of it. They are learned once
            more, one by one, through the scaling of the state.

        Raises
        ------
        ValueError
            If this learner has seen events already.

        """
        if self._n_events or self._taught.n_taught:
            raise ValueError("only a learner that has seen nothing can take over a state")
        self._seed = int(state["seed"])
        self._n_events = int(state["n_events"])
        self._budget.load_state(state["budget"])
        trust = self._trust_type
        self._trust = {name: trust.of(numbers) for name, *numbers in state["annotators"]}
        self._taught.load_state(state["taught"], examples)

    def reset_to(self, state: State, examples: Sequence[Example]) -> None:
        """Become what `state` and `examples` were taken from, whatever was learned since."""
        this: Any = self
        fresh = this.clone()
        fresh.load_state(state, examples)
        # Not another object: whoever holds this one goes on with it.
        self.__dict__.update(fresh.__dict__)

    # --- inside

    def _trust_in(self, annotator: str | None) -> T:
        """Return what is known of an annotator, to be read."""
        return self._trust.get(annotator) or self._trust_type()

    def _trust_of(self, annotator: str | None) -> T:
        """Return what is known of an annotator, to be added to."""
        return self._trust.setdefault(annotator, self._trust_type())

    def _decide(self, belief: B, *, event_id: str | None, now: float | None) -> Decision:
        decision = self._wish(belief, self._draw(event_id, "ask"))
        if decision.ask:
            budget, at = self._budget, self._n_events if now is None else now
            if not budget.allows(decision, at):
                return decision.refused_by(name_of_refusal(budget, decision, at))
        return decision

    def _wish(self, belief: B, draw: float) -> Decision:
        """Decide whether a label would help, whatever the budget allows."""
        wish: Decision = self._query_rule.decide(belief, draw)
        return wish

    def _draw(self, event_id: str | None, purpose: str) -> float:
        return uniform(self._seed, str(self._n_events) if event_id is None else event_id, purpose)
