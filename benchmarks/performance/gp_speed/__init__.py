"""Steps of the Gaussian process, beside the memory traffic that they need."""
