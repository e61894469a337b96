"""Values of features: numbers, categorical values and missing ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from streamgp.base import FeatureName, Features

# Largest feature accepted: its square, and the sum of many of them, are finite.
LARGEST = 1e150


def text_code(text: str) -> float:
    """Return the positive whole number that encodes a string.

    The same everywhere and forever, so that no table of strings has to be kept or restored, and a
    string never seen before differs from all others at once: the probability that any two of a
    million strings share a number is 1 in 18 000.

    Examples
    --------
    >>> text_code("hall"), text_code("bath")
    (2762829288079104.0, 7838303550073484.0)

    """
    return _short_code(text) if len(text) <= _SHORT else _code(text)


def _code(text: str) -> float:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # 53 bits, plus 1: exact in a float, and not 0.
    return float((int.from_bytes(digest) >> 11) + 1)


# The longest string whose code is cached: 4096 of them take less than a megabyte.
_SHORT = 100
_short_code = lru_cache(maxsize=4096)(_code)


def is_missing(value: Any) -> bool:
    """Whether a feature is None, NaN, numpy's NaT, or pandas.NA or pandas.NaT.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing(0.0)
    (True, False)

    """
    try:
        return value is None or bool(value != value)
    # Of pandas.NA, an array, a decimal that signals, and a tensor of torch.
    except (TypeError, ValueError, ArithmeticError, RuntimeError):
        return _is_na(value)


def _is_na(value: Any) -> bool:
    # By its name, as pandas is slow to import.
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return _is_time_of_numpy(value) and not value.ndim and bool(value != value)


def same_features(one: Features, other: Features) -> bool:
    """Whether two events have the same features; not if their values cannot be compared.

    Examples
    --------
    >>> same_features({"light": 0.5}, {"light": 0.5})
    True

    """
    try:
        return bool(one == other)
    # As in `is_missing`.
    except (TypeError, ValueError, ArithmeticError, RuntimeError):
        return False


def check_features(x: object) -> None:
    """Raise TypeError for what is not a mapping of names to features.

    Examples
    --------
    >>> check_features([0.5, 3])
    Traceback (most recent call last):
    TypeError: x must be a dict of features, got list

    """
    if type(x) is not dict and not isinstance(x, Mapping):  # the latter is slower
        to_dict = "; x.to_dict() is one" if hasattr(x, "to_dict") else ""
        raise TypeError(f"x must be a dict of features, got {type(x).__name__}{to_dict}")


def is_number(value: object) -> bool:
    """Whether a feature is a number or a boolean, not a string, a date, an array or None.

    Examples
    --------
    >>> import numpy as np
    >>> is_number(np.float32(0.5)), is_number(np.str_("0.5"))
    (True, False)

    """
    if type(value) is float or type(value) is int:
        return True
    if not hasattr(value, "__float__") or isinstance(value, str):  # numpy strings have both
        return False
    # Until version 2.4, numpy takes an array of one for a number.
    return not getattr(value, "ndim", 0) and not _is_time_of_numpy(value)


def _is_time_of_numpy(value: object) -> bool:
    # In nanoseconds it would be taken for their number; in other units numpy refuses that.
    return getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M")


_NO_FEATURE = "feature {!r} must be a number or a string, got {!r}; encode it or leave it out"


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
    try:
        number = float(value) if is_number(value) else None
    except OverflowError:  # an integer beyond the largest float
        number = math.inf
    except (TypeError, ValueError):  # an array
        number = None
    if number is None:
        if _is_na(value):
            return 0.0
        raise TypeError(_NO_FEATURE.format(name, value))
    if math.isinf(number):
        raise ValueError(
            f"feature {name!r} must be finite, got {value!r:.60}; leave it out if unknown"
        )
    if abs(number) > LARGEST:
        raise ValueError(
            f"feature {name!r} must be at most {LARGEST:.0e} in size, got {value!r}; "
            "leave it out if unknown"
        )
    return 0.0 if math.isnan(number) else number


_PYTHON = frozenset((bool, int, float, str, type(None)))


def in_python(x: Features) -> Features:
    """Return features as values of Python's own types; the same object if they are.

    Arithmetic with `float32` is done in single precision, and would differ after a restart, which
    restores plain values. What is no feature is left as it is, for the learner to refuse.

    Raises
    ------
    TypeError
        If a scalar of pyarrow has no value in Python.

    Examples
    --------
    >>> import numpy as np
    >>> in_python({"light": np.float32(0.1), "place": "hall"})
    {'light': 0.10000000149011612, 'place': 'hall'}

    """
    if _PYTHON.issuperset(map(type, x.values())):
        return x
    return {name: _in_python(name, value) for name, value in x.items()}


def _in_python(name: FeatureName, value: Any) -> Any:
    module = type(value).__module__
    if module == "numpy" and getattr(value, "shape", None) == ():
        value = value if _is_time_of_numpy(value) else value.item()
    elif module.startswith("pyarrow") and hasattr(value, "as_py"):
        try:
            value = value.as_py()
        except (ValueError, TypeError, ArithmeticError, NotImplementedError):
            # Such as a time beyond the year 9999.
            raise TypeError(_NO_FEATURE.format(name, value)) from None
    if type(value) in _PYTHON:
        return value
    if _is_na(value):
        return None
    if isinstance(value, str):
        return str.__str__(value)  # str() may be overridden
    if isinstance(value, int):
        return int(value)
    try:
        return float(value) if is_number(value) else value
    except (TypeError, ValueError, OverflowError):  # an array, a null, beyond the largest float
        return value


def privileged_features(privileged: Any) -> dict[FeatureName, Any]:
    """Return a copy of privileged features; refuses anything else.

    Raises
    ------
    TypeError
        If they are not a dictionary, or a value is neither a number nor a string.
    ValueError
        If a number is infinite, or larger than `LARGEST`.

    Examples
    --------
    >>> privileged_features({"confidence": 0.9, "response_s": None})
    {'confidence': 0.9, 'response_s': None}
    >>> privileged_features({"confidence": [0.9]})
    Traceback (most recent call last):
    TypeError: privileged feature 'confidence' must be a number or a string, got [0.9]; ...

    """
    if not hasattr(privileged, "items"):
        raise TypeError(f"privileged must be a dictionary of features, got {privileged!r}")
    try:
        for name, value in privileged.items():
            as_coordinate(name, value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"privileged {error}") from None
    return dict(privileged)


def as_coordinate(name: FeatureName, value: Any) -> float:
    """Return the value of a feature as `as_number` does, or the code of a string."""
    return text_code(value) if isinstance(value, str) else as_number(name, value)


# --- Features as plain JSON values and back, for what must survive a restart.
#
# Values keep their types: 1, 1.0 and True stay distinct.


_TEXTS, _FLOATS = frozenset({str}), frozenset({float})


def plain_features(x: Features) -> dict[str, Any] | list[list[Any]]:
    """Return features as plain JSON values, for a snapshot; `features_of` is the inverse.

    Do not modify the result: features that are already plain, as nearly all are, are returned as
    they are.

    Raises
    ------
    ValueError, TypeError
        If a name or a value is neither a number nor a string.

    Examples
    --------
    >>> plain_features({"light": 0.5, "place": "hall"})
    {'light': 0.5, 'place': 'hall'}
    >>> plain_features({1: float("nan"), "light": None})
    [[1, {'float': 'nan'}], ['light', None]]

    """
    values = x.values()
    if (
        _TEXTS.issuperset(map(type, x))
        and _FLOATS.issuperset(map(type, values))
        and math.isfinite(sum(values))
    ):
        return x if type(x) is dict else dict(x)  # NaN and infinity survive a sum
    plain = {name: _plain_value(name, value) for name, value in x.items()}
    if all(type(name) is str for name in plain):
        return plain
    return [[plain_name(name), value] for name, value in plain.items()]


def features_of(plain: dict[str, Any] | list[list[Any]]) -> dict[FeatureName, Any]:
    """Return the features that plain JSON values represent.

    Raises
    ------
    ValueError
        If a value is none that `plain_features` returns.

    """
    pairs = plain.items() if isinstance(plain, dict) else plain
    x = {name: float(value["float"]) if isinstance(value, dict) else value for name, value in pairs}
    if not _PYTHON.issuperset(map(type, x.values())):
        raise ValueError(f"features must be numbers or strings, got {plain!r:.80}")
    return x


def plain_name(name: FeatureName) -> bool | int | float | str:
    """Return the name of a feature as a plain JSON value; raises ValueError if it has none."""
    if type(name) is str:  # the usual case: the state of scaling names each feature three times
        return name
    name = python_name(name)
    if isinstance(name, bool | int | str) or (isinstance(name, float) and math.isfinite(name)):
        return name
    raise ValueError(f"only features named by a string or a number can be saved, got {name!r}")


def python_name(name: FeatureName) -> FeatureName:
    """Return the name of a feature, a scalar of numpy as the same value of Python."""
    if type(name).__module__ == "numpy" and hasattr(name, "item"):  # as column names may be
        plain: FeatureName = name.item()
        return plain
    return name


def _plain_value(name: FeatureName, value: Any) -> Any:
    if type(value) not in _PYTHON:
        value = _in_python(name, value)
    if type(value) is float:
        # JSON has no NaN and no infinity.
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) in _PYTHON:
        return value
    raise ValueError(f"feature {name!r} must be a number or a string to be saved, got {value!r}")
