"""Maintenance of a deployment: dead letters, audits, backups, rebuilding, forgetting, recovery."""
