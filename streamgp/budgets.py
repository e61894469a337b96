"""How many questions are allowed: the budgets of `streamgp.query`, under a name of their own."""

from streamgp.query.adaptive import AdaptiveThreshold
from streamgp.query.all_of import AllOf
from streamgp.query.budgets import AtMost, AtMostPer, RateBudget, Unlimited
from streamgp.spending import Budget

__all__ = ["AdaptiveThreshold", "AllOf", "AtMost", "AtMostPer", "Budget", "RateBudget", "Unlimited"]
