"""Checks of plain values given by callers, with the same error messages everywhere.

All functions raise TypeError if a value is of the wrong kind, ValueError if it is out of range.

"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def check_number(name: str, value: float, wanted: str, holds: Callable[[Any], bool]) -> None:
    """Refuse what is not a number, or does not satisfy a condition.

    Parameters
    ----------
    name
        Name of the argument.
    value
        The value passed in.
    wanted
        What it must be, in words.
    holds
        Whether a number satisfies the condition.

    Examples
    --------
    >>> check_number("delta", 2.0, "between 0 and 1", lambda value: 0.0 < value < 1.0)
    Traceback (most recent call last):
    ValueError: delta must be between 0 and 1, got 2.0

    """
    is_number = isinstance(value, Real)
    if not (is_number and _holds(value, holds)):
        error = ValueError if is_number else TypeError
        raise error(f"{name} must be {wanted}, got {_shown(value)}")


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits in decimal
        return "a number of thousands of digits"


def _holds(value: float, holds: Callable[[Any], bool]) -> bool:
    try:
        return holds(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def check_whole(name: str, value: float, least: int, most: int = sys.maxsize) -> int:
    """Return a whole number from `least` to `most`, by default `sys.maxsize`.

    Give `most` where memory or time are claimed in proportion to the number, so that a mistyped one
    is refused before it exhausts the machine.

    True and False are refused, since `max_points=True` would keep one point.

    Examples
    --------
    >>> check_whole("n_models", 10.0, least=1)
    10
    >>> check_whole("n_models", "ten", least=1)
    Traceback (most recent call last):
    TypeError: n_models must be a whole number of at least 1, got 'ten'
    >>> check_whole("n_models", 10**9, least=1, most=1000)
    Traceback (most recent call last):
    ValueError: n_models must be a whole number from 1 to 1000, got 1000000000

    """
    too_many = isinstance(value, Real) and most < value < math.inf
    wanted = f"from {least} to {most}" if too_many else f"of at least {least}"
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number {wanted}, got {value}")
    check_number(
        name,
        value,
        f"a whole number {wanted}",
        lambda n: least <= n <= most and n == int(n),
    )
    return int(value)


def check_flag(name: str, value: object) -> bool:
    """Return a boolean, Python's or numpy's, as Python's.

    Strings are refused, since "no" would count as true.

    Examples
    --------
    >>> check_flag("refit", True)
    True
    >>> check_flag("refit", "no")
    Traceback (most recent call last):
    TypeError: refit must be True or False, got 'no'

    """
    kind = type(value)
    # numpy's by name: the loop, which has such arguments, must load without numpy.
    if (kind.__module__, kind.__name__) not in (("builtins", "bool"), ("numpy", "bool")):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_several(name: str, values: Iterable[T], what: str) -> tuple[T, ...]:
    """Return several values as a tuple.

    A string is refused: it would count as its characters.

    Examples
    --------
    >>> check_several("ignore", ["note", "room"], "columns")
    ('note', 'room')
    >>> check_several("ignore", "note", "columns")
    Traceback (most recent call last):
    TypeError: ignore must be a list of columns, got 'note'

    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of {what}, got {values!r}")
    return tuple(values)


def check_path(name: str, value: str | os.PathLike[str]) -> Path:
    """Return the path of a file or directory.

    A number is refused: it would count as the descriptor of an open file.

    Examples
    --------
    >>> check_path("path", "results/run.jsonl").name
    'run.jsonl'
    >>> check_path("path", 3)
    Traceback (most recent call last):
    TypeError: path must be a string or a pathlib.Path, got 3

    """
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise TypeError(f"{name} must be a string or a pathlib.Path, got {value!r:.80}")
    return Path(value)


def path_in_url(rest: str) -> Path:
    """Return the path after `file://`: as it stands, or of a drive of Windows, `/C:/data`."""
    if sys.platform == "win32" and rest[:1] == "/" and rest[2:3] == ":":
        rest = rest[1:]
    return Path(rest)


def check_bytes(name: str, value: bytes) -> None:
    """Refuse anything but bytes, strings included: their encoding is up to the caller.

    Examples
    --------
    >>> check_bytes("data", b"home")
    >>> check_bytes("data", "home")
    Traceback (most recent call last):
    TypeError: data must be bytes, got 'home'

    """
    if not isinstance(value, bytes | bytearray):
        raise TypeError(f"{name} must be bytes, got {value!r:.80}")


def check_process(number: int, what: str) -> None:
    """Refuse to use what was opened in another process, from which this one was forked.

    Examples
    --------
    >>> check_process(os.getpid(), "the file")
    >>> check_process(0, "the file")
    Traceback (most recent call last):
    RuntimeError: the file was opened before this process was forked; open it in this process

    """
    if os.getpid() != number:
        raise RuntimeError(
            f"{what} was opened before this process was forked; open it in this process"
        )


def check_column(name: str, value: str | None) -> None:
    """Refuse what is not the name of a column; None stands for no column.

    Examples
    --------
    >>> check_column("label", "room")
    >>> check_column("label", 3)
    Traceback (most recent call last):
    TypeError: label must be the name of a column, got 3

    """
    if not (value is None or isinstance(value, str)):
        raise TypeError(f"{name} must be the name of a column, got {value!r}")


def check_up_to(name: str, value: float, most: float, unit: str = "") -> None:
    """Refuse what is not from 0 to `most`; the message appends `unit`."""
    check_number(name, value, f"from 0 to {most:g}{unit}", lambda v: 0.0 <= v <= most)


def check_rate(name: str, value: float) -> None:
    """Refuse what is not between 0 and 1."""
    check_number(name, value, "between 0 and 1", lambda rate: 0.0 <= rate <= 1.0)


def check_forgetting(forgetting: float) -> None:
    """Refuse a share to keep that is not above 0 and at most 1."""
    check_number(
        "forgetting", forgetting, "above 0 and at most 1", lambda share: 0.0 < share <= 1.0
    )


def check_non_negative(name: str, value: float) -> None:
    """Refuse what is negative or not finite."""
    check_number(name, value, "non-negative and finite", lambda v: v >= 0.0 and math.isfinite(v))


def check_positive(name: str, value: float) -> None:
    """Refuse what is not positive and finite, or has no finite inverse."""
    check_number(
        name,
        value,
        "positive and finite",
        lambda v: v > 0.0 and math.isfinite(v) and math.isfinite(1.0 / v),
    )
