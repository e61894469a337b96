"""Fingerprints of configurations, and the recorded names of classes.

Fingerprints are equal for objects built alike and different for others. They do not depend on what
an object has learned, only on what it was built with.

"""

from __future__ import annotations

import copyreg
import inspect
import json
from collections.abc import Mapping
from functools import partial
from hashlib import blake2b
from types import CodeType, FunctionType, MethodType
from typing import Any

from streamgp.common.signatures import parameters

# Fingerprints and label requests stay in topics and are compared forever: a class that was moved or
# renamed keeps the name under which it was first recorded.
_RECORDED_IN = {
    "kernels.categorical": ("Categorical",),
    "kernels.constant": ("Constant", "White"),
    "kernels.matern": ("Matern32", "Matern52"),
    "kernels.rational_quadratic": ("RationalQuadratic",),
    "kernels.restriction": ("On",),
    "kernels.squared_exponential": ("SquaredExponential",),
    "learners.ensemble_gp_classifier": ("EnsembleGPClassifier",),
    "learners.ensemble_gp_regressor": ("EnsembleGPRegressor",),
    "query.acquisition": ("Deterministic", "KL", "Variance"),
    "query.adaptive": ("AdaptiveThreshold",),
    "query.all_of": ("AllOf",),
    "query.outliers": ("OutsideInterval",),
    "query.reservoir": ("RecentEventsAsk",),
    "query.review": ("LeaveOneOutReview",),
    "query.rules": (
        "AlwaysAsk",
        "AlwaysChallenge",
        "BestVersusSecond",
        "Entropy",
        "LeastConfidence",
        "NeverAsk",
        "NeverChallenge",
        "PaperAsk",
        "PaperChallenge",
        "RandomAsk",
        "SkepticalAsk",
        "SkepticalChallenge",
    ),
    "query.skeptical": ("SkepticalClassifier",),
    "query.skeptical_numbers": ("SkepticalRegressor",),
}
_RENAMED = {"RecentEventsAsk": "ReservoirAsk"}
_RECORDED_AS = {
    name: f"streamgp.{module}.{_RENAMED.get(name, name)}"
    for module, names in _RECORDED_IN.items()
    for name in names
}


def fingerprint(*parts: object) -> str:
    """Return 16 hexadecimal digits that identify how objects were built.

    Raises
    ------
    TypeError
        If one of them cannot be described.

    Examples
    --------
    >>> from streamgp.kernels import SquaredExponential
    >>> fingerprint(SquaredExponential(2.0)) == fingerprint(SquaredExponential(length_scale=2))
    True
    >>> fingerprint(SquaredExponential(2.0)) == fingerprint(SquaredExponential(3.0))
    False

    """
    text = json.dumps([described(part) for part in parts], ensure_ascii=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def described(value: Any) -> Any:
    """Return how a value was built, as plain JSON values.

    An object is described by its class and by its constructor arguments, if these are attributes of
    the same names, as in River's estimators; otherwise by what `copy` would rebuild it from.
    Arguments that a class lists in `ADDED`, because they were added later, are left out while they
    have their default: what was built without them keeps its description.

    Examples
    --------
    >>> from streamgp.query import SkepticalAsk
    >>> described(SkepticalAsk(c=0.5))
    {'class': 'streamgp.query.rules.SkepticalAsk', 'c': 0.5}
    >>> described(SkepticalAsk(c=0.5, at_least=0.1))
    {'class': 'streamgp.query.rules.SkepticalAsk', 'c': 0.5, 'at_least': 0.1}

    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        # 1 and 1.0 are the same setting; NaN and infinity are not valid JSON.
        return int(value) if value.is_integer() else value if value - value == 0.0 else repr(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return [[described(name), described(v)] for name, v in value.items()]
    if isinstance(value, list | tuple):
        return [described(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(described(v)) for v in value)
    if isinstance(value, partial):
        return ["partial", *(described(v) for v in (value.func, value.args, value.keywords))]
    if isinstance(value, type) or inspect.isroutine(value):
        return _described_function(value)
    if hasattr(value, "tolist"):  # numpy's
        return described(value.tolist())
    return _described_object(value)


def recorded_name(cls: type) -> str:
    """Return the name of a class in messages: the one under which it was first recorded.

    Examples
    --------
    >>> from streamgp.query import AlwaysAsk, RecentEventsAsk
    >>> recorded_name(AlwaysAsk), recorded_name(RecentEventsAsk)
    ('AlwaysAsk', 'ReservoirAsk')

    """
    name = cls.__name__
    if name not in _RENAMED or not cls.__module__.startswith("streamgp."):
        return name
    return _RENAMED[name]


def _described_function(value: Any) -> Any:
    if isinstance(value, MethodType):
        return [value.__qualname__, described(value.__self__)]
    name = _name_of(value)
    if isinstance(value, FunctionType) and "<" in value.__qualname__:
        # A function without a unique name: all lambdas are called the same.
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        rest = [value.__defaults__, value.__kwdefaults__, cells]
        return [name, _described_code(value.__code__), *(described(v) for v in rest)]
    return name


def _described_code(code: CodeType) -> Any:
    constants = [_described_code(c) if isinstance(c, CodeType) else described(c)
                 for c in code.co_consts if c is not Ellipsis]  # fmt: skip
    return [code.co_code.hex(), list(code.co_names), constants]


def _described_object(value: Any) -> Any:
    cls = type(value)
    names = parameters(cls)
    if names and all(hasattr(value, name) for name in names):
        given = {name: getattr(value, name) for name in names}
        for name in getattr(cls, "ADDED", ()):
            if given[name] == inspect.signature(cls).parameters[name].default:
                del given[name]
        made_of = {name: described(v) for name, v in given.items()}
    else:
        try:
            reduce = copyreg.dispatch_table.get(cls)
            reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
            made_of = {"made of": described(reduced[1:3])}
        except (TypeError, AttributeError, RecursionError) as error:
            raise TypeError(
                f"how {cls.__name__} was built cannot be determined ({error}); keep the "
                "arguments of its constructor as attributes of the same names"
            ) from None
    return {"class": _name_of(cls), **made_of}


def _name_of(value: Any) -> str:
    """Return the full name under which a class or function was first recorded."""
    name = f"{value.__module__}.{value.__qualname__}"
    is_own = value.__module__.startswith("streamgp.")
    return _RECORDED_AS.get(value.__qualname__, name) if is_own else name
