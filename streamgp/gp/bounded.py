"""Gaussian processes whose examples are numbered, with bounded memory or without.

`sparse.py` decides which examples are retained, and what becomes of the others.

"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from streamgp.base import Array
from streamgp.gp.arrays import padded
from streamgp.gp.exact import ExactGP, log_density
from streamgp.gp.inducing_regression import ProjectedGP
from streamgp.gp.marginal_likelihood import Spread, Steps, at_once
from streamgp.kernels import Kernel

# --- Switching to other hyperparameters, a little with each example.


@dataclass(slots=True, eq=False)
class Adoption:
    """Other hyperparameters, and what a process has done so far to switch to them.

    An exact process learns the examples of the old one again. Once some of these are gone, a copy
    of the old one succeeds it.

    Parameters
    ----------
    noise_variance
        Variance of the observation noise, in units of y².

    Attributes
    ----------
    relearning, succession
        What is under way; None before it begins.

    """

    noise_variance: float
    relearning: Relearning | None = None
    succession: Succession | None = None

    def note(self, x: Array, y: Array) -> None:
        """Record an example that the process has learned in the meantime."""
        if self.succession is not None:
            self.succession.since.append((x, y))


@dataclass(slots=True, kw_only=True, eq=False)
class Relearning:
    """An exact process that gradually learns the examples of another one.

    Parameters
    ----------
    gp
        The process, which has learned nothing yet.
    first
        Number of the first example, in a list; `[]` if there is no example.
    d
        Number of features that every example is given; None for as many as it had.

    """

    gp: ExactGP
    first: list[int]
    d: int | None

    def advance(
        self,
        points: Sequence[Array],
        targets: Sequence[Array],
        kernel_for: Callable[[int], Kernel],
        work: float,
    ) -> bool:
        """Learn the next ones of all examples; return whether none is left.

        `kernel_for` and `work` are those of `NumberedGP.adopt`.
        """
        gp, n_before = self.gp, self.gp.n
        while gp.n < len(points) and (gp.n < n_before + 2 or work > 0.0):
            work -= microseconds(gp.n)
            x, y = points[gp.n], targets[gp.n]
            if self.d is not None:
                x = padded(x, self.d)
            # The bits of a covariance depend on the number of features.
            if gp.points.d is not None and len(x) > gp.points.d:
                gp.resize(len(x), kernel_for(len(x)))
            gp.append(x, padded(y, max(gp.n_targets, len(y))))
        return gp.n >= len(points)


class Succession:
    """A copy of a process that switches to other hyperparameters, and then catches up with it.

    Parameters
    ----------
    gp
        A process that has dropped examples.
    kernel
        The new kernel, for the features that the process has now.
    noise_variance
        The new noise variance.

    Attributes
    ----------
    since
        Examples that have come since, and that the copy has to learn: points and targets.

    """

    # _gp    the copy
    # _work  the computation that switches it to the hyperparameters
    def __init__(self, gp: BoundedGP, kernel: Kernel, noise_variance: float) -> None:
        self._gp = deepcopy(gp)
        self._work = Spread(partial(self._gp.adopt_steps, kernel, noise_variance))
        self.since: deque[tuple[Array, Array]] = deque()

    def advance(self, kernel_for: Callable[[int], Kernel], work: float) -> BoundedGP | None:
        """Return a process as if it had switched at the first call; None if there is more to do.

        Parameters
        ----------
        kernel_for, work
            As in `NumberedGP.adopt`.

        Raises
        ------
        NotPositiveDefiniteError
            If an example that has come since cannot be learned with the hyperparameters.

        """
        gp = self._gp
        if not self._work.has_ended:
            left = self._work.advance(work)
            if left is None:
                return None
            work = left
        n_learned = 0
        while self.since and (n_learned < 2 or work > 0.0):
            x, y = self.since.popleft()
            gp.resize(len(x), kernel_for(len(x)))
            gp.append(x, y)
            work -= gp.cost
            n_learned += 1
        return None if self.since else gp


def microseconds(n: int) -> float:
    """Return about how long an exact process of `n` examples takes for one more.

    The figure is for one core of a cloud server. Time is estimated and not measured, so that a
    caller that works in portions does the same after the same examples on every machine.
    """
    return 30.0 + 1e-4 * n * n


# --- What all processes with numbered examples have in common, and the one that drops none.


class NumberedGP(ABC):
    """A process whose examples are numbered from 0 in the order learned; numbers never change.

    Parameters
    ----------
    gp
        A process that has learned nothing.

    Attributes
    ----------
    retained
        Numbers of the examples that are retained, in the order of `leave_one_out`.

    """

    # _gp    the process
    # _next  number of the next example
    __slots__ = ("_gp", "_next", "retained")

    def __init__(self, gp: ExactGP) -> None:
        self._gp: ExactGP | ProjectedGP = gp
        self.retained: list[int] = []
        self._next = 0

    @property
    def n(self) -> int:
        """Number of examples that the process has learned, retained or not."""
        return self._gp.n

    @property
    def n_targets(self) -> int:
        """Number of functions."""
        return self._gp.n_targets

    @property
    def noise_variance(self) -> float:
        """Variance of the observation noise, in units of y²."""
        return self._gp.noise_variance

    @property
    def kernel(self) -> Kernel:
        """Covariance function."""
        return self._gp.kernel

    @property
    @abstractmethod
    def points(self) -> Sequence[Array]:
        """The points of the retained examples, as they were passed in."""

    @property
    @abstractmethod
    def targets(self) -> Sequence[Array]:
        """The targets of the retained examples, as they were passed in."""

    def predict(self, x: Array) -> tuple[Array, float]:
        """Posterior means (m,), read only, and latent variance at `x` of shape (d,)."""
        return self._gp.predict(x)

    @abstractmethod
    def predict_many(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent variances (b,) at the points `X` of shape (b, d)."""

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent covariances (b, b) at points `X` of shape (b, d)."""
        return self._gp.joint(X)

    def covariance_terms(self, x: Array) -> tuple[Array, Array, Array]:
        """Row of a point, and `a` and `b` with `cov(u, v) = k(u, v) - a(u)' b(v)`."""
        return self._gp.covariance_terms(x)

    @abstractmethod
    def append(self, x: Array, y: Array) -> list[int]:
        """Learn the targets `y` of shape (m,) at the point `x` of shape (d,).

        A longer `y` adds new functions, which were zero wherever they have been observed. Both
        arrays are stored, not copied: do not write to them afterwards.

        Returns
        -------
        Numbers of the examples that are no longer retained; this one's may be among them.

        Raises
        ------
        NotPositiveDefiniteError
            If the point is, up to rounding, determined by the old ones. Nothing is learned then.

        """

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        self._gp.add_target()

    @abstractmethod
    def resize(self, d: int, kernel: Kernel | None = None) -> None:
        """Change the number of features; see `Points.resize`."""

    @abstractmethod
    def relabel(self, number: int, y: Array) -> None:
        """Replace the targets of an example; raises KeyError if it is not retained."""

    @abstractmethod
    def remove(self, number: int) -> None:
        """Forget an example; raises KeyError if it is not retained."""

    def adopt(
        self, adoption: Adoption, kernel_for: Callable[[int], Kernel], work: float = math.inf
    ) -> list[int] | None:
        """Switch to other hyperparameters, as if they had always been in use.

        Parameters
        ----------
        adoption
            What has been done so far.
        kernel_for
            Returns the kernel for a number of features: the first examples may have had fewer.
        work
            Approximate microseconds to spend; at least two examples are learned, so that the
            process catches up even if one more comes with every call.

        Returns
        -------
        Numbers of the examples that are no longer retained; None if there is more to do.

        Raises
        ------
        NotPositiveDefiniteError
            If an example cannot be learned with them. Nothing has changed in this case.

        """
        points, d, first = self.points, self._d or 0, self.retained[:1]
        d_of_all = d if self._has_equal_points else None
        relearning = adoption.relearning
        if relearning is None or (relearning.first, relearning.d) != (first, d_of_all):
            d_at_first = len(points[0]) if points and d_of_all is None else d
            gp = self._untaught(kernel_for(d_at_first), adoption.noise_variance)
            relearning = adoption.relearning = Relearning(gp=gp, first=first, d=d_of_all)
        if not relearning.advance(points, self.targets, kernel_for, work):
            return None
        gp = relearning.gp
        if gp.points.d is not None and d > gp.points.d:
            gp.resize(d, kernel_for(d))
        while gp.n_targets < self.n_targets:
            gp.add_target()
        self._gp = gp
        return []

    def reset_to_prior(self) -> list[int]:
        """Return to the prior: forget all examples, but keep the functions.

        Returns
        -------
        Numbers of the examples that were retained.

        """
        gone, self.retained = self.retained, []
        self._gp = self._untaught(self.kernel, self.noise_variance, self.n_targets)
        return gone

    def log_evidence(self) -> float:
        """Log density of all observations, each given those before it, in nats (GPML Eq. 2.30)."""
        return log_density(*self.quadratic_forms(), self.n)

    def quadratic_forms(self) -> tuple[Array, float]:
        """Return those of `ExactGP`, for observations each given those before it."""
        return self._gp.quadratic_forms()

    def leave_one_out(self) -> tuple[Array, Array]:
        """Posterior means (k, m) and latent variances (k,) at the points of retained examples.

        Each as if its example had not been learned.
        """
        return self._gp.leave_one_out()

    # --- inside

    # Whether the points of an exact process all have the latest number of features, and not each
    # as many as it had: their bits depend on it.
    _has_equal_points: ClassVar[bool]

    @property
    @abstractmethod
    def _d(self) -> int | None:
        """Number of features, None before the first example."""

    def _untaught(self, kernel: Kernel, noise_variance: float, n_targets: int = 0) -> ExactGP:
        """Return an exact process that has learned nothing."""
        return ExactGP(kernel, noise_variance, n_targets=n_targets)


class UnboundedGP(NumberedGP):
    """An `ExactGP` that can be used like a `BoundedGP`: it retains every example.

    Parameters
    ----------
    kernel
        Covariance function.
    noise_variance
        Variance of the observation noise, in units of y².
    single_precision
        As in `ExactGP`.

    Attributes
    ----------
    retained
        Numbers of the examples, in the order learned.

    Examples
    --------
    >>> import numpy as np
    >>> from streamgp.kernels import SquaredExponential
    >>> gp = UnboundedGP(SquaredExponential(), noise_variance=1.0)
    >>> [gp.append(np.array([x]), np.array([1.0])) for x in (0.0, 9.0, 0.0)]
    [[], [], []]
    >>> gp.remove(0)
    >>> gp.retained, gp.predict(np.array([0.0]))
    ([1, 2], (array([0.5]), 0.5))

    """

    __slots__ = ()
    _gp: ExactGP
    _has_equal_points = False

    def __init__(
        self, kernel: Kernel, noise_variance: float, *, single_precision: bool = False
    ) -> None:
        super().__init__(ExactGP(kernel, noise_variance, single_precision=single_precision))

    @property
    def points(self) -> Sequence[Array]:
        """The points of the examples, as they were passed in."""
        return self._gp.points.given

    @property
    def targets(self) -> Sequence[Array]:
        """The targets of the examples, as they were passed in."""
        return self._gp.targets.values

    def predict_many(self, X: Array) -> tuple[Array, Array]:
        return self._gp.predict_many(X)

    def append(self, x: Array, y: Array) -> list[int]:
        """Learn an example; return an empty list, as none is dropped."""
        self._gp.append(x, y)
        self.retained.append(self._next)
        self._next += 1
        return []

    def resize(self, d: int, kernel: Kernel | None = None) -> None:
        self._gp.resize(d, kernel)

    def relabel(self, number: int, y: Array) -> None:
        self._gp.relabel(self._index(number), y)

    def remove(self, number: int) -> None:
        i = self._index(number)
        self._gp.remove(i)
        del self.retained[i]

    @property
    def _d(self) -> int | None:
        return self._gp.points.d

    def _untaught(self, kernel: Kernel, noise_variance: float, n_targets: int = 0) -> ExactGP:
        single = self._gp.single_precision
        return ExactGP(kernel, noise_variance, n_targets=n_targets, single_precision=single)

    def _index(self, number: int) -> int:
        i = bisect_left(self.retained, number)
        if i < len(self.retained) and self.retained[i] == number:
            return i
        raise KeyError(f"example {number} is not retained")


# --- Processes that drop examples.


class BoundedGP(NumberedGP):
    """A process that retains `max_points` examples at most.

    While the process is exact, it is bitwise an `ExactGP` that learned the retained examples, in
    their order and with all features.

    Parameters
    ----------
    kernel
        Covariance function.
    noise_variance
        Variance of the observation noise, in units of y².
    max_points
        Largest number of retained examples.
    n_targets
        Number of functions, zero wherever they have been observed.

    Attributes
    ----------
    retained
        Numbers of the examples that are retained, in the order of `leave_one_out`.
    points, targets
        These examples, as they were passed in.

    """

    # _d  number of features, None before the first example
    __slots__ = ("_d", "max_points", "points", "targets")
    _has_equal_points = True

    def __init__(
        self, kernel: Kernel, noise_variance: float, max_points: int, n_targets: int = 0
    ) -> None:
        super().__init__(ExactGP(kernel, noise_variance, n_targets=n_targets))
        self.max_points = int(max_points)
        self.points: list[Array] = []
        self.targets: list[Array] = []
        self._d: int | None = None

    @property
    def cost(self) -> float:
        """Approximate microseconds to predict an example and learn it, once others were dropped."""
        return 80.0 + self.max_points**2 / 1400.0

    def predict_many(self, X: Array) -> tuple[Array, Array]:
        found = [self.predict(x) for x in X]
        means = np.array([means for means, _ in found]).reshape(len(X), self.n_targets)
        return means, np.array([variance for _, variance in found])

    @abstractmethod
    def append_steps(self, x: Array, y: Array) -> Steps[list[int]]:
        """Do what `append` does; its occasional extra work is divided into steps.

        Unlike `append`, it may have dropped examples even if it refuses the new one.
        """

    def resize(self, d: int, kernel: Kernel | None = None) -> None:
        if d == self._d:
            return
        before, self._d = self._d, d
        try:
            if isinstance(self._gp, ProjectedGP):
                self._gp.resize(d, kernel)
            else:
                # Recomputed, since the bits of a covariance depend on the number of features.
                self._gp = self._exact(kernel or self.kernel)
        except BaseException:
            self._d = before
            raise

    def relabel(self, number: int, y: Array) -> None:
        i = self._index(number)
        self._gp.relabel(i, y)
        self.targets[i] = y

    def remove(self, number: int) -> None:
        i = self._index(number)
        del self.retained[i], self.points[i], self.targets[i]
        self._gp = self._exact(self.kernel)

    def adopt_steps(self, kernel: Kernel, noise_variance: float) -> Steps[None]:
        """Switch to other hyperparameters and the retained examples; all changes come last."""
        self._gp = yield from self._exact_steps(kernel, noise_variance)

    def reset_to_prior(self) -> list[int]:
        """Return to the prior; return the numbers of the examples that were retained."""
        self.points, self.targets = [], []
        return super().reset_to_prior()

    def _exact(self, kernel: Kernel) -> ExactGP:
        """Return an exact process that was taught the retained examples."""
        return at_once(self._exact_steps(kernel, self.noise_variance))

    def _exact_steps(self, kernel: Kernel, noise_variance: float) -> Steps[ExactGP]:
        gp = ExactGP(kernel, noise_variance, n_targets=self.n_targets)
        for x, y in zip(*self._examples(), strict=True):
            yield microseconds(gp.n)
            gp.append(x, y)
        return gp

    def _examples(self) -> tuple[list[Array], list[Array]]:
        """Return the points and targets of the retained examples, with all features."""
        points = [padded(x, self._d or 0) for x in self.points]
        return points, [padded(y, self.n_targets) for y in self.targets]

    def _index(self, number: int) -> int:
        try:
            return self.retained.index(number)
        except ValueError:
            raise KeyError(f"example {number} is not retained") from None

    def _take(self, x: Array, y: Array, slot: int | None = None) -> None:
        """Retain a new example, as the last one or in place of another."""
        i = len(self.retained) if slot is None else slot
        self.retained[i : i + 1] = [self._next]
        self.points[i : i + 1] = [x]
        self.targets[i : i + 1] = [y]
        self._d = len(x)
        self._next += 1
