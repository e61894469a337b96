"""A kernel that looks at some features only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from streamgp.base import Array, FeatureName
from streamgp.features import Columns
from streamgp.kernels.composition import Composable
from streamgp.kernels.kernel import Kernel, check_kernel, refuse_unbound


@dataclass(frozen=True, slots=True)
class On(Composable):
    """A kernel on some features, to be added to or multiplied with one on others.

    Parameters
    ----------
    names
        Names of the features; one that no example has had counts as missing.
    kernel
        The kernel.

    Examples
    --------
    The place does not matter, whatever it is:

    >>> from streamgp import GPClassifier
    >>> from streamgp.kernels import SquaredExponential
    >>> model = GPClassifier(On(["light"], SquaredExponential()), noise_variance=1.0)
    >>> model.learn_one({"light": 0.5, "place": "hall"}, "awake")
    >>> model.predict_proba_one({"light": 0.5, "place": "bath"}, with_dist=True)
    Posterior(mean={'awake': 0.5}, variance=0.5, prior_variance=1.0)

    """

    names: Collection[FeatureName]
    kernel: Kernel
    # _positions  of the coordinates, once they are known
    _positions: list[int] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or not isinstance(self.names, Iterable):
            raise TypeError(f"names must be a list of names of features, got {self.names!r}")
        check_kernel(self.kernel)
        # The order plays no part, and that of a set differs from one process to the next.
        object.__setattr__(self, "names", tuple(sorted(set(self.names), key=repr)))
        object.__setattr__(self, "_positions", None)
        if not self.names:
            raise ValueError("names must name at least one feature, got none")

    @property
    def theta(self) -> Array:
        """Logarithms of the hyper-parameters of the kernel."""
        return self.kernel.theta

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with other hyper-parameters."""
        return self._with(self.kernel.with_theta(theta), self._positions)

    def bound(self, columns: Columns) -> Self:
        """Return the kernel for points whose coordinates are these columns."""
        positions, mine = columns.restricted(self.names)
        return self._with(self.kernel.bound(mine), positions)

    @property
    def stationary(self) -> bool:
        """Whether covariances depend on differences of points only: if the kernel's do."""
        return self.kernel.stationary

    def embed(self, x: Array) -> Array:
        """Turn a point of shape (d,) into the row that the kernel stores for it.

        Raises
        ------
        TypeError
            If the kernel is not bound.

        """
        if self._positions is None:
            refuse_unbound(x)
        return self.kernel.embed(x[self._positions])

    def vector(self, rows: Array, row: Array) -> Array:
        """Covariances of one point with `n` stored ones, shape (n,)."""
        return self.kernel.vector(rows, row)

    def prior_variance(self, row: Array) -> float:
        """Covariance of a point with itself."""
        return self.kernel.prior_variance(row)

    def matrix(self, rows: Array) -> Array:
        """Covariances of points with each other, shape (n, n)."""
        return self.kernel.matrix(rows)

    def gradients(self, rows: Array) -> Iterator[Array]:
        """Derivatives of the matrix by the logarithms of the hyper-parameters."""
        return self.kernel.gradients(rows)

    def _with(self, kernel: Kernel, positions: list[int] | None) -> Self:
        other = type(self)(self.names, kernel)
        object.__setattr__(other, "_positions", positions)
        return other
