"""The joint posterior at all points of a fixed pool, some of which have a label.

The effect of a label is known everywhere at once, so that all candidates for the next one can be
compared without learning any of them. Time and memory are quadratic in the size of the pool.

"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dger

from streamgp.base import Array
from streamgp.gp.cholesky import check_noise_variance

MIN_SHARE_OF_NOISE = 1e-6
"""Least noise variance, in units of the largest prior variance.

A covariance is updated label after label. With less noise than this, what remains of it after many
labels in one place would be rounding error.
"""


class PoolPosterior:
    """Functions on `P` points, each observed as -1 or +1 at the same few of them.

    With `K` the prior covariances of the points observed and `Γ = (K + noise_variance I)⁻¹`,
    function `j` is `f_j(u) = k(u)' Γ y_j`, and `c(u, v) = k(u, v) - k(u)' Γ k(v)`. Both are kept
    for all `u` and `v`; one more label changes them in O(P²).

    Parameters
    ----------
    covariances
        Prior covariances of the points, shape (P, P), symmetric; the array is overwritten.
    noise_variance
        Variance of the observation noise, in units of y²: `lam` of the criteria.

    Attributes
    ----------
    covariances
        Posterior covariances `c` of the points, noise not included, shape (P, P), read only.
    noise_variance
        Variance of the observation noise.

    Raises
    ------
    ValueError
        If `noise_variance` is less than `MIN_SHARE_OF_NOISE` of the largest prior variance.

    Examples
    --------
    Two points, correlated by one half; the first is observed as +1, with noise 1:

    >>> posterior = PoolPosterior(np.array([[1.0, 0.5], [0.5, 1.0]]), noise_variance=1.0)
    >>> posterior.learn(0, np.array([1.0]))
    >>> posterior.functions
    array([[0.5 , 0.25]])
    >>> posterior.covariances
    array([[0.5  , 0.25 ],
           [0.25 , 0.875]])

    References
    ----------
    [^1]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning,
        Eqs. 2.25 and 2.26, one point at a time.

    """

    # _means    row 0: a function observed as +1 everywhere; the others: the functions
    # _squares  y' Γ y of each of them
    # All are changed by the same step, once for each label, and so keep what a solve would lose
    # to rounding.
    __slots__ = ("_means", "_squares", "covariances", "noise_variance")

    def __init__(self, covariances: Array, noise_variance: float) -> None:
        check_noise_variance(noise_variance)
        least = MIN_SHARE_OF_NOISE * float(covariances.diagonal().max())
        if noise_variance < least:
            raise ValueError(
                f"noise_variance must be at least {least:.2}, a millionth of the prior variance, "
                f"got {noise_variance!r}; raise it"
            )
        self.covariances = covariances
        self.noise_variance = noise_variance
        self._means = np.zeros((2, len(covariances)))
        self._squares = np.zeros(2)

    @property
    def functions(self) -> Array:
        """Posterior means of the functions, shape (m, P), read only."""
        return self._means[1:]

    @property
    def square_norms(self) -> Array:
        """`y_j' Γ y_j` of each function, shape (m,).

        It is the squared norm of `f_j` if the kernel is `k` with the noise on its diagonal.
        """
        return self._squares[1:]

    @property
    def variances(self) -> Array:
        """Posterior variance of an observation at each point, noise included, a new array (P,)."""
        return self.covariances.diagonal() + self.noise_variance

    def copy(self) -> PoolPosterior:
        """Return an independent copy."""
        other = PoolPosterior(self.covariances.copy(), self.noise_variance)
        other._means, other._squares = self._means.copy(), self._squares.copy()
        return other

    def add_function(self) -> None:
        """Add a function that was -1 wherever it has been observed."""
        self._means = np.vstack([self._means, -self._means[0]])
        self._squares = np.append(self._squares, self._squares[0])

    def learn(self, i: int, codes: Array) -> None:
        """Observe the functions, -1 or +1 each, as `codes` of shape (m,) at point `i`."""
        c = self.covariances[i]
        std = math.sqrt(c[i] + self.noise_variance)
        # Half of c c' / v. Row i is used for column i below: the two differ only by rounding, as a
        # BLAS may round the product at (j, k) and that at (k, j) differently, and no step increases
        # the difference. Without BLAS they would be equal, but a step would take four times as
        # long.
        half: Array = c / std
        gaps = (np.append(1.0, codes) - self._means[:, i]) / std
        self._means += gaps[:, None] * half  # f += c(., i) (y - f_i) / v
        self._squares += gaps * gaps  # the norm grows by (y - f_i)² / v, as the document derives
        # C -= c(., i) c(i, .) / v, in place: BLAS sees a matrix by columns as its transpose.
        self.covariances = dger(-1.0, half, half, a=self.covariances.T, overwrite_a=1).T
