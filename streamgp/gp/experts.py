"""Several Bayesian linear models of the same targets, each with features of its own.

An expert is a Gaussian process with random features: weights with a normal prior, targets with
normal noise. All are kept in common arrays, so that a step costs a few calls whatever their number.
What the targets mean, and what an expert counts, is the business of the learner.

"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamgp.base import Array
from streamgp.gp.fading import FadingCovariances
from streamgp.gp.square_root import SquareRoots


class Seen(NamedTuple):
    """A point as all experts see it; a tuple, which takes half as long to make.

    Parameters
    ----------
    features
        Random features, shape (m, p).
    half
        What their covariances make of the features, shape (m, p).
    means
        Latent means of the targets, shape (m, t).
    variances
        Latent variances, shape (m,).

    """

    features: Array
    half: Array
    means: Array
    variances: Array


class Experts:
    """`m` Bayesian linear models of `t` targets that share, within a model, one covariance.

    `y = phi(x)'w + noise` with weights `w ~ N(0, amplitude I)`, a posterior `N(theta, S S')`, and
    noise of variance `noise_variance`; constant in time and memory.

    Parameters
    ----------
    amplitudes
        Prior variance of the function of each expert, shape (m,), in units of y².
    noise_variances
        Variance of the observations around it, shape (m,).
    n_features
        Number of features of each expert.
    forgetting
        What share of what is known is kept when an example is learned; the rest is the prior
        again. 1 forgets nothing.

    Attributes
    ----------
    amplitudes, noise_variances
        As given, or adopted since.
    theta
        Posterior means of the weights, shape (m, t, p).
    n
        Number of examples; with forgetting the sum of their shares.
    misfits
        Sum of `e e' / v` over examples, where `e` are the errors with which the targets were
        predicted before they were learned and `v` the variance of the prediction, shape (m, t, t).
    log_dets
        Sum of `log v`, shape (m,).

    Examples
    --------
    >>> experts = Experts(np.array([1.0]), np.array([1.0]), n_features=1)
    >>> experts.add_target()
    >>> seen = experts.see(np.array([[1.0]]))
    >>> experts.learn(seen, np.array([2.0]))
    >>> seen = experts.see(seen.features)
    >>> seen.means, seen.variances
    (array([[1.]]), array([0.5]))
    >>> experts.log_evidences(np.eye(1))  # log N(2; 0, 2)
    array([-2.26551212])

    References
    ----------
    [^1]: Polyzos, K.D., Lu, Q. and Giannakis, G.B., 2023. Active labeling for online ensemble
        learning. Asilomar, Eqs. 5-9.

    """

    def __init__(
        self,
        amplitudes: Array,
        noise_variances: Array,
        n_features: int,
        forgetting: float = 1.0,
    ) -> None:
        m = len(amplitudes)
        self.amplitudes = amplitudes
        self.noise_variances = noise_variances
        self.forgetting = forgetting
        self.covariances = covariances_of(amplitudes, n_features, forgetting)
        self.theta = np.zeros((m, 0, n_features))
        self.n = 0.0
        self.misfits = np.zeros((m, 0, 0))
        self.log_dets = np.zeros(m)

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return self.theta.shape[1]

    def add_target(self) -> None:
        """Add a target that was 0 wherever something has been observed."""
        m, t, p = self.theta.shape
        theta, misfits = np.zeros((m, t + 1, p)), np.zeros((m, t + 1, t + 1))
        theta[:, :t], misfits[:, :t, :t] = self.theta, self.misfits
        self.theta, self.misfits = theta, misfits

    def see(self, features: Array) -> Seen:
        """Return what is known of a point with these features, shape (m, p)."""
        half, variances = self.covariances.look(features)
        return Seen(
            features=features,
            half=half,
            # Row by row: another target changes no bit of those before.
            means=np.vecdot(self.theta, features[:, None, :]),
            variances=variances,
        )

    def learn(self, seen: Seen, y: Array) -> None:
        """Learn targets (t,) of a point, seen since the last example was learned."""
        variances = seen.variances + self.noise_variances  # Eq. 6
        errors = y - seen.means
        shares = errors / variances[:, None]
        gain = self.covariances.gain(seen.half)
        self.theta += shares[:, :, None] * gain[:, None, :]  # Eq. 9
        self.covariances.shrink(seen.half, gain, seen.variances, 1.0 / self.noise_variances)
        share = self.forgetting
        if share < 1.0:
            self.misfits *= share
            self.log_dets *= share
        self.n = share * self.n + 1.0
        self.misfits += errors[:, :, None] * shares[:, None, :]
        self.log_dets += np.log(variances)
        if share < 1.0:
            # After the update, as the covariances do: what is predicted next has been forgotten a
            # little. Dividing covariances by the share, as is usual elsewhere, lets them explode
            # where nothing is learned.
            self.theta *= math.sqrt(share)

    def forget_evidence(self) -> None:
        """Let all experts count the same again."""
        self.n = 0.0
        self.misfits[:] = 0.0
        self.log_dets[:] = 0.0

    def log_evidences(self, directions: Array) -> Array:
        """Log density of targets, each example given those before it, in nats, shape (m,).

        Parameters
        ----------
        directions
            What is judged: `k` combinations of the targets, shape (t, k).

        """
        # The trace of U' M U for each matrix M of misfits.
        m, t, _ = self.misfits.shape
        misfits = self.misfits.reshape(m, t * t) @ (directions @ directions.T).ravel()
        constant = self.n * math.log(2.0 * math.pi)
        evidences: Array = -0.5 * (misfits + directions.shape[1] * (self.log_dets + constant))
        return evidences


def covariances_of(
    variances: Array, n_features: int, forgetting: float
) -> SquareRoots | FadingCovariances:
    """Return covariances of weights before anything was learned, that forget as much."""
    if forgetting == 1.0:
        return SquareRoots(variances, n_features)
    return FadingCovariances(variances, n_features, forgetting)
