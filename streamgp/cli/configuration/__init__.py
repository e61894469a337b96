"""Configuration files: how they are read, checked and printed, and what is built from them."""
