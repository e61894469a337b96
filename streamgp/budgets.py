"""How many questions are allowed: the budgets of `streamgp.query`, under a name of their own."""

from streamgp.query.budgeting import AllOf
from streamgp.query.budgets import AtMost, AtMostPer, Budget, RateBudget, Unlimited

__all__ = ["AllOf", "AtMost", "AtMostPer", "Budget", "RateBudget", "Unlimited"]
