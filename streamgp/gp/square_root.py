"""Covariances of several linear models, as square roots that examples shrink in place.

A covariance is `S S'` with a square root `S` that has no particular shape. Potter's update keeps
it positive whatever is rounded, where the covariance itself turns negative when noise is small.
What the weights of the models mean is the business of others.

"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dger

from streamgp.base import Array, State


class SquareRoots:
    """Covariances `S S'` of the weights of `m` linear models with `p` features each.

    Parameters
    ----------
    variances
        Prior variance of the weights of each model, shape (m,).
    n_features
        Number of features, p.

    Attributes
    ----------
    roots
        Square roots, shape (m, p, p).

    Examples
    --------
    A single weight of prior variance 1, seen with noise of variance 1:

    >>> weights = SquareRoots(np.array([1.0]), 1)
    >>> features = np.array([[1.0]])
    >>> half, variances = weights.look(features)
    >>> weights.shrink(half, weights.gain(half), variances, np.array([1.0]))
    >>> weights.look(features)[1]
    array([0.5])

    References
    ----------
    [^1]: Bierman, G.J., 1977. Factorization Methods for Discrete Sequential Estimation, §II.7
        (Potter's algorithm).

    """

    # _views  the roots one by one, transposed: in the order that BLAS updates in place
    def __init__(self, variances: Array, n_features: int) -> None:
        self._take(np.sqrt(variances)[:, None, None] * np.eye(n_features))

    def __getstate__(self) -> State:
        return {"roots": self.roots}

    def __setstate__(self, state: State) -> None:
        self._take(state["roots"])

    def become(self, roots: Array, variances: Array) -> None:  # noqa: ARG002 - for what fades
        """Become `S S'` for square roots (m, p, p), below these variances of the prior."""
        self._take(np.ascontiguousarray(roots))

    def look(self, features: Array) -> tuple[Array, Array]:
        """Return `S' phi` of features (m, p), same shape, and variances of `phi'w`, (m,)."""
        half: Array = np.matmul(features[:, None, :], self.roots)[:, 0]
        return half, np.vecdot(half, half)

    def gain(self, half: Array) -> Array:
        """Return `S S' phi` of features from what `look` returned for them, shape (m, p)."""
        gain: Array = np.matmul(self.roots, half[:, :, None])[:, :, 0]
        return gain

    def shrink(self, half: Array, gain: Array, variances: Array, precisions: Array) -> None:
        """Learn that `phi'w` was observed.

        Parameters
        ----------
        half, gain
            What `look` and `gain` returned.
        variances
            Variance of `phi'w`, shape (m,).
        precisions
            1 over the noise variance of the observation, shape (m,).

        """
        # Potter: S -= (S f) f' / (v + sqrt(n v)) with f = S' phi, noise n and v = f'f + n; here
        # multiplied by the precision, which may be 0.
        growth = 1.0 + precisions * variances
        steps = (precisions / (growth + np.sqrt(growth))).tolist()
        for view, f, h, step in zip(self._views, half, gain, steps, strict=True):
            dger(-step, f, h, a=view, overwrite_a=1)

    def _take(self, roots: Array) -> None:
        self.roots = roots
        self._views: Sequence[Array] = [root.T for root in roots]
