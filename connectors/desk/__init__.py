"""The annotator's side of the topics: what is asked, and what one has said."""
