"""Reasons why bytes are not a message, in a short line: which field is wrong, what was expected.

Speed does not matter here: the decoder has already refused, and one bad message is read again to
find the culprit. The contents of the bytes are shown, but shortened, and never as control
characters.

"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from math import isfinite
from typing import Any, get_args, get_type_hints

import msgspec

from streamgp.common.printable import printable
from streamgp.interactive.messages import MOST_IN_EXCERPT

SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""Range of integers that can be written."""

_LONGEST = 500
_MOST_UNKNOWN = 3
_LONGEST_NAME = 40  # twice as long as any field's; to compare one of megabytes takes seconds
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
    text = shortened(text, _LONGEST)
    return shortened(printable(text), _LONGEST)


def shortened(text: str, most: int = 80) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= most else text[: most - 3] + "..."


def explain_zero(data: bytes) -> str:
    r"""Return what is wrong with bytes of which one is zero, be they UTF-8 or not.

    Examples
    --------
    >>> explain_zero(b"\0\0\0\0\1{}")
    'message must be JSON in UTF-8, got a zero byte at position 0, as serializers of a schema ...

    """
    return (
        f"message must be JSON in UTF-8, got a zero byte at position {data.index(0)}, as "
        "serializers of a schema registry write it, and UTF-16"
    )


def explain(
    data: bytes, error: Exception, types: Mapping[str, type], kind: str | None = None
) -> str:
    """Return what is wrong with bytes that the decoder refused.

    Parameters
    ----------
    types
        The messages that they may contain, by the name of their type.
    kind
        Type of a message that does not tell it; None if it must.

    Examples
    --------
    >>> explain(b"[1, 2]", msgspec.ValidationError(), {})
    'message must be a JSON object, got [1, 2]'

    """
    if not data.strip():
        return "message must be JSON, got nothing"
    if data.startswith(BOM_UTF8):
        return "message must be JSON, got a byte order mark before it"
    if 0 in data:
        return explain_zero(data)
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


def misspelt_fields(data: bytes | None, types: Iterable[type]) -> str:
    """Return which fields of a refused message may be misspelt, to be added to the reason.

    Other fields that no type has are no fault. For a message that shows by no field what it is,
    say which ones would.

    Parameters
    ----------
    types
        The messages that it may be.

    Examples
    --------
    >>> from streamgp.interactive import Answer, Event
    >>> misspelt_fields(b'{"kee": "ann", "x": {}}', [Event, Answer])
    "; unknown field 'kee', did you mean 'key'?"
    >>> misspelt_fields(b'{"key": "ann", "y": 1}', [Event, Answer])
    '; an event has x, an answer has request_id or event_id'

    """
    try:
        found = msgspec.json.decode(data or b"", type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ""
    known = {"type", "version", *(field.name for kind in types for field in fields(kind))}
    told = ""
    short = [name for name in found if name not in known and len(name) <= _LONGEST_NAME]
    for name in short[:_MOST_UNKNOWN]:
        if near := get_close_matches(name.lower(), known - found.keys(), n=1):
            told += f"; unknown field {shortened(repr(name), 40)}, did you mean {near[0]!r}?"
    is_clear = not found.keys().isdisjoint({"type", "x", "event_id", "request_id"})
    return told + ("" if is_clear else "; an event has x, an answer has request_id or event_id")


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
    is_good = _is_channel if path.startswith("excerpt") else _is_scalar
    path, value = _follow(plain, path.rstrip("`"), all_finite if out_of_range else is_good)
    if expected := _EXPECTED.fullmatch(what):
        kinds = expected[1].replace("`", "").replace(" | ", " or ")
        if path.endswith("_at"):
            kinds = kinds.replace("float", "POSIX seconds")
        return f"{path or 'message'} must be {kinds}, got {_show(value)}"
    hints = get_type_hints(kind)
    if what.startswith("Invalid enum value") and path in hints:
        kinds = ", ".join(get_args(hints[path]))
        return f"{path} must be one of {kinds}, got {_show(value)}"
    if out_of_range:
        return f"{path} must be finite, got a number beyond 1.8e308"
    return what


class _NotFiniteError(Exception):
    pass


def _refuse_constant(name: str) -> None:
    raise _NotFiniteError(name)


def _follow(value: Any, path: str, is_good: Callable[[Any], bool]) -> tuple[str, Any]:
    """Find the value at a path of msgspec's, where `[...]` is the first name of a bad value.

    If a name is given twice, the value may be missing.
    """
    for step in re.findall(r"[^.\[\]]+|\.\.\.", path):
        if step == "..." and isinstance(value, dict):
            found = [name for name, v in value.items() if not is_good(v)][:1]
            for step in found:
                path = path.replace("[...]", f"[{shortened(repr(step))}]", 1)
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (LookupError, TypeError, ValueError):
            return path, _NOWHERE
    return path, value


def all_finite(value: Any) -> bool:
    """Return whether all numbers at any depth are finite."""
    if isinstance(value, dict | list | tuple):
        return all(map(all_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or isfinite(value)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, bool | str):
        return True
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and SMALLEST <= value <= LARGEST


def _is_channel(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_IN_EXCERPT
        and all(isinstance(v, int | float | None) and not isinstance(v, bool) for v in value)
    )


def _show(value: Any) -> str:
    return (
        "another value" if value is _NOWHERE else shortened(json.dumps(value, ensure_ascii=False))
    )
