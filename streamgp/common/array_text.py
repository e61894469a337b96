"""Arrays of numbers as text, bitwise: for state, where plain JSON is a hundred times slower."""

from __future__ import annotations

from base64 import b64decode, b64encode

import numpy as np

from streamgp.base import Array


def text_of(array: Array) -> str:
    """Return the numbers of an array as text: their bytes (IEEE double, little-endian) in Base64.

    Examples
    --------
    >>> text_of(np.array([1.0, -0.5]))
    'AAAAAAAA8D8AAAAAAADgvw=='
    >>> array_of('AAAAAAAA8D8AAAAAAADgvw==', 2)
    array([ 1. , -0.5])

    """
    return b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode("ascii")


def array_of(text: str, *shape: int) -> Array:
    """Return the array of a given shape that a text encodes.

    Raises
    ------
    ValueError
        If the text does not encode this number of numbers.

    """
    array: Array = np.frombuffer(b64decode(text, validate=True), dtype="<f8").astype(float)
    return array.reshape(shape)
