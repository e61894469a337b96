"""A deployment's topics, as its tools see them."""
