"""Open questions and answers of one annotator."""
