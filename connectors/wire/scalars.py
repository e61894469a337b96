"""Plain values: what can be written as JSON and read back unchanged.

Each function takes a value and what to call it, and returns the value as a plain Python one (the
scalars of numpy are converted) or raises `ValueError`.

"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

SMALLEST, LARGEST = -(2**63), 2**63 - 1
MAX_DEPTH = 32
"""Brackets within brackets in one message."""


def scalar(value: Any, what: str) -> bool | int | float | str:
    """Return a number, a boolean or a text as a plain Python value, or say why it is none."""
    kind = value.__class__
    if kind is str or kind is bool:
        return value  # type: ignore[no-any-return]
    if kind is float:
        if isfinite(value):
            return value  # type: ignore[no-any-return]
        raise ValueError(f"{what} must be finite, got {value!r}")
    if kind is int:
        if SMALLEST <= value <= LARGEST:
            return value  # type: ignore[no-any-return]
        raise ValueError(f"{what} must fit into 64 bits, got {value!r}")
    if isinstance(value, str):
        return str(value)
    # numpy's scalars are known by their method, so that numpy need not be there
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else None
    if plain is None or plain.__class__ is value.__class__:
        raise ValueError(f"{what} must be a number, a boolean or a text, got {value!r}")
    return scalar(plain, what)


def number(value: Any, what: str) -> float | int:
    """Return a finite number, or say why it is none."""
    if value.__class__ is float and isfinite(value):
        return value
    plain = scalar(value, what)
    if isinstance(plain, bool | str):
        raise ValueError(f"{what} must be a number, got {value!r}")
    return plain


def integer(value: Any, what: str) -> int:
    """Return an integer, or say why it is none."""
    plain = scalar(value, what)
    if plain.__class__ is not int:
        raise ValueError(f"{what} must be an integer, got {value!r}")
    return plain


def text(value: Any, what: str) -> str:
    """Return a text, or say why it is none."""
    if isinstance(value, str):
        return value if value.__class__ is str else str(value)
    raise ValueError(f"{what} must be a text, got {value!r}")


def boolean(value: Any, what: str) -> bool:
    """Return true or false, or say why it is neither."""
    plain = scalar(value, what)
    if plain.__class__ is not bool:
        raise ValueError(f"{what} must be true or false, got {value!r}")
    return plain


def json_value(value: Any, what: str, depth: int = 0) -> Any:
    """Return a value of JSON types that can be written and read again unchanged."""
    if value is None:
        return None
    if depth > MAX_DEPTH // 2:
        raise ValueError(f"{what} must not nest deeper than {MAX_DEPTH // 2}, got more")
    if isinstance(value, Mapping):
        return {
            text(name, f"name in {what}"): json_value(v, f"{what}[{name!r}]", depth + 1)
            for name, v in value.items()
        }
    if isinstance(value, list):
        return [json_value(v, f"{what}[{i}]", depth + 1) for i, v in enumerate(value)]
    return scalar(value, what)
