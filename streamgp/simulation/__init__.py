"""Simulated annotators and the queue of their answers."""

from __future__ import annotations

from streamgp.simulation.annotators import (
    Annotator,
    SimulatedAnnotator,
    SimulatedMeasurer,
    TiredAnnotator,
)
from streamgp.simulation.answer_queue import AnnotatorPanel, AnswerQueue

__all__ = [
    "Annotator",
    "AnnotatorPanel",
    "AnswerQueue",
    "SimulatedAnnotator",
    "SimulatedMeasurer",
    "TiredAnnotator",
]
