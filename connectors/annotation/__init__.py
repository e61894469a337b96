"""Open questions, and annotators' answers to them."""
