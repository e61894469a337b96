"""Live statistics of a deployment."""
