"""Steps of the Gaussian process, compared with the memory traffic that they need."""
