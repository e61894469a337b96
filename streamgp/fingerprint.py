"""A short name for a configuration: equal for objects built alike, different for others.

What an object has learned does not enter, only what it was built with.

"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from streamgp.signatures import parameters


def fingerprint(*parts: object) -> str:
    """Return 16 hexadecimal digits that stand for how objects were built.

    Examples
    --------
    >>> from streamgp.kernels import SquaredExponential
    >>> fingerprint(SquaredExponential(2.0)) == fingerprint(SquaredExponential(length_scale=2.0))
    True
    >>> fingerprint(SquaredExponential(2.0)) == fingerprint(SquaredExponential(3.0))
    False

    """
    text = json.dumps([described(part) for part in parts], ensure_ascii=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def described(value: Any) -> Any:
    """Return how a value was built, as plain JSON values.

    An object is described by its class and by the arguments of its constructor that can be read
    from it under their names, as those of River's estimators can.

    Examples
    --------
    >>> from streamgp.query import SkepticalAsk
    >>> described(SkepticalAsk(c=2.0))
    {'class': 'streamgp.query.rules.SkepticalAsk', 'c': 2.0}

    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if abs(value) < float("inf") else repr(value)  # NaN too is no JSON
    if isinstance(value, Mapping):
        return [[described(name), described(v)] for name, v in value.items()]
    if isinstance(value, list | tuple):
        return [described(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(described(v)) for v in value)
    if inspect.isroutine(value) or isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    cls = type(value)
    arguments = {name: getattr(value, name) for name in parameters(cls) if hasattr(value, name)}
    if hasattr(value, "item") and not arguments:  # a number of numpy's
        return described(value.item()) if getattr(value, "shape", None) == () else repr(value)
    return {
        "class": f"{cls.__module__}.{cls.__qualname__}",
        **{name: described(v) for name, v in arguments.items()},
    }
