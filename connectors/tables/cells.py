"""Cells of a table: numbers, text, times, labels and keys.

A missing cell (empty, null or NaN) is None; an invalid cell raises `ValueError` with a text that
continues after the column's name. Text cells come from CSV, typed ones from JSON lines and Parquet.

"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

from streamgp.base import Label
from streamgp.interactive.validation import LARGEST_LABEL

_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?\s*")
# What follows the number must not begin like a date, time, fraction or version.
_WITH_UNIT = re.compile(r"\s*[+-]?[0-9]+(?:[.,][0-9]+)?\s?([^\s0-9.,:;/_+-]\S{0,7})\s*")
# Several groups, or one and a fraction behind another sign: in 1,234 the comma may be decimal.
_THOUSANDS = re.compile(
    r"\s*[+-]?[0-9]{1,3}(?:([.,'’ \u00a0\u202f])[0-9]{3}(?:\1[0-9]{3})+(?:(?!\1)[.,][0-9]+)?"
    r"|([.,'’ \u00a0\u202f])[0-9]{3}(?!\2)[.,][0-9]+)\s*"
)
_LARGEST = 2**63 - 1
_BOOLEANS = {"true": 1, "false": 0}
# What programs write in place of a number. In a text column each may be a value, such as the fault
# code "none".
_NO_NUMBER = (
    frozenset(["na", "n/a", "n.a.", "#n/a", "null", "(null)", "none", "nil", "-", "--", ".", "?"])
    | {"\\n", "unknown", "unavailable", "missing", "1.#qnan", "-1.#ind"}
    | {"#div/0!", "#value!", "#ref!", "#num!", "#null!", "#name?"}
)


def is_missing(cell: Any) -> bool:
    """Return whether a cell is empty.

    Examples
    --------
    >>> [is_missing(cell) for cell in (None, " ", float("nan"), "NaN", 0, "0")]
    [True, True, True, True, False, False]

    """
    if cell is None:
        return True
    if isinstance(cell, str):
        text = cell.strip()
        return not text or text.lower() == "nan"
    return isinstance(cell, float | Decimal) and cell != cell


def is_no_number(cell: Any) -> bool:
    """Return whether a cell is missing, or a placeholder for a missing number.

    Examples
    --------
    >>> [is_no_number(cell) for cell in ("", "NA", "n/a", "?", "warm", "0")]
    [True, True, True, True, False, False]

    """
    return is_missing(cell) or (isinstance(cell, str) and cell.strip().lower() in _NO_NUMBER)


def is_number(cell: Any) -> bool:
    """Return whether a cell that is not missing holds a number, finite or not, or a boolean.

    Examples
    --------
    >>> [is_number(cell) for cell in (3, "-0.5", "true", "inf", "warm", "1_000", [])]
    [True, True, True, True, False, False, False]

    """
    if isinstance(cell, str):
        return cell.strip().lower() in _BOOLEANS or _is_float(cell)
    return isinstance(cell, bool | int | float | Decimal)


def is_integer_text(text: str) -> bool:
    """Return whether text is an integer in its standard form: `-7`, not `007` or `1_000`."""
    return _INTEGER.fullmatch(text.strip()) is not None


def with_point(cell: str) -> str:
    """Return text with a decimal comma replaced by a point; other text unchanged.

    Examples
    --------
    >>> [with_point(cell) for cell in ("-21,5", "1,5e3", "21", "hall, bath", "1,234,567")]
    ['-21.5', '1.5e3', '21', 'hall, bath', '1,234,567']

    """
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell


def is_decimal_text(cell: object) -> bool:
    """Return whether a cell is text that is a number with a decimal point or comma.

    Examples
    --------
    >>> [is_decimal_text(cell) for cell in ("21.5", "-21,5", 21.5, "007", "1.2.3")]
    [True, True, False, False, False]

    """
    if not isinstance(cell, str):
        return False
    return any(each.fullmatch(cell) is not None for each in (_DECIMAL_POINT, _DECIMAL_COMMA))


def has_decimal_commas(cells: Sequence[Any]) -> bool:
    """Return whether most cells are text that would be a number with a point as decimal sign.

    Examples
    --------
    >>> has_decimal_commas(["-21,5", "7,25", "NA"]), has_decimal_commas(["hall, bath", "1,5"])
    (True, False)

    """
    n = sum(isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell) is not None for cell in cells)
    return 2 * n > len(cells)


def first_with_thousands(cells: Sequence[Any]) -> str | None:
    """Return the first number whose thousands are separated, None if most cells are no such number.

    Examples
    --------
    >>> first_with_thousands(["998,5", "1.480,5", "1.473,8"]), first_with_thousands(["1,234,567"])
    ('1.480,5', '1,234,567')
    >>> first_with_thousands(["1,234"]), first_with_thousands(["192.168.0.1"])
    (None, None)

    """
    found = [cell for cell in cells if isinstance(cell, str) and _THOUSANDS.fullmatch(cell)]
    return found[0] if 2 * len(found) > len(cells) else None


def first_with(sign: str, cells: Sequence[Any]) -> str | None:
    """Return the first cell that is a number with a decimal comma or point, None without one.

    Examples
    --------
    >>> first_with(",", ["7", "0.5", "1,234"]), first_with(".", ["7", "0.5", "1,234"])
    ('1,234', '0.5')

    """
    pattern = _DECIMAL_COMMA if sign == "," else _DECIMAL_POINT
    found = (cell for cell in cells if isinstance(cell, str) and pattern.fullmatch(cell))
    return next(found, None)


def first_with_unit(cells: Sequence[Any]) -> str | None:
    """Return the first number with the unit of most cells, None if most have no common unit.

    Examples
    --------
    >>> first_with_unit(["0", "3.4 kg", "12 kg"]), first_with_unit(["45%", "7%", "n/a"])
    ('3.4 kg', '45%')
    >>> first_with_unit(["1st", "2nd"])

    """
    found: dict[str, list[str]] = {}
    for cell in cells:
        if isinstance(cell, str) and not is_number(cell) and (unit := _WITH_UNIT.fullmatch(cell)):
            found.setdefault(unit[1], []).append(cell)
    most = max(found.values(), key=len, default=[])
    return most[0] if 2 * len(most) > len(cells) else None


def recurring_text(cells: Sequence[Any]) -> str | None:
    """Return the most frequent text that is no number or placeholder, None if none recurs.

    Examples
    --------
    >>> recurring_text(["1", "EG", "2", "EG", "NA"]), recurring_text(["1", "warm", "NA", "NA"])
    ('EG', None)

    """
    texts = (c for c in cells if isinstance(c, str) and not is_number(c) and not is_no_number(c))
    [(text, n)] = Counter(texts).most_common(1) or [("", 0)]
    return text if n > 1 else None


def float_of_text(cell: str) -> float | None:
    """Return the number in text, 1 and 0 for true and false.

    Examples
    --------
    >>> [float_of_text(cell) for cell in ("0.5", " 1e3 ", "NaN", "n/a", "TRUE")]
    [0.5, 1000.0, None, None, 1]
    >>> float_of_text("warm")
    Traceback (most recent call last):
    ValueError: must be a number or empty, got 'warm'

    """
    try:
        value = float(cell)
    except ValueError:
        text = cell.strip().lower()
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if is_no_number(text):
            return None
        # A dash that looks like a minus, as some spreadsheets write it.
        hint = "; its minus is U+2212, which is no -" if "\N{MINUS SIGN}" in cell else ""
        raise ValueError(f"must be a number or empty, got {cell!r:.60}{hint}") from None
    if "_" in cell:  # only Python reads 1_000 as a number
        raise ValueError(f"must be a number or empty, got {cell!r:.60}")
    if isfinite(value):
        return value
    if value != value:
        return None
    raise ValueError(f"must be finite, got {cell!r:.60}")


def integer_of_text(cell: str) -> float | None:
    if len(cell) < 18 and "_" not in cell:
        try:
            return int(cell)
        except ValueError:
            pass
    return float_of_text(cell)


def number_of(cell: Any) -> float | None:
    """Return the number in a typed cell.

    Examples
    --------
    >>> [number_of(cell) for cell in (3, 0.5, True, "0.5", float("nan"), None, 10**20)]
    [3, 0.5, 1, 0.5, None, None, 1e+20]

    """
    kind = cell.__class__
    if kind is float:
        if isfinite(cell):
            return cell  # type: ignore[no-any-return]
        if cell != cell:
            return None
        raise ValueError(f"must be finite, got {cell!r}")
    if kind is int:
        if abs(cell) <= _LARGEST:
            return cell  # type: ignore[no-any-return]
        return float_of_text(str(cell))  # no integer of a message, and a float in CSV, too
    if cell is None:
        return None
    if kind is bool:
        return int(cell)
    if kind is str:
        return float_of_text(cell)
    if kind is Decimal:
        return number_of(float(cell))
    raise ValueError(f"must be a number, got {cell!r:.60}")


def time_of(cell: Any) -> float:
    """Return POSIX seconds; a time without a zone is UTC.

    Examples
    --------
    >>> time_of("2015-02-02T14:19:00Z"), time_of("2015-02-02 14:19:00"), time_of("1422886740.5")
    (1422886740.0, 1422886740.0, 1422886740.5)

    """
    try:
        if isinstance(cell, str):
            text = cell.strip()
            at = float(text) if text[-1:].isdigit() and _is_float(text) else _posix(text)
        elif isinstance(cell, datetime):
            at = (cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp()
        elif isinstance(cell, date):
            at = datetime(cell.year, cell.month, cell.day, tzinfo=UTC).timestamp()
        elif isinstance(cell, int | float | Decimal) and not isinstance(cell, bool):
            at = float(cell)
        else:
            at = float("nan")
    except (ValueError, OverflowError):
        at = float("nan")
    if isfinite(at):
        return at
    raise ValueError(
        f"must be POSIX seconds or an ISO 8601 time such as 2026-03-02T14:19:00, got {cell!r:.60}"
    )


def lacks_zone(cell: Any) -> bool:
    """Return whether a time is a date and time of day without a zone.

    Examples
    --------
    >>> [lacks_zone(cell) for cell in ("2026-10-25 02:30", "2026-10-25T02:30Z", "1422886740", 9.0)]
    [True, False, False, False]

    """
    if isinstance(cell, str):
        text = cell.strip()
        return not _is_float(text) and datetime.fromisoformat(text).tzinfo is None
    return isinstance(cell, datetime) and cell.tzinfo is None


def seconds_of(cell: Any) -> float | None:
    """Return POSIX seconds, as `time_of` does, None if the cell is no time."""
    return None if is_missing(cell) else time_of(cell)


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _posix(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def label_of(cell: Any) -> Label | None:
    """Return the label in a typed cell; an integral float is an integer.

    Examples
    --------
    >>> [label_of(cell) for cell in (True, 2.0, "2", float("nan"))]
    [True, 2, '2', None]

    """
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        return _text(cell)
    if isinstance(cell, bool):
        return cell
    if isinstance(cell, int) and abs(cell) <= _LARGEST:
        return cell
    if isinstance(cell, float) and isfinite(cell):
        _check_range(cell)
        return int(cell) if cell.is_integer() and abs(cell) <= 2**53 else cell
    raise ValueError(f"must be a label (text, integer or boolean), got {cell!r:.60}")


def target_of(cell: Any) -> float | None:
    """Return the regression target in a cell; a boolean is not allowed.

    Examples
    --------
    >>> [target_of(cell) for cell in ("21.5", 21, "", None)]
    [21.5, 21.0, None, None]
    >>> target_of("warm")
    Traceback (most recent call last):
    ValueError: must be a number or empty, got 'warm'
    >>> target_of("1e155")
    Traceback (most recent call last):
    ValueError: must be at most 1e+100 in size, got 1e+155

    """
    if isinstance(cell, bool) or (isinstance(cell, str) and cell.strip().lower() in _BOOLEANS):
        raise ValueError(f"must be a number, got {cell!r:.60}")
    number = number_of(cell)
    if number is None:
        return None
    _check_range(number)
    return float(number)


def _check_range(number: float) -> None:
    if abs(number) > LARGEST_LABEL:
        raise ValueError(f"must be at most {LARGEST_LABEL:.0e} in size, got {number!r}")


def key_of(cell: Any) -> str:
    key = _in_words(cell)
    if key is None:
        raise ValueError(f"must be a key (text or integer), got {cell!r:.60}")
    return key


def text_of(cell: Any) -> str | None:
    """Return the text in a cell of a text column; numbers are written as usual.

    Examples
    --------
    >>> [text_of(cell) for cell in (" hall ", "7", 7, 7.0, None, "NaN", " ")]
    ['hall', '7', '7', '7', None, None, None]
    >>> text_of([1])
    Traceback (most recent call last):
    ValueError: must be a string, got [1]

    """
    if is_missing(cell):
        return None
    text = _in_words(cell)
    if text is None:
        raise ValueError(f"must be a string, got {cell!r:.60}")
    return text


def _in_words(cell: Any) -> str | None:
    """Return text, a number or a boolean as text, None for anything else."""
    if isinstance(cell, str):
        return _text(cell)
    if isinstance(cell, float | Decimal) and isfinite(cell) and cell == cell // 1:
        return str(int(cell))
    return str(cell) if isinstance(cell, bool | int | float | Decimal) else None


def _text(cell: str) -> str:
    try:
        cell.encode()
    except UnicodeEncodeError:  # JSON can escape half of a surrogate pair
        raise ValueError(f"must be valid Unicode, got {cell!r:.60}") from None
    return cell.strip()
