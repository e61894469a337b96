"""Topics and messages in this process: nothing is on a disk."""
