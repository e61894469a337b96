"""Accuracy at equal numbers of labels: learners, query strategies and default values compared."""
