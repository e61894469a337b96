"""Cached methods of classes and parameters of functions: inspection is slow, loops are many."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

P = TypeVar("P")


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
def has_methods(kind: Any, protocol: Any) -> bool:
    """Whether a class has all methods of a protocol; its properties are taken for granted.

    Cached: each loop checks, and a check takes a tenth of the time of an event.
    """
    declared = (name for one in protocol.__mro__ for name, m in vars(one).items() if callable(m))
    return all(callable(getattr(kind, n, None)) for n in declared if not n.startswith("_"))


def narrowed(value: Any, protocol: type[P]) -> P | None:
    """Return an object if its class has all methods of a protocol, else None.

    Examples
    --------
    >>> from typing import Protocol
    >>> class Counts(Protocol):
    ...     n: int
    ...     def count(self, value): ...
    >>> narrowed([3, 3], Counts).count(3), narrowed({3}, Counts)
    (2, None)

    """
    kind: Any = type(value)
    asked: Any = protocol
    return cast("P", value) if has_methods(kind, asked) else None


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
