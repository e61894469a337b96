"""Access of tools to a deployment: its configuration, topics and keys of answers."""
