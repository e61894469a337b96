"""Accuracy at equal labels: learners, query strategies and default values beside each other."""
