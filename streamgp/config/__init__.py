"""Configuration files: their settings, and what is built from them."""
