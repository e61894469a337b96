"""`streamgp annotate`: questions, put to people and to simulated annotators."""
