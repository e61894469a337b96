"""Message <-> bytes: JSON, versioned, the same bytes for the same message.

Every message is one JSON object with its `type`, `version` 1 and the fields of its class in
order; fields at their default are left out:

    {"type":"answer","version":1,"answer_id":"a1","event_id":"e1","y":"home","answered_at":60.0}

Readers ignore unknown fields and refuse unknown versions. Nothing that cannot be
read back is written: no NaN, no infinity, no integer beyond 64 bits, nothing too large or too deep.

The wire format follows from the message classes, field by field, so that a new field needs
no code here. Only values that JSON cannot distinguish need a rule:

* A label is a plain JSON string, integer or boolean; a float is tagged, `{"float": 1.0}`, because
many JSON writers print 1.0 as 1, which is another label.
* Features are an object, `{"light": 0.5}`, if every name is a string, else a list of pairs,
`[[1, 0.5], ["light", 0.2]]`, whose names are written like labels.
* Class probabilities are a list of pairs, `[["home", 0.9], [3, 0.1]]`.

"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from math import isfinite
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, cast, get_type_hints

import msgspec

from connectors.wire.explain import LARGEST, SMALLEST, explain, explain_zero, one_line
from streamgp.base import Decision, Features, Label, Neighbour
from streamgp.common.feature_values import is_missing
from streamgp.common.validation import check_bytes
from streamgp.interactive.conversation_record import event_id_of
from streamgp.interactive.messages import (
    MOST_IN_EXCERPT,
    Answer,
    Cancel,
    Challenge,
    Event,
    Excerpt,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
)

# --- Plain values: what can be written as JSON and read back unchanged.
#
# Each function takes a value and a name for it, and returns the value as a plain Python one
# (numpy scalars are converted) or raises `ValueError`.


MAX_DEPTH = 32
"""Largest number of nested brackets in one message."""


def scalar(value: Any, what: str) -> bool | int | float | str:
    """Return a number, a boolean or a string as a plain Python value; raise if it is none."""
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
    # numpy's scalars are recognised by their method, so that numpy need not be installed
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else None
    if plain is None or plain.__class__ is value.__class__:
        raise ValueError(f"{what} must be a number, a boolean or a string, got {value!r}")
    return scalar(plain, what)


def number(value: Any, what: str) -> float | int:
    """Return a finite number; raise if it is none."""
    if value.__class__ is float and isfinite(value):
        return value
    plain = scalar(value, what)
    if isinstance(plain, bool | str):
        raise ValueError(f"{what} must be a number, got {value!r}")
    return plain


def integer(value: Any, what: str) -> int:
    """Return an integer; raise if it is none."""
    if value.__class__ is int and SMALLEST <= value <= LARGEST:
        return value
    plain = scalar(value, what)
    if plain.__class__ is not int:
        raise ValueError(f"{what} must be an integer, got {value!r}")
    return plain


def text(value: Any, what: str) -> str:
    """Return a text; raise if it is none."""
    if isinstance(value, str):
        return value if value.__class__ is str else str(value)
    raise ValueError(f"{what} must be a string, got {value!r}")


def boolean(value: Any, what: str) -> bool:
    """Return true or false; raise if it is neither."""
    plain = scalar(value, what)
    if plain.__class__ is not bool:
        raise ValueError(f"{what} must be true or false, got {value!r}")
    return plain


def json_value(value: Any, what: str, depth: int = 0) -> Any:
    """Return a value of JSON types that can be written and read back unchanged."""
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


_set = msgspec.structs.force_setattr

Integer: TypeAlias = Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST)]
Scalar: TypeAlias = bool | Integer | float | str


_Channel: TypeAlias = Annotated[list[float | None], msgspec.Meta(max_length=MOST_IN_EXCERPT)]


class TaggedFloat(msgspec.Struct, frozen=True):
    """A float label."""

    value: float = msgspec.field(name="float")


WireLabel: TypeAlias = bool | Integer | float | str | TaggedFloat
WireFeatures: TypeAlias = dict[str, Scalar | None] | list[tuple[WireLabel, Scalar | None]]


def label_out(label: Any, what: str) -> bool | int | str | TaggedFloat:
    """Return a label in the form in which it is written."""
    plain = scalar(label, what)
    return TaggedFloat(plain) if isinstance(plain, float) else plain


def label_in(label: Any) -> Label:
    """Return a decoded label; an untagged float is taken as it is."""
    return label.value if label.__class__ is TaggedFloat else label


# Classes whose values are written as they are, if they are finite.
_TEXTS: frozenset[type] = frozenset((str,))
_FLOATS: frozenset[type] = frozenset((float,))
_LABELS: frozenset[type] = frozenset((str, bool))


def features_out(x: Features, what: str) -> dict[str, Any] | list[tuple[Any, Any]]:
    """Return features in written form: an object, or pairs if a name is not a string.

    Missing features are left out: to a learner, an absent feature is the same as None or NaN.
    """
    if (
        type(x) is dict
        and _TEXTS.issuperset(map(type, x))
        and _FLOATS.issuperset(map(type, x.values()))
        and isfinite(sum(x.values()))
    ):
        return x  # as nearly all are; NaN and infinity survive a sum
    plain: dict[Any, Any] = {}
    named = True
    for name, value in x.items():
        if value.__class__ is float and isfinite(value):
            plain[name] = value
        elif is_missing(value):
            continue
        else:
            plain[name] = scalar(value, f"{what}[{name!r}]")
        named = named and name.__class__ is str
    if named:
        return plain
    return [(label_out(name, f"feature name in {what}"), value) for name, value in plain.items()]


def features_in(x: dict[str, Any] | list[tuple[Any, Any]]) -> Features:
    """Return decoded features without those that are null, which are missing."""
    if isinstance(x, list):
        pairs: dict[Any, Any] = {label_in(name): value for name, value in x}
        if len(pairs) != len(x):
            told = [list(pair) for pair in x]
            raise ValueError(f"x must name every feature once, got {told!r:.80}")
    else:
        pairs = x
    if None in pairs.values():
        pairs = {name: value for name, value in pairs.items() if value is not None}
    return cast(Features, pairs)


def texts_out(texts: Any, what: str) -> list[str]:
    """Return several texts in the form in which they are written."""
    return [text(item, f"{what}[{i}]") for i, item in enumerate(texts)]


def excerpt_out(excerpt: Excerpt, what: str) -> dict[str, list[float | None]]:
    """Return an excerpt in the form in which it is written."""
    if not isinstance(excerpt, Mapping):
        raise ValueError(f"{what} must map channels to lists of numbers, got {excerpt!r:.80}")
    plain = {}
    for channel, values in excerpt.items():
        where = f"{what}[{channel!r}]"
        if not isinstance(values, list | tuple) or len(values) > MOST_IN_EXCERPT:
            raise ValueError(
                f"{where} must be a list of at most {MOST_IN_EXCERPT} numbers, got {values!r:.80}"
            )
        numbers = [None if v is None else float(number(v, where)) for v in values]
        plain[text(channel, f"channel in {what}")] = numbers
    return plain


def probabilities_out(proba: Mapping[Label, float], what: str) -> list[tuple[Any, float]]:
    """Return class probabilities as pairs."""
    if (
        _LABELS.issuperset(map(type, proba))
        and _FLOATS.issuperset(map(type, proba.values()))
        and isfinite(sum(proba.values()))
    ):
        return list(proba.items())  # as nearly all are; NaN and infinity survive a sum
    return [(label_out(y, f"label in {what}"), number(p, what)) for y, p in proba.items()]


def probabilities_in(pairs: list[tuple[Any, float]]) -> dict[Label, float]:
    """Return decoded class probabilities."""
    proba = {label_in(y): p for y, p in pairs}
    if len(proba) != len(pairs):
        raise ValueError(f"proba must name every label once, got {pairs!r:.80}")
    return proba


def _neighbours_out(neighbours: tuple[Neighbour, ...], what: str) -> list[Any]:
    return [NEIGHBOUR.out(n, f"{what}[{i}]") for i, n in enumerate(neighbours)]


def _neighbours_in(neighbours: list[Any]) -> tuple[Neighbour, ...]:
    return tuple(map(NEIGHBOUR.as_meant, neighbours))


class Shape:
    """Wire format of one class of messages, or of a class nested in them.

    Parameters
    ----------
    tag
        Value of the field `type`, or None for a class that occurs only inside messages.
    may_lack
        Fields that a terse input may omit; they are `UNSET` until they are filled in.

    Attributes
    ----------
    wired
        The class that msgspec decodes into: a subclass that has no other fields, but the types
        of the wire. `as_meant` makes an instance of it one of the class, in place.

    """

    # _read     returns the values of all fields, in order
    # _written  struct of the encoded values; the encoder leaves out those at their
    #           default, and writes the type first
    # _head     what comes before these values: the version, for messages
    # _fields   name, default and format of every field
    # _plans    conversions of the values, by their classes: rarely more than a few
    # _back     for the fields that may need decoding, their name, the classes that indicate it,
    #           and the decoder
    # _check    check of the class that involves several fields, if any
    def __init__(
        self, kind: type, tag: str | None = None, *, may_lack: Collection[str] = ()
    ) -> None:
        hints = get_type_hints(kind)
        self.kind = kind
        self.tag = tag
        self._fields: list[tuple[str, Any, FieldFormat]] = []
        self._plans: dict[tuple[type, ...], list[_Step]] = {}
        self._back: list[tuple[str, tuple[type, ...], Callable[[Any], Any]]] = []
        self._check: Callable[[Any], None] | None = getattr(kind, "__post_init__", None)
        wired: list[Any] = []
        written: list[Any] = []
        unset = msgspec.UNSET
        for known in fields(kind):
            name, default = known.name, known.default
            form = _format_of(hints[name])
            self._fields.append((name, default, form))
            if form.back is not None:
                self._back.append((name, *form.back))
            if name in may_lack:
                wired.append((name, form.wire | msgspec.UnsetType, unset))
            else:
                wired.append(
                    (name, form.wire) if default is MISSING else (name, form.wire, default)
                )
            # A field without a default never has this one.
            written.append((name, Any, unset if default is MISSING else default))
        self._read: Callable[[Any], tuple[Any, ...]] = attrgetter(
            *(name for name, _, _ in self._fields)
        )
        self._head = () if tag is None else (1,)
        head = [] if tag is None else [("version", int, unset)]
        self._written: Any = msgspec.defstruct(
            kind.__name__, [*head, *written], tag=tag, omit_defaults=True
        )
        self.wired: Any = msgspec.defstruct(
            kind.__name__,
            wired,
            bases=(kind,),
            # checked after decoding, by `as_meant`
            namespace={"__post_init__": lambda _: None},
            frozen=True,
            kw_only=True,
        )

    def out(self, value: Any, where: str = "") -> Any:
        """Return the object from which the encoder makes the JSON object of a value."""
        found = self._read(value)
        # Which fields need conversion depends on their classes alone: one look-up for all.
        kinds = tuple(map(type, found))
        plan = self._plans.get(kinds)
        if plan is None:
            plan = self._plans[kinds] = self._planned(kinds)
        plain = [*self._head, *found]
        for i, name, default, convert in plan:
            value = plain[i]
            if value is not default:
                plain[i] = convert(value, f"{where}.{name}" if where else name)
        return self._written(*plain)

    def _planned(self, kinds: tuple[type, ...]) -> list[_Step]:
        """Return the conversions that fields of these classes need before they are written."""
        plan: list[_Step] = []
        first = len(self._head)
        for i, (kind, (name, default, form)) in enumerate(
            zip(kinds, self._fields, strict=True), first
        ):
            is_default = default is None and kind is type(None)
            # A float is always checked, as it must be finite. None is legal where the field may be
            # None, and refused by every converter elsewhere.
            if kind is float or not (kind in form.ready or is_default):
                plan.append((i, name, default, form.out))
        return plan

    def as_meant(self, decoded: Any) -> Any:
        """Convert a decoded object to the value that it stands for, in place, and return it.

        It has no other reference yet, so it is changed although it is frozen.

        Raises
        ------
        ValueError
            If there is no such value.

        """
        for name, kinds, convert in self._back:
            found = getattr(decoded, name)
            if found.__class__ in kinds:
                _set(decoded, name, convert(found))
        _set(decoded, "__class__", self.kind)
        if self._check is not None:
            self._check(decoded)
        return decoded


_Step: TypeAlias = tuple[int, str, Any, Callable[[Any, str], Any]]
"""Number, name and default of a field, and a converter of values other than the default."""


class FieldFormat(NamedTuple):
    """How a field of one type is encoded and decoded.

    Parameters
    ----------
    wire
        Its JSON type.
    ready
        Classes whose finite values are written as they are.
    out
        Encoder of all others; takes the value and a name for it.
    back
        Classes of decoded values that need decoding, with the decoder; None if none do.

    """

    wire: Any
    ready: Collection[type]
    out: Callable[[Any, str], Any]
    back: tuple[tuple[type, ...], Callable[[Any], Any]] | None = None


def _or_none(convert: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, what: None if value is None else convert(value, what)


def _decision_out(decision: Decision, what: str) -> Any:
    if (
        decision.__class__ is Decision
        and decision.ask.__class__ is bool
        and decision.score.__class__ is float is decision.threshold.__class__
        and decision.criterion.__class__ is str
        and (decision.budget is None or decision.budget.__class__ is str)
    ):
        return decision  # as nearly all are: it is finite, and omits its defaults by itself
    return DECISION.out(decision, what)


def _privileged_in(privileged: dict[str, Any]) -> Any:
    return json_value(privileged, "privileged")


def _format_of(hint: Any) -> FieldFormat:
    """Return the format of fields of a type."""
    for known, form in _FORMATS:
        if hint == known:
            return form
        if hint == known | None:
            return form._replace(wire=form.wire | None, out=_or_none(form.out))
    return FieldFormat(hint, _TEXTS, text)  # the literals


_PROBABILITIES = list[tuple[WireLabel, float]]
_FORMATS: list[tuple[Any, FieldFormat]] = [
    (str, FieldFormat(str, _TEXTS, text)),
    (float, FieldFormat(float, _FLOATS, number)),
    (int, FieldFormat(Integer, (), integer)),
    (bool, FieldFormat(bool, (bool,), boolean)),
    (Label, FieldFormat(WireLabel, _LABELS, label_out, ((TaggedFloat,), label_in))),
    (Features, FieldFormat(WireFeatures, (), features_out, ((dict, list), features_in))),
    (
        Mapping[Label, float],
        FieldFormat(_PROBABILITIES, (), probabilities_out, ((list,), probabilities_in)),
    ),
    (Mapping[str, Any], FieldFormat(dict[str, Any], (), json_value, ((dict,), _privileged_in))),
    (Excerpt, FieldFormat(dict[str, _Channel], (), excerpt_out)),
    (tuple[str, ...], FieldFormat(list[str], (), texts_out, ((list,), tuple))),
    (Decision, FieldFormat(Decision, (), _decision_out)),
]
DECISION = Shape(Decision)
NEIGHBOUR = Shape(Neighbour)
_NeighbourWired: Any = NEIGHBOUR.wired
_NEIGHBOURS = FieldFormat(list[_NeighbourWired], (), _neighbours_out, ((list,), _neighbours_in))
_FORMATS.append((tuple[Neighbour, ...], _NEIGHBOURS))


# --- messages


MAX_INPUT_BYTES = 1 << 20
"""Most bytes of an event or an answer."""
MAX_BYTES = 1 << 24
"""Most bytes of any message: a challenge repeats the features of four events."""

TYPES: dict[str, type] = {
    "event": Event,
    "prediction": Prediction,
    "label.request": LabelRequest,
    "label.challenge": Challenge,
    "label.cancel": Cancel,
    "answer": Answer,
    "consensus": LabelledExample,
    "expired": Expired,
    "rejected": Rejected,
}
TAGS = {kind: tag for tag, kind in TYPES.items()}
INPUT_TYPES = {tag: TYPES[tag] for tag in ("event", "answer", "label.cancel")}

_SHAPES = {kind: Shape(kind, tag) for tag, kind in TYPES.items()}
_MOST = dict.fromkeys(_SHAPES, MAX_BYTES) | {Event: MAX_INPUT_BYTES, Answer: MAX_INPUT_BYTES}
_TERSE = {
    "event": Shape(Event, "event", may_lack=("event_id", "occurred_at")),
    "answer": Shape(Answer, "answer", may_lack=("answer_id", "event_id", "answered_at")),
    "label.cancel": Shape(Cancel, "label.cancel", may_lack=("at",)),
}
_encoder = msgspec.json.Encoder()

_Decoder: TypeAlias = msgspec.json.Decoder[Any]


def _head(tag: str, version: Any) -> Any:
    """Return a struct for the fields that determine how all others are read."""
    return msgspec.defstruct("_Head", [version], tag_field="type", tag=tag)


# The head is read first: a message has neither type nor version.
_full_head = {tag: _head(tag, ("version", int)) for tag in TYPES}
_heads: _Decoder = msgspec.json.Decoder(Union[tuple(_full_head.values())])  # noqa: UP007
_bodies: dict[str, tuple[_Decoder, Shape]] = {
    tag: (msgspec.json.Decoder(_SHAPES[kind].wired), _SHAPES[kind]) for tag, kind in TYPES.items()
}
_terse_head = {tag: _head(tag, ("version", int, 1)) for tag in _TERSE}
_terse_heads: _Decoder = msgspec.json.Decoder(Union[tuple(_terse_head.values())])  # noqa: UP007
_TAG_OF_HEAD = {head: tag for heads in (_full_head, _terse_head) for tag, head in heads.items()}
# a message without alternatives need not tell its type
_typeless = {tag: msgspec.json.Decoder(head) for tag, head in _terse_head.items()}
_terse_bodies: dict[str, tuple[_Decoder, Shape]] = {
    tag: (msgspec.json.Decoder(shape.wired), shape) for tag, shape in _TERSE.items()
}
_BRACE, _BRACKET = b"{["  # as numbers, which are counted in half the time
_NO_TYPE = "Object missing required field `type`"

# one token of JSON: a text (closed or not), or a bracket; possessive, so that no input is slow
_BRACKETS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|([\[{])|[\]}]', re.DOTALL)


class DecodeError(ValueError):
    """Bytes that are not a message; its text names the field, the value and what was expected.

    It is one line of at most 500 printable characters, fit for logs, terminals and dead letters.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(one_line(reason))


