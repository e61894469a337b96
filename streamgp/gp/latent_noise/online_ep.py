"""Expectation propagation for labels with latent noise, one label after the other.

Assumed density filtering computes the factors of a label when it comes. A few factors of earlier
labels are then recomputed: with these replays the result is close to expectation propagation of
all.

"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import ddot

from streamgp.base import Array
from streamgp.gp.arrays import SymmetricMatrix, padded
from streamgp.gp.latent_noise.batch_ep import Belief, Fixed
from streamgp.gp.latent_noise.tilted_moments import sites, tilted

# --- A Gaussian process at its examples, each with a Gaussian factor that may change at any
# time.


_SMALLEST = 16
# Least share of a variance that must remain after a factor is added or removed.
_LEAST = 1e-9


class SiteProcess:
    """Posterior of one function at the examples, by factors of precision `tau` and mean `nu / tau`.

    A factor changes in O(n²): with `c` a column of the posterior covariance `S` and
    `d = 1 + dtau c_i`, `S -= (dtau / d) c c'` and `mu += ((dnu - dtau mu_i) / d) c`. This is the
    recursion for `R = (K + T⁻¹)⁻¹` multiplied by `K` from both sides, but needs no `K`, and
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
    # _means    posterior means; _tau, _nu  the factors; all of the size of _S, zero from n on
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

        At the end, or in the `slot` of an example whose factor was divided out.
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
        """Change the factor of example `i`; False, and no change, if no posterior would exist."""
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
        """Whether a posterior exists without the factor of example `i`."""
        return 1.0 - float(self._tau[i]) * float(self.variances[i]) > _LEAST

    def divide_out(self, i: int) -> None:
        """Remove the factor of example `i`, which must be divisible."""
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
        """Return the process of the opposite observations; the prior mean must be 0."""
        other = SiteProcess(self.prior_mean, self._most)
        other.n = self.n
        other._S = self._S.enlarged(self._S.size)
        other._means, other._nu, other._tau = -self._means, -self._nu, self._tau.copy()
        return other

    def copy(self) -> SiteProcess:
        """Return an independent copy."""
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


# --- Labels of one task, and the replays of their factors.


