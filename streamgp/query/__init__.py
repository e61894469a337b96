"""When to ask, when to challenge, and how many questions are allowed.

`criteria` measure, `rules` decide, `budgets` limit; `SkepticalClassifier` and `SkepticalRegressor`
put them around a learner.

"""

from __future__ import annotations

from streamgp.query.acquisition import KL, Deterministic, Variance
from streamgp.query.adaptive import AdaptiveThreshold
from streamgp.query.all_of import AllOf
from streamgp.query.budgets import AtMost, AtMostPer, RateBudget, Unlimited
from streamgp.query.equal_error import EqualErrorAsk, EqualErrorRounds
from streamgp.query.outliers import OutsideInterval
from streamgp.query.reservoir import ReservoirAsk
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
from streamgp.query.skeptical_numbers import SkepticalRegressor
from streamgp.spending import Budget

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
