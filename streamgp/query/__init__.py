"""When to ask, when to challenge, and how many questions are allowed.

`criteria` measure, `rules` decide, `budgets` limit; `SkepticalClassifier` puts them around a
learner.

"""

from __future__ import annotations

from streamgp.query.acquisition import KL, Deterministic, Variance
from streamgp.query.adaptive import AdaptiveThreshold
from streamgp.query.budgets import AtMost, AtMostPer, Budget, RateBudget, Unlimited
from streamgp.query.review import LeaveOneOutReview
from streamgp.query.rules import (
    AlwaysAsk,
    AlwaysChallenge,
    AskRule,
    BestVersusSecond,
    ChallengeRule,
    Entropy,
    LeastConfidence,
    NeverAsk,
    NeverChallenge,
    PaperAsk,
    PaperChallenge,
    RandomAsk,
    SkepticalAsk,
    SkepticalChallenge,
)
from streamgp.query.skeptical import SkepticalClassifier

__all__ = [
    "KL",
    "AdaptiveThreshold",
    "AlwaysAsk",
    "AlwaysChallenge",
    "AskRule",
    "AtMost",
    "AtMostPer",
    "BestVersusSecond",
    "Budget",
    "ChallengeRule",
    "Deterministic",
    "Entropy",
    "LeastConfidence",
    "LeaveOneOutReview",
    "NeverAsk",
    "NeverChallenge",
    "PaperAsk",
    "PaperChallenge",
    "RandomAsk",
    "RateBudget",
    "SkepticalAsk",
    "SkepticalChallenge",
    "SkepticalClassifier",
    "Unlimited",
    "Variance",
]
