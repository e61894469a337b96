"""Rows of a file, as they stand there: CSV, JSON lines and Parquet, plain, gzip or zstd.

A table is read once, from the front, in constant memory. What makes one row unusable becomes a
`BadRow`; what makes the file unusable raises `TableError`. What the cells mean is decided in
`connectors.tables.logs`.

"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from connectors.tables.parquet import ParquetTable
from connectors.tables.rows import Rows
from connectors.tables.streams import DAMAGES, BinaryFile, TableError
from connectors.tables.text import CsvTable, JsonTable

PEEK = 1 << 16


class Table(Protocol):
    """A file of rows."""

    columns: list[str] | None
    """Names of all columns, in order; None where every row brings its own."""

    unnamed: list[str]
    """Columns that had no name, under the names made up for them."""

    typed: bool
    """Whether cells have types; else all are text."""

    def rows(self) -> Rows:
        """Read the rows; may be called once."""
        ...

    @property
    def progress(self) -> float:
        """Share of the file that has been read, from 0 to 1."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


def open_table(path: str | Path) -> Table:
    """Open a file by what it holds, and where that does not tell, by its name.

    Raises
    ------
    TableError
        If the file cannot be read, is empty, or holds no table.

    """
    file = BinaryFile(path)
    try:
        return _open_by_content(file, file.stream.peek(PEEK))
    except DAMAGES as error:
        file.close()
        raise TableError(f"{path} is damaged from the start: {error}; copy it again") from None
    except BaseException:
        file.close()
        raise


def _open_by_content(file: BinaryFile, head: bytes) -> Table:
    if not head.strip():
        raise TableError(f"{file.path} is empty; expected a table with a header and rows")
    if head.startswith(b"PAR1"):
        return ParquetTable(file)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{file.path} is UTF-16 text; save it as UTF-8")
    kinds = "CSV, JSON lines or Parquet, plain or compressed with gzip or zstd"
    if b"\0" in head:
        raise TableError(f"{file.path} is binary; expected {kinds}")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"[{") or (start.startswith(b"[") and file.names_json):
        raise TableError(f"{file.path} is a JSON array; expected one JSON object on each line")
    if start.startswith(b"{") or file.names_json:
        return JsonTable(file)
    return CsvTable(file)
