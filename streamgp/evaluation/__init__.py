"""Counts and scores of a run."""

from __future__ import annotations

from streamgp.evaluation.agreement import AgreementCounts
from streamgp.evaluation.run_statistics import RunStatistics

__all__ = ["AgreementCounts", "RunStatistics"]
