"""Inputs of examples: features, and privileged features of their labels.

Features and privileged features have separate columns, points and kernels. The noise of a label
without privileged features is independent of all others.

"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from streamgp.base import Array, Features, Preset, check_preset
from streamgp.common.feature_values import is_missing, privileged_features
from streamgp.common.validation import check_flag, check_whole
from streamgp.features import Columns
from streamgp.gp.arrays import padded
from streamgp.gp.inducing_regression import Slots
from streamgp.gp.latent_noise.model import PRESETS, LabelModel
from streamgp.kernels import Kernel
from streamgp.kernels.base import check_kernel
from streamgp.scaling import RobustScaling

Covariances: TypeAlias = tuple[Array, float]
"""Covariances of a point with those of all examples, shape (n,), and with itself."""

# Scaled privileged features are clipped to this distance from 0: distances stay finite, so that no
# kernel can refuse what a learner has accepted.
_FARTHEST = 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedExample:
    """An example as a learner keeps it.

    Parameters
    ----------
    number
        Position in the order in which examples were learned.
    x
        Features as a vector, with the columns at that time.
    privileged
        Privileged features as received, without missing ones; None if there are none.
    label
        Number of its class.

    """

    number: int
    x: Array
    privileged: Features | None
    label: int


def present_features(privileged: Features | None) -> Features | None:
    """Return a copy of privileged features without the missing ones, None if none is left.

    Raises
    ------
    TypeError
        If they are not a dictionary, or a value is neither a number nor a string.
    ValueError
        If a number is infinite or too large.

    """
    if privileged is None:
        return None
    features = privileged_features(privileged)
    return {name: value for name, value in features.items() if not is_missing(value)} or None


class Spaces:
    """The points of examples, in the order of their slots.

    Parameters
    ----------
    model
        Kernels, unbound, and the mean of the log noise variance.
    scaling
        How privileged features are scaled; it learns elsewhere.

    Attributes
    ----------
    model
        As given.
    columns_privileged
        Which scaled privileged feature is which coordinate.

    """

    # _f, _g   the points; _g is None where the noise is known
    # _known   whether the example in a slot has privileged features
    def __init__(self, model: LabelModel, scaling: RobustScaling) -> None:
        self.model = model
        self._scaling = scaling
        self.columns_privileged = Columns()
        self._f = Slots(model.kernel)
        self._g: Slots | None = None
        if model.privileged_kernel is not None:
            self._g = Slots(model.privileged_kernel)
            self._g.settle(np.zeros(0))
        self._known: list[bool] = []

    def check(self, columns: Columns, x: Array) -> None:
        """Raise ValueError if a point is too far away for the kernel to embed."""
        origin = self._f.origin
        at = x if origin is None else x - padded(origin, len(x))
        self.model.kernel.bound(columns).embed(at)

    def add(
        self, columns: Columns, example: LearnedExample, slot: int | None = None
    ) -> tuple[Covariances, Covariances | None]:
        """Add an example, at the end or in a slot; return its covariances with those before it.

        `columns` are those of its vector, possibly with more.
        """
        f, d = self._f, len(example.x)
        mine = columns.first(d)
        if f.d is None:
            f.kernel = self.model.kernel.bound(mine)
            f.settle(example.x)
        elif d > f.d:
            f.resize(d, f.kernel.bound(mine))
        row, prior, k = f.covariances_with(padded(example.x, f.d or 0))
        i = f.n if slot is None else slot
        f.put(i, example.x, row)
        by_g = None if self._g is None else self._add_privileged(self._g, example.privileged, i)
        self._known[i : i + 1] = [example.privileged is not None]
        return (k, prior), by_g

    def covariances_with(self, x: Array) -> Covariances:
        """Covariances of `f` at a point that has all features any example has."""
        _, prior, k = self._f.covariances_with(x)
        return k, prior

    def covariances_with_privileged(self, privileged: Features | None) -> Covariances | None:
        """Covariances of `g` at privileged features, None if the noise is known."""
        if self._g is None:
            return None
        _, prior, k = self._g.covariances_with(self.privileged_vector(privileged))
        return self._related(k, known=privileged is not None), prior

    def privileged_vector(self, privileged: Features | None) -> Array:
        """Return scaled privileged features as a vector with the current columns."""
        scaled = {} if privileged is None else self._scaled(privileged)
        return self.columns_privileged.vector(scaled)

    def bound(self, model: LabelModel, columns: Columns) -> LabelModel:
        """Return a model for points with these columns and the current privileged ones."""
        g = model.privileged_kernel
        return LabelModel(
            kernel=model.kernel.bound(columns),
            privileged_kernel=None if g is None else g.bound(self.columns_privileged),
            noise_mean=model.noise_mean,
        )

    def drop(self, i: int) -> None:
        """Forget an example; later ones move up."""
        kept = [j for j in range(self._f.n) if j != i]
        for points in (self._f, self._g):
            if points is not None:
                points.keep(kept)
        del self._known[i]

    def _add_privileged(self, g: Slots, privileged: Features | None, i: int) -> Covariances:
        vector = np.zeros(g.d or 0)
        if privileged is not None:
            scaled = self._scaled(privileged)
            columns = self.columns_privileged.widened(scaled)
            if columns is not self.columns_privileged:
                self.columns_privileged = columns
                g.resize(len(columns), g.kernel.bound(columns))
            vector = columns.vector(scaled)
        row, prior, k = g.covariances_with(vector)
        g.put(i, vector, row)
        return self._related(k, known=privileged is not None), prior

    def _related(self, k: Array, *, known: bool) -> Array:
        if not known:
            return np.zeros(len(k))
        k[~np.array(self._known, dtype=bool)] = 0.0
        return k

    def _scaled(self, privileged: Features) -> Features:
        scaled = self._scaling.transform(privileged)
        return {
            name: value if isinstance(value, str) else min(max(value, -_FARTHEST), _FARTHEST)
            for name, value in scaled.items()
        }


# --- Validated constructor arguments of a classifier with privileged noise.


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegedSettings:
    """The arguments of a classifier, under their names.

    Raises
    ------
    TypeError
        If a kernel is not a kernel, or `learn_hyperparameters` neither True nor False.
    ValueError
        If `max_points` or `n_replays` is out of range, or the preset unknown.

    """

    kernel: Kernel | None
    privileged_kernel: Kernel | None
    max_points: int | None
    n_replays: int
    preset: Preset
    learn_hyperparameters: bool

    def __post_init__(self) -> None:
        for name in ("kernel", "privileged_kernel"):
            if (kernel := getattr(self, name)) is not None:
                check_kernel(kernel, name)
        if self.max_points is not None:
            check_whole("max_points", self.max_points, 1)
        check_whole("n_replays", self.n_replays, 0)
        check_preset(self.preset)
        check_flag("learn_hyperparameters", self.learn_hyperparameters)

    @property
    def noise_mean(self) -> float:
        """Prior mean of the log noise variance."""
        return PRESETS[self.preset].noise_mean
