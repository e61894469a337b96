"""Message <-> bytes: JSON, versioned, the same bytes for the same message.

Every message is one JSON object with its `type`, `version` 1 and the fields of its dataclass in
their order; fields at their default are left out:

    {"type":"answer","version":1,"answer_id":"a1","event_id":"e1","y":"home","answered_at":60.0}

How labels, feature names and probabilities keep their types is told in `connectors.wire.schema`.
Readers ignore fields they do not know and refuse versions they do not know. Nothing that cannot be
read back is written: no NaN, no infinity, no integer beyond 64 bits, nothing too large or too deep.

"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, TypeAlias, Union, get_args, get_type_hints

import msgspec

from connectors.wire.schema import LARGEST, MAX_DEPTH, SMALLEST, Shape
from streamgp.common.printable import printable
from streamgp.interactive.conversation_record import event_id_of
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
)

# --- Why bytes are no message, in one short line: which field is wrong, and what was expected.
#
# Speed does not matter here: the decoder has refused already, and one bad message is read again
# to find the culprit. What stands in the bytes is shown, but cut, and never as control
# characters.


_LONGEST = 500
_NOWHERE = object()
_EXPECTED = re.compile(r"Expected (.+?)(?:, got .+)?")
_MISSING = re.compile(r"Object missing required field `(.+?)`(?: - at `\$\.?(.*)`)?")


def one_line(text: str) -> str:
    r"""Return a text as one line of at most 500 printable characters, fit for logs and terminals.

    Examples
    --------
    >>> one_line("got 'a\nb\x1b[2J'")
    "got 'a\\nb\\x1b[2J'"

    """
    text = cut(text, _LONGEST)
    return cut(printable(text), _LONGEST)


def cut(text: str, most: int = 80) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= most else text[: most - 3] + "..."


def explain(
    data: bytes, error: Exception, types: Mapping[str, type], kind: str | None = None
) -> str:
    """Say what is wrong with bytes that the decoder refused.

    Parameters
    ----------
    data
        The bytes.
    error
        What the decoder said.
    types
        The messages that they may hold, by the name of their type.
    kind
        Type of a message that does not tell it; None if it must.

    Examples
    --------
    >>> explain(b"[1, 2]", msgspec.ValidationError(), {})
    'message must be a JSON object, got [1, 2]'

    """
    if not data.strip():
        return "message must be JSON, got nothing"
    try:
        plain = json.loads(data, parse_constant=_refuse_constant)
    except _NotFiniteError as constant:
        return f"message must hold finite numbers, got {constant}"
    except ValueError as malformed:
        return f"message must be JSON, got malformed text: {malformed}"
    if not isinstance(error, msgspec.ValidationError):
        text = str(error).removeprefix("JSON is malformed: ")
        return f"message must be JSON, got malformed text: {text}"
    if not isinstance(plain, dict):
        return f"message must be a JSON object, got {_show(plain)}"
    tag = plain.get("type", kind)
    if tag is None and "type" not in plain:
        return f"type must be one of {', '.join(types)}, got none"
    if not isinstance(tag, str) or tag not in types:
        return f"type must be one of {', '.join(types)}, got {_show(tag)}"
    if flaw := _flaw_of_version(plain, needed=kind is None):
        return f"{tag}: {flaw}"
    return f"{tag}: {_flaw_of_field(plain, str(error), types[tag])}"


def _flaw_of_version(plain: dict[str, Any], *, needed: bool) -> str | None:
    version = plain.get("version", None if needed else 1)
    if version == 1 and version is not True:
        return None
    if "version" not in plain:
        return "version must be 1, got none"
    major = "" if not isinstance(version, int) or version < 2 else ", an unknown major version"
    return f"version must be 1, got {_show(version)}{major}"


def _flaw_of_field(plain: dict[str, Any], error: str, kind: type) -> str:
    if missing := _MISSING.fullmatch(error):
        where = f" of {missing[2]}" if missing[2] else ""
        return f"field {missing[1]!r}{where} is missing"
    what, _, path = error.partition(" - at `$.")
    out_of_range = what == "Number out of range"
    path, value = _follow(plain, path.rstrip("`"), _is_finite if out_of_range else _is_scalar)
    if expected := _EXPECTED.fullmatch(what):
        kinds = expected[1].replace("`", "").replace(" | ", " or ")
        return f"{path or 'message'} must be {kinds}, got {_show(value)}"
    if what.startswith("Invalid enum value"):
        kinds = ", ".join(get_args(get_type_hints(kind)[path]))
        return f"{path} must be one of {kinds}, got {_show(value)}"
    if out_of_range:
        return f"{path} must be finite, got a number beyond 1.8e308"
    return what


class _NotFiniteError(Exception):
    pass


def _refuse_constant(name: str) -> None:
    raise _NotFiniteError(name)


def _follow(value: Any, path: str, is_good: Callable[[Any], bool]) -> tuple[str, Any]:
    """Find the value at a path of msgspec's, where `[...]` is the first name of no good value.

    With a name given twice, the value may be gone.
    """
    for step in re.findall(r"[^.\[\]]+|\.\.\.", path):
        if step == "..." and isinstance(value, dict):
            found = [name for name, v in value.items() if not is_good(v)][:1]
            for step in found:
                path = path.replace("[...]", f"[{cut(repr(step))}]", 1)
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (LookupError, TypeError, ValueError):
            return path, _NOWHERE
    return path, value


def _is_finite(value: Any) -> bool:
    """Say whether all numbers at any depth are finite."""
    if isinstance(value, dict | list):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or isfinite(value)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, bool | str):
        return True
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and SMALLEST <= value <= LARGEST


def _show(value: Any) -> str:
    return "another value" if value is _NOWHERE else cut(json.dumps(value, ensure_ascii=False))


MAX_INPUT_BYTES = 1 << 20
"""What an event or an answer may have at most."""
MAX_BYTES = 1 << 24
"""What any message may have at most: a challenge repeats the features of four events."""

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
_BACK = {shape.struct: shape.back for shape in _SHAPES.values()}
_Decoder: TypeAlias = msgspec.json.Decoder[Any]
_decoder: _Decoder = msgspec.json.Decoder(Union[tuple(_BACK)])  # noqa: UP007
_encoder = msgspec.json.Encoder()

_TERSE = {
    "event": Shape(Event, "event", may_lack=("event_id", "occurred_at")),
    "answer": Shape(Answer, "answer", may_lack=("answer_id", "event_id", "answered_at")),
    "label.cancel": Shape(Cancel, "label.cancel", may_lack=("at",)),
}
_TERSE_BACK = {shape.struct: shape.back for shape in _TERSE.values()}
_terse_decoder: _Decoder = msgspec.json.Decoder(Union[tuple(_TERSE_BACK)])  # noqa: UP007
# a message of one type need not tell which
_typeless = {tag: msgspec.json.Decoder(shape.struct) for tag, shape in _TERSE.items()}
_NO_TYPE = "Object missing required field `type`"

# one token of JSON: a text (closed or not), or a bracket; possessive, so that no input is slow
_BRACKETS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|([\[{])|[\]}]', re.DOTALL)


class DecodeError(ValueError):
    """Bytes that are no message; its text names the field, the value and what was expected.

    It is one line of at most 500 printable characters, fit for logs, terminals and dead letters.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(one_line(reason))


