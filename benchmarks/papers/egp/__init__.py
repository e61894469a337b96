"""The paper on active labeling with ensembles of Gaussian processes."""
