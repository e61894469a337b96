"""Simulated annotators and the queue of their answers."""

from __future__ import annotations

from streamgp.simulation.annotators import (
    Annotator,
    AnnotatorPanel,
    SimulatedAnnotator,
    SimulatedMeasurer,
    TiredAnnotator,
)
from streamgp.simulation.driver import AnswerQueue

__all__ = [
    "Annotator",
    "AnnotatorPanel",
    "AnswerQueue",
    "SimulatedAnnotator",
    "SimulatedMeasurer",
    "TiredAnnotator",
]
