"""The synthetic experiment of the ISGP paper."""
