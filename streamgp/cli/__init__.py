"""The command line: the only place that builds learner, loop and connectors together."""
