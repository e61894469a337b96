"""Message <-> bytes: JSON, versioned, the same bytes for the same message.

Every message is one JSON object with its `type`, `version` 1 and the fields of its dataclass in
their order; fields at their default are left out:

    {"type":"answer","version":1,"answer_id":"a1","event_id":"e1","y":"home","answered_at":60.0}

How labels, feature names and probabilities keep their types is told in `connectors.wire`. Readers
ignore fields they do not know and refuse versions they do not know. Nothing that cannot be read
back is written: no NaN, no infinity, no integer beyond 64 bits, nothing too large or too deep.

"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isfinite
from typing import Any, Union, get_args, get_type_hints

import msgspec

from connectors.scalars import LARGEST, MAX_DEPTH, SMALLEST
from connectors.wire import Shape
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

MAX_INPUT_BYTES = 1 << 20
"""What an event or an answer may have at most."""
MAX_BYTES = 1 << 24
"""What any message may have at most: a challenge repeats the features of four events."""
_LONGEST_REASON = 500
_NOWHERE = object()

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

_SHAPES = {kind: Shape(kind, tag) for tag, kind in TYPES.items()}
_BACK = {shape.struct: shape.back for shape in _SHAPES.values()}
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Union[tuple(_BACK)])  # noqa: UP007
_encoder = msgspec.json.Encoder()

# one token of JSON: a text (closed or not), or a bracket; possessive, so that no input is slow
_BRACKETS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|([\[{])|[\]}]', re.DOTALL)
_EXPECTED = re.compile(r"Expected (.+?)(?:, got .+)?")
_MISSING = re.compile(r"Object missing required field `(.+?)`(?: - at `\$\.?(.*)`)?")


class DecodeError(ValueError):
    """Bytes that are no message; its text names the field, the value and what was expected.

    It is one line of at most 500 printable characters, fit for logs, terminals and dead letters.
    """

    def __init__(self, reason: str) -> None:
        if len(reason) > _LONGEST_REASON:
            reason = reason[: _LONGEST_REASON - 3] + "..."
        if not reason.isprintable():
            reason = "".join(c if c.isprintable() else repr(c)[1:-1] for c in reason)
        super().__init__(reason)


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
    shape = _SHAPES.get(type(message))
    if shape is None:
        raise TypeError(f"message must be one of {_kinds()}, got {type(message).__name__}")
    try:
        data = _encoder.encode(shape.out(message))
    except UnicodeEncodeError as error:
        raise ValueError(f"text must be valid Unicode, got {error.object!r:.80}") from None
    except (AttributeError, ValueError) as error:
        raise ValueError(f"{shape.head['type']}: {error}") from None
    most = MAX_INPUT_BYTES if isinstance(message, Event | Answer) else MAX_BYTES
    if len(data) > most:
        raise ValueError(f"message must have at most {most} bytes, got {len(data)}")
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
    connectors.codec.DecodeError: label.cancel: version must be 1, got 2

    """
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
    try:
        decoded = _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise DecodeError(_explain(data, error)) from None
    if decoded.version != 1:
        raise DecodeError(_explain(data, msgspec.ValidationError()))
    try:
        return _BACK[type(decoded)](decoded)  # type: ignore[no-any-return]
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


def _explain(data: bytes, error: Exception) -> str:
    """Say what is wrong with bytes that the decoder refused."""
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
    tag = plain.get("type")
    if "type" not in plain:
        return f"type must be one of {', '.join(TYPES)}, got none"
    if not isinstance(tag, str) or tag not in TYPES:
        return f"type must be one of {', '.join(TYPES)}, got {_show(tag)}"
    if "version" not in plain:
        return f"{tag}: version must be 1, got none"
    if plain["version"] != 1 or plain["version"] is True:
        return f"{tag}: version must be 1, got {_show(plain['version'])}"
    if missing := _MISSING.fullmatch(str(error)):
        where = f" of {missing[2]}" if missing[2] else ""
        return f"{tag}: field {missing[1]!r}{where} is missing"
    where, _, path = str(error).partition(" - at `$.")
    out_of_range = where == "Number out of range"
    path, value = _follow(plain, path.rstrip("`"), _is_finite if out_of_range else _is_scalar)
    if expected := _EXPECTED.fullmatch(where):
        kinds = expected[1].replace("`", "").replace(" | ", " or ")
        return f"{tag}: {path or 'message'} must be {kinds}, got {_show(value)}"
    if where.startswith("Invalid enum value"):
        kinds = ", ".join(get_args(get_type_hints(TYPES[tag])[path]))
        return f"{tag}: {path} must be one of {kinds}, got {_show(value)}"
    if out_of_range:
        return f"{tag}: {path} must be finite, got a number beyond 1.8e308"
    return f"{tag}: {where}"


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
                path = path.replace("[...]", f"[{_cut(repr(step))}]", 1)
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
    return "another value" if value is _NOWHERE else _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
