"""Learners and query strategies in conversation over recorded logs."""
