"""The job of `streamgp flink`."""
