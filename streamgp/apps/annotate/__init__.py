"""Annotation in a terminal or through a pipe, by a person or a simulation."""
