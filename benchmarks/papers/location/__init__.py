"""The experiment of the ISGP paper on location, on a public log."""
