"""Validation of plain data against declared types, with messages that tell users what to do.

msgspec converts; before that, `check` walks the same types and reports the first mistake: its key,
the value found and what is allowed. Nothing here knows what the keys mean.

A type may specify in `Meta(extra=...)` how its values are described (`expected`: a string), and
that a wrong one may be a password and must not be repeated (`secret`: True). A class that msgspec
does not know has two class methods: `check(value, path)`, like `check` here, and `convert(value)`.

"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from streamgp.common.printable import printable

T = TypeVar("T", bound=msgspec.Struct)


class ConfigError(ValueError):
    """A setting is wrong; the message names it, its value and what is allowed."""


class _UnknownKeyError(ConfigError):
    """There is a setting that its section does not know."""

    def __init__(self, message: str, key: str, value: object) -> None:
        super().__init__(message)
        self.key = key
        self.value = value


def convert(data: object, cls: type[T], *, source: str) -> T:
    """Check plain data against a struct and return the struct.

    Parameters
    ----------
    source
        Where the data comes from (a file, an option); every message begins with it.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value has the wrong type or is out of range.

    Examples
    --------
    >>> class Annotator(msgspec.Struct, forbid_unknown_fields=True):
    ...     delay: float = 0.0
    >>> convert({"delay": 300}, Annotator, source="my.toml").delay
    300.0
    >>> convert({"dealy": 300}, Annotator, source="my.toml")
    Traceback (most recent call last):
    streamgp.config.validation.ConfigError: my.toml: dealy is not ...

    """
    kind = type_of(cls)
    try:
        check(data, kind, "")
    except _UnknownKeyError as error:
        raise ConfigError(f"{source}: {error}{_place_of(error, kind)}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    return msgspec.convert(data, cls, dec_hook=converted)


def _place_of(error: _UnknownKeyError, kind: inspect.Type) -> str:
    """Return where the whole configuration has the setting; "" if it would not be right there."""
    fields = kind.fields if isinstance(kind, inspect.StructType) else ()
    for field in fields:
        if field.encode_name == error.key:
            if _is_section(field.type):
                return f"; {error.key} is a section of its own, [{error.key}]"
            try:
                check(error.value, field.type, error.key)
            except ConfigError:
                return ""
            # In TOML, what follows a section belongs to it.
            return f"; {error.key} belongs above the first section"
    return ""


def _is_section(kind: inspect.Type) -> bool:
    kinds = _without_none(kind) if isinstance(kind, inspect.UnionType) else [kind]
    sections = inspect.StructType | inspect.CustomType | inspect.DictType
    return any(isinstance(one, sections) for one in kinds)


@cache
def type_of(cls: Any) -> inspect.Type:
    """Return the type that `check` walks; for a whole configuration, finding it takes 2 ms."""
    return inspect.type_info(cls)


def converted(cls: type, value: object) -> object:
    """Convert data to a class that msgspec does not know; for `msgspec.convert`."""
    return cls.convert(value)  # type: ignore[attr-defined]


def check(value: object, kind: inspect.Type, path: str) -> None:
    """Raise ConfigError, beginning with the key path, if `value` is not of the type `kind`."""
    if _is_uncountable(value, kind):
        raise not_allowed(path, value, f"a whole number of at most {sys.maxsize}")
    if isinstance(kind, inspect.Metadata):
        if not _fits(value, kind.type):
            if (kind.extra or {}).get("secret"):
                raise ConfigError(f"{path} is not allowed, expected {expected(kind)}")
            raise not_allowed(path, value, expected(kind))
        return
    if isinstance(kind, inspect.UnionType):
        # TOML has no null: the value of an `X | None` must be an X.
        kinds = _without_none(kind)
        if len(kinds) > 1:
            if not any(_fits(value, simple) for simple in kinds):
                raise not_allowed(path, value, expected(kind))
            return
        check(value, kinds[0], path)
        return
    if isinstance(kind, inspect.StructType):
        _check_struct(value, kind, path)
    elif isinstance(kind, inspect.CustomType):
        cls: Any = kind.cls
        cls.check(value, path)
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType):
        if not isinstance(value, list):
            raise not_allowed(path, value, expected(kind))
        if isinstance(kind, inspect.VarTupleType) and len(value) < (kind.min_length or 0):
            raise not_allowed(path, value, expected(kind))
        for i, item in enumerate(value):
            check(item, kind.item_type, f"{path}[{i}]")
    elif isinstance(kind, inspect.DictType) and isinstance(kind.value_type, inspect.StructType):
        if not isinstance(value, dict):
            raise not_allowed(path, value, expected(kind))
        for key, item in value.items():
            if not _fits(key, kind.key_type):
                raise not_allowed(f"the name of a section in {path}", key, expected(kind.key_type))
            check(item, kind.value_type, _join(path, key))
    elif not _fits(value, kind):
        names = map(str, kind.values) if isinstance(kind, inspect.LiteralType) else ()
        raise not_allowed(path, value, expected(kind), names)


def _check_struct(value: object, kind: inspect.StructType, path: str) -> None:
    if not isinstance(value, dict):
        raise not_allowed(path, value, f"a section [{path}]")
    fields = {field.encode_name: field for field in kind.fields}
    tag = [kind.tag_field] if kind.tag_field is not None else []
    for key, item in value.items():
        if key in fields:
            check(item, fields[key].type, _join(path, key))
        elif key not in tag:
            message = unknown(_join(path, key), key, [*tag, *fields])
            raise _UnknownKeyError(message, key, item)
    for key, field in fields.items():
        if field.required and key not in value:
            raise ConfigError(f"{_join(path, key)} is missing, expected {expected(field.type)}")


def _is_uncountable(value: object, kind: inspect.Type) -> bool:
    """Whether an integer is a count, and larger than `sys.maxsize`."""
    kinds = _without_none(kind) if isinstance(kind, inspect.UnionType) else [kind]
    counts = any(isinstance(one, inspect.IntType) for one in kinds)
    measures = any(isinstance(one, inspect.FloatType) for one in kinds)
    return counts and not measures and type(value) is int and abs(value) > sys.maxsize


def _without_none(kind: inspect.UnionType) -> list[inspect.Type]:
    return [t for t in kind.types if not isinstance(t, inspect.NoneType)]


def _fits(value: object, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.AnyType):
        return True
    if isinstance(kind, inspect.BoolType):
        return isinstance(value, bool)
    if isinstance(kind, inspect.IntType):
        return type(value) is int and _in_range(value, kind)
    if isinstance(kind, inspect.FloatType):
        # An integer may stand for a float; one too large for that compares as infinite.
        if not isinstance(value, int | float) or isinstance(value, bool):
            return False
        return abs(value) <= sys.float_info.max and _in_range(value, kind)
    if isinstance(kind, inspect.StrType):
        return (
            isinstance(value, str)
            and (kind.min_length or 0) <= len(value)
            and (kind.max_length is None or len(value) <= kind.max_length)
            and (kind.pattern is None or re.search(kind.pattern, value) is not None)
        )
    if isinstance(kind, inspect.LiteralType):
        return isinstance(value, str) and value in kind.values
    if isinstance(kind, inspect.DictType):
        return isinstance(value, dict)
    raise TypeError(f"no check for values of type {kind!r}")


def _in_range(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    return (
        (kind.ge is None or value >= kind.ge)
        and (kind.gt is None or value > kind.gt)
        and (kind.le is None or value <= kind.le)
        and (kind.lt is None or value < kind.lt)
    )


def expected(kind: inspect.Type) -> str:
    """Return in words which values a type allows.

    Examples
    --------
    >>> expected(inspect.FloatType(ge=0, le=1))
    'a number from 0 to 1'

    """
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra or {}).get("expected") or expected(kind.type))
    if isinstance(kind, inspect.UnionType):
        kinds = _without_none(kind)
        if len(kinds) == 1 or any(isinstance(each, inspect.LiteralType) for each in kinds):
            return ", or ".join(map(expected, kinds))
        return "a string, a number, true or false"
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        noun = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        if kind.ge is not None and kind.le is not None:
            return f"{noun} from {kind.ge} to {kind.le}"
        signs = {">=": kind.ge, ">": kind.gt, "<=": kind.le, "<": kind.lt}
        limits = [f"{sign} {limit}" for sign, limit in signs.items() if limit is not None]
        return " ".join([noun, " and ".join(limits)]).strip()
    if isinstance(kind, inspect.LiteralType):
        return one_of(str(value) for value in kind.values)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        if isinstance(kind.item_type, inspect.CustomType):
            return "sections"
        if isinstance(kind.item_type, inspect.UnionType):
            return 'a list of labels, ["like", "this"] or [1, 2]'
        if isinstance(kind.item_type, inspect.ListType | inspect.VarTupleType):
            return 'a list of lists of strings, [["like", "this"]]'
        return 'a list of strings, ["like", "this"]'
    if isinstance(kind, inspect.DictType) and isinstance(kind.value_type, inspect.StructType):
        return "sections, each with a name"
    if isinstance(kind, inspect.DictType | inspect.StructType | inspect.CustomType):
        return "a section"
    if isinstance(kind, inspect.AnyType):
        return "any value"
    return "a string"


def one_of(names: Iterable[str]) -> str:
    """List the allowed names: `one of "always", "never"`, or the only one."""
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else "one of " + ", ".join(quoted)


def unknown(path: str, name: str, allowed: Iterable[str]) -> str:
    """Return a message: a name is not known, which one was probably meant, which are allowed."""
    names = list(allowed)
    near = nearest(name, names)
    hint = f", {near}" if near else ""
    return f"{path} is not known{hint} (allowed: {', '.join(names) or 'nothing'})"


def nearest(name: object, names: Iterable[str]) -> str:
    """Return a hint at the most similar name; an empty string if none is similar.

    Examples
    --------
    >>> nearest("entropi", ["random", "entropy"]), nearest("x", ["random", "entropy"])
    ('did you mean "entropy"?', '')

    """
    near = difflib.get_close_matches(name, list(names), n=1) if isinstance(name, str) else []
    return f'did you mean "{near[0]}"?' if near else ""


def shown(value: object) -> str:
    """Return a value in TOML syntax, on one line and shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = printable(value.replace("\\", "\\\\"))
        return f'"{text if len(text) <= 60 else text[:57] + "..."}"'
    if isinstance(value, Mapping):
        return "a section"
    if isinstance(value, list):
        return "a list" if value else "[]"
    try:
        text = str(value)
    except ValueError:  # Python writes no integer of more than 4300 digits in decimal
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def not_allowed(path: str, value: Any, what: str, names: Iterable[str] = ()) -> ConfigError:
    """Return an error: a value is not allowed, what is, which of some names was probably meant."""
    near = nearest(value, names)
    hint = f"; {near}" if near else ""
    return ConfigError(f"{path} = {shown(value)} is not allowed, expected {what}{hint}")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def is_host(host: str) -> bool:
    """Whether a text can be looked up as a host; for others the system raises a different error."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return host.isprintable()


def parse_bind(text: str) -> tuple[str, int]:
    """Return host and port of an address.

    Raises
    ------
    ValueError
        If the text is not an address.

    Examples
    --------
    >>> parse_bind("127.0.0.1:8080"), parse_bind("[::1]:0"), parse_bind(":8080")
    (('127.0.0.1', 8080), ('::1', 0), ('0.0.0.0', 8080))

    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if not colon or not is_port or not is_host(host):
        raise ValueError(
            f"expected HOST:PORT, as in 127.0.0.1:8080 or [::1]:8080, got {text!r:.80}"
        )
    return host or "0.0.0.0", int(port)
