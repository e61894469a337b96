"""Budgets of `streamgp.query`, under a name of their own."""

from streamgp.base import Budget
from streamgp.query.budgets import (
    AdaptiveThreshold,
    AllOf,
    AtMost,
    AtMostPer,
    AvailabilityBudget,
    PacedBudget,
    RateBudget,
    Unlimited,
)

__all__ = [
    "AdaptiveThreshold",
    "AllOf",
    "AtMost",
    "AtMostPer",
    "AvailabilityBudget",
    "Budget",
    "PacedBudget",
    "RateBudget",
    "Unlimited",
]