def encode(message: Input | Message) -> bytes:
    """Return a message as bytes.

    Raises
    ------
    ValueError
        If the message holds what cannot be read back; the text names the field and the value.

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
        raise ValueError(f"{TAGS[kind]}: {error}") from None
    if len(data) > _MOST[kind]:
        raise ValueError(f"message must have at most {_MOST[kind]} bytes, got {len(data)}")
    return data


def decode(data: bytes, *, max_bytes: int = MAX_BYTES) -> Input | Message:
    """Return the message that the bytes hold.

    Parameters
    ----------
    data
        The bytes.
    max_bytes
        How many there may be; who reads inputs from outside allows `MAX_INPUT_BYTES`.

    Raises
    ------
    DecodeError
        If they hold none.

    Examples
    --------
    >>> decode(b'{"type":"label.cancel","version":1,"request_id":"e1/label","why":"gone","at":3.0}')
    Cancel(request_id='e1/label', key=None, why='gone', at=3.0)
    >>> decode(b'{"type":"label.cancel","version":2}')
    Traceback (most recent call last):
    connectors.wire.codec.DecodeError: label.cancel: version must be 1, got 2, an unknown ...

    """
    _check(data, max_bytes)
    try:
        decoded = _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise DecodeError(explain(data, error, TYPES)) from None
    if decoded.version != 1:
        raise DecodeError(explain(data, msgspec.ValidationError(), TYPES))
    return _message(decoded, _BACK)  # type: ignore[no-any-return]


def decode_input(data: bytes, kind: str, *, name: str, key: str | None, at: float) -> Input:
    """Return the event, answer or cancellation that the bytes hold, be they ever so terse.

    `type`, `version`, `key`, the time, `event_id` of an event and `answer_id` of an answer may be
    missing; an answer that names its request need not name the event. All else is as in `decode`.

    Parameters
    ----------
    data
        The bytes, at most `MAX_INPUT_BYTES`.
    kind
        Its type, where it does not tell: `event`, `answer` or `label.cancel`.
    name
        What to call it, where it has no id.
    key
        Whose it is, where it does not tell.
    at
        Its time, POSIX seconds, where it has none.

    Raises
    ------
    DecodeError
        If they hold none.

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
    try:
        try:
            decoded = _terse_decoder.decode(data)
        except msgspec.ValidationError as error:
            if str(error) != _NO_TYPE:
                raise
            decoded = _typeless[kind].decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise DecodeError(explain(data, error, INPUT_TYPES, kind)) from None
    if decoded.version != 1:
        raise DecodeError(explain(data, msgspec.ValidationError(), INPUT_TYPES, kind))
    if decoded.key is None:
        decoded.key = key
    _fill_in(decoded, name, at)
    return _message(decoded, _TERSE_BACK)  # type: ignore[no-any-return]


