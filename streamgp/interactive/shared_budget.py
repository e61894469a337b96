"""A budget for the questions of several loops together, in addition to each model's budget."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from streamgp.base import Budget
from streamgp.common.budget_account import BudgetAccount
from streamgp.common.fingerprint import fingerprint

if TYPE_CHECKING:
    from streamgp.base import Decision, State


class SharedBudget:
    """A copy of a budget, which counts for all loops that share it.

    Parameters
    ----------
    budget
        The budget; it is not changed.

    """

    # _published  the state as last published, None if never
    def __init__(self, budget: Budget) -> None:
        if isinstance(budget, type) or not isinstance(budget, Budget):
            raise TypeError(f"total_budget must be of streamgp.budgets, got {budget!r}")
        self._budget = BudgetAccount(copy.deepcopy(budget))
        self._published: State | None = self._budget.state()

    def checked(self, decision: Decision, now: float) -> Decision:
        """Return a decision unchanged, or refused."""
        if not decision.ask or self._budget.allows(decision, now):
            return decision
        return decision.refused_by(f"total {self._budget.name_of_refusal(decision, now)}")

    def note(self, decision: Decision, now: float, *, asked: bool) -> None:
        """Record an event, once each, and whether its label was requested."""
        self._budget.note(decision, asked, now)

    def refund(self, now: float, asked_at: float) -> None:
        """Refund a request that ended without an answer."""
        self._budget.refund(now, asked_at)

    def note_outcome(self, *, asked_at: float, answered: bool) -> None:
        """Tell the budget whether a request was answered before it expired, if it uses that."""
        self._budget.note_outcome(asked_at=asked_at, answered=answered)

    def state(self) -> State:
        """Return what must survive a restart."""
        return self._budget.state()

    def load_state(self, state: State) -> None:
        """Restore what `state` returned and what has been published: that is no change."""
        self.reset_to(state)
        self._published = self._budget.state()

    def reset_to(self, state: State) -> None:
        """Undo what has changed since `state` returned this; what was published stays so."""
        self._budget.load_state(state)

    def change(self) -> State | None:
        """Return the state if it has changed since the last call, else None."""
        state = self._budget.state()
        if state == self._published:
            return None
        self._published = state
        return state


def fingerprint_with(model: Any, budget: Budget | None) -> str:
    """Return the fingerprint of a model together with a total budget, if there is one."""
    own: str = model.fingerprint()
    return own if budget is None else fingerprint(own, budget)
