"""How many digits are stored of a factor, and of what follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamgp.arguments import check_non_negative

DOUBLE: np.dtype[Any] = np.dtype(np.float64)
SINGLE: np.dtype[Any] = np.dtype(np.float32)

MIN_NOISE_IN_SINGLE_PRECISION = 1e-3
"""With less noise, in units of the prior variance, single precision changes predictions."""


def check_noise_variance(value: float, *, single_precision: bool = False) -> None:
    """Refuse a noise variance that is no number, negative, not finite, or too small."""
    check_non_negative("noise_variance", value)
    if single_precision and value < MIN_NOISE_IN_SINGLE_PRECISION:
        raise ValueError(
            f"noise_variance must be at least {MIN_NOISE_IN_SINGLE_PRECISION} in single precision, "
            f"whose rounding errors would change predictions otherwise, got {value!r}; "
            "raise it or do without single_precision"
        )