class OnlineLabels:
    """Decision function and log noise variance at the examples of one two-class task.

    Parameters
    ----------
    noise_mean
        Prior mean of the log noise variance; that of the decision function is 0.
    has_noise_process
        Whether the noise is a function; otherwise it is known, as in probit classification.
    n_replays
        Number of factors of earlier labels that are recomputed with each label, in turns.
    most
        Largest number of examples, None for any.

    Attributes
    ----------
    f, g
        Beliefs about the decision function, and about the log noise variance (None if known).

    Examples
    --------
    >>> labels = OnlineLabels(0.0, has_noise_process=False, n_replays=0)
    >>> labels.learn((np.empty(0), 1.0), None, 1.0)
    >>> labels.f.means
    array([0.56418958])

    References
    ----------
    [^1]: Minka, T.P., 2001. A family of algorithms for approximate Bayesian inference. PhD thesis,
        MIT, Ch. 3.

    """

    # _y     labels of the examples, -1 or 1
    # _turn  index of the next one to be replayed
    __slots__ = ("_n_replays", "_noise_mean", "_turn", "_y", "f", "g")

    def __init__(
        self,
        noise_mean: float,
        *,
        has_noise_process: bool,
        n_replays: int,
        most: int | None = None,
    ) -> None:
        self._noise_mean = noise_mean
        self._n_replays = n_replays
        self._turn = 0
        self._y: list[float] = []
        self.f = SiteProcess(0.0, most)
        self.g = SiteProcess(noise_mean, most) if has_noise_process else None

    @classmethod
    def of(
        cls, fixed: Fixed, y: Array, noise_mean: float, *, has_noise_process: bool, n_replays: int
    ) -> OnlineLabels:
        """Return the result for all labels at once, to continue from."""
        labels = cls(noise_mean, has_noise_process=has_noise_process, n_replays=n_replays)
        labels._y = y.tolist()
        labels.f = SiteProcess.of(fixed.f, 0.0, fixed.tau[0], fixed.nu[0])
        if has_noise_process:
            labels.g = SiteProcess.of(fixed.g, noise_mean, fixed.tau[1], fixed.nu[1])
        return labels

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self._y)

    def learn(
        self,
        by_f: tuple[Array, float],
        by_g: tuple[Array, float] | None,
        y: float,
        slot: int | None = None,
    ) -> None:
        """Learn a label, -1 or 1.

        Parameters
        ----------
        by_f, by_g
            Prior covariances of `f` and of `g` with those at the examples, shape (n,), and prior
            variances; the latter None if the noise is known.
        y
            The label.
        slot
            Index of an example that was divided out, and whose place this one takes.

        """
        self.f.append(*by_f, slot)
        if self.g is not None and by_g is not None:
            self.g.append(*by_g, slot)
        i = self.n if slot is None else slot
        self._y[i : i + 1] = [y]
        self._visit([i])
        self._replay(i)

    def relabel(self, i: int, y: float) -> None:
        """Change the label of example `i`: its factor is recomputed, without the old one."""
        self._y[i] = y
        self._visit([i])
        self._replay(i)

    def is_divisible(self, i: int) -> bool:
        """Whether a posterior exists without the factors of example `i`.

        It need not if there are factors of negative precision.
        """
        return self.f.is_divisible(i) and (self.g is None or self.g.is_divisible(i))

    def divide_out(self, i: int) -> None:
        """Remove the factors of example `i`, which must be divisible."""
        for process in self._processes():
            process.divide_out(i)

    def drop(self, i: int) -> None:
        """Forget an example that was divided out; later ones move up."""
        for process in self._processes():
            process.drop(i)
        del self._y[i]
        self._turn -= i < self._turn

    def mirrored(self) -> OnlineLabels:
        """Return the result for the opposite of all labels."""
        other = OnlineLabels(self._noise_mean, has_noise_process=False, n_replays=self._n_replays)
        other.f = self.f.mirrored()
        other.g = None if self.g is None else self.g.copy()
        other._y, other._turn = [-y for y in self._y], self._turn
        return other

    def tells(self) -> Array:
        """Information of each label about `f`, given all others, in nats, shape (n,).

        `log(v_without / v) / 2`, the information in its factor; negative if it widens `f`. The
        label itself is left out on purpose: without a wrong label much would change.
        """
        left: Array = np.maximum(1.0 - self.f.variances * self.f.tau, 1e-300)
        return -0.5 * np.log(left)

    def _processes(self) -> tuple[SiteProcess, ...]:
        return (self.f,) if self.g is None else (self.f, self.g)

    def _replay(self, latest: int) -> None:
        """Visit the examples whose turn it is; the latest one has just been visited."""
        m = min(self._n_replays, self.n - 1)
        turns: list[int] = []
        while len(turns) < m:
            i, self._turn = self._turn % self.n, (self._turn + 1) % self.n
            if i != latest:
                turns.append(i)
        if turns:
            self._visit(turns)

    def _visit(self, indices: list[int]) -> None:
        """Recompute the factors of some labels, given those of all others."""
        f, g, y = self.f, self.g, np.array([self._y[i] for i in indices])
        tau, nu = np.zeros((2, len(indices))), np.zeros((2, len(indices)))
        means, variances = np.zeros_like(tau), np.zeros_like(tau)
        means[1] = self._noise_mean
        for row, process in enumerate(self._processes()):
            tau[row], nu[row] = process.tau[indices], process.nu[indices]
            means[row], variances[row] = process.means[indices], process.variances[indices]
        left = 1.0 - variances * tau
        if not (left > 0.0).all():
            return
        means, variances = (means - variances * nu) / left, variances / left
        tau_new, nu_new, ok = sites(tilted(y, means, variances), means, variances)
        for j, i in enumerate(indices):
            if not ok[j]:
                continue
            f.update(i, float(tau_new[0, j] - tau[0, j]), float(nu_new[0, j] - nu[0, j]))
            if g is not None:
                g.update(i, float(tau_new[1, j] - tau[1, j]), float(nu_new[1, j] - nu[1, j]))
