"""Dead letters, rebuilding, forgetting and recovery of a deployment."""
