"""`streamgp run` and `check`: the worker as a process."""
