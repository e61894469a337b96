"""What is asked of any budget, whoever made it; those of `streamgp.budgets` are some."""

from __future__ import annotations

from typing import Protocol

from streamgp.base import Decision, State
from streamgp.signatures import taken


class Budget(Protocol):
    """Decides whether one more question may be asked."""

    def allows(self, decision: Decision, now: float) -> bool:
        """Whether the question may be asked now; changes nothing."""

    def note(self, decision: Decision, asked: bool, now: float) -> None:
        """Take note of an event, once each, and of whether it was asked about."""

    def refund(self, now: float) -> None:
        """Take note that a question ended without an answer.

        A budget that takes `asked_at` as well hears when the question was asked, if that is known.
        """

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values."""

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""


def name_of_refusal(budget: Budget, decision: Decision, now: float) -> str:
    """Return the name of what refuses a question within a budget that does not allow it."""
    refused_by = getattr(budget, "refused_by", None)
    return type(budget).__name__ if refused_by is None else str(refused_by(decision, now))


def give_back(budget: Budget, now: float, asked_at: float | None) -> None:
    """Tell a budget that a question ended without an answer, and when it was asked."""
    budget.refund(now, **taken(budget.refund, asked_at=asked_at))


def state_of(budget: Budget) -> State:
    """Return the state of a budget; raise TypeError if it cannot be saved."""
    if not hasattr(budget, "state"):
        raise TypeError(
            f"{type(budget).__name__} cannot be saved; give it the methods state and load_state"
        )
    return budget.state()
