"""Counts and scores of a run."""

from __future__ import annotations

from streamgp.evaluation.run_statistics import RunStatistics

__all__ = ["RunStatistics"]
