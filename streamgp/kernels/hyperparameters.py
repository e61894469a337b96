"""Hyperparameters of kernels: positive numbers, and length scales of single features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from streamgp.base import Array, FeatureName
from streamgp.common.signatures import parameters
from streamgp.common.validation import check_positive
from streamgp.features import Columns
from streamgp.kernels.base import LengthScale
from streamgp.kernels.composition import Composable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LengthScales(Mapping[FeatureName, float]):
    """An immutable, hashable mapping from feature names to length scales.

    Parameters
    ----------
    pairs
        Names and length scales, in the order of the names' `repr`.

    """

    pairs: tuple[tuple[FeatureName, float], ...]

    @classmethod
    def of(cls, scales: Mapping[FeatureName, float]) -> LengthScales:
        """Return the length scales of a mapping; its order does not matter."""
        if not scales:
            raise ValueError("length_scale must name at least one feature; give a number for all")
        for name, scale in scales.items():
            check_positive(f"length_scale of {name!r}", scale)
        return cls(tuple(sorted(scales.items(), key=lambda pair: repr(pair[0]))))

    def __getitem__(self, name: FeatureName) -> float:
        return dict(self.pairs)[name]

    def __iter__(self) -> Iterator[FeatureName]:
        return (name for name, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __hash__(self) -> int:
        return hash(self.pairs)

    def __repr__(self) -> str:
        return repr(dict(self.pairs))


class ParametricKernel(Composable):
    """A kernel whose constructor takes only positive numbers, or length scales by name."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name in parameters(type(self)):
            value = getattr(self, name)
            if name == "length_scale" and isinstance(value, Mapping):
                object.__setattr__(self, name, LengthScales.of(value))
            else:
                check_positive(name, value)

    @property
    def theta(self) -> Array:
        """Natural logarithms of all hyperparameters, in the order of their declaration, (p,)."""
        values: list[float] = []
        for name in parameters(type(self)):
            value = getattr(self, name)
            values.extend(value.values() if isinstance(value, Mapping) else [value])
        return np.log(values)

    def with_theta(self, theta: Array) -> Self:
        """Return the same kernel with other hyperparameters."""
        values = iter(np.exp(theta).tolist())
        return type(self)(
            **{
                name: dict(zip(value, values, strict=False))
                if isinstance(value := getattr(self, name), Mapping)
                else next(values)
                for name in parameters(type(self))
            }
        )


@dataclass(frozen=True, slots=True, eq=False)
class ColumnScales:
    """The length scale of every column, and the contribution of each hyperparameter to it.

    Parameters
    ----------
    scales
        Length scale of each column, shape (d,).
    shares
        Derivative of the logarithm of each column's length scale with respect to the logarithm of
        each hyperparameter, shape (p, d).

    """

    scales: Array
    shares: Array

    @classmethod
    def of(cls, length_scale: LengthScale, columns: Columns) -> ColumnScales:
        """Return the length scales of columns.

        A feature that is not named has the geometric mean of those that are.
        """
        names = columns.names
        if not isinstance(length_scale, Mapping):
            return cls(np.full(len(names), float(length_scale)), np.ones((1, len(names))))
        positions = {name: j for j, name in enumerate(length_scale)}
        shares = np.full((len(positions), len(names)), 1.0 / len(positions))
        for i, name in enumerate(names):
            if name in positions:
                shares[:, i] = 0.0
                shares[positions[name], i] = 1.0
        logarithms = np.log(list(length_scale.values()))
        return cls(np.exp(logarithms @ shares), shares)
