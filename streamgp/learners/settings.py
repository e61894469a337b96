"""How a learner was built: its arguments, checked, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from streamgp.arguments import check_whole
from streamgp.features import Columns
from streamgp.gp.bounded import BoundedGP
from streamgp.gp.evidence import Criterion, leave_one_out_likelihood, log_marginal_likelihood
from streamgp.gp.hyperparameters import MIN_NOISE_VARIANCE, Hyperparameters
from streamgp.gp.numbered import NumberedGP
from streamgp.gp.precision import MIN_NOISE_IN_SINGLE_PRECISION, check_noise_variance
from streamgp.gp.sparse import SparseGP
from streamgp.gp.window import WindowGP
from streamgp.kernels import Kernel, SquaredExponential
from streamgp.kernels.kernel import check_kernel
from streamgp.learners.tuning import Tuning

# Default length scale: this times the square root of the number of features, standardised.
# Measured on four sensor logs, docs/decisions/scaling.md.
LENGTH_SCALE_PER_ROOT_FEATURE = 0.9

Learn: TypeAlias = bool | Literal["leave_one_out"]
"""Whether hyper-parameters are learned, and by what: True stands for the marginal likelihood."""

_CRITERIA: Mapping[Learn, Criterion] = {
    True: log_marginal_likelihood,
    "leave_one_out": leave_one_out_likelihood,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The arguments of a learner, under their names.

    Raises
    ------
    TypeError
        If `kernel` is none.
    ValueError
        If `noise_variance`, `max_points` or `window` is out of range, `learn_hyperparameters` is
        none of its values, or two arguments exclude each other.

    """

    kernel: Kernel | None
    noise_variance: float
    max_points: int | None
    learn_hyperparameters: Learn
    single_precision: bool
    window: int | None = None

    def __post_init__(self) -> None:
        check_noise_variance(self.noise_variance, single_precision=self.single_precision)
        if self.kernel is not None:
            check_kernel(self.kernel)
        if self.learn_hyperparameters not in (False, *_CRITERIA):
            raise ValueError(
                "learn_hyperparameters must be True, False or 'leave_one_out', "
                f"got {self.learn_hyperparameters!r}"
            )
        if self.learn_hyperparameters and self.noise_variance == 0.0:
            raise ValueError(
                "noise_variance must be positive to be learned, got 0.0; "
                f"start from {MIN_NOISE_VARIANCE}"
            )
        for name in ("max_points", "window"):
            most = getattr(self, name)
            if most is not None:
                check_whole(name, most, 1)
            if most is not None and self.single_precision:
                raise ValueError(
                    "single_precision is for a learner that keeps all examples, "
                    f"got {name}={most!r} as well; do without one of them"
                )
        if self.max_points is not None and self.window is not None:
            raise ValueError(
                "window is a bound already, "
                f"got max_points={self.max_points!r} as well; do without one of them"
            )

    @property
    def bound(self) -> int | None:
        """Largest number of examples that are retained, None for all."""
        return self.max_points if self.window is None else self.window

    def tuning(self) -> Tuning | None:
        """Return what seeks hyper-parameters, None if they stay as they are."""
        if not self.learn_hyperparameters:
            return None
        return Tuning(self.bound, self._bounded_kind, _CRITERIA[self.learn_hyperparameters])

    @property
    def min_noise_variance(self) -> float:
        """Least noise variance that may be learned."""
        # In single precision twice the limit: it is a logarithm for a while, and must not fall
        # below by rounding.
        single = self.single_precision
        return 2.0 * MIN_NOISE_IN_SINGLE_PRECISION if single else MIN_NOISE_VARIANCE

    def kernel_for(self, d: int) -> Kernel:
        """Return the kernel, or what stands for None where the first point has `d` features."""
        if self.kernel is not None:
            return self.kernel
        return SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(max(d, 1)))

    def given(self, kernel: Kernel, columns: Columns) -> Hyperparameters:
        """Return what is expected beforehand of points with these columns."""
        return Hyperparameters(kernel=kernel.bound(columns), noise_variance=self.noise_variance)

    def process(self, these: Hyperparameters) -> NumberedGP | BoundedGP:
        """Return a process that has learned nothing."""
        if self.bound is not None:
            return self._bounded_kind(these.kernel, these.noise_variance, self.bound)
        single = self.single_precision
        return NumberedGP(these.kernel, these.noise_variance, single_precision=single)

    @property
    def _bounded_kind(self) -> type[BoundedGP]:
        return SparseGP if self.window is None else WindowGP
