"""Simulated annotators and the queue of their answers."""

from __future__ import annotations

from streamgp.simulation.annotators import (
    Annotator,
    AnnotatorPanel,
    AwayAnnotator,
    SimulatedAnnotator,
    SimulatedMeasurer,
    TiredAnnotator,
)
from streamgp.simulation.driver import AnswerQueue

__all__ = [
    "Annotator",
    "AnnotatorPanel",
    "AnswerQueue",
    "AwayAnnotator",
    "SimulatedAnnotator",
    "SimulatedMeasurer",
    "TiredAnnotator",
]
