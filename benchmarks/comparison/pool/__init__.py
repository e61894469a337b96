"""Criteria for picking points of a pool."""
