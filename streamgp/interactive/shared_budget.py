"""A budget for the questions of several loops together, in addition to each model's budget."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from streamgp.base import Budget
from streamgp.common.budget_account import BudgetAccount
from streamgp.common.fingerprint import fingerprint

if TYPE_CHECKING:
    from streamgp.base import Decision, State


class SharedBudget(BudgetAccount):
    """A copy of a budget, which counts for all loops that share it.

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
