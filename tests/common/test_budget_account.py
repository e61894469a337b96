"""A budget in use, of the package or of a user's own."""

# ruff: noqa: ARG002 - a protocol fixes the arguments

import copy

import pytest

from streamgp.base import Decision
from streamgp.budgets import AllOf, AtMost, AtMostPer
from streamgp.common.budget_account import BudgetAccount, state_of

WISH = Decision.of(1.0, 0.0, "AlwaysAsk")


class Own:
    """The least that a budget of a user's own can be."""

    def __init__(self):
        self.refunds = []

    def allows(self, decision, now):
        return now < 10.0

    def note(self, decision, asked, now):
        pass

    def refund(self, now):
        self.refunds.append(now)


class Dated(Own):
    """A budget that records when questions were asked, and says which part refuses one."""

    def refund(self, now, asked_at=None):
        self.refunds.append((now, asked_at))

    def refused_by(self, decision, now):
        return "night"


def test_a_custom_budget_needs_only_the_documented_methods():
    own = Own()
    account = BudgetAccount(own)
    assert account.checked(WISH, 0.0) is WISH
    assert account.checked(WISH, 10.0).budget == "Own"
    account.refund(3.0, asked_at=1.0)
    assert own.refunds == [3.0]
    with pytest.raises(TypeError, match="Own cannot be saved; give it the methods state and load"):
        account.state()


def test_a_budget_that_offers_more_is_asked_for_it():
    dated = Dated()
    account = BudgetAccount(dated)
    assert account.checked(WISH, 10.0).budget == "night"
    account.refund(3.0, asked_at=1.0)
    account.refund(4.0, asked_at=None)
    assert dated.refunds == [(3.0, 1.0), (4.0, None)]


def test_a_decision_not_to_ask_is_no_question_to_the_budget():
    no = Decision.of(0.0, 1.0, "NeverAsk")
    assert BudgetAccount(Own()).checked(no, 10.0) is no


@pytest.mark.parametrize("budget", [AtMost(1), AllOf(AtMost(1), AtMostPer(1, span_s=9.0))])
def test_a_copy_of_an_account_counts_on_its_own(budget):
    account = BudgetAccount(copy.deepcopy(budget))
    other = copy.deepcopy(account)
    other.note(WISH, asked=True, now=0.0)
    assert account.checked(WISH, 0.0).ask
    assert not other.checked(WISH, 0.0).ask
    again = BudgetAccount(copy.deepcopy(budget))
    again.load_state(other.state())
    assert again.checked(WISH, 0.0).budget == other.checked(WISH, 0.0).budget == "AtMost"


def test_a_rule_without_a_state_cannot_be_saved():
    with pytest.raises(TypeError, match="object cannot be saved"):
        state_of(object())
