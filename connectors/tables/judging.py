"""What a column holds, judged by its first cells: numbers, texts, or nothing to learn from.

A column holds numbers if at least half of its cells do; else what most of the others are decides. A
text that stands in one row only says nothing about any other, so a column of texts that hardly ever
repeat is no feature. Nor is a number that rises with every row, as row numbers and times do: what
is learned of its past values holds for none to come.

"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import Enum
from itertools import pairwise
from typing import Any

from connectors.tables.cells import float_of_text, is_number, time_of

ENOUGH = 20
"""Cells from which on it can be said that hardly any is like another."""

MOST_DIFFERENT = 0.9
"""Share of different values up to which a column says something about other rows."""

_POSIX = 1e9  # seconds since 1970 in 2001: times may have fractions, counters do not


class Kind(Enum):
    """What a column holds."""

    EMPTY = "nothing yet"
    NUMBER = "numbers"
    TEXT = "texts"
    RISING = "a number that rises with every row"
    TIME = "times"
    UNIQUE = "a different text in nearly every row"
    OTHER = "neither numbers nor texts"


def kind_of(cells: Sequence[Any]) -> Kind:
    """Return what a column holds.

    Parameters
    ----------
    cells
        Its first cells, without the missing ones, in order.

    Examples
    --------
    >>> kind_of(["0.5", "3", "warm"]), kind_of(["hall", "bath", "2"])
    (<Kind.NUMBER: 'numbers'>, <Kind.TEXT: 'texts'>)
    >>> kind_of(["2015-02-02 14:19:00", "2015-02-02 14:20:00"])
    <Kind.TIME: 'times'>
    >>> kind_of([f"u{n}" for n in range(100)]), kind_of([f"u{n % 50}" for n in range(100)])
    (<Kind.UNIQUE: 'a different text in nearly every row'>, <Kind.TEXT: 'texts'>)

    """
    if not cells:
        return Kind.EMPTY
    others = [cell for cell in cells if not is_number(cell)]
    if 2 * len(others) <= len(cells):
        return Kind.RISING if _rises(cells) else Kind.NUMBER
    if 2 * sum(map(_is_time, others)) > len(others):
        return Kind.TIME
    texts = [cell for cell in others if isinstance(cell, str)]
    if 2 * len(texts) <= len(others):
        return Kind.OTHER
    return Kind.UNIQUE if _differ([text.strip() for text in texts]) else Kind.TEXT


def _differ(values: Sequence[Any]) -> bool:
    return len(values) >= ENOUGH and len(set(values)) > MOST_DIFFERENT * len(values)


def _rises(cells: Sequence[Any]) -> bool:
    """Whether cells are whole numbers, or times, of which hardly any is the last one again."""
    numbers = []
    for cell in cells:
        try:
            number = float_of_text(cell) if isinstance(cell, str) else float(cell)
        except (TypeError, ValueError, OverflowError):
            return False
        if number is None or not (number >= _POSIX or float(number).is_integer()):
            return False
        numbers.append(number)
    return _differ(numbers) and all(a <= b for a, b in pairwise(numbers))


def _is_time(cell: Any) -> bool:
    if isinstance(cell, date):
        return True
    if not isinstance(cell, str):
        return False
    try:
        time_of(cell)
    except ValueError:
        return False
    return True
