"""Counts and scores of a run."""

from __future__ import annotations

from streamgp.evaluation.tally import Tally

__all__ = ["Tally"]
