"""`streamgp send`: recorded logs as the events of a deployment."""