def encode(message: Input | Message) -> bytes:
    """Return a message as bytes.

    Raises
    ------
    ValueError
        If the message has a value that cannot be read back; the text names the field and the value.

    Examples
    --------
    >>> encode(Event(event_id="e1", x={"light": 0.5}, occurred_at=10.0, truth="home"))
    b'{"type":"event","version":1,"event_id":"e1","x":{"light":0.5},"occurred_at":10.0,"truth":"home"}'

    """
    kind = type(message)
    shape = _SHAPES.get(kind)
    if shape is None:
        raise TypeError(f"message must be one of {_kinds()}, got {kind.__name__}")
    try:
        data = _encoder.encode(shape.out(message))
    except UnicodeEncodeError as error:
        raise ValueError(f"text must be valid Unicode, got {error.object!r:.80}") from None
    except (AttributeError, ValueError) as error:
        x = message.x if isinstance(message, Event) else {}
        told = error if isinstance(x, Mapping) else f"x must be a dict of features, got {x!r:.60}"
        raise ValueError(f"{TAGS[kind]}: {told}") from None
    if len(data) > _MOST[kind]:
        raise ValueError(f"message must have at most {_MOST[kind]} bytes, got {len(data)}")
    return data


def decode(data: bytes, *, max_bytes: int = MAX_BYTES) -> Input | Message:
    """Return the message in the bytes.

    Parameters
    ----------
    max_bytes
        Largest number of bytes, 16 MiB by default; for inputs from outside it is 1 MiB.

    Raises
    ------
    DecodeError
        If they are not a message.

    Examples
    --------
    >>> decode(b'{"type":"label.cancel","version":1,"request_id":"e1/label","why":"gone","at":3.0}')
    Cancel(request_id='e1/label', key=None, why='gone', at=3.0)
    >>> decode(b'{"type":"label.cancel","version":2}')
    Traceback (most recent call last):
    connectors.wire.codec.DecodeError: label.cancel: version must be 1, got 2, an unknown ...

    """
    _check(data, max_bytes)
    shape, decoded = _decoded(data)
    try:
        return shape.as_meant(decoded)  # type: ignore[no-any-return]
    except ValueError as error:
        raise DecodeError(f"{shape.tag}: {error}") from None


