"""From River's dictionaries to vectors: stable columns, features that come and go.

The one place where a dictionary of features becomes an array. Scaling is not done here.

"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import numpy as np

from streamgp.base import Array, FeatureName, Features


class Columns:
    """The columns of a matrix whose rows are dictionaries of features.

    A feature that is absent, None or NaN counts as missing and has the value 0: the mean, where
    features are standardised. Columns never move; new ones are appended.

    Parameters
    ----------
    names
        Names of the columns, in order.

    Examples
    --------
    >>> columns = Columns(["light", "noise"])
    >>> columns.vector({"noise": 3, "light": 1.5})
    array([1.5, 3. ])
    >>> columns.vector({"noise": 3, "pressure": 1013})
    array([0., 3.])
    >>> columns.widened({"noise": 3, "pressure": 1013}).names
    ('light', 'noise', 'pressure')

    """

    __slots__ = ("_pack", "_pick", "names")

    def __init__(self, names: Iterable[FeatureName] = ()) -> None:
        self.names = tuple(names)
        # One struct call converts all values: 0.4 us for 20 features, several times faster than
        # filling an array, whatever the order of the keys.
        self._pack = struct.Struct(f"{len(self.names)}d").pack
        self._pick = _picker(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __reduce__(self) -> tuple[type[Columns], tuple[tuple[FeatureName, ...]]]:
        return Columns, (self.names,)

    def widened(self, x: Features) -> Columns:
        """Return columns that also cover `x`; new ones follow in the order of their names."""
        new = sorted((name for name in x if name not in self.names), key=repr)
        return Columns((*self.names, *new)) if new else self

    def exact_vector(self, x: Features) -> Array | None:
        """Convert features that are exactly the columns, all present and finite; else None."""
        if len(x) != len(self.names):
            return None
        try:
            values = self._pick(x)
            # Infinity and NaN survive a sum, and a value that is no number ends it.
            if not math.isfinite(sum(values)):
                return None
            vector: Array = np.frombuffer(self._pack(*values))
        except (KeyError, TypeError, struct.error):
            return None
        return vector

    def vector(self, x: Features) -> Array:
        """Convert features to a vector of shape (d,), not to be written to.

        Features without a column are left out, columns without a feature are 0.

        Raises
        ------
        TypeError
            If a value is not a number.
        ValueError
            If a value is infinite.

        """
        vector = self.exact_vector(x)
        if vector is None:
            vector = np.array([_number(name, x.get(name)) for name in self.names], dtype=float)
        return vector


def _picker(names: tuple[FeatureName, ...]) -> Callable[[Features], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    # itemgetter of one name returns a bare value, and of none does not exist.
    return lambda x: tuple(x[name] for name in names)


def _number(name: FeatureName, value: Any) -> float:
    if value is None:
        return 0.0
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(
            f"feature {name!r} must be a number, got {value!r}; encode it or leave it out"
        )
    number = float(value)
    if math.isinf(number):
        raise ValueError(f"feature {name!r} must be finite, got {value!r}; leave it out if unknown")
    return 0.0 if math.isnan(number) else number
