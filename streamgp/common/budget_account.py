"""A budget in use: one of the package or a user's own, for one learner or shared by several."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from streamgp.base import Budget
from streamgp.common.fingerprint import fingerprint, recorded_name
from streamgp.common.signatures import has_methods, parameters

if TYPE_CHECKING:
    from streamgp.base import Decision, State


@runtime_checkable
class NamesRefusal(Protocol):
    """A budget that names which part of it refuses a question."""

    def refused_by(self, decision: Decision, now: float) -> str:
        """Return the name of the part that does not allow the question."""


@runtime_checkable
class TurnsStrictness(Protocol):
    """A budget that may also ask where a query strategy would not."""

    @property
    def turns(self) -> bool:
        """Whether it does."""

    def turned(self, decision: Decision, now: float) -> Decision:
        """Decide in place of the strategy, given its decision; changes nothing."""


@runtime_checkable
class LearnsOutcomes(Protocol):
    """A budget that learns at which times questions are answered."""

    def note_outcome(self, *, asked_at: float, answered: bool) -> None:
        """Record whether a question asked at a time was answered before it expired."""


@runtime_checkable
class ComparesScores(Protocol):
    """A budget that compares a score with earlier ones."""

    def forget_scores(self) -> None:
        """Forget the scores so far, as the next ones are in another unit."""


@runtime_checkable
class Saveable(Protocol):
    """A budget or rule whose state survives a restart."""

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values."""

    def load_state(self, state: State) -> None:
        """Restore a state."""


class BudgetAccount:
    """A budget in use.

    What the budget offers beyond the methods of `streamgp.base.Budget` is looked up once.

    Parameters
    ----------
    budget
        The budget, which counts from here on; pass a copy if it serves as a template.

    Examples
    --------
    >>> from streamgp.base import Decision
    >>> from streamgp.budgets import AllOf, AtMost, AtMostPer
    >>> account = BudgetAccount(AllOf(AtMost(9), AtMostPer(1, span_s=60.0, gives_back=True)))
    >>> wish = Decision.of(1.0, 0.0, "AlwaysAsk")
    >>> account.checked(wish, now=0.0).ask
    True
    >>> account.note(wish, asked=True, now=0.0)
    >>> account.checked(wish, now=30.0).budget
    'AtMostPer'
    >>> account.refund(40.0, asked_at=0.0)
    >>> account.checked(wish, now=50.0).ask
    True

    """

    # compares_scores  whether the budget compares scores, also those of events that are not asked
    #                  about; one of a user's own may do so without having `forget_scores`
    # _comparing       the budget, if it compares scores with earlier ones
    # _learning        the budget, if it learns at which times questions are answered
    # _naming          the budget, if it names which part of it refuses
    # _takes_asked_at  whether `refund` takes when the question was asked; None until needed
    # _turning         the budget, if it decides in place of the strategy
    __slots__ = (
        "_budget",
        "_comparing",
        "_learning",
        "_naming",
        "_takes_asked_at",
        "_turning",
        "compares_scores",
    )

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._comparing = budget if isinstance(budget, ComparesScores) else None
        is_own = not type(budget).__module__.startswith("streamgp.")
        self.compares_scores = is_own or self._comparing is not None
        self._learning = budget if isinstance(budget, LearnsOutcomes) else None
        self._naming = budget if isinstance(budget, NamesRefusal) else None
        self._takes_asked_at: bool | None = None
        turns = isinstance(budget, TurnsStrictness) and budget.turns
        self._turning = cast("TurnsStrictness", budget) if turns else None

    @property
    def turns(self) -> bool:
        """Whether the budget decides in place of the query strategy."""
        return self._turning is not None

    def decided(self, decision: Decision, now: float) -> Decision:
        """Return a query strategy's decision: replaced by the budget, unchanged, or refused."""
        if self._turning is not None:
            return self._turning.turned(decision, now)
        return self.checked(decision, now)

    def allows(self, decision: Decision, now: float) -> bool:
        """Whether the question may be asked now; changes nothing."""
        return self._budget.allows(decision, now)

    def checked(self, decision: Decision, now: float) -> Decision:
        """Return a decision unchanged, or refused by the budget."""
        if not decision.ask or self._budget.allows(decision, now):
            return decision
        return decision.refused_by(self.name_of_refusal(decision, now))

    def name_of_refusal(self, decision: Decision, now: float) -> str:
        """Return the name of the part that refuses a question that is not allowed."""
        if self._naming is None:
            return recorded_name(type(self._budget))
        return str(self._naming.refused_by(decision, now))

    def note(self, decision: Decision, asked: bool, now: float) -> None:
        """Count an event and whether it was asked about; called once for each event."""
        self._budget.note(decision, asked, now)

    def refund(self, now: float, asked_at: float | None) -> None:
        """Count a question that ended without an answer; `asked_at` is None if not known."""
        if self._takes_asked_at is None:  # late: many budgets never have to refund
            self._takes_asked_at = "asked_at" in parameters(self._budget.refund)
        if self._takes_asked_at and asked_at is not None:
            cast("Any", self._budget).refund(now, asked_at=asked_at)
        else:
            self._budget.refund(now)

    def forget_scores(self) -> None:
        """Tell a budget that compares scores that the next ones are in another unit."""
        if self._comparing is not None:
            self._comparing.forget_scores()

    def note_outcome(self, *, asked_at: float, answered: bool) -> None:
        """Tell a budget that learns from it whether a question was answered before it expired."""
        if self._learning is not None:
            self._learning.note_outcome(asked_at=asked_at, answered=answered)

    def state(self) -> State:
        """Return the state of the budget; raise TypeError if it cannot be saved."""
        return state_of(self._budget)

    def load_state(self, state: State) -> None:
        """Restore a state."""
        self._budget.load_state(state)


class SharedBudget(BudgetAccount):
    """A copy of a budget, which counts for all loops that share it, in addition to their own.

    Parameters
    ----------
    budget
        The budget; it is not changed.

    """

    # _published  the state as last published, None if never
    __slots__ = ("_published",)

    def __init__(self, budget: Budget) -> None:
        if isinstance(budget, type) or not isinstance(budget, Budget):
            raise TypeError(f"total_budget must be of streamgp.budgets, got {budget!r}")
        super().__init__(copy.deepcopy(budget))
        self._published: State | None = self.state()

    def name_of_refusal(self, decision: Decision, now: float) -> str:
        """Return the name of the part that refuses a question, as that of a total budget."""
        return f"total {super().name_of_refusal(decision, now)}"

    def load_state(self, state: State) -> None:
        """Restore what `state` returned and what has been published: that is no change."""
        self.reset_to(state)
        self._published = self.state()

    def reset_to(self, state: State) -> None:
        """Undo what has changed since `state` returned this; what was published stays so."""
        super().load_state(state)

    @property
    def has_changed(self) -> bool:
        """Whether the state is not the one that `change` has returned last."""
        return self.state() != self._published

    def change(self) -> State | None:
        """Return the state if it has changed since the last call, else None."""
        if not self.has_changed:
            return None
        self._published = self.state()
        return self._published


def fingerprint_with(model: Any, budget: Budget | None) -> str:
    """Return the fingerprint of a model together with a total budget, if there is one."""
    own: str = model.fingerprint()
    return own if budget is None else fingerprint(own, budget)


def state_of(thing: object) -> State:
    """Return the state of a budget or a rule; raise TypeError if it cannot be saved."""
    kind: Any = type(thing)
    if not has_methods(kind, Saveable):
        raise TypeError(
            f"{kind.__name__} cannot be saved; give it the methods state and load_state"
        )
    return cast("Saveable", thing).state()
