"""Gaussian process regression in constant time and memory: exact at first, then at a few points.

This module decides when the process is reduced to a few points, and what becomes of the examples;
`inducing_regression.py` continues from there.

"""

from __future__ import annotations

import math
from collections.abc import Callable

from streamgp.base import Array
from streamgp.gp.bounded import Adoption, BoundedGP, NumberedGP, Succession
from streamgp.gp.cholesky import check_noise_variance
from streamgp.gp.exact import ExactGP
from streamgp.gp.inducing_regression import ProjectedGP
from streamgp.gp.marginal_likelihood import Steps, at_once
from streamgp.kernels import Kernel


class SparseGP(BoundedGP):
    """An `ExactGP` up to `max_points` examples; from then on constant time and memory per example.

    Beyond that, the posterior is kept at `max_points` points. An example at a point that is new to
    them takes the place of the least needed point, which may be its own. Any other example is
    absorbed: it counts, but can no longer be addressed.

    The least needed point is the one without which the means would change least at recent examples:
    the last `10 * max_points`, with gradually falling weight. (Csató and Opper count changes
    everywhere equally. Then points that are well known are kept for good, and a place or a class
    that comes later finds no room: see docs/bounded.md.)

    A retained example can be relabelled, removed and left out without loss of what was absorbed.
    If there is too little noise for that, about a millionth of the prior variance, the process
    becomes exact again and knows only the retained examples.

    Parameters
    ----------
    kernel
        Covariance function.
    noise_variance
        Variance of the observation noise, in units of y².
    max_points
        Largest number of points.

    Attributes
    ----------
    retained
        Numbers of the examples that are retained, in the order of `leave_one_out`.

    Examples
    --------
    Two points are kept. The third example is at the same place as the first, and is absorbed:

    >>> import numpy as np
    >>> from streamgp.kernels import SquaredExponential
    >>> gp = SparseGP(SquaredExponential(), noise_variance=1.0, max_points=2)
    >>> [gp.append(np.array([x]), np.array([1.0])) for x in (0.0, 9.0, 0.0)]
    [[], [], [2]]
    >>> gp.n, gp.retained
    (3, [0, 1])
    >>> means, variance = gp.predict(np.array([0.0]))
    >>> means.tolist(), variance
    ([0.666...], 0.333...)

    References
    ----------
    [^1]: Csató, L. and Opper, M., 2002. Sparse on-line Gaussian processes. Neural Computation
        14(3).

    """

    __slots__ = ()

    def append(self, x: Array, y: Array) -> list[int]:
        """Learn an example, and return the numbers of those that are no longer retained."""
        gp, chosen = self._gp, None
        if isinstance(gp, ExactGP):
            if gp.n < self.max_points:
                gp.append(x, y)
                self._take(x, y)
                return []
            gp, chosen = at_once(ProjectedGP.of_steps(gp, *self._examples(), self.max_points))
        slot = gp.append(x, y)  # refuses what it cannot learn before anything has changed
        self._gp = gp
        gone = [] if chosen is None else self._keep(chosen)
        if slot is None:
            gone.append(self._next)
            self._next += 1
            return gone
        if slot < len(self.retained):
            gone.append(self.retained[slot])
        self._take(x, y, slot)
        return gone

    def append_steps(self, x: Array, y: Array) -> Steps[list[int]]:
        """Do what `append` does; dropping points for the first time is divided into steps."""
        gp, gone = self._gp, []
        if isinstance(gp, ExactGP) and gp.n >= self.max_points:
            found = yield from ProjectedGP.of_steps(gp, *self._examples(), self.max_points)
            self._gp, chosen = found
            gone = self._keep(chosen)
            yield self.cost
        return gone + self.append(x, y)

    def relabel(self, number: int, y: Array) -> None:
        i = self._index(number)
        if self._is_separable(i):
            super().relabel(number, y)
        else:
            self.targets[i] = y
            self._gp = self._exact(self.kernel)

    def remove(self, number: int) -> None:
        i = self._index(number)
        gp = self._gp
        if isinstance(gp, ProjectedGP) and self._is_separable(i):
            gp.remove(i)
            self._keep([j for j in range(len(self.retained)) if j != i])
        else:
            super().remove(number)

    def adopt(
        self, adoption: Adoption, kernel_for: Callable[[int], Kernel], work: float = math.inf
    ) -> list[int] | None:
        """Switch to other hyperparameters, as if they had always been in use.

        What was absorbed is kept, as far as it is known at the points; `log_evidence` continues
        from its value. A process without noise becomes exact again and knows only the retained
        examples.

        Once examples were dropped, the result is as if the switch had been made at the first call,
        and the examples that have come since, which were passed to `Adoption.note`, had been
        learned after it.
        """
        if isinstance(self._gp, ExactGP):
            return super().adopt(adoption, kernel_for, work)
        noise_variance, most = adoption.noise_variance, self.max_points
        check_noise_variance(noise_variance)
        succession = adoption.succession
        if succession is None:
            succession = Succession(self, kernel_for(self._d or 0), noise_variance)
            adoption.succession = succession
            # For the copy, whose memory the system still has to allocate.
            work -= 200.0 + 2.6 * most + most**2 / 160.0
        other = succession.advance(kernel_for, work)
        if other is None:
            return None
        while other.n_targets < self.n_targets:
            other.add_target()
        kept = set(other.retained)
        gone = [number for number in self.retained if number not in kept]
        for name in (*NumberedGP.__slots__, *BoundedGP.__slots__):
            setattr(self, name, getattr(other, name))
        return gone

    def adopt_steps(self, kernel: Kernel, noise_variance: float) -> Steps[None]:
        """Switch to other hyperparameters; all changes come last."""
        gp, chosen = self._gp, None
        if isinstance(gp, ProjectedGP) and noise_variance:
            chosen = yield from gp.adopt_steps(kernel, noise_variance)
        if chosen is None:
            yield from super().adopt_steps(kernel, noise_variance)
        else:
            self._keep(chosen)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Posterior means (k, m) and latent variances (k,) at the points of retained examples.

        Each as if its example had not been learned.
        """
        gp = self._gp
        if isinstance(gp, ProjectedGP) and not all(gp.are_separable()):
            gp = self._exact(self.kernel)
        return gp.leave_one_out()

    def _is_separable(self, i: int) -> bool:
        gp = self._gp
        return isinstance(gp, ExactGP) or gp.are_separable()[i]

    def _keep(self, indices: list[int]) -> list[int]:
        """Keep some of the retained examples, and return the numbers of the others."""
        kept = set(indices)
        gone = [number for i, number in enumerate(self.retained) if i not in kept]
        self.retained = [self.retained[i] for i in indices]
        self.points = [self.points[i] for i in indices]
        self.targets = [self.targets[i] for i in indices]
        return gone


# --- Gaussian process regression on the latest examples only, for data that keeps changing.


class WindowGP(BoundedGP):
    """An `ExactGP` of the latest examples: `max_points` of them, or up to a quarter fewer.

    When there is one too many, a quarter of the examples is forgotten at once, the oldest ones, and
    the others are learned again. At 500 points this is as if each example took twice as long.
    Removing rows from a Cholesky factor one by one would take longer, and leave rounding errors.

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
        return at_once(self.append_steps(x, y))

    def append_steps(self, x: Array, y: Array) -> Steps[list[int]]:
        """Do what `append` does; forgetting a quarter is divided into steps."""
        self._gp.append(x, y)
        self._take(x, y)
        if len(self.retained) <= self.max_points:
            return []
        n = max(self.max_points // 4, 1)
        gone = self.retained[:n]
        del self.retained[:n], self.points[:n], self.targets[:n]
        self._gp = yield from self._exact_steps(self.kernel, self.noise_variance)
        return gone
