"""Annotation in a terminal or through a pipe, by a person or a simulation."""

SOURCE = "/streamgp/annotate"
PROGRAM = "annotate"
"""Source and program name of the answers given here."""
