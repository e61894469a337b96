"""Topics and messages in a directory: for trying out, and for what a replay leaves behind."""
