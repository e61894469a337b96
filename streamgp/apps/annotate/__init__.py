"""Answers of a person in a terminal."""
