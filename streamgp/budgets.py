"""Budgets of `streamgp.query`, under a shorter path."""

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
