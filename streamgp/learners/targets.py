"""Numbers that are learned, checked."""

from __future__ import annotations

import math

from streamgp.values import is_number


def checked_target(y: object) -> float:
    """Return a target as a float.

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If it is not finite.

    """
    if not is_number(y):
        raise TypeError(f"y must be a number, got {y!r}; do not learn events without a target")
    value = float(y)  # type: ignore[arg-type]
    if not math.isfinite(value):
        raise ValueError(f"y must be finite, got {y!r}")
    return value
