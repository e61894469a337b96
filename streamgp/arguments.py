"""Numbers that somebody hands over: what they must be, in the same words everywhere.

All functions raise TypeError if a value is no number, ValueError if it is out of range.

"""

from __future__ import annotations

import math
from numbers import Real


def check_whole(name: str, value: float, least: int) -> int:
    """Return a whole number of at least `least`.

    Examples
    --------
    >>> check_whole("n_models", 10.0, least=1)
    10
    >>> check_whole("n_models", "ten", least=1)
    Traceback (most recent call last):
    TypeError: n_models must be a whole number of at least 1, got 'ten'

    """
    is_right = _is_number(value) and value >= least and math.isfinite(value) and value == int(value)
    _check(name, value, f"a whole number of at least {least}", is_right=is_right)
    return int(value)


def check_rate(name: str, value: float) -> None:
    """Refuse what is not between 0 and 1."""
    _check(name, value, "between 0 and 1", is_right=_is_number(value) and 0.0 <= value <= 1.0)


def check_non_negative(name: str, value: float) -> None:
    """Refuse what is negative or not finite."""
    is_right = _is_number(value) and value >= 0.0 and math.isfinite(value)
    _check(name, value, "non-negative and finite", is_right=is_right)


def check_positive(name: str, value: float) -> None:
    """Refuse what is not positive and finite, or has no finite inverse."""
    is_right = _is_number(value) and value > 0.0 and math.isfinite(value)
    is_right = is_right and math.isfinite(1.0 / value)
    _check(name, value, "positive and finite", is_right=is_right)


def _is_number(value: object) -> bool:
    return isinstance(value, Real)


def _check(name: str, value: object, wanted: str, *, is_right: bool) -> None:
    if not is_right:
        error = ValueError if _is_number(value) else TypeError
        raise error(f"{name} must be {wanted}, got {value!r}")
