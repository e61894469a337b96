"""Posterior of a Gaussian process at inducing points, which represent all examples.

This module holds only the numbers, no kernel and no points: where the points lie, which examples
they came from, and when a process is reduced to a few of them, is in `sparse.py`.

"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import lapack
from scipy.linalg.blas import ddot

from streamgp.base import Array
from streamgp.gp.arrays import SymmetricMatrix, enlarged, padded
from streamgp.gp.marginal_likelihood import CUBIC, NEW_MEMORY, Steps, inverse_of_factor_steps

# A point is new if the others leave more than this share of its prior variance unexplained
# (Csató and Opper's tolerance, relative). Keeping other points would cost digits and gain nothing.
NOVELTY = 1e-3
# Recent examples are the last ones, this many times as many as there is room for points.
_HORIZON = 10.0


class Look(NamedTuple):
    """Projection of one point on the inducing points.

    Parameters
    ----------
    prior
        Prior variance there.
    e
        Weights of the values at the basis points that give the function at the point, followed by
        a -1 for the function itself, shape (capacity + 1,).
    h
        Posterior covariances with these values.
    residual
        Prior variance that the basis points leave unexplained.
    variance
        Posterior variance, without noise.

    """

    prior: float
    e: Array
    h: Array
    residual: float
    variance: float

    @property
    def is_new(self) -> bool:
        """Whether the point deserves a place among the others."""
        return self.residual > NOVELTY * self.prior


class Basis:
    """Posterior of `m` functions that share one covariance, as normal distributions at `n` points.

    Elsewhere a function follows from its values `f` at these points as under the prior: with `k`
    the covariances of a point with them, `Q` the inverse of their covariances with each other and
    `e = Q k`, it is normal around `e'f` with the residual variance `k(x, x) - k'e`. Learning an
    observation is exact in this model; so is unlearning an observation at a point of the basis.

    Stored are the means and covariances `S` at the points, not `alpha = Q mean` and `C = Q S Q - Q`
    as in Csató and Opper. They are equivalent, but this way a point is dropped without arithmetic,
    variances are sums of non-negative terms, and rounding errors do not grow with the number of
    events.

    Parameters
    ----------
    capacity
        Largest number of points.

    Attributes
    ----------
    n
        Number of points, which have the slots 0 to n - 1.
    n_targets
        Number of functions.

    Examples
    --------
    One point, an observation of 1 with noise 1: both the mean and the variance are one half.

    >>> basis = Basis(capacity=1)
    >>> basis.add_target()
    >>> look = basis.look(np.empty(0), prior=1.0)
    >>> basis.learn(look, basis.means(look), np.array([1.0]), noise_variance=1.0)
    0
    >>> look = basis.look(np.array([1.0]), prior=1.0)
    >>> basis.means(look).tolist(), look.variance
    ([0.5], 0.5)

    References
    ----------
    [^1]: Csató, L. and Opper, M., 2002. Sparse on-line Gaussian processes. Neural Computation
        14(3), §3.
    [^2]: Van Vaerenbergh, S., Lázaro-Gredilla, M. and Santamaría, I., 2012. Kernel recursive
        least-squares tracker for time-varying regression. IEEE TNNLS 23(8), §III: these
        coordinates.

    """

    # Slots that are not in use hold zeros in all of these: every event does the same arithmetic.
    # Arrays with one more entry than slots have it for a newcomer; it holds a zero as well.
    # _Q         inverse prior covariance of the points (capacity, capacity)
    # _diagonal  its diagonal (capacity + 1,)
    # _S         posterior covariance of the functions there
    # _use       how much recent examples relied on each point (capacity + 1,), a moving average of
    #            e²; that of a newcomer, behind them, is 1 in `capacity`, about the average
    # _M         a row [means, weights Q mean] for each function (m, 2 capacity + 2), so that one
    #            more changes no bit of the others. Weights only tell which point is least needed
    __slots__ = ("_M", "_Q", "_S", "_diagonal", "_use", "capacity", "n", "n_targets")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n = 0
        self.n_targets = 0
        self._Q = SymmetricMatrix(capacity)
        self._S = SymmetricMatrix(capacity)
        self._diagonal: Array = np.zeros(capacity + 1)
        self._use: Array = np.zeros(capacity + 1)
        self._use[-1] = 1.0 / capacity
        self._M: Array = np.zeros((0, 2 * capacity + 2))

    @classmethod
    def of_steps(cls, capacity: int, K: Array, means: Array, S: Array) -> Steps[Self]:
        """Compute a basis from the posterior at points that are new to each other.

        Parameters
        ----------
        capacity
            Largest number of points.
        K
            Prior covariances of the points, shape (n, n).
        means
            Posterior means of the functions there, shape (m, n).
        S
            Their posterior covariance, shape (n, n).

        """
        n = len(K)
        cubic, memory = CUBIC * n**3, NEW_MEMORY * n * n
        yield cubic + memory
        L, _ = lapack.dpotrf(K, lower=0)
        inverse = yield from inverse_of_factor_steps(L, lower=False)
        yield 2.0 * cubic + memory
        basis = cls(capacity)
        basis.n = n
        basis._Q.set(inverse)
        yield 2.0 * cubic + memory
        basis._S.set(S)
        basis._diagonal[:-1] = basis._Q.diagonal()
        basis._use[:n] = basis._use[-1]
        for mean in means:
            basis.add_target()
            basis._shift(padded(mean, capacity), np.append(np.zeros(basis.n_targets - 1), 1.0))
        return basis

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        if self.n_targets == len(self._M):
            self._M = enlarged(self._M, (max(4, 2 * self.n_targets), self._M.shape[1]))
        self.n_targets += 1

    def look(self, k: Array, prior: float) -> Look:
        """Project a point on the basis; changes nothing.

        Parameters
        ----------
        k
            Prior covariances with the functions at the basis points, shape (n,).
        prior
            Prior variance at the point.

        """
        k = padded(k, self.capacity)
        e = np.zeros(self.capacity + 1)
        e[-1] = -1.0
        self._Q.times_into(k, e)
        h = self._S.times(e)
        residual, explained = prior - ddot(k, e), ddot(h, e)
        # Below 0 only by rounding, where one of the two is exhausted.
        residual = residual if residual > 0.0 else 0.0
        return Look(prior, e, h, residual, residual + (explained if explained > 0.0 else 0.0))

    def means(self, look: Look) -> Array:
        """Posterior means (m,) at a point."""
        # One dot product per function: the bits of one function do not depend on how many there
        # are.
        means: Array = np.vecdot(self._M[: self.n_targets, : self.capacity + 1], look.e)
        return means

    def learn(self, look: Look, means: Array, surprise: Array, noise_variance: float) -> int | None:
        """Learn an observation at a point.

        If the point is new it becomes one of the basis. If all slots are taken, it replaces the
        least needed point, which may be the new one itself.

        Parameters
        ----------
        look, means
            What `look` and `means` returned.
        surprise
            Observations minus means, shape (m,).
        noise_variance
            Variance of the observation noise.

        Returns
        -------
        The slot of the point; None if the observation was absorbed by the others.

        """
        total = look.variance + noise_variance
        q: Array = surprise / total
        self._condition(look.h, q, total)
        squares = look.e * look.e
        self._note_use(squares)
        slot = self._slot_for(look, q, squares) if look.is_new else None
        if slot is not None:
            self._place(slot, look, means + q * look.variance, noise_variance / total)
        return slot

    def marginals(self) -> tuple[Array, Array]:
        """Posterior means (n, m) and variances (n,) at the points."""
        return self._M[: self.n_targets, : self.n].T.copy(), self._S.diagonal()[: self.n].copy()

    def posterior(self) -> tuple[Array, Array]:
        """Posterior means (m, n) and covariance (n, n) at the points."""
        return self._M[: self.n_targets, : self.n].copy(), self._S.dense(self.n)

    def shift(self, slot: int, change: Array, noise_variance: float) -> None:
        """Change what was observed at a point; exact, the covariance stays as it is."""
        self._shift(self._S.column(slot), change / noise_variance)

    def unlearn(self, slot: int, y: Array, noise_variance: float) -> None:
        """Unlearn the observation at a point, and drop the point; later slots move up.

        An observation is removed like one that is learned, but with variance `-noise_variance`.
        """
        h = self._S.column(slot)
        total = float(h[slot]) - noise_variance
        q: Array = (y - self._M[: self.n_targets, slot]) / total
        self._condition(h, q, total)
        self._drop(slot)
        stay = [i for i in range(self.n) if i != slot]
        self.n = n = len(stay)
        for half in self._halves():
            half[:, :n] = half[:, stay]
            half[:, n:] = 0.0
        self._Q.keep(stay)
        self._S.keep(stay)
        self._diagonal[:-1] = self._Q.diagonal()
        self._use[:-1] = padded(self._use[stay], self.capacity)

    def _note_use(self, squares: Array) -> None:
        """Record how much an example relied on each point: the squares of `e`."""
        typical = self._use[-1]
        rate = typical / _HORIZON
        self._use *= 1.0 - rate
        self._use += rate * squares
        self._use[-1] = typical

    def _slot_for(self, look: Look, q: Array, squares: Array) -> int | None:
        """Return the slot for a new point, None if it is needed less than all others."""
        if self.n < self.capacity:
            return self.n
        # Weights, and diagonal of Q, with both the newcomer and all others in the basis.
        weights = self._M[: self.n_targets, self.capacity + 1 :] - q[:, None] * look.e
        diagonal = squares / look.residual
        diagonal += self._diagonal
        # Without a point, means change by its weight divided by its diagonal, times its e. Summed
        # function after function, so that a function of zeros changes no bit.
        weights *= weights
        loss: Array = np.add.reduce(weights, axis=0)
        diagonal *= diagonal
        loss /= diagonal
        loss *= self._use
        slot = int(loss.argmin())
        return slot if slot < self.capacity else None

    def _condition(self, h: Array, q: Array, total: float) -> None:
        """Add `q h'` to the means and `-h h' / total` to the covariance (GPML Eqs. 2.25, 2.26)."""
        self._shift(h, q)
        self._S.add(-1.0 / total, h)

    def _shift(self, h: Array, q: Array) -> None:
        capacity = self.capacity
        step: Array = np.zeros(2 * capacity + 2)
        step[:capacity] = h
        self._Q.times_into(h, step, capacity + 1)
        self._M[: self.n_targets] += q[:, None] * step

    def _place(self, slot: int, look: Look, mean: Array, share: float) -> None:
        """Put a point that has been learned completely into a slot, replacing what was there."""
        e, residual = look.e[:-1], look.residual
        if slot < self.n:
            # Without the old point, more of the new one is unexplained.
            v = self._drop(slot)
            residual += e[slot] * e[slot] / self._diagonal[slot]
            e = e - e[slot] * v
        else:
            self.n += 1
        means, weights = self._halves()
        # The inverse of a bordered matrix (GPML Eq. A.12).
        self._Q.add(1.0 / residual, e)
        self._Q.set_column(slot, -e / residual, 1.0 / residual)
        self._S.set_column(slot, share * look.h, share * look.variance)
        weight = (mean - np.vecdot(means, e)) / residual
        weights -= weight[:, None] * e
        weights[:, slot] = weight
        means[:, slot] = mean
        self._use[slot] = self._use[-1]
        self._diagonal[:-1] = self._Q.diagonal()

    def _drop(self, slot: int) -> Array:
        """Drop a point from the prior, so that its slot can be written to.

        Returns the weights of its value in the function at the other points: `Q`'s column over its
        pivot.
        """
        column = self._Q.column(slot)
        pivot = float(column[slot])
        v = column / pivot
        means, weights = self._halves()
        means[:, slot] = 0.0
        weights -= weights[:, slot : slot + 1] * v
        self._Q.add(-1.0 / pivot, column)
        return v

    def _halves(self) -> tuple[Array, Array]:
        """Return the means and the weights, as writable views."""
        M, capacity = self._M[: self.n_targets], self.capacity
        return M[:, :capacity], M[:, capacity + 1 : -1]