def message_in(value: bytes | None) -> Input | Message | None:
    """Return the message in a record's value; None if there is none, or it cannot be read."""
    try:
        return None if value is None else decode(value)
    except DecodeError:
        return None


def decode_input(data: bytes, kind: str, *, name: str, key: str | None, at: float) -> Input:
    """Decode an event, answer or cancellation, filling in missing ids, keys and times.

    `type`, `version`, `key`, the time, `event_id` of an event and `answer_id` of an answer may be
    missing; an answer that names its request need not name the event. Otherwise as in `decode`.

    Parameters
    ----------
    data
        The bytes, at most `MAX_INPUT_BYTES`.
    kind
        Type of a message that does not tell it: `event`, `answer` or `label.cancel`.
    name
        Id of a message that has none.
    key
        Key of a message that does not tell it.
    at
        Time of a message that has none, POSIX seconds.

    Raises
    ------
    DecodeError
        If they are not such a message.

    Examples
    --------
    >>> data = b'{"x": {"light": 0.5}, "y": "home"}'
    >>> event = decode_input(data, "event", name="events:0:17", key="ann", at=60.0)
    >>> event.event_id, event.key, event.occurred_at
    ('events:0:17', 'ann', 60.0)
    >>> data = b'{"request_id": "trip/7/label", "y": "home"}'
    >>> decode_input(data, "answer", name="answers:0:8", key="ann", at=70.0).event_id
    'trip/7'

    """
    _check(data, MAX_INPUT_BYTES)
    shape, decoded = _decoded(data, kind)
    if decoded.key is None:
        _set(decoded, "key", key)
    _fill_in(decoded, shape.kind, name, at)
    try:
        return shape.as_meant(decoded)  # type: ignore[no-any-return]
    except ValueError as error:
        raise DecodeError(f"{shape.tag}: {error}") from None


