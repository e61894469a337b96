"""Messages as bytes: JSON, records of a broker, and why bytes are no message."""
