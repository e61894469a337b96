"""The interactive loop around a skeptical learner: messages in, messages out, no I/O, no clock."""

from __future__ import annotations

from streamgp.environment import DifferentEnvironmentWarning
from streamgp.interactive.annotators import Annotator, SimulatedAnnotator
from streamgp.interactive.keyed import KeyedLoops
from streamgp.interactive.loop import InteractiveLoop, SkepticalLearner
from streamgp.interactive.measurer import SimulatedMeasurer
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    Fault,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Origin,
    Prediction,
    Rejected,
    Request,
)
from streamgp.interactive.panel import AnnotatorPanel
from streamgp.interactive.saving import examples_in
from streamgp.interactive.simulation import AnswerQueue
from streamgp.interactive.snapshot import SnapshotError
from streamgp.interactive.tally import Tally
from streamgp.interactive.tired import TiredAnnotator

__all__ = [
    "Annotator",
    "AnnotatorPanel",
    "Answer",
    "AnswerQueue",
    "Cancel",
    "Challenge",
    "DifferentEnvironmentWarning",
    "Event",
    "Expired",
    "Fault",
    "Input",
    "InteractiveLoop",
    "KeyedLoops",
    "LabelRequest",
    "LabelledExample",
    "Message",
    "Origin",
    "Prediction",
    "Rejected",
    "Request",
    "SimulatedAnnotator",
    "SimulatedMeasurer",
    "SkepticalLearner",
    "SnapshotError",
    "Tally",
    "TiredAnnotator",
    "examples_in",
]
