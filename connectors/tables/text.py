"""Rows of text files: CSV with a header, and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from connectors.tables.rows import BadRow, Row, Rows, refuse_duplicates
from connectors.tables.streams import DAMAGES, BinaryFile, TableError

MAX_LINE = 1 << 24
_MAX_OVER_LINES = 1 << 17


class _Lines:
    """The lines of a text file; how many there were, and which of them are not UTF-8."""

    def __init__(self, file: BinaryFile) -> None:
        self.number = 0
        self.damaged: set[int] = set()
        self._file = file

    def __iter__(self) -> Iterator[str]:
        # bounded, so that a file without line ends is not read into memory
        for data in iter(partial(self._file.stream.readline, MAX_LINE), b""):
            self.number += 1
            if len(data) == MAX_LINE:
                raise TableError(
                    f"{self._file.path}: line {self.number} has more than {MAX_LINE} bytes; "
                    "expected one row on each line"
                )
            try:
                line = data.decode()
            except UnicodeDecodeError:
                self.damaged.add(self.number)
                line = data.decode(errors="replace")
            yield line.removeprefix("\ufeff") if self.number == 1 else line


class CsvTable:
    """Rows of CSV with a header; the delimiter is the comma, semicolon or tab of the header."""

    typed = False

    def __init__(self, file: BinaryFile) -> None:
        self._file = file
        self._lines = _Lines(file)
        self._columns, self.unnamed = self._read_header()
        self.columns: list[str] | None = self._columns

    def _read_header(self) -> tuple[list[str], list[str]]:
        path = self._file.path
        lines = map(_with_room, self._lines)
        first = next((line for line in lines if line.strip()), None)
        if first is None:
            raise TableError(f"{path} is empty; expected a table with a header and rows")
        if self._lines.damaged:
            raise TableError(f"{path} is not UTF-8 text; save it as UTF-8")
        # the most frequent one; the earlier of equals
        delimiter = max(",;\t", key=first.count)
        self._reader = csv.reader(
            chain([first], lines), delimiter=delimiter, skipinitialspace=True, strict=True
        )
        try:
            header = [name.strip() for name in next(self._reader)]
        except csv.Error as error:
            raise TableError(f"{path} has an unreadable header: {error}") from None
        if all(_is_number(name) for name in header):
            raise TableError(
                f"{path} has no header, its first line is {first.strip()!r:.80}; "
                "name the columns in the first line"
            )
        unnamed = [f"column {i}" for i, name in enumerate(header, 1) if not name]
        columns = [name or f"column {i}" for i, name in enumerate(header, 1)]
        refuse_duplicates(columns, path)
        return columns, unnamed

    def rows(self) -> Rows:
        """Read the rows; blank lines are skipped."""
        lines, reader, columns = self._lines, self._reader, self._columns
        width, number = len(columns), 0
        while True:
            start = lines.number + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                number += 1
                yield BadRow(number, start, lines.number, f"is not CSV: {_plain(error)}")
                continue
            except DAMAGES as error:
                raise self._file.damaged(number, error) from None
            if not cells or (len(cells) == 1 and width > 1 and not cells[0].strip()):
                continue
            number += 1
            end = lines.number
            if lines.damaged:
                lines.damaged.clear()
                yield BadRow(number, start, end, "is not UTF-8 text")
            elif len(cells) != width:
                yield BadRow(number, start, end, f"has {len(cells)} cells, expected {width}")
            else:
                yield Row(number, start, end, dict(zip(columns, cells, strict=True)))

    @property
    def progress(self) -> float:
        """Share of the file that has been read."""
        return self._file.progress

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class JsonTable:
    """Rows of JSON lines: one object on each line."""

    typed = True

    def __init__(self, file: BinaryFile) -> None:
        self._file = file
        self._lines = _Lines(file)
        self.columns: list[str] | None = None
        self.unnamed: list[str] = []

    def rows(self) -> Rows:
        """Read the rows; blank lines are skipped."""
        number = 0
        lines = iter(self._lines)
        decode = msgspec.json.Decoder().decode
        while True:
            try:
                line = next(lines)
            except StopIteration:
                return
            except DAMAGES as error:
                raise self._file.damaged(number, error) from None
            if not line.strip():
                continue
            number += 1
            at = self._lines.number
            if self._lines.damaged:
                self._lines.damaged.clear()
                yield BadRow(number, at, at, "is not UTF-8 text")
                continue
            try:
                cells = decode(line)
            except (ValueError, RecursionError):
                cells = _decode_slowly(line)
            if isinstance(cells, dict):
                yield Row(number, at, at, cells)
            else:
                yield BadRow(number, at, at, f"is not a JSON object: {line.strip()!r:.80}")

    @property
    def progress(self) -> float:
        """Share of the file that has been read."""
        return self._file.progress

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _with_room(line: str) -> str:
    """Let a cell be as long as its line, which is given to `csv` at once.

    The limit of `csv` is one for all readers, and low: a long text, though left out, would cost its
    row. It stays as it is for cells over several lines, or else a quote that is not closed would
    swallow thousands of rows.
    """
    csv.field_size_limit(max(_MAX_OVER_LINES, len(line)))
    return line


def _decode_slowly(line: str) -> Any:
    """Decode a line that may hold NaN or Infinity, as the standard library writes them."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain(error: csv.Error) -> str:
    text = str(error)
    if text.startswith("field larger"):
        return f"{text}, is a quote missing?"
    if text == "unexpected end of data":
        return "a quote is not closed"
    return text
