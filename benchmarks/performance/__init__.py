"""Times and throughput: the cost of a step, an event, an answer or a key."""
