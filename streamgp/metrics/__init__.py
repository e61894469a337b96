"""Metrics in River's style that River does not have.

They are updated and read like River's own, but measure what River's evaluators do not pass on: the
questions of a conversation, predicted distributions, and the quality of class probabilities. They
do not import `river.metrics`, which is slow to load.

"""

from __future__ import annotations

from streamgp.metrics.conversation import AnnotatorAgreement, ChallengePrecision, LabelRate
from streamgp.metrics.conversation import ConversationMetric as ConversationMetric
from streamgp.metrics.distributions import CRPS, NMSE, NPLL, IntervalCoverage
from streamgp.metrics.distributions import DistributionMetric as DistributionMetric
from streamgp.metrics.prediction_sets import PredictionSets
from streamgp.metrics.probabilities import (
    Brier,
    CalibrationError,
    Overconfidence,
    RightWrongAUC,
    Underconfidence,
)

__all__ = [
    "CRPS",
    "NMSE",
    "NPLL",
    "AnnotatorAgreement",
    "Brier",
    "CalibrationError",
    "ChallengePrecision",
    "IntervalCoverage",
    "LabelRate",
    "Overconfidence",
    "PredictionSets",
    "RightWrongAUC",
    "Underconfidence",
]