def _decoded(data: bytes, kind: str | None = None) -> tuple[Shape, Any]:
    """Return a message as msgspec decodes it; `kind` is the type of an input that tells none."""
    if kind is None:
        heads, bodies, types = _heads, _bodies, TYPES
    else:
        heads, bodies, types = _terse_heads, _terse_bodies, INPUT_TYPES
    try:
        try:
            head = heads.decode(data)
        except msgspec.ValidationError as error:
            if kind is None or str(error) != _NO_TYPE:
                raise
            head = _typeless[kind].decode(data)
        decoder, shape = bodies[_TAG_OF_HEAD[head.__class__]]
        decoded = None if head.version != 1 else decoder.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        told = _told_by_fields(data, error, bodies)
        raise DecodeError(explain(data, told, types, kind)) from None
    if decoded is None:
        raise DecodeError(explain(data, msgspec.ValidationError(), types, kind))
    return shape, decoded


def _told_by_fields(
    data: bytes, error: Exception, bodies: Mapping[str, tuple[_Decoder, Shape]]
) -> Exception:
    """Return the error of the decoder of all fields for malformed text: the head skips most."""
    if isinstance(error, msgspec.ValidationError):
        return error
    try:
        bodies[json.loads(data)["type"]][0].decode(data)
    except msgspec.MsgspecError as found:
        return found
    except (ValueError, LookupError, TypeError):
        pass  # no type, or not JSON at all
    return error


