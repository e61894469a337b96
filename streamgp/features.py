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
from scipy.linalg.blas import ddot

from streamgp.base import Array, FeatureName, Features

# Largest feature that is taken: its square, and the sum of many of them, are finite.
LARGEST = 1e150


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

    # names   in order; _known is the same as a set, _pick and _pack go from a dictionary to bytes
    # _last   the last values and their vector: learning comes after predicting the same event
    __slots__ = ("_known", "_last", "_pack", "_pick", "names")

    def __init__(self, names: Iterable[FeatureName] = ()) -> None:
        self.names = tuple(names)
        self._known = frozenset(self.names)
        # One struct call converts all values: 0.4 us for 20 features, several times faster than
        # filling an array, whatever the order of the keys.
        self._pack = struct.Struct(f"{len(self.names)}d").pack
        self._pick = _picker(self.names)
        self._last: tuple[tuple[Any, ...], Array] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __reduce__(self) -> tuple[type[Columns], tuple[tuple[FeatureName, ...]]]:
        return Columns, (self.names,)

    def widened(self, x: Features) -> Columns:
        """Return columns that also cover `x`; new ones follow in the order of their names."""
        new = sorted((name for name in x if name not in self._known), key=repr)
        return Columns((*self.names, *new)) if new else self

    def known_vector(self, x: Features) -> Array | None:
        """Convert features that all have a column and are finite numbers; else None."""
        try:
            if len(x) == len(self.names):
                values = self._pick(x)
            elif x.keys() <= self._known:
                values = tuple([x.get(name, 0.0) for name in self.names])
            else:
                return None
            last = self._last
            if last is not None and last[0] == values:
                return last[1]
            vector: Array = np.frombuffer(self._pack(*values))
        except (KeyError, TypeError, ValueError, OverflowError, struct.error):
            return None
        # Infinity and NaN survive a sum of squares; one that overflows only takes the longer way.
        if self.names and not math.isfinite(ddot(vector, vector)):
            return None
        self._last = values, vector
        return vector

    def vector(self, x: Features) -> Array:
        """Convert features to a vector of shape (d,), not to be written to.

        Features without a column are left out (but must be numbers all the same), columns without
        a feature are 0.

        Raises
        ------
        TypeError
            If a value is not a number.
        ValueError
            If a value is infinite, or larger than `LARGEST`.

        """
        vector = self.known_vector(x)
        if vector is None:
            numbers = {name: as_number(name, value) for name, value in x.items()}
            vector = np.array([numbers.get(name, 0.0) for name in self.names], dtype=float)
        return vector


def _picker(names: tuple[FeatureName, ...]) -> Callable[[Features], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    # itemgetter of one name returns a bare value, and of none does not exist.
    return lambda x: tuple(x[name] for name in names)


def is_number(value: object) -> bool:
    """Whether a feature is a number, as a truth value is, and not text, a date or None."""
    return hasattr(value, "__float__")


def as_number(name: FeatureName, value: Any) -> float:
    """Return the value of a feature as a float, 0 if it is missing.

    Raises
    ------
    TypeError
        If it is not a number.
    ValueError
        If it is infinite, or larger than `LARGEST`.

    """
    if value is None:
        return 0.0
    if not is_number(value):
        raise TypeError(
            f"feature {name!r} must be a number, got {value!r}; encode it or leave it out"
        )
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the largest float
        number = math.inf
    if math.isinf(number):
        raise ValueError(f"feature {name!r} must be finite, got {value!r}; leave it out if unknown")
    if abs(number) > LARGEST:
        raise ValueError(
            f"feature {name!r} must be at most {LARGEST:.0e}, got {value!r}; "
            "leave it out if unknown"
        )
    return 0.0 if math.isnan(number) else number