def _fill_in(terse: Any, name: str, at: float) -> None:
    kind = terse.__struct_config__.tag
    if kind == "event":
        if terse.event_id is msgspec.UNSET:
            terse.event_id = name
        if terse.occurred_at is msgspec.UNSET:
            terse.occurred_at = at
    elif kind == "answer":
        if terse.answer_id is msgspec.UNSET:
            terse.answer_id = name
        if terse.answered_at is msgspec.UNSET:
            terse.answered_at = at
        if terse.event_id is msgspec.UNSET:
            terse.event_id = _asked_about(terse.request_id)
    elif terse.at is msgspec.UNSET:
        terse.at = at


def _asked_about(request_id: str | None) -> str:
    event_id = None if request_id is None else event_id_of(request_id)
    if event_id is None:
        raise DecodeError(
            "answer: field 'event_id' is missing, and no request tells it, "
            f"got request_id {request_id!r:.80}"
        )
    return event_id


def _check(data: bytes, max_bytes: int) -> None:
    """Refuse bytes before anything is made of them: too many, not UTF-8, nested too deep."""
    if len(data) > max_bytes:
        raise DecodeError(f"message must have at most {max_bytes} bytes, got {len(data)}")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(
                f"message must be UTF-8, got the byte 0x{data[error.start]:02x} "
                f"at position {error.start}"
            ) from None
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _too_deep(data):
        raise DecodeError(f"message must not nest deeper than {MAX_DEPTH}, got more")


def _message(decoded: Any, back: dict[Any, Any]) -> Any:
    try:
        return back[type(decoded)](decoded)
    except ValueError as error:
        raise DecodeError(f"{decoded.__struct_config__.tag}: {error}") from None


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
