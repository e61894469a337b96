"""The worker: from records to loops and back, in batches of which all counts or nothing."""
