"""Live figures of a deployment."""
