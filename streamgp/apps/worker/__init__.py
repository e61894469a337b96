"""Process of a worker, its checks, logs and metrics."""
