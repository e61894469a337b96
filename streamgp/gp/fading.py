"""Covariances of several linear models that fall back to the prior, a little with each example."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dger

from streamgp.base import Array, State


class FadingCovariances:
    """Covariances `variance I - scale W` of the weights of `m` linear models.

    `W` is what has been learned. To mix a covariance with the prior, `share Sigma + (1 - share)
    variance I`, is to multiply `W` by the share: a single number. A square root would have to be
    made anew. It is not needed, since `Sigma` stays above `(1 - share) variance I`, far from what
    rounding could turn negative.

    Parameters
    ----------
    variances
        Prior variance of the weights of each model, shape (m,).
    n_features
        Number of features of each.
    share
        What is kept when an example is learned.

    Examples
    --------
    A single weight of prior variance 1, seen with noise of variance 1, and half forgotten:

    >>> weights = FadingCovariances(np.array([1.0]), 1, share=0.5)
    >>> half, variances = weights.look(np.array([[1.0]]))
    >>> weights.shrink(half, weights.gain(half), variances, np.array([1.0]))
    >>> weights.look(np.array([[1.0]]))[1]
    array([0.75])

    """

    # _learned  W, shape (m, p, p)
    # _scale    what it is multiplied by
    # _views    W by model, transposed: in the order that BLAS updates in place
    def __init__(self, variances: Array, n_features: int, share: float) -> None:
        self._share = share
        self._variances = variances
        self._scale = 1.0
        self._take(np.zeros((len(variances), n_features, n_features)))

    def __getstate__(self) -> State:
        return {
            "share": self._share,
            "variances": self._variances,
            "scale": self._scale,
            "learned": self._learned,
        }

    def __setstate__(self, state: State) -> None:
        self._share = state["share"]
        self._variances = state["variances"]
        self._scale = state["scale"]
        self._take(state["learned"])

    def become(self, roots: Array, variances: Array) -> None:
        """Become `S S'` for square roots (m, p, p), below these variances of the prior."""
        learned = -np.matmul(roots, roots.transpose(0, 2, 1))
        p = roots.shape[1]
        learned[:, np.arange(p), np.arange(p)] += variances[:, None]
        self._variances = variances
        self._scale = 1.0
        self._take(learned)

    def look(self, features: Array) -> tuple[Array, Array]:
        """Return `Sigma phi` of features (m, p), same shape, and variances of `phi'w`, (m,)."""
        known: Array = np.matmul(self._learned, features[:, :, None])[:, :, 0]
        known *= -self._scale
        known += self._variances[:, None] * features
        return known, np.vecdot(features, known)

    def gain(self, half: Array) -> Array:
        """Return `Sigma phi` of features from what `look` returned for them."""
        return half

    def shrink(self, half: Array, gain: Array, variances: Array, precisions: Array) -> None:  # noqa: ARG002
        """Learn that `phi'w` was observed, as `SquareRoots` does, and forget a little."""
        steps = (precisions / (1.0 + precisions * variances) / self._scale).tolist()
        for view, g, step in zip(self._views, gain, steps, strict=True):
            dger(step, g, g, a=view, overwrite_a=1)
        self._scale *= self._share
        if self._scale < 1e-100:
            self._learned *= self._scale
            self._scale = 1.0

    def _take(self, learned: Array) -> None:
        self._learned = learned
        self._views: Sequence[Array] = [matrix.T for matrix in learned]
