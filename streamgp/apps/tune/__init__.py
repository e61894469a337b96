"""Search for hyperparameters."""

MOST = 200
"""Number of configurations that a search tries at most; here, where loading it costs nothing."""
