"""Local storage of one process: snapshots, and a store of evicted loops."""
