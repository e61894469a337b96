"""What a row of a file is, good or bad, and what all readers of rows refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from connectors.tables.streams import TableError


class Row(NamedTuple):
    """One row: its number from 1, its first and last line (0 where there are none), its cells."""

    number: int
    start: int
    end: int
    cells: dict[str, Any]


class BadRow(NamedTuple):
    """A row that cannot be read: its number from 1, its first and last line, and why."""

    number: int
    start: int
    end: int
    reason: str


def place_of(row: Row | BadRow) -> str:
    """Say where a row stands.

    Examples
    --------
    >>> [place_of(BadRow(7, *lines, "")) for lines in [(8, 8), (8, 9), (0, 0)]]
    ['line 8', 'lines 8 to 9', 'row 7']

    """
    if not row.start:
        return f"row {row.number}"
    return f"line {row.start}" if row.start == row.end else f"lines {row.start} to {row.end}"


Rows: TypeAlias = Iterator[Row | BadRow]


def refuse_duplicates(columns: list[str], path: Path) -> None:
    """Refuse a table two of whose columns have the same name."""
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise TableError(f"{path} has several columns named {twice[0]!r}; rename all but one")
