"""Features as plain JSON values and back, for what must survive a restart.

Values keep their types: 1, 1.0 and True stay what they are.

"""

from __future__ import annotations

import math
from typing import Any

from streamgp.base import FeatureName, Features

_TEXTS, _FLOATS = frozenset({str}), frozenset({float})


def plain_features(x: Features) -> dict[str, Any] | list[list[Any]]:
    """Return features as plain JSON values, for a snapshot; `features_of` is the way back.

    Not to be written to: what is plain already, as nearly all features are, is returned as it is.

    Raises
    ------
    ValueError
        If a name or a value is neither a number nor a text.

    Examples
    --------
    >>> plain_features({"light": 0.5, "place": "hall"})
    {'light': 0.5, 'place': 'hall'}
    >>> plain_features({1: float("nan"), "light": None})
    [[1, {'float': 'nan'}], ['light', None]]

    """
    values = x.values()
    if (
        _TEXTS.issuperset(map(type, x))
        and _FLOATS.issuperset(map(type, values))
        and math.isfinite(sum(values))
    ):
        return x if type(x) is dict else dict(x)  # NaN and infinity survive a sum
    plain = {name: _plain_value(name, value) for name, value in x.items()}
    if all(type(name) is str for name in plain):
        return plain
    return [[plain_name(name), value] for name, value in plain.items()]


def features_of(plain: dict[str, Any] | list[list[Any]]) -> dict[FeatureName, Any]:
    """Return the features that plain JSON values stand for."""
    pairs = plain.items() if isinstance(plain, dict) else plain
    return {
        name: float(value["float"]) if isinstance(value, dict) else value for name, value in pairs
    }


def plain_name(name: FeatureName) -> bool | int | float | str:
    """Return the name of a feature as a plain JSON value; raises ValueError if it is none."""
    if isinstance(name, bool | int | str) or (isinstance(name, float) and math.isfinite(name)):
        return name
    raise ValueError(f"only features named by a text or a number can be saved, got {name!r}")


def _plain_value(name: FeatureName, value: Any) -> Any:
    if type(value) is float:
        # JSON has no NaN and no infinity.
        return value if math.isfinite(value) else {"float": repr(value)}
    if value is None or type(value) in (bool, int, str):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _plain_value(name, value.item())
    raise ValueError(f"feature {name!r} must be a number or a text to be saved, got {value!r}")
