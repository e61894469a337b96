"""Numbers that are learned, checked."""

from __future__ import annotations

import math

from streamgp.values import is_number


def checked_target(y: object, largest: float = math.inf) -> float:
    """Return a target as a float.

    Parameters
    ----------
    y
        The target.
    largest
        How far it may be from 0.

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If it is not finite, or too large.

    """
    if not is_number(y):
        raise TypeError(f"y must be a number, got {y!r}; do not learn events without a target")
    value = float(y)  # type: ignore[arg-type]
    if not (math.isfinite(value) and abs(value) <= largest):
        bound = "" if largest == math.inf else f" and at most {largest:.0e}"
        raise ValueError(f"y must be finite{bound}, got {y!r}")
    return value