def _fill_in(terse: Any, kind: type, name: str, at: float) -> None:
    """Set the fields that a terse input omits; it is changed although it is frozen."""
    unset = msgspec.UNSET
    if kind is Event:
        if terse.event_id is unset:
            _set(terse, "event_id", name)
        if terse.occurred_at is unset:
            _set(terse, "occurred_at", at)
    elif kind is Answer:
        if terse.answer_id is unset:
            _set(terse, "answer_id", name)
        if terse.answered_at is unset:
            _set(terse, "answered_at", at)
        if terse.event_id is unset:
            _set(terse, "event_id", _asked_about(terse.request_id))
    elif terse.at is unset:
        _set(terse, "at", at)


def _asked_about(request_id: str | None) -> str:
    event_id = None if request_id is None else event_id_of(request_id)
    if event_id is None:
        raise DecodeError(
            "answer: field 'event_id' is missing, and no request tells it, "
            f"got request_id {request_id!r:.80}"
        )
    return event_id


def _check(data: bytes, max_bytes: int) -> None:
    """Refuse bytes before they are decoded: too many, not UTF-8, or nested too deep."""
    check_bytes("data", data)
    if len(data) > max_bytes:
        raise DecodeError(f"message must have at most {max_bytes} bytes, got {len(data)}")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(
                explain_zero(data)
                if 0 in data
                else f"message must be UTF-8, got the byte 0x{data[error.start]:02x} "
                f"at position {error.start}"
            ) from None
    if data.count(_BRACE) + data.count(_BRACKET) > MAX_DEPTH and _too_deep(data):
        raise DecodeError(f"message must not nest deeper than {MAX_DEPTH}, got more")


def _kinds() -> str:
    return ", ".join(kind.__name__ for kind in _SHAPES)


def _too_deep(data: bytes) -> bool:
    depth = 0
    for token in _BRACKETS.finditer(data):
        if token[1]:
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token[0][:1] != b'"':
            depth -= 1
    return False
