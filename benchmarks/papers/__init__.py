"""Experiments of papers, repeated: their tables and figures, with the learners of streamgp."""
