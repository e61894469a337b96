"""Several Bayesian logistic models of the same classes, each with features of its own.

One latent function per class and expert, `P(class | x) = sigmoid(phi(x)'w)`, each class against all
others. A step of Laplace's method replaces the posterior of the weights, after each label, by the
normal distribution at its mode. Every class has a covariance of its own, since the curvature of the
likelihood differs: as many times as much work as for `Experts` as there are classes.

"""

from __future__ import annotations

import copy
import math

import numpy as np
from scipy.special import expit

from streamgp.base import Array
from streamgp.gp.linear_experts import Seen, covariances_of

# Newton's method within a bracket: the equation is monotone, and a few steps suffice unless the
# variance is in the hundreds. What is found stays, so that no class depends on another.
_MOST_STEPS = 60
_EXACT = 1e-13

_LEAST = 1e-300


class LogisticExperts:
    """`m` logistic models of `t` classes, each class against the others.

    Parameters
    ----------
    amplitudes
        Prior variance of the latent functions of each expert, shape (m,).
    n_features
        Number of features of each expert.
    forgetting
        What share of what is known is kept when a label is learned; the rest is the prior again.

    Attributes
    ----------
    theta
        Modes of the weights, shape (t + 1, m, p). The last function belongs to no class: it has
        been told "no" at every label, as each class was before it appeared.
    log_likelihoods
        Sum of the log probabilities of the labels before they were learned, shape (m,).

    Examples
    --------
    >>> experts = LogisticExperts(np.array([4.0]), n_features=1)
    >>> experts.add_target()
    >>> features = np.array([[1.0]])
    >>> experts.learn(experts.see(features), np.array([1.0]))
    >>> experts.probabilities(experts.see(features))  # of the class, and of no class
    array([[0.68113089],
           [0.31886911]])

    References
    ----------
    [^1]: Lu, Q., Karanikolas, G.V. and Giannakis, G.B., 2022. Incremental ensemble Gaussian
        processes. IEEE TPAMI 45, §3.3.
    [^2]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning, §3.4.

    """

    # _covariances  of each function, in the order of theta
    def __init__(self, amplitudes: Array, n_features: int, forgetting: float = 1.0) -> None:
        self.amplitudes = amplitudes
        self.forgetting = forgetting
        self._covariances = [covariances_of(amplitudes, n_features, forgetting)]
        self.theta = np.zeros((1, len(amplitudes), n_features))
        self.log_likelihoods = np.zeros(len(amplitudes))

    @property
    def n_targets(self) -> int:
        """Number of classes."""
        return len(self.theta) - 1

    def add_target(self) -> None:
        """Add a class of which there was no example."""
        self._covariances.insert(-1, copy.deepcopy(self._covariances[-1]))
        self.theta = np.concatenate([self.theta, self.theta[-1:]])

    def see(self, features: Array) -> Seen:
        """Return what is known of a point: halves (t + 1, m, p), means and variances (t + 1, m)."""
        looks = [covariance.look(features) for covariance in self._covariances]
        return Seen(
            features=features,
            half=np.array([half for half, _ in looks]),
            means=np.vecdot(self.theta, features),
            variances=np.array([variances for _, variances in looks]),
        )

    def probabilities(self, seen: Seen) -> Array:
        """Probability of "yes" for each function, shape (t + 1, m)."""
        # MacKay's approximation of the mean of the sigmoid.
        scales = np.sqrt(1.0 + (math.pi / 8.0) * seen.variances)
        found: Array = expit(seen.means / scales)
        return found

    def learn(self, seen: Seen, y: Array) -> None:
        """Learn indicators (t,) of the class of a point, seen since the last label."""
        yes = self.probabilities(seen)[:-1]
        with_label = np.maximum(y @ yes, _LEAST) / np.maximum(yes.sum(axis=0), _LEAST)
        told = np.append(y, 0.0)[:, None]
        latent = _mode(seen.means, seen.variances, told)
        yes = expit(latent)
        steps, curvatures = told - yes, yes * (1.0 - yes)
        for i, (covariance, half) in enumerate(zip(self._covariances, seen.half, strict=True)):
            gain = covariance.gain(half)
            # The mode moves along the covariance of phi; its curvature is as much precision as an
            # observation with noise of variance 1 / curvature would bring.
            self.theta[i] += steps[i][:, None] * gain
            covariance.shrink(half, gain, seen.variances[i], curvatures[i])
        self.log_likelihoods = self.forgetting * self.log_likelihoods + np.log(with_label)
        if self.forgetting < 1.0:
            self.theta *= math.sqrt(self.forgetting)


def _mode(means: Array, variances: Array, told: Array) -> Array:
    """Return the mode of a normal distribution times a sigmoid: the root of an equation.

    `f = mean + variance (told - sigmoid(f))`.
    """
    low, high = means + variances * (told - 1.0), means + variances * told
    latent = means.copy()
    for _ in range(_MOST_STEPS):
        yes = expit(latent)
        excess = latent - means - variances * (told - yes)
        open_ = np.abs(excess) > _EXACT * (1.0 + variances + np.abs(means))
        if not open_.any():
            break
        low = np.where(excess < 0.0, latent, low)
        high = np.where(excess > 0.0, latent, high)
        newton = latent - excess / (1.0 + variances * yes * (1.0 - yes))
        inside = (newton > low) & (newton < high)
        latent = np.where(open_, np.where(inside, newton, 0.5 * (low + high)), latent)
    return latent
