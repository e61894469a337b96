"""Gaussian process classification whose label noise is a latent function, by EP."""
