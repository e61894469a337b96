"""An exact process whose examples are called by numbers, as those of a bounded one are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from streamgp.base import Array
from streamgp.gp.exact import ExactGP
from streamgp.gp.points import padded
from streamgp.kernels import Kernel


class NumberedGP:
    """An `ExactGP` that can stand where a `BoundedGP` does: it retains every example.

    Examples are numbered from 0 in the order learned; the numbers never change.

    Parameters
    ----------
    kernel
        Covariance function.
    noise_variance
        Variance of the observation noise, in units of y².
    single_precision
        As for `ExactGP`.

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
        """The points of the examples, as they were handed over."""
        return self._gp.points.given

    @property
    def targets(self) -> Sequence[Array]:
        """The targets of the examples, as they were handed over."""
        return self._gp.targets.values

    def predict(self, x: Array) -> tuple[Array, float]:
        """Posterior means (m,), not to be written to, and latent variance at `x` of shape (d,)."""
        return self._gp.predict(x)

    def predict_many(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent variances (b,) at the points `X` of shape (b, d)."""
        return self._gp.predict_many(X)

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Posterior means (b, m) and latent covariances (b, b) at points `X` of shape (b, d)."""
        return self._gp.joint(X)

    def append(self, x: Array, y: Array) -> list[int]:
        """Learn the targets `y` of shape (m,) at the point `x` of shape (d,), as `ExactGP` does.

        Returns
        -------
        No number: all examples are retained.

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
        """Take room for features back that no point has used."""
        self._gp.narrow(d, kernel)

    def relabel(self, number: int, y: Array) -> None:
        """Replace the targets of an example; raises KeyError if it is not known."""
        self._gp.relabel(self._index(number), y)

    def remove(self, number: int) -> None:
        """Forget an example; raises KeyError if it is not known."""
        i = self._index(number)
        self._gp.remove(i)
        del self.retained[i]

    def adopt(self, kernel_for: Callable[[int], Kernel], noise_variance: float) -> list[int]:
        """Go on with other hyper-parameters, to the last bit as if they had always been these.

        Parameters
        ----------
        kernel_for
            Returns the kernel for so many features: the first examples may have had fewer.
        noise_variance
            Variance of the observation noise, in units of y².

        Returns
        -------
        No number: all examples are retained.

        Raises
        ------
        NotPositiveDefiniteError
            If an example cannot be learned with them. Nothing has changed then.

        """
        old, d = self._gp, self._gp.points.d or 0
        examples = list(zip(old.points.given, old.targets.values, strict=True))
        first = len(examples[0][0]) if examples else d
        gp = ExactGP(kernel_for(first), noise_variance, single_precision=old.single_precision)
        for x, y in examples:
            # The bits of a covariance depend on the number of features.
            if gp.points.d is not None and len(x) > gp.points.d:
                gp.widen(len(x), kernel_for(len(x)))
            gp.append(x, padded(y, max(gp.n_targets, len(y))))
        if gp.points.d is not None and d > gp.points.d:
            gp.widen(d, kernel_for(d))
        while gp.n_targets < old.n_targets:
            gp.add_target()
        self._gp = gp
        return []

    def fall_back(self) -> list[int]:
        """Return to the prior: forget all examples, but no function.

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

    def misfits(self) -> tuple[Array, float]:
        """What `ExactGP.misfits` returns."""
        return self._gp.misfits()

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
