"""Times and throughput: what a step, an event, an answer or a key costs."""
