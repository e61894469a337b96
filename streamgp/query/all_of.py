"""Several budgets at once."""

from __future__ import annotations

from collections.abc import Sequence

from streamgp.base import Decision, State
from streamgp.spending import Budget, give_back, name_of_refusal, state_of


class AllOf:
    """Several budgets at once: what any of them refuses is not asked.

    A question that one allows and another refuses is spent by neither.

    Parameters
    ----------
    budgets
        The budgets, in the order in which they are asked.

    Examples
    --------
    >>> from streamgp.budgets import AtMost, AtMostPer
    >>> budget = AllOf(AtMost(100), AtMostPer(1, span_s=60.0))
    >>> wish = Decision.of(1.0, 0.0, "AlwaysAsk")
    >>> budget.note(wish, asked=True, now=0.0)
    >>> budget.allows(wish, now=30.0), budget.refused_by(wish, now=30.0)
    (False, 'AtMostPer')

    """

    def __init__(self, *budgets: Budget) -> None:
        for budget in budgets:
            if isinstance(budget, type) or not hasattr(budget, "allows"):
                raise TypeError(f"budgets must be objects of streamgp.budgets, got {budget!r}")
        if not budgets:
            raise ValueError("AllOf needs at least one budget; take Unlimited() for none")
        self.budgets: Sequence[Budget] = budgets

    def __repr__(self) -> str:
        return f"AllOf({', '.join(map(repr, self.budgets))})"

    def allows(self, decision: Decision, now: float) -> bool:
        """Whether all of them allow it."""
        return all(budget.allows(decision, now) for budget in self.budgets)

    def refused_by(self, decision: Decision, now: float) -> str:
        """Return the name of the first that does not allow it."""
        first = next(budget for budget in self.budgets if not budget.allows(decision, now))
        return name_of_refusal(first, decision, now)

    def note(self, decision: Decision, asked: bool, now: float) -> None:
        """Tell all of them."""
        for budget in self.budgets:
            budget.note(decision, asked, now)

    def refund(self, now: float, asked_at: float | None = None) -> None:
        """Tell all of them."""
        for budget in self.budgets:
            give_back(budget, now, asked_at)

    def state(self) -> State:
        """Return the states of all."""
        return {"budgets": [state_of(budget) for budget in self.budgets]}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        for budget, one in zip(self.budgets, state["budgets"], strict=True):
            budget.load_state(one)
