"""Classifiers that forget examples on purpose, and a drift detector that fires all the time."""

from streamgp import GPClassifier
from streamgp.kernels import Categorical, On, SquaredExponential
from streamgp.learners.gp_classifier import DriftWatch

ARD = SquaredExponential({"u": 1.0, "place": 0.7}) * On(["n"], Categorical())
FORGETFUL = {
    "window": lambda: GPClassifier(window=8),
    "window, learned hyperparameters": lambda: GPClassifier(
        ARD, 0.2, window=12, learn_hyperparameters=True
    ),
    "drift": lambda: GPClassifier(drift=True),
    "drift, few points": lambda: GPClassifier(max_points=4, drift=True),
    "drift, learned hyperparameters": lambda: GPClassifier(drift=True, learn_hyperparameters=True),
    "drift, few points, learned hyperparameters": lambda: GPClassifier(
        max_points=4, drift=True, learn_hyperparameters=True
    ),
    "drift, window": lambda: GPClassifier(window=8, drift=True),
}


class JumpyWatch(DriftWatch):
    """A drift detector that takes every fourth error for a drift."""

    def __init__(self):
        super().__init__()
        self.n_errors = 0

    def note(self, wrong):
        self.n_errors += wrong
        found = wrong and self.n_errors % 4 == 0
        self.n_drifts += found
        return found
