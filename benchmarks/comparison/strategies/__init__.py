"""Query strategies at equal numbers of labels."""
