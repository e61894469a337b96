"""Cached methods of classes and parameters of functions: inspection is slow, loops are many."""

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
    # Bound methods are new objects at every access; what they are bound to does not matter.
    return _parameters(getattr(function, "__func__", function))


@lru_cache(maxsize=64)
def has_methods(kind: type, protocol: Any) -> bool:
    """Whether a class has all methods of a protocol that consists of methods only.

    Cached: each loop checks, and a check takes a tenth of the time of an event.
    """
    return issubclass(kind, protocol)


def lacking(value: object, protocol: Callable[..., Any]) -> list[str]:
    """Return what a protocol declares and an object lacks, or does not accept as declared.

    Examples
    --------
    >>> class Counter:
    ...     def add(self, n): ...
    ...     def reset(self): ...
    >>> class Other:
    ...     def add(self): ...
    >>> lacking(Other(), Counter)
    ['add(n)', 'reset()']

    """
    missing = []
    for name, member in vars(protocol).items():
        if name.startswith("_"):
            continue
        if not inspect.isfunction(member):
            missing += [] if hasattr(value, name) else [name]
            continue
        declared = list(inspect.signature(member).parameters.values())[1:]
        by_name = [one.name for one in declared if one.kind is one.KEYWORD_ONLY]
        in_order = [one.name for one in declared if one.kind is not one.KEYWORD_ONLY]
        try:
            signature = inspect.signature(getattr(value, name))
            signature.bind(*in_order, **dict.fromkeys(by_name))
        except (AttributeError, TypeError):
            missing.append(
                f"{name}({', '.join([*in_order, *(['*'] if by_name else []), *by_name])})"
            )
        except ValueError:  # a C function without a signature
            continue
    return missing


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except ValueError:  # a C function without a signature
        return ()
