"""Messages in a directory: what a replay leaves behind, and taking a person out of it."""
