"""The interactive loop around a skeptical learner: messages in, messages out, no I/O, no clock."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from streamgp.common.environment import DifferentEnvironmentWarning
from streamgp.common.renames import current_name
from streamgp.interactive.consensus_log import examples_in
from streamgp.interactive.keyed import KeyedLoops
from streamgp.interactive.learner import SkepticalLearner
from streamgp.interactive.loop import InteractiveLoop
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
    Retraction,
)
from streamgp.interactive.people import People
from streamgp.interactive.retract import Relearned
from streamgp.interactive.state.snapshot import SnapshotError

if TYPE_CHECKING:
    from streamgp.evaluation import RunStatistics
    from streamgp.simulation import (
        Annotator,
        AnnotatorPanel,
        AnswerQueue,
        SimulatedAnnotator,
        SimulatedMeasurer,
        TiredAnnotator,
    )

# Names that belong to higher layers and have been imported from here since before these existed.
_ABOVE = {
    "Annotator": "streamgp.simulation",
    "AnnotatorPanel": "streamgp.simulation",
    "AnswerQueue": "streamgp.simulation",
    "SimulatedAnnotator": "streamgp.simulation",
    "SimulatedMeasurer": "streamgp.simulation",
    "RunStatistics": "streamgp.evaluation",
    "TiredAnnotator": "streamgp.simulation",
}

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
    "People",
    "Prediction",
    "Rejected",
    "Relearned",
    "Request",
    "Retraction",
    "RunStatistics",
    "SimulatedAnnotator",
    "SimulatedMeasurer",
    "SkepticalLearner",
    "SnapshotError",
    "TiredAnnotator",
    "examples_in",
]


_RENAMED = {"Tally": "RunStatistics"}


if not TYPE_CHECKING:  # to type checkers, every name would exist

    def __getattr__(name: str) -> object:
        name = current_name(__name__, name, _RENAMED)
        if name in _ABOVE:
            return getattr(importlib.import_module(_ABOVE[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
