"""The interactive loop around a skeptical learner: messages in, messages out, no I/O, no clock."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING

from streamgp.common.environment import DifferentEnvironmentWarning
from streamgp.interactive.keyed import KeyedLoops
from streamgp.interactive.loop import InteractiveLoop, SkepticalLearner
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
from streamgp.interactive.state.serialize import examples_in
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

# What stands above this package and is imported from here since before it had a package of its own.
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
    "Prediction",
    "Rejected",
    "Request",
    "RunStatistics",
    "SimulatedAnnotator",
    "SimulatedMeasurer",
    "SkepticalLearner",
    "SnapshotError",
    "TiredAnnotator",
    "examples_in",
]


_RENAMED = {"Tally": "RunStatistics"}


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        warnings.warn(
            f"streamgp.interactive.{name} is called {_RENAMED[name]} now; the old name goes with "
            "the next version",
            DeprecationWarning,
            stacklevel=2,
        )
        name = _RENAMED[name]
    if name in _ABOVE:
        return getattr(importlib.import_module(_ABOVE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
