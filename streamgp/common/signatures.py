"""Names of the parameters of a class or a method, cached: `inspect` is slow, and loops are many."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a class, function or method, `self` among them.

    Examples
    --------
    >>> parameters(parameters)
    ('function',)

    """
    # Bound methods are made anew at every look; what they are bound to plays no part.
    return _parameters(getattr(function, "__func__", function))


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except ValueError:  # something in C that does not say
        return ()
