"""Replay of recorded logs."""
