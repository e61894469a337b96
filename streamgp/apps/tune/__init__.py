"""Search for hyperparameters."""

MOST = 200
"""The largest number of configurations that a search tries; defined here to be cheap to import."""
