"""The shape of every message on the wire: which fields, of which JSON types, and how they convert.

The shapes follow from the message dataclasses, field by field and in their order, so that a new
field travels without a line here. Only values that JSON cannot tell apart need a rule:

* A label is a plain JSON string, integer or boolean; a float is tagged, `{"float": 1.0}`, because
  many JSON writers print 1.0 as 1, which is another label.
* Features are an object, `{"light": 0.5}`, if every name is a string, else a list of pairs,
  `[[1, 0.5], ["light", 0.2]]`, whose names are written as labels are.
* Class probabilities are a list of pairs, `[["home", 0.9], [3, 0.1]]`.

"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from math import isfinite
from typing import Annotated, Any, TypeAlias, cast, get_type_hints

import msgspec

from streamgp.base import Decision, Features, Label, Neighbour

# --- Plain values: what can be written as JSON and read back unchanged.
#
# Each function takes a value and what to call it, and returns the value as a plain Python one
# (the scalars of numpy are converted) or raises `ValueError`.


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


Integer: TypeAlias = Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST)]
Scalar: TypeAlias = bool | Integer | float | str


class TaggedFloat(msgspec.Struct, frozen=True):
    """A float label."""

    value: float = msgspec.field(name="float")


WireLabel: TypeAlias = bool | Integer | float | str | TaggedFloat
WireFeatures: TypeAlias = dict[str, Scalar] | list[tuple[WireLabel, Scalar]]


def label_out(label: Any, what: str) -> bool | int | str | TaggedFloat:
    """Return a label as it is written."""
    kind = label.__class__
    if kind is str or kind is bool:
        return cast("bool | str", label)
    plain = scalar(label, what)
    return TaggedFloat(plain) if isinstance(plain, float) else plain


def label_in(label: Any) -> Label:
    """Return a label as it was meant; an untagged float is taken as it stands."""
    return label.value if label.__class__ is TaggedFloat else label


def features_out(x: Features, what: str) -> dict[str, Any] | list[tuple[Any, Any]]:
    """Return features as they are written: an object, or pairs if a name is not a string."""
    plain: dict[Any, Any] = {}
    named = True
    for name, value in x.items():
        if value.__class__ is float and isfinite(value):
            plain[name] = value
        else:
            plain[name] = scalar(value, f"{what}[{name!r}]")
        named = named and name.__class__ is str
    if named:
        return plain
    return [(label_out(name, f"feature name in {what}"), value) for name, value in plain.items()]


def features_in(x: dict[str, Any] | list[tuple[Any, Any]]) -> Features:
    """Return features as they were meant."""
    if isinstance(x, dict):
        return cast(Features, x)
    pairs = {label_in(name): value for name, value in x}
    if len(pairs) != len(x):
        raise ValueError(f"x must name every feature once, got {[list(pair) for pair in x]!r:.80}")
    return cast(Features, pairs)


def probabilities_out(proba: Mapping[Label, float], what: str) -> list[tuple[Any, float]]:
    """Return class probabilities as pairs."""
    return [(label_out(y, f"label in {what}"), number(p, what)) for y, p in proba.items()]


def probabilities_in(pairs: list[tuple[Any, float]]) -> dict[Label, float]:
    """Return class probabilities as they were meant."""
    proba = {label_in(y): p for y, p in pairs}
    if len(proba) != len(pairs):
        raise ValueError(f"proba must name every label once, got {pairs!r:.80}")
    return proba


def _neighbours_out(neighbours: tuple[Neighbour, ...], what: str) -> list[dict[str, Any]]:
    return [NEIGHBOUR.out(n, f"{what}[{i}]") for i, n in enumerate(neighbours)]


def _neighbours_in(neighbours: list[Any]) -> tuple[Neighbour, ...]:
    return tuple(NEIGHBOUR.back(n) for n in neighbours)


class Shape:
    """Wire format of one dataclass.

    Parameters
    ----------
    kind
        The dataclass.
    tag
        Value of the field `type`, or None for what travels only inside of messages.
    may_lack
        If given, the shape of a terse input: the `version` may be missing, and so may these
        fields, which the struct has as `UNSET` until somebody fills them in.

    Attributes
    ----------
    struct
        What msgspec decodes into, with the same fields.

    """

    def __init__(
        self, kind: type, tag: str | None = None, *, may_lack: Collection[str] = ()
    ) -> None:
        hints = get_type_hints(kind)
        self.kind: Callable[..., Any] = kind
        self.head: dict[str, Any] = {} if tag is None else {"type": tag, "version": 1}
        self._out: list[tuple[str, Any, Callable[[Any, str], Any]]] = []
        self._back: list[tuple[str, Callable[[Any], Any]]] = []
        version = ("version", int, 1) if may_lack else ("version", int)
        wired: list[Any] = [] if tag is None else [version]
        for field in fields(kind):
            wire, out, back = _rules(hints[field.name])
            self._out.append((field.name, field.default, out))
            if back is not None:
                self._back.append((field.name, back))
            if field.name in may_lack:
                wired.append((field.name, wire | msgspec.UnsetType, msgspec.UNSET))
            elif field.default is MISSING:
                wired.append((field.name, wire))
            else:
                wired.append((field.name, wire, field.default))
        tagged: dict[str, Any] = {} if tag is None else {"tag_field": "type", "tag": tag}
        self.struct: Any = msgspec.defstruct(kind.__name__, wired, kw_only=True, **tagged)

    def out(self, value: Any, where: str = "") -> dict[str, Any]:
        """Return the JSON object of a value; fields at their default are left out."""
        plain = self.head.copy()
        for name, default, convert in self._out:
            field = getattr(value, name)
            if field is default:
                continue
            # None is legal where the field may be None, and refused by every converter elsewhere
            plain[name] = convert(field, f"{where}.{name}" if where else name)
        return plain

    def back(self, decoded: Any) -> Any:
        """Return the value that a decoded struct stands for."""
        plain = msgspec.structs.asdict(decoded)
        if self.head:
            del plain["version"]
        for name, convert in self._back:
            if plain[name] is not None:
                plain[name] = convert(plain[name])
        return self.kind(**plain)


Rules: TypeAlias = tuple[Any, Callable[[Any, str], Any], Callable[[Any], Any] | None]


def _or_none(convert: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, what: None if value is None else convert(value, what)


def _decision_out(decision: Decision, what: str) -> dict[str, Any]:
    return DECISION.out(decision, what)


def _privileged_in(privileged: dict[str, Any]) -> Any:
    return json_value(privileged, "privileged")


def _rules(hint: Any) -> Rules:
    """Return how a field of this type is written: its JSON type, its way out and its way back."""
    for known, rules in _RULES:
        if hint == known:
            return rules
        if hint == known | None:
            wire, out, back = rules
            return wire | None, _or_none(out), back
    return hint, text, None  # the literals


def _texts_out(texts: Any, what: str) -> list[str]:
    return [text(item, f"{what}[{i}]") for i, item in enumerate(texts)]


def _excerpt_out(excerpt: Any, what: str) -> dict[str, list[float]]:
    return {
        text(name, f"name in {what}"): [number(v, f"{what}[{name!r}]") for v in values]
        for name, values in excerpt.items()
    }


_PRIVILEGED: Rules = (dict[str, Any], json_value, _privileged_in)
_RULES: list[tuple[Any, Rules]] = [
    (str, (str, text, None)),
    (float, (float, number, None)),
    (int, (Integer, integer, None)),
    (bool, (bool, boolean, None)),
    (Label, (WireLabel, label_out, label_in)),
    (Features, (WireFeatures, features_out, features_in)),
    (Mapping[Label, float], (list[tuple[WireLabel, float]], probabilities_out, probabilities_in)),
    (Mapping[str, Any], _PRIVILEGED),
    (Mapping[str, Sequence[float]], (dict[str, list[float]], _excerpt_out, None)),
    (tuple[str, ...], (list[str], _texts_out, tuple)),
    (Decision, (Decision, _decision_out, None)),
]
DECISION = Shape(Decision)
NEIGHBOUR = Shape(Neighbour)
_NeighbourStruct: Any = NEIGHBOUR.struct
_RULES.append((tuple[Neighbour, ...], (list[_NeighbourStruct], _neighbours_out, _neighbours_in)))
