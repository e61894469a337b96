"""Gaussian processes with bounded memory, and their base: numbered examples.

`sparse.py` decides which examples are retained, and what becomes of the others.

"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Self

import numpy as np

from streamgp.base import Array, State
from streamgp.common.array_text import array_of, text_of
from streamgp.common.validation import check_whole
from streamgp.gp.arrays import padded
from streamgp.gp.exact import ExactGP, log_density
from streamgp.gp.inducing_regression import ProjectedGP
from streamgp.gp.marginal_likelihood import Spread, Steps, at_once
from streamgp.kernels import Kernel


class Adoption:
    """A process with other hyper-parameters that gradually learns what another one knows.

    An exact process learns the examples of the other. If some of these are gone, a copy of the
    process switches to the hyper-parameters, and then learns the examples that have come since.

    Parameters
    ----------
    noise_variance
        Variance of the observation noise, in units of y².

    """

    # _gp     the exact process, None before the first example
    # _begun  the other's first example and number of features when it was made
    # _other  the copy, None before it was made
    # _work   the computation that switches the copy to the hyper-parameters
    # _since  examples that it has to learn after that: points and targets
    def __init__(self, noise_variance: float) -> None:
        self.noise_variance = noise_variance
        self._gp: ExactGP | None = None
        self._begun: tuple[list[int], int | None] = [], None
        self._other: BoundedGP | None = None
        self._work: Spread[None] | None = None
        self._since: deque[tuple[Array, Array]] = deque()

    def note(self, x: Array, y: Array) -> None:
        """Record an example that the process has learned in the meantime."""
        if self._other is not None:
            self._since.append((x, y))

    def successor(
        self, gp: BoundedGP, kernel_for: Callable[[int], Kernel], work: float
    ) -> BoundedGP | None:
        """Return a process as if `gp` had switched to the hyper-parameters at the first call.

        Parameters
        ----------
        gp
            A process that has dropped examples; each that it has learned since was noted.
        kernel_for, work
            As in `NumberedGP.adopt`.

        Returns
        -------
        The process; None if there is more to do.

        Raises
        ------
        NotPositiveDefiniteError
            If an example that has come since cannot be learned with them.

        """
        if self._other is None or self._work is None:
            self._other = other = deepcopy(gp)
            kernel = kernel_for(other._d or 0)
            self._work = Spread(partial(other.adopt_steps, kernel, self.noise_variance))
            # For the copy, whose memory the system still has to allocate.
            work -= 200.0 + 2.6 * gp.max_points + gp.max_points**2 / 160.0
        other = self._other
        if not self._work.has_ended:
            left = self._work.advance(work)
            if left is None:
                return None
            work = left
        n_learned = 0
        while self._since and (n_learned < 2 or work > 0.0):
            x, y = self._since.popleft()
            other.widen(len(x), kernel_for(len(x)))
            other.append(x, y)
            work -= other.cost
            n_learned += 1
        return None if self._since else other

    def taught(self, retained: Sequence[int], d: int | None = None) -> ExactGP | None:
        """Return the process so far; None if it has to learn other examples, or has not begun."""
        return self._gp if self._begun == (list(retained[:1]), d) else None

    def begin(self, gp: ExactGP, retained: Sequence[int], d: int | None = None) -> None:
        """Start with a process that has learned nothing yet."""
        self._gp, self._begun = gp, (list(retained[:1]), d)

    def next_to_learn(self, n: int, work: float) -> range:
        """Return the indices of the examples, out of `n`, to learn now in `work` microseconds."""
        first = last = 0 if self._gp is None else self._gp.n
        while last < n and (last - first < 2 or work > 0.0):
            work -= microseconds(last)
            last += 1
        return range(first, last)


def microseconds(n: int) -> float:
    """Return about how long an exact process of `n` examples takes for one more.

    The figure is for one core of a cloud server. Time is estimated and not measured, so that a
    caller that works in portions does the same after the same examples on every machine.
    """
    return 30.0 + 1e-4 * n * n


class BoundedGP(ABC):
    """A process that retains `max_points` examples at most.

    Examples are numbered from 0 in the order learned; the numbers never change. While the process
    is exact, it is bitwise an `ExactGP` that learned the retained examples, in their
    order and with all features.

    Parameters
    ----------
    kernel
        Covariance function.
    noise_variance
        Variance of the observation noise, in units of y².
    max_points
        Largest number of retained examples.

    Attributes
    ----------
    retained
        Numbers of the examples that are retained, in the order of `leave_one_out`.

    Raises
    ------
    ValueError
        If `max_points` is not a positive whole number.

    """

    # _gp        the process
    # retained, _points, _targets  the retained examples, as they were passed in
    # _next      number of the next example
    # _d         number of features, None before the first example
    __slots__ = (
        "_d",
        "_gp",
        "_next",
        "_points",
        "_targets",
        "max_points",
        "noise_variance",
        "retained",
    )

    def __init__(self, kernel: Kernel, noise_variance: float, max_points: int) -> None:
        check_whole("max_points", max_points, 1)
        self.noise_variance = noise_variance
        self.max_points = int(max_points)
        self.retained: list[int] = []
        self._points: list[Array] = []
        self._targets: list[Array] = []
        self._next = 0
        self._d: int | None = None
        self._gp: ExactGP | ProjectedGP = ExactGP(kernel, noise_variance)

    @property
    def n(self) -> int:
        """Number of examples that the process has learned, retained or not."""
        return self._gp.n

    @property
    def n_targets(self) -> int:
        """Number of functions."""
        return self._gp.n_targets

    @property
    def kernel(self) -> Kernel:
        """Covariance function."""
        return self._gp.kernel

    @property
    def cost(self) -> float:
        """Approximate microseconds to predict an example and learn it, once others were dropped."""
        return 80.0 + self.max_points**2 / 1400.0

    @property
    def points(self) -> Sequence[Array]:
        """The points of the retained examples, as they were passed in."""
        return self._points

    @property
    def targets(self) -> Sequence[Array]:
        """The targets of the retained examples, as they were passed in."""
        return self._targets

    def predict(self, x: Array) -> tuple[Array, float]:
        """Posterior means (m,), read only, and latent variance at `x` of shape (d,)."""
        return self._gp.predict(x)

    def predict_many(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent variances (b,) at the points `X` of shape (b, d)."""
        found = [self.predict(x) for x in X]
        means = np.array([means for means, _ in found]).reshape(len(X), self.n_targets)
        return means, np.array([variance for _, variance in found])

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

    def append_steps(self, x: Array, y: Array) -> Steps[list[int]]:
        """Do what `append` does; its occasional extra work is divided into steps.

        Unlike `append`, it may have dropped examples even if it refuses the new one.
        """
        yield from ()
        return self.append(x, y)

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        self._gp.add_target()

    def widen(self, d: int, kernel: Kernel | None = None) -> None:
        """Make room for points with `d` features; the old points have 0 in the new ones.

        `kernel` is the same kernel, bound to that many columns; None if names do not matter.
        """
        if self._d is None or d > self._d:
            self._resize(d, kernel)

    def narrow(self, d: int, kernel: Kernel | None = None) -> None:
        """Remove features that no point has used; `kernel` as in `widen`."""
        if self._d is None or d < self._d:
            self._resize(d, kernel)

    def relabel(self, number: int, y: Array) -> None:
        """Replace the targets of an example; raises KeyError if it is not retained."""
        i = self._index(number)
        self._gp.relabel(i, y)
        self._targets[i] = y

    def remove(self, number: int) -> None:
        """Forget an example; raises KeyError if it is not retained."""
        i = self._index(number)
        del self.retained[i], self._points[i], self._targets[i]
        self._gp = self._exact(self.kernel)

    def adopt(
        self, adoption: Adoption, kernel_for: Callable[[int], Kernel], work: float = math.inf
    ) -> list[int] | None:
        """Switch to other hyper-parameters, as if they had always been in use.

        Parameters
        ----------
        adoption, kernel_for, work
            As in `NumberedGP.adopt`.

        Returns
        -------
        Numbers of the examples that are no longer retained; None if there is more to do.

        Raises
        ------
        NotPositiveDefiniteError
            If the examples cannot be learned with them. Nothing has changed in this case.

        """
        d = self._d or 0
        gp = adoption.taught(self.retained, d)
        if gp is None:
            gp = ExactGP(kernel_for(d), adoption.noise_variance)
            for _ in range(self.n_targets):
                gp.add_target()
            adoption.begin(gp, self.retained, d)
        for i in adoption.next_to_learn(len(self.retained), work):
            gp.append(padded(self._points[i], d), padded(self._targets[i], self.n_targets))
        if gp.n < len(self.retained):
            return None
        while gp.n_targets < self.n_targets:
            gp.add_target()
        self._gp = gp
        self.noise_variance = adoption.noise_variance
        return []

    def adopt_steps(self, kernel: Kernel, noise_variance: float) -> Steps[None]:
        """Switch to other hyper-parameters and the retained examples; all changes come last."""
        self._gp = yield from self._exact_steps(kernel, noise_variance)
        self.noise_variance = noise_variance

    def reset_to_prior(self) -> list[int]:
        """Return to the prior: forget all examples, but keep the functions.

        Returns
        -------
        Numbers of the examples that were retained.

        """
        gone = self.retained
        self.retained, self._points, self._targets = [], [], []
        self._gp = self._exact(self.kernel)
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

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values, without kernel and noise.

        Examples
        --------
        >>> from streamgp.gp.sparse import WindowGP
        >>> from streamgp.kernels import SquaredExponential
        >>> gp = WindowGP(SquaredExponential(), noise_variance=1.0, max_points=4)
        >>> gp.append(np.array([0.0]), np.array([1.0]))
        []
        >>> again = WindowGP.from_state(gp.state(), gp.kernel, gp.noise_variance, gp.max_points)
        >>> again.predict(np.array([0.0]))
        (array([0.5]), 0.5)

        """
        points, targets = self._examples()
        return {
            "next": self._next,
            "d": self._d,
            "n_targets": self.n_targets,
            "retained": self.retained.copy(),
            "points": text_of(np.array(points)),
            "targets": text_of(np.array(targets)),
            "projected": self._gp.state() if isinstance(self._gp, ProjectedGP) else None,
        }

    @classmethod
    def from_state(
        cls, state: State, kernel: Kernel, noise_variance: float, max_points: int
    ) -> Self:
        """Restore what `state` returned, bitwise.

        Raises
        ------
        ValueError
            If there are not as many numbers as there should be.

        """
        gp = cls(kernel, noise_variance, max_points)
        gp._next, gp._d = int(state["next"]), state["d"]
        gp.retained = [int(number) for number in state["retained"]]
        k, m = len(gp.retained), int(state["n_targets"])
        gp._points = list(array_of(state["points"], k, gp._d or 0))
        gp._targets = list(array_of(state["targets"], k, m))
        for _ in range(m):
            gp.add_target()
        if state["projected"] is None:
            gp._gp = gp._exact(kernel)
        else:
            gp._gp = ProjectedGP.from_state(
                state["projected"], kernel, noise_variance, gp._points, gp._targets, gp.max_points
            )
        return gp

    def _exact(self, kernel: Kernel) -> ExactGP:
        """Return an exact process that was taught the retained examples."""
        return at_once(self._exact_steps(kernel, self.noise_variance))

    def _exact_steps(self, kernel: Kernel, noise_variance: float) -> Steps[ExactGP]:
        gp = ExactGP(kernel, noise_variance)
        for _ in range(self.n_targets):
            gp.add_target()
        for x, y in zip(*self._examples(), strict=True):
            yield microseconds(gp.n)
            gp.append(x, y)
        return gp

    def _examples(self) -> tuple[list[Array], list[Array]]:
        """Return the points and targets of the retained examples, with all features."""
        points = [padded(x, self._d or 0) for x in self._points]
        return points, [padded(y, self.n_targets) for y in self._targets]

    def _index(self, number: int) -> int:
        try:
            return self.retained.index(number)
        except ValueError:
            raise KeyError(f"example {number} is not retained") from None

    def _take(self, x: Array, y: Array, slot: int | None = None) -> None:
        """Retain a new example, as the last one or in place of another."""
        i = len(self.retained) if slot is None else slot
        self.retained[i : i + 1] = [self._next]
        self._points[i : i + 1] = [x]
        self._targets[i : i + 1] = [y]
        self._d = len(x)
        self._next += 1

    def _resize(self, d: int, kernel: Kernel | None) -> None:
        self._d = d
        if isinstance(self._gp, ProjectedGP):
            self._gp.resize(d, kernel)
        else:
            # Recomputed, since the bits of a covariance depend on the number of features.
            self._gp = self._exact(kernel or self.kernel)


# --- An exact process whose examples are addressed by numbers, like those of a bounded one.


class NumberedGP:
    """An `ExactGP` that can be used like a `BoundedGP`: it retains every example.

    Examples are numbered from 0 in the order learned; the numbers never change.

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
    >>> gp = NumberedGP(SquaredExponential(), noise_variance=1.0)
    >>> [gp.append(np.array([x]), np.array([1.0])) for x in (0.0, 9.0, 0.0)]
    [[], [], []]
    >>> gp.remove(0)
    >>> gp.retained, gp.predict(np.array([0.0]))
    ([1, 2], (array([0.5]), 0.5))

    """

    # _next  number of the next example
    __slots__ = ("_gp", "_next", "retained")

    def __init__(
        self, kernel: Kernel, noise_variance: float, *, single_precision: bool = False
    ) -> None:
        self._gp = ExactGP(kernel, noise_variance, single_precision=single_precision)
        self.retained: list[int] = []
        self._next = 0

    @property
    def n(self) -> int:
        """Number of examples."""
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
    def points(self) -> Sequence[Array]:
        """The points of the examples, as they were passed in."""
        return self._gp.points.given

    @property
    def targets(self) -> Sequence[Array]:
        """The targets of the examples, as they were passed in."""
        return self._gp.targets.values

    def predict(self, x: Array) -> tuple[Array, float]:
        """Posterior means (m,), read only, and latent variance at `x` of shape (d,)."""
        return self._gp.predict(x)

    def predict_many(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent variances (b,) at the points `X` of shape (b, d)."""
        return self._gp.predict_many(X)

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent covariances (b, b) at points `X` of shape (b, d)."""
        return self._gp.joint(X)

    def covariance_terms(self, x: Array) -> tuple[Array, Array, Array]:
        """Row of a point, and `a` and `b` with `cov(u, v) = k(u, v) - a(u)' b(v)`."""
        return self._gp.covariance_terms(x)

    def append(self, x: Array, y: Array) -> list[int]:
        """Learn the targets `y` of shape (m,) at the point `x` of shape (d,), as `ExactGP` does.

        Returns
        -------
        An empty list: all examples are retained.

        Raises
        ------
        NotPositiveDefiniteError
            If the point is, up to rounding, determined by the old ones. Nothing is learned then.

        """
        self._gp.append(x, y)
        self.retained.append(self._next)
        self._next += 1
        return []

    def add_target(self) -> None:
        """Add a function that was zero wherever it has been observed."""
        self._gp.add_target()

    def widen(self, d: int, kernel: Kernel | None = None) -> None:
        """Make room for points with `d` features, as `ExactGP` does."""
        self._gp.widen(d, kernel)

    def narrow(self, d: int, kernel: Kernel | None = None) -> None:
        """Remove features that no point has used."""
        self._gp.narrow(d, kernel)

    def relabel(self, number: int, y: Array) -> None:
        """Replace the targets of an example; raises KeyError if it is not known."""
        self._gp.relabel(self._index(number), y)

    def remove(self, number: int) -> None:
        """Forget an example; raises KeyError if it is not known."""
        i = self._index(number)
        self._gp.remove(i)
        del self.retained[i]

    def adopt(
        self, adoption: Adoption, kernel_for: Callable[[int], Kernel], work: float = math.inf
    ) -> list[int] | None:
        """Switch to other hyper-parameters, bitwise as if they had always been in use.

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
        An empty list, as all examples are retained; None if there is more to do.

        Raises
        ------
        NotPositiveDefiniteError
            If an example cannot be learned with them. Nothing has changed in this case.

        """
        old, d = self._gp, self._gp.points.d or 0
        points, targets = old.points.given, old.targets.values
        gp = adoption.taught(self.retained)
        if gp is None:
            kernel = kernel_for(len(points[0]) if points else d)
            gp = ExactGP(kernel, adoption.noise_variance, single_precision=old.single_precision)
            adoption.begin(gp, self.retained)
        for i in adoption.next_to_learn(len(points), work):
            x, y = points[i], targets[i]
            # The bits of a covariance depend on the number of features.
            if gp.points.d is not None and len(x) > gp.points.d:
                gp.widen(len(x), kernel_for(len(x)))
            gp.append(x, padded(y, max(gp.n_targets, len(y))))
        if gp.n < len(points):
            return None
        if gp.points.d is not None and d > gp.points.d:
            gp.widen(d, kernel_for(d))
        while gp.n_targets < old.n_targets:
            gp.add_target()
        self._gp = gp
        return []

    def reset_to_prior(self) -> list[int]:
        """Return to the prior: forget all examples, but keep the functions.

        Returns
        -------
        Numbers of the examples that were retained.

        """
        old, gone = self._gp, self.retained
        self.retained = []
        self._gp = ExactGP(old.kernel, old.noise_variance, single_precision=old.single_precision)
        for _ in range(old.n_targets):
            self._gp.add_target()
        return gone

    def log_evidence(self) -> float:
        """Log marginal likelihood of all targets together, in nats (GPML Eq. 2.30)."""
        return self._gp.log_evidence()

    def quadratic_forms(self) -> tuple[Array, float]:
        """Return those of `ExactGP`."""
        return self._gp.quadratic_forms()

    def leave_one_out(self) -> tuple[Array, Array]:
        """Posterior means (n, m) and latent variances (n,) at each point, had it not been learned.

        In the order of `retained`.
        """
        return self._gp.leave_one_out()

    def _index(self, number: int) -> int:
        i = bisect_left(self.retained, number)
        if i < len(self.retained) and self.retained[i] == number:
            return i
        raise KeyError(f"example {number} is not retained")
