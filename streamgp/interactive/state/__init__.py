"""State of a loop as plain values and as bytes."""
