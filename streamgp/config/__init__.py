"""Configuration files: their settings, and the objects built from them."""
