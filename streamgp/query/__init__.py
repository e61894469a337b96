"""When to ask, when to challenge, and how many questions are allowed.

`criteria` measure, `rules` decide, `budgets` limit; `SkepticalClassifier` and `SkepticalRegressor`
put them around a learner.

"""

from __future__ import annotations

from streamgp.base import Budget
from streamgp.query.acquisition import KL, Deterministic, Variance
from streamgp.query.budgets import (
    AdaptiveThreshold,
    AllOf,
    AtMost,
    AtMostPer,
    RateBudget,
    Unlimited,
)
from streamgp.query.equal_error import EqualErrorAsk, EqualErrorRounds
from streamgp.query.outliers import OutsideInterval
from streamgp.query.retrospective import LeaveOneOutReview, ReservoirAsk
from streamgp.query.skeptical_classifier import SkepticalClassifier
from streamgp.query.skeptical_regressor import SkepticalRegressor
from streamgp.query.strategies import (
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

__all__ = [
    "KL",
    "AdaptiveThreshold",
    "AllOf",
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
    "EqualErrorAsk",
    "EqualErrorRounds",
    "LeastConfidence",
    "LeaveOneOutReview",
    "NeverAsk",
    "NeverChallenge",
    "OutsideInterval",
    "PaperAsk",
    "PaperChallenge",
    "RandomAsk",
    "RateBudget",
    "ReservoirAsk",
    "SkepticalAsk",
    "SkepticalChallenge",
    "SkepticalClassifier",
    "SkepticalRegressor",
    "Unlimited",
    "Variance",
]
