"""How a classifier with privileged noise was built, and what follows from that."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamgp.arguments import check_whole
from streamgp.base import Array, Preset, State, check_preset
from streamgp.gp.label_fit import PRESETS
from streamgp.gp.label_model import LabelModel
from streamgp.kernels import Kernel, SquaredExponential
from streamgp.kernels.kernel import check_kernel
from streamgp.learners.settings import LENGTH_SCALE_PER_ROOT_FEATURE


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegedSettings:
    """The arguments of a classifier, under their names.

    Raises
    ------
    TypeError
        If a kernel is none.
    ValueError
        If `max_points` or `n_replays` is out of range, the preset unknown, or
        `learn_hyperparameters` neither True nor False.

    """

    kernel: Kernel | None
    privileged_kernel: Kernel | None
    max_points: int | None
    n_replays: int
    preset: Preset
    learn_hyperparameters: bool

    def __post_init__(self) -> None:
        for kernel in (self.kernel, self.privileged_kernel):
            if kernel is not None:
                check_kernel(kernel)
        if self.max_points is not None:
            check_whole("max_points", self.max_points, 1)
        check_whole("n_replays", self.n_replays, 0)
        check_preset(self.preset)
        if self.learn_hyperparameters not in (True, False):
            raise ValueError(
                f"learn_hyperparameters must be True or False, got {self.learn_hyperparameters!r}"
            )

    @property
    def noise_mean(self) -> float:
        """Mean of the log noise variance that is expected beforehand."""
        return PRESETS[self.preset].noise_mean

    def kernel_for(self, d: int) -> Kernel:
        """Return the kernel, or what stands for None where the first point has `d` features."""
        return self.kernel or _default(d)

    def privileged_kernel_for(self, d: int) -> Kernel:
        """Return the same for privileged features."""
        return self.privileged_kernel or _default(d)


def _default(d: int) -> Kernel:
    return SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(max(d, 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Hyper-parameters that were learned.

    Parameters
    ----------
    theta
        Of the kernel, logarithms.
    theta_privileged
        Of the privileged kernel, logarithms; None if there were no privileged features yet.
    noise_mean
        Mean of the log noise variance.

    """

    theta: Array
    theta_privileged: Array | None
    noise_mean: float

    @classmethod
    def of(cls, model: LabelModel) -> Found:
        """Return the hyper-parameters of a model."""
        g = model.privileged_kernel
        return cls(
            theta=model.kernel.theta,
            theta_privileged=None if g is None else g.theta,
            noise_mean=model.noise_mean,
        )

    @classmethod
    def from_state(cls, state: State) -> Found:
        """Return what `state` was taken from."""
        theta, g = state["theta"], state["theta_privileged"]
        return cls(
            theta=np.array(theta, dtype=float),
            theta_privileged=None if g is None else np.array(g, dtype=float),
            noise_mean=float(state["noise_mean"]),
        )

    def state(self) -> State:
        """Return plain JSON values."""
        g = self.theta_privileged
        return {
            "theta": self.theta.tolist(),
            "theta_privileged": None if g is None else g.tolist(),
            "noise_mean": self.noise_mean,
        }

    def applied_to(self, model: LabelModel) -> LabelModel:
        """Return a model with these hyper-parameters; what was not learned stays."""
        g, theta = model.privileged_kernel, self.theta_privileged
        return LabelModel(
            kernel=model.kernel.with_theta(self.theta),
            privileged_kernel=g if g is None or theta is None else g.with_theta(theta),
            noise_mean=self.noise_mean,
        )
