"""Gaussian process regression on the latest examples only, for what changes all the time."""

from __future__ import annotations

from streamgp.base import Array
from streamgp.gp.bounded import BoundedGP


class WindowGP(BoundedGP):
    """An `ExactGP` of the latest examples: `max_points` of them, or up to a quarter fewer.

    When there is one too many, a quarter of the examples is forgotten at once, the oldest ones, and
    the others are learned again. At 500 points that is as if each example took twice as long; to
    take rows out of a Cholesky factor one by one would take longer, and leave rounding errors.

    Parameters
    ----------
    kernel
        Covariance function.
    noise_variance
        Variance of the observation noise, in units of y².
    max_points
        Largest number of examples.

    Attributes
    ----------
    retained
        Numbers of the examples in the window, the oldest first.

    Examples
    --------
    >>> import numpy as np
    >>> from streamgp.kernels import SquaredExponential
    >>> gp = WindowGP(SquaredExponential(), noise_variance=1.0, max_points=8)
    >>> [gp.append(np.array([0.1 * i]), np.array([1.0])) for i in range(9)][-1]
    [0, 1]
    >>> gp.retained
    [2, 3, 4, 5, 6, 7, 8]

    """

    __slots__ = ()

    def append(self, x: Array, y: Array) -> list[int]:
        """Learn an example, and return the numbers of those that are forgotten for it."""
        self._gp.append(x, y)
        self._take(x, y)
        if len(self.retained) <= self.max_points:
            return []
        n = max(self.max_points // 4, 1)
        gone = self.retained[:n]
        del self.retained[:n], self._points[:n], self._targets[:n]
        self._gp = self._exact(self.kernel)
        return gone
