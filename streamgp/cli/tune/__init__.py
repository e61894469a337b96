"""`streamgp tune`: hyper-parameters tried out on a recorded log, and configurations compared."""
