"""The location experiment of the ISGP paper, on a public log."""
