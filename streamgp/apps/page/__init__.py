"""Answers of people in a browser."""
