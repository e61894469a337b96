"""Gaussian process regression at a few points: any number of examples, a bounded posterior.

This module has the start, a projection of an exact process, and the continuation. The numbers are
in `inducing_points.py`; when to start, and how examples are numbered, is in `sparse.py`.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np
from scipy.linalg import lapack

from streamgp.base import Array
from streamgp.gp.arrays import SymmetricMatrix, padded
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.exact import ExactGP, Points
from streamgp.gp.inducing_points import NOVELTY, Basis, Look
from streamgp.gp.marginal_likelihood import (
    CUBIC,
    EMBEDDED,
    NEW_MEMORY,
    Steps,
    another_prior_steps,
    inverse_of_factor_steps,
    symmetric_product_steps,
)
from streamgp.kernels import Kernel

# --- Points that can replace each other, and the choice of the first ones from many.


class Slots(Points):
    """Points that can be replaced by others.

    Examples
    --------
    >>> from streamgp.kernels import SquaredExponential
    >>> slots = Slots(SquaredExponential())
    >>> slots.settle(np.array([0.0]))
    >>> slots.extend([np.array([0.0]), np.array([1.0])])
    >>> x = np.array([2.0])
    >>> row, _, _ = slots.covariances_with(x)
    >>> slots.put(0, x, row)
    >>> slots.prior_covariances().round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]

    """

    __slots__ = ()

    def extend(self, X: Sequence[Array]) -> None:
        """Add points at the end."""
        for x in X:
            self.append(x, self.covariances_with(x)[0])

    def put(self, slot: int, x: Array, row: Array) -> None:
        """Put a point and its row into a slot, at most the first free one."""
        if slot == self.n:
            self.append(x, row)
        else:
            self.given[slot] = x
            self._rows[slot] = row

    def keep(self, slots: Sequence[int]) -> None:
        """Keep the points in some slots, and move them up."""
        self.n = len(slots)
        self.given = [self.given[i] for i in slots]
        self._rows[: self.n] = self._rows[slots]

    def measure(self, kernel: Kernel) -> None:
        """Measure the points with another kernel."""
        if self.d is not None:
            self._resize(self.d, kernel)

    def prior_covariances(self) -> Array:
        """Return the prior covariances of all points with each other, shape (n, n)."""
        kernel, rows = self.kernel, self.rows
        K: Array = np.empty((self.n, self.n))
        for i, row in enumerate(rows):
            K[i, :i] = K[:i, i] = kernel.vector(rows[:i], row)
            K[i, i] = kernel.prior_variance(row)
        return K


def new_to_each_other(K: Array) -> list[int]:
    """Return the indices of points that determine all others, up to a share of `NOVELTY`.

    Parameters
    ----------
    K
        Prior covariances of the points, shape (n, n).

    Examples
    --------
    >>> new_to_each_other(np.array([[1.0, 0.3, 0.9999], [0.3, 1.0, 0.3], [0.9999, 0.3, 1.0]]))
    [0, 1]

    """
    std = np.sqrt(np.diagonal(K))
    std[std == 0.0] = 1.0  # a point without prior variance is never new
    # Cholesky with pivoting takes the point that is newest to those taken, until none is new.
    _, order, rank, _ = lapack.dpstrf(K / np.outer(std, std), tol=NOVELTY, lower=1)
    return sorted((order[:rank] - 1).tolist())


# Share of the prior variance below which a residual cannot be told from the rounding errors of the
# inverse of the basis' covariance.
_FLOOR = 1e-8
# An observation can be separated from all others if its noise variance exceeds the posterior
# variance by more than this share of it; otherwise rounding errors of the two would decide.
_SEPARABLE = 1e-6


class ProjectedGP:
    """Gaussian process whose posterior is kept at inducing points only; otherwise like `ExactGP`.

    The examples behind these points are retained, in the order of their slots. The others were
    absorbed.

    Attributes
    ----------
    n
        Number of examples learned and not removed.
    noise_variance
        Variance of the observation noise, in units of y².

    """

    # _points   the basis
    # _targets  the observations there
    # _basis    the posterior there
    # _quadratic_forms, _log_det  of all observations when they were learned: products of the
    #           surprises of each two functions over their variance, and logarithms of variances
    # _last     the last point looked at (its bytes, its row, the look), None once it is outdated
    # _means    the means there, None once they are outdated
    __slots__ = (
        "_basis",
        "_last",
        "_log_det",
        "_means",
        "_points",
        "_quadratic_forms",
        "_targets",
        "n",
        "noise_variance",
    )

    def __init__(
        self, noise_variance: float, points: Slots, targets: Sequence[Array], basis: Basis
    ) -> None:
        self.noise_variance = noise_variance
        self.n = points.n
        self._points = points
        self._targets = list(targets)
        self._basis = basis
        self._quadratic_forms = SymmetricMatrix(basis.n_targets)
        self._log_det = 0.0
        self._last: tuple[bytes, Array, Look] | None = None
        self._means: Array | None = None

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        # What is only remembered for speed is not part of the state: predicting changes nothing.
        state = {name: getattr(self, name) for name in self.__slots__}
        return None, {**state, "_last": None, "_means": None}

    @classmethod
    def of_steps(
        cls, exact: ExactGP, X: Sequence[Array], Y: Sequence[Array], capacity: int
    ) -> Steps[tuple[Self, list[int]]]:
        """Project an exact process on those of its points that are new to each other.

        Its posterior at these points is kept. What it knows of the other points is lost as far as
        it does not follow from these by the prior: at most a thousandth of their prior variance.

        Parameters
        ----------
        exact
            The process.
        X, Y
            The points and targets that it has learned, in order, with all features and functions.
        capacity
            Largest number of points.

        Returns
        -------
        The process, and the indices of the chosen points.

        """
        noise, n, m = exact.noise_variance, exact.n, exact.n_targets
        cubic, memory = CUBIC * n**3, NEW_MEMORY * n * n
        yield 5.0 * n
        points = Slots(exact.kernel)
        points.settle(X[0])
        points.extend(X)
        yield 5.0 * n + memory
        K = points.prior_covariances()
        yield 2.0 * cubic + memory
        chosen = new_to_each_other(K)
        yield 2.0 * cubic
        inverse = yield from inverse_of_factor_steps(exact._factor.dense(), lower=True)
        yield 2.0 * cubic + 2.0 * memory
        G = np.tril(inverse) + np.tril(inverse, -1).T  # Γ
        # K - K Γ K (GPML Eq. 2.26) is noise K Γ without a difference, and noise I - noise² Γ
        # without a product; where noise is small the latter loses no digits, either.
        if noise < float(np.diagonal(K).max()):
            S = noise * np.eye(n) - noise * noise * G
        else:
            S = yield from symmetric_product_steps(K, noise * G)
        # K Γ y (GPML Eq. 2.25), which is the target less its noise. Function after function: the
        # bits of one function do not depend on how many there are.
        targets = np.array(Y).reshape(n, m).T.copy()
        means = np.array([y - noise * np.vecdot(G, y) for y in targets]).reshape(m, n)
        yield 2.0 * memory
        square = np.ix_(chosen, chosen)
        basis = yield from Basis.of_steps(capacity, K[square], means[:, chosen], S[square])
        points.keep(chosen)
        gp = cls(noise, points, [Y[i] for i in chosen], basis)
        gp.n = n
        found, gp._log_det = exact.quadratic_forms()
        gp._quadratic_forms.set(found)
        return gp, chosen

    @property
    def n_targets(self) -> int:
        """Number of functions."""
        return self._basis.n_targets

    @property
    def kernel(self) -> Kernel:
        """Covariance function."""
        return self._points.kernel

    def predict(self, x: Array) -> tuple[Array, float]:
        """Posterior means (m,), read only, and latent variance at `x` of shape (d,)."""
        _, _, look = self._look(x)
        return self._means_at(look), look.variance

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent covariances (b, b) at points `X` of shape (b, d).

        `k(u, v) - k(u)' Q k(v) + e(u)' S e(v)`: what the basis leaves unexplained, plus the
        posterior covariance at the basis.
        """
        rows, priors, K = zip(*map(self._points.covariances_with, X), strict=True)
        looks = [self._basis.look(k, prior) for k, prior in zip(K, priors, strict=True)]
        C = self.kernel.matrix(np.array(rows))
        n = self._points.n
        weights = np.array([look.e[:n] for look in looks])
        for i, look in enumerate(looks):
            C[i] += np.vecdot(weights, look.h[:n] - K[i])
        np.fill_diagonal(C, [look.variance for look in looks])
        return np.array([self._basis.means(look) for look in looks]), C

    def covariance_terms(self, x: Array) -> tuple[Array, Array, Array]:
        """Row of a point, and `a` and `b` with `cov(u, v) = k(u, v) - a(u)' b(v)`.

        They are `e` and `k - h`: see `joint`.
        """
        n = self._points.n
        _, row, look = self._look(x)
        k = self.kernel.vector(self._points.rows, row)
        return row, look.e[:n], k - look.h[:n]

    def append(self, x: Array, y: Array) -> int | None:
        """Learn the targets `y` of shape (m,) at the point `x` of shape (d,), as `ExactGP` does.

        Returns
        -------
        The index of the example, which replaces the one that had it; None if it was absorbed.

        Raises
        ------
        NotPositiveDefiniteError
            If the point is, up to rounding, determined by the old ones. Nothing is learned then.

        """
        _, row, look = self._look(x)
        total = look.variance + self.noise_variance
        floor = _FLOOR * (look.prior + self.noise_variance)
        if not total > floor:
            raise NotPositiveDefiniteError(
                f"new point leaves residual variance {total:.3}, expected more than {floor:.2}; "
                "raise noise_variance or drop repeated points"
            )
        while self.n_targets < len(y):
            self.add_target()
        means = self._means_at(look)
        surprise = y - means
        slot = self._basis.learn(look, means, surprise, self.noise_variance)
        if self.n_targets:  # BLAS does not accept empty vectors
            self._quadratic_forms.add(1.0 / total, surprise)
        self._log_det += math.log(total)
        self.n += 1
        self._last = self._means = None
        if slot is not None:
            self._points.put(slot, x, row)
            self._targets[slot : slot + 1] = [y]
        return slot

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        self._basis.add_target()
        self._quadratic_forms = self._quadratic_forms.enlarged(self.n_targets)
        self._means = None

    def resize(self, d: int, kernel: Kernel | None = None) -> None:
        """Change the number of features; see `Points.resize`."""
        self._points.resize(d, kernel)
        self._last = None

    def adopt_steps(self, kernel: Kernel, noise_variance: float) -> Steps[list[int] | None]:
        """Switch to other hyperparameters, as if they had always been in use.

        What all observations tell about the functions at the basis points is kept. What they tell
        about the points between follows from these by the old prior, and the variances with which
        they were expected, except for noise, are the old ones as well. Only the last step changes
        anything.

        Returns
        -------
        The indices of the retained examples: a point that now follows from others is dropped. None
        if the posterior is too certain to reveal what was observed; nothing has changed in this
        case.

        """
        n = self._points.n
        cubic, memory = CUBIC * n**3, NEW_MEMORY * n * n
        yield cubic + memory
        points = copy(self._points)
        K = points.kernel.matrix(points.rows)
        yield EMBEDDED * n + cubic + memory
        points.measure(kernel)
        prior = kernel.matrix(points.rows)
        yield memory
        posterior = self._basis.posterior()
        gain = self.noise_variance / noise_variance
        found = yield from another_prior_steps(K, *posterior, prior, gain)
        if found is None:
            return None
        means, S = found
        yield 2.0 * cubic + memory
        chosen = new_to_each_other(prior)
        yield 2.0 * memory
        square = np.ix_(chosen, chosen)
        capacity = self._basis.capacity
        basis = yield from Basis.of_steps(capacity, prior[square], means[:, chosen], S[square])
        points.keep(chosen)
        self._points, self._basis = points, basis
        self._targets = [self._targets[i] for i in chosen]
        self.noise_variance = noise_variance
        self._last = self._means = None
        return chosen

    def relabel(self, i: int, y: Array) -> None:
        """Replace the targets of example `i`, as if they had been learned in the first place.

        This is exact in the model; which points are in the basis does not change.
        """
        old = padded(self._targets[i], self.n_targets)
        mean, total = self._expected(i)
        if self.n_targets:
            self._quadratic_forms.add(-1.0 / total, old - mean)
            self._quadratic_forms.add(1.0 / total, y - mean)
        self._basis.shift(i, y - old, self.noise_variance)
        self._targets[i] = y
        self._last = self._means = None

    def remove(self, i: int) -> None:
        """Forget example `i` and its point, as if it had not been learned; later ones move up."""
        old = padded(self._targets[i], self.n_targets)
        mean, total = self._expected(i)
        if self.n_targets:
            self._quadratic_forms.add(-1.0 / total, old - mean)
        self._log_det -= math.log(total)
        self._basis.unlearn(i, old, self.noise_variance)
        self._points.keep([j for j in range(self._points.n) if j != i])
        del self._targets[i]
        self.n -= 1
        self._last = self._means = None

    def quadratic_forms(self) -> tuple[Array, float]:
        """Return those of `ExactGP`, for observations each given those before it."""
        return self._quadratic_forms.dense(self.n_targets), self._log_det

    def are_separable(self) -> list[bool]:
        """Whether each retained example can be separated from all others, up to rounding."""
        _, variances = self._basis.marginals()
        rest = self.noise_variance - variances
        return (rest > _SEPARABLE * self.noise_variance).tolist()  # type: ignore[no-any-return]

    def leave_one_out(self) -> tuple[Array, Array]:
        """Posterior means (k, m) and latent variances (k,) at the points of retained examples.

        Each without its own example, whose likelihood is divided out (GPML Eq. 3.56).
        """
        return self._left_out(range(len(self._targets)))

    def _left_out(self, indices: Sequence[int]) -> tuple[Array, Array]:
        means, variances = (found[indices] for found in self._basis.marginals())
        targets = np.array([padded(self._targets[i], self.n_targets) for i in indices])
        rest = self.noise_variance - variances
        share = (variances / rest)[:, None]
        without = means + share * (means - targets.reshape(means.shape))
        return without, self.noise_variance * variances / rest

    def _expected(self, i: int) -> tuple[Array, float]:
        """Means (m,) and variance of an observation at point `i`, given all others."""
        means, variances = self._left_out([i])
        return means[0], float(variances[0]) + self.noise_variance

    def _look(self, x: Array) -> tuple[bytes, Array, Look]:
        key = x.tobytes()
        last = self._last
        if last is not None and last[0] == key:
            return last
        row, prior, k = self._points.covariances_with(x)
        self._last = key, row, self._basis.look(k, prior)
        self._means = None
        return self._last

    def _means_at(self, look: Look) -> Array:
        if self._means is None:
            self._means = self._basis.means(look)
        return self._means
