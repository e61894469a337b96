"""Conversion of River's dictionaries to vectors: stable columns, features that come and go.

This is the only place where a dictionary of features becomes an array. Scaling is done elsewhere,
and the weight of a string's coordinate relative to a number is up to the kernel.

"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg.blas import ddot

from streamgp.base import Array, FeatureName, Features
from streamgp.common.feature_values import (
    as_coordinate,
    check_features,
    is_missing,
    python_name,
    text_code,
)


class Columns:
    """The columns of a matrix whose rows are dictionaries of features.

    Numbers and booleans are used as they are, a string is replaced by its `text_code`. A feature
    that is absent, None or NaN counts as missing and has the value 0: the mean of standardised
    features, and the code of no string. Columns never move; new ones are appended. A feature that
    is sometimes a number and sometimes a string has a column for each.

    Parameters
    ----------
    names
        Names of the columns, in order.
    texts
        Positions of the columns that hold strings.

    Attributes
    ----------
    names
        Names of the columns, in order.
    texts
        Positions of the columns that hold strings, in order.

    Examples
    --------
    >>> columns = Columns(["light", "noise"])
    >>> columns.vector({"noise": 3, "light": 1.5})
    array([1.5, 3. ])
    >>> columns.vector({"noise": 3, "pressure": 1013})
    array([0., 3.])
    >>> columns = columns.widened({"noise": 3, "pressure": 1013, "place": "hall"})
    >>> columns.names, columns.texts
    (('light', 'noise', 'place', 'pressure'), (2,))

    """

    # _known  names and kinds (name, is string); _names only the names
    # _pick and _pack  convert a dictionary to bytes
    # _last   the last values and their vector: learning comes after predicting the same event
    __slots__ = ("_known", "_last", "_names", "_pack", "_pick", "names", "texts")
    _missing_number: ClassVar = 0.0

    def __init__(self, names: Iterable[FeatureName] = (), texts: Iterable[int] = ()) -> None:
        self.names = tuple(names)
        self.texts = tuple(texts)
        are_texts = frozenset(self.texts)  # clients may send thousands of them
        columns = [(name, i in are_texts) for i, name in enumerate(self.names)]
        self._known = frozenset(columns)
        self._names = frozenset(self.names)
        # One struct call converts all values: 0.4 us for 20 features, several times faster than
        # filling an array, in any order of the keys.
        pack = struct.Struct(f"{len(self.names)}d").pack
        self._pack: Callable[..., bytes] = _Coder(pack, columns) if self.texts else pack
        self._pick = _picker(self.names)
        self._last: tuple[tuple[Any, ...], Array] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __reduce__(self) -> tuple[type[Columns], tuple[tuple[FeatureName, ...], tuple[int, ...]]]:
        return type(self), (self.names, self.texts)

    def widened(self, x: Features) -> Self:
        """Return columns that also cover `x`; new ones follow in the order of their names.

        Raises
        ------
        TypeError
            If the value of a new one is neither a number nor a string.
        ValueError
            If it is infinite, or larger than 1e150.

        """
        check_features(x)
        known = self._known
        new = [
            (name, isinstance(value, str))
            for name, value in x.items()
            if (name, isinstance(value, str)) not in known and not is_missing(value)
        ]
        if not new:
            return self
        for name, _ in new:
            as_coordinate(name, x[name])  # `known_vector` would take a time of numpy for a number
        # Numpy's names sort as the plain ones that a restart makes of them.
        new.sort(key=lambda column: repr(python_name(column[0])))
        first = len(self.names)
        texts = [first + i for i, (_, is_text) in enumerate(new) if is_text]
        return type(self)((*self.names, *(name for name, _ in new)), (*self.texts, *texts))

    def restricted(self, names: Collection[FeatureName]) -> tuple[list[int], Columns]:
        """Return the positions of the columns of some features, and these columns alone."""
        positions = [i for i, name in enumerate(self.names) if name in names]
        texts = [k for k, i in enumerate(positions) if i in self.texts]
        return positions, Columns([self.names[i] for i in positions], texts)

    def first(self, d: int) -> Columns:
        """Return the first `d` columns."""
        if d == len(self):
            return self
        return Columns(self.names[:d], [i for i in self.texts if i < d])

    def known_vector(self, x: Features) -> Array | None:
        """Convert features that all have a column, if no number is infinite; else return None."""
        try:
            if len(x) == len(self._names):
                values = self._pick(x)
            elif type(x) is not dict and not isinstance(x, Mapping):
                return None
            elif x.keys() <= self._names:
                values = tuple([x.get(name, 0.0) for name in self.names])
            else:
                return None
            last = self._last
            if last is not None and last[0] == values:
                return last[1]
            vector: Array = np.frombuffer(self._pack(*values))
        except (LookupError, TypeError, ValueError, ArithmeticError, struct.error):
            return None
        # Infinity and NaN survive a sum of squares; if it overflows, only the longer way is taken.
        if self.names and not math.isfinite(ddot(vector, vector)):
            return None
        self._last = values, vector
        return vector

    def vector(self, x: Features) -> Array:
        """Convert features to a vector of shape (d,), read only.

        Features without a column are left out (but must be numbers or strings), and columns without
        a feature have the value of a missing one.

        Raises
        ------
        TypeError
            If a value is neither a number nor a string.
        ValueError
            If a number is infinite, or larger than 1e150.

        """
        vector = self.known_vector(x)
        if vector is None:
            check_features(x)
            values = {}
            for name, value in x.items():
                coordinate = as_coordinate(name, value)  # refuses what is not a feature
                if not is_missing(value):
                    values[name, isinstance(value, str)] = coordinate
            columns = [(name, i in self.texts) for i, name in enumerate(self.names)]
            gaps = (0.0 if is_text else self._missing_number for _, is_text in columns)
            vector = np.array([*map(values.get, columns, gaps)], dtype=float)
        return vector

    def distances(self, points: Array, x: Array) -> Array:
        """Euclidean distances of points (n, d) from `x` of shape (d,).

        A string is a point at distance 1 from a missing one, in a direction of its own: two
        different strings are √2 apart.

        Examples
        --------
        >>> columns = Columns(["light", "place"], texts=[1])
        >>> points = [columns.vector({"light": 3.0, "place": place}) for place in ("hall", "bath")]
        >>> columns.distances(np.array(points), points[0])
        array([0.        , 1.41421356])

        """
        steps = points - x
        squares = steps * steps
        for j in self.texts:
            present = (points[:, j] != 0.0) + float(x[j] != 0.0)
            squares[:, j] = np.where(steps[:, j] == 0.0, 0.0, present)
        distances: Array = np.sqrt(squares.sum(axis=1))
        return distances


class ColumnsWithGaps(Columns):
    """Columns with NaN for a missing number, which is not 0 here. A missing string is 0.

    Examples
    --------
    >>> columns = ColumnsWithGaps(["light", "noise", "place"], texts=[2])
    >>> columns.vector({"noise": 3})
    array([nan,  3.,  0.])

    """

    __slots__ = ()
    _missing_number: ClassVar = math.nan

    def known_vector(self, x: Features) -> Array | None:
        """Convert features if every column has a value; else return None."""
        names = self.names
        if type(x) is not dict:
            check_features(x)
        if len(x) != len(names) or any(not isinstance(x.get(names[i]), str) for i in self.texts):
            return None
        return super().known_vector(x)  # refuses None, NaN, and a string where a number should be


class _Coder:
    """Packs values like `struct`, where some columns hold strings."""

    # _kinds  for each column, whether it holds strings, and whether its feature has no other
    #         column, so that a value of the other kind has no place
    __slots__ = ("_kinds", "_pack")

    def __init__(
        self, pack: Callable[..., bytes], columns: Sequence[tuple[FeatureName, bool]]
    ) -> None:
        self._pack = pack
        known = frozenset(columns)
        self._kinds = [(is_text, (name, not is_text) not in known) for name, is_text in columns]

    def __call__(self, *values: Any) -> bytes:
        coordinates = list(values)
        for i, (is_text, alone) in enumerate(self._kinds):
            value = values[i]
            if isinstance(value, str) == is_text:
                if is_text:
                    coordinates[i] = text_code(value)
            elif is_text and value is None:
                coordinates[i] = 0.0
            elif alone and (not is_text or value != 0.0):  # absent is 0 everywhere
                raise TypeError(f"no column for {value!r}")
            else:
                coordinates[i] = 0.0
        return self._pack(*coordinates)


def _picker(names: tuple[FeatureName, ...]) -> Callable[[Features], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    # itemgetter with one name returns a bare value, and without names it does not exist.
    return lambda x: tuple(x[name] for name in names)
