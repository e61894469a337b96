"""A Gaussian process at its examples, each with a Gaussian factor that may change at any time."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import ddot

from streamgp.base import Array
from streamgp.gp.ep import Belief
from streamgp.gp.points import padded
from streamgp.gp.symmetric import SymmetricMatrix

_SMALLEST = 16
# Least share of a variance that a factor may leave, or its withdrawal restore.
_LEAST = 1e-9


class SiteProcess:
    """Posterior of one function at the examples, by factors of precision `tau` and mean `nu / tau`.

    A factor changes in O(n²): with `c` a column of the posterior covariance `S` and
    `d = 1 + dtau c_i`, `S -= (dtau / d) c c'` and `mu += ((dnu - dtau mu_i) / d) c`. That is the
    recursion for `R = (K + T⁻¹)⁻¹` multiplied by `K` from both sides; this one needs no `K`, and
    has all variances at hand. Precisions may be negative.

    Parameters
    ----------
    prior_mean
        Mean of the function, the same everywhere.
    most
        Largest number of examples, None for any.

    Attributes
    ----------
    n
        Number of examples.

    Examples
    --------
    >>> process = SiteProcess(0.0)
    >>> process.append(np.empty(0), 1.0)
    >>> process.update(0, 1.0, 2.0)
    True
    >>> process.predict(np.array([1.0]), 1.0)
    (1.0, 0.5)

    """

    # _S        posterior covariance, with room for more
    # _means    posterior means; _tau, _nu  the factors; all of the size of _S, zero behind n
    __slots__ = ("_S", "_means", "_most", "_nu", "_tau", "n", "prior_mean")

    def __init__(self, prior_mean: float, most: int | None = None) -> None:
        self.prior_mean = prior_mean
        self.n = 0
        self._most = most
        self._S = SymmetricMatrix(_SMALLEST if most is None else min(_SMALLEST, most))
        self._means, self._tau, self._nu = (np.zeros(self._S.size) for _ in range(3))

    @classmethod
    def of(cls, belief: Belief, prior_mean: float, tau: Array, nu: Array) -> SiteProcess:
        """Return the process of a posterior with its factors, shape (n,)."""
        process = cls(prior_mean)
        n = len(tau)
        process.n = n
        process._enlarge(max(n, _SMALLEST))
        process._S.set(belief.half.T @ belief.half)
        process._means[:n], process._tau[:n], process._nu[:n] = belief.means, tau, nu
        return process

    @property
    def means(self) -> Array:
        """Posterior means at the examples, a view of shape (n,)."""
        return self._means[: self.n]

    @property
    def variances(self) -> Array:
        """Posterior variances at the examples, a view of shape (n,)."""
        return self._S.diagonal()[: self.n]

    @property
    def tau(self) -> Array:
        """Precisions of the factors, a view of shape (n,)."""
        return self._tau[: self.n]

    @property
    def nu(self) -> Array:
        """Precisions times means of the factors, a view of shape (n,)."""
        return self._nu[: self.n]

    def predict(self, k: Array, prior: float) -> tuple[float, float]:
        """Posterior mean and variance where the prior covariances are `k` (n,) and `prior`."""
        mean, variance, _ = self._look(k, prior)
        return mean, variance

    def append(self, k: Array, prior: float, slot: int | None = None) -> None:
        """Add an example without a factor yet, where the prior covariances are `k` and `prior`.

        At the end, or in the `slot` of one whose factor was divided out.
        """
        n = self.n
        if slot is None and n == self._S.size:
            size = n + n // 2
            self._enlarge(size if self._most is None or n >= self._most else min(size, self._most))
        mean, variance, column = self._look(k, prior)
        i = n if slot is None else slot
        self._S.set_column(i, padded(column, self._S.size), variance)
        self._means[i] = mean
        self.n = n + (slot is None)

    def update(self, i: int, by_tau: float, by_nu: float) -> bool:
        """Change the factor of example `i`; False, and no change, if that left no posterior."""
        c = self._S.column(i)
        d = 1.0 + by_tau * float(c[i])
        if not (d > _LEAST and math.isfinite(d)):
            return False
        means = self._means
        c_times = (by_nu - by_tau * float(means[i])) / d
        self._S.add(-by_tau / d, c)
        means += c_times * c
        self._tau[i] += by_tau
        self._nu[i] += by_nu
        return True

    def is_divisible(self, i: int) -> bool:
        """Whether there were a posterior without the factor of example `i`."""
        return 1.0 - float(self._tau[i]) * float(self.variances[i]) > _LEAST

    def divide_out(self, i: int) -> None:
        """Leave example `i` without a factor; it must be divisible."""
        self.update(i, -float(self._tau[i]), -float(self._nu[i]))
        self._tau[i] = self._nu[i] = 0.0

    def drop(self, i: int) -> None:
        """Forget an example without a factor; later ones move up."""
        n = self.n
        self._S.keep([j for j in range(n) if j != i])
        for values in (self._means, self._tau, self._nu):
            values[i : n - 1] = values[i + 1 : n]
            values[n - 1] = 0.0
        self.n = n - 1

    def mirrored(self) -> SiteProcess:
        """Return what this were had everything been the other way round; the prior mean is 0."""
        other = SiteProcess(self.prior_mean, self._most)
        other.n = self.n
        other._S = self._S.enlarged(self._S.size)
        other._means, other._nu, other._tau = -self._means, -self._nu, self._tau.copy()
        return other

    def copy(self) -> SiteProcess:
        """Return a process that is equal, and shares nothing."""
        other = self.mirrored()
        other._means, other._nu = self._means.copy(), self._nu.copy()
        return other

    def _look(self, k: Array, prior: float) -> tuple[float, float, Array]:
        """Posterior mean, variance, and covariances with the examples."""
        n = self.n
        if not n:
            return self.prior_mean, prior, k
        t = np.zeros(self._S.size)
        t[:n] = self._tau[:n] * k
        St = self._S.times(t)
        b = self._nu[:n] - self._tau[:n] * self._means[:n]
        # k'R k with R = T - T S T, and k'b with b = nu - T mu = K⁻¹ (mu - m0).
        variance = prior - ddot(k, t) + ddot(t, St)
        return self.prior_mean + ddot(k, b), max(variance, 0.0), k - St[:n]

    def _enlarge(self, size: int) -> None:
        self._S = self._S.enlarged(size)
        self._means, self._tau, self._nu = (
            padded(values, size) for values in (self._means, self._tau, self._nu)
        )
