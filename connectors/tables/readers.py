"""Raw rows of a file: CSV, JSON lines and Parquet; plain or gzip.

A table is read once, from the start, in constant memory. An unusable row becomes a `BadRow`; an
unusable file raises `TableError`. `connectors.tables.columns` interprets the cells.

"""

from __future__ import annotations

import csv
import gzip
import json
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeAlias

import msgspec

_BUFFER = 1 << 17
DAMAGES: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
"""Errors raised while reading a damaged or unreadable file."""

SHOWN = "docs/logs.md shows"
"""Where a file that cannot be read is converted, in the words of an error."""


class TableError(ValueError):
    """A file without a readable table; the text says what is wrong and what to do."""


class BinaryFile:
    """A file opened for reading, plain or compressed with gzip.

    Attributes
    ----------
    path
        The file.
    stream
        Its decompressed bytes.

    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._raw: BufferedReader[Any] = BufferedReader(FileIO(self.path), _BUFFER)
        except FileNotFoundError:
            hint = "; standard input is /dev/stdin" if str(path) == "-" else ""
            raise TableError(f"{path} does not exist; expected a file{hint}") from None
        except IsADirectoryError:
            raise TableError(
                f"{path} is a directory; expected a file: join the files of one log, as {SHOWN}"
            ) from None
        except OSError as error:
            raise TableError(f"{path} cannot be read: {error.strerror}") from None
        self._size = self.path.stat().st_size
        self._inner: Any = None
        try:
            magic = self._raw.peek(2)[:2]
        except OSError as error:
            self._raw.close()
            raise TableError(f"{path} cannot be read: {error.strerror}") from None
        if magic == b"\x1f\x8b":
            self._inner = gzip.GzipFile(fileobj=self._raw, mode="rb")
        self.stream: BufferedReader[Any] = self._raw
        if self._inner is not None:
            self.stream = BufferedReader(_Unpacked(self._inner), _BUFFER)

    @property
    def names_json(self) -> bool:
        """Whether the name says that the file holds JSON."""
        suffixes = [s for s in self.path.suffixes if s != ".gz"]
        return suffixes[-1:] in ([".json"], [".jsonl"], [".ndjson"])

    @property
    def progress(self) -> float:
        """Share of the file's bytes that have been read; 1 if it has no size, like a pipe."""
        if self._raw.closed or self._size == 0:
            return 1.0
        return min(1.0, self._raw.tell() / self._size)

    def seekable(self) -> IO[bytes]:
        """Return the decompressed bytes as a seekable file, if necessary a temporary one."""
        if self._inner is None:
            return self._raw
        try:
            unpacked = tempfile.TemporaryFile()  # noqa: SIM115
            try:
                self._unpack(unpacked)
            except BaseException:
                unpacked.close()
                raise
        except OSError as error:
            raise TableError(
                f"{self.path} cannot be unpacked to a temporary file: {error.strerror}; free some "
                "space, name another directory in TMPDIR, or unpack it yourself"
            ) from None
        return unpacked

    def _unpack(self, unpacked: IO[bytes]) -> None:
        while True:
            try:
                data = self.stream.read(_BUFFER)
            except DAMAGES as error:
                raise self.damaged(0, error) from None
            if not data:
                break
            unpacked.write(data)
        unpacked.seek(0)

    def damaged(self, n_rows: int, error: Exception) -> TableError:
        """Return the error of a file that broke off after some rows."""
        return TableError(
            f"{self.path} is damaged after row {n_rows}: {str(error).rstrip('.')}; "
            "the rows before were read, copy the file again for the rest"
        )

    def close(self) -> None:
        self._raw.close()


class _Unpacked(RawIOBase):
    """Unbuffered decompressed bytes, so that no data before a damaged place is lost in a buffer."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._inner.read1(len(view))
        view[: len(data)] = data
        return len(data)


# --- Rows of a file, good or bad, and checks shared by all readers.


class Row(NamedTuple):
    """One row: its number from 1, its first and last line (0 if it has none), its cells."""

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
    """Return the position of a row as text.

    Examples
    --------
    >>> [place_of(BadRow(7, *lines, "")) for lines in [(8, 8), (8, 9), (0, 0)]]
    ['line 8', 'lines 8 to 9', 'row 7']

    """
    if not row.start:
        return f"row {row.number}"
    return f"line {row.start}" if row.start == row.end else f"lines {row.start} to {row.end}"


Rows: TypeAlias = Iterator[Row | BadRow]


MAX_COLUMNS = 100_000


def refuse_width(n: int, path: object) -> None:
    """Refuse a table whose columns alone would take much memory and time."""
    if n > MAX_COLUMNS:
        raise TableError(
            f"{path} has {n} columns, expected at most {MAX_COLUMNS}; keep those that are needed"
        )


def refuse_duplicates(columns: list[str], path: Path) -> None:
    """Refuse a table with two columns of the same name."""
    twice = sorted(name for name, n in Counter(columns).items() if n > 1)
    if twice:
        raise TableError(f"{path} has several columns named {twice[0]!r}; rename all but one")


# --- Rows of text files: CSV with a header, and JSON lines.


PEEK = 1 << 16
MAX_LINE = 1 << 24
_MAX_OVER_LINES = 1 << 17
_TIMES_AGAIN = 8  # how often the bytes of a file are read again on average, at most,
_SHORT = 1 << 10  # beside rows that have this many bytes after their first line
_UNCLOSED = "a quote is not closed"
# The line before the header from which spreadsheets of all locales read the delimiter.
_TOLD = re.compile(r'"?sep=([^\w\s"]|\t)"?')
_QUOTED = re.compile(r'"[^"]*(?:"|$)')
_NUMBERED = re.compile(r'"[0-9]+"')
_N_SEEN = 20  # rows from which the delimiter may be determined


_SAVE_AS = "save it as UTF-8 (as with iconv -f {} -t UTF-8 OLD > NEW)"


class _Lines:
    """The lines of a text file, their number, and problems with those of the current row."""

    # _row    the lines of the current row
    # _over   their bytes, without the first line
    # _again  lines to read again, the next one last
    # _most   most bytes that a long row may have after its first line: they may be read again
    # n_bytes  the bytes of the file that were read
    def __init__(self, file: BinaryFile) -> None:
        self.number = 0
        self.n_bytes = 0
        self.damage: str | None = None
        self._file = file
        self._row: list[bytes] = []
        self._over = 0
        self._again: list[bytes] = []
        self._most = MAX_LINE

    def begin_row(self) -> None:
        """Forget the lines of the previous row."""
        self._row.clear()
        self._over = 0
        self.damage = None

    def again_from(self, n: int) -> None:
        """Read the lines of the current row again, without the first `n`."""
        later = self._row[n:]
        self._most -= sum(map(len, later))
        self._again += reversed(later)
        self.number -= len(later)
        self.begin_row()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._row and self._over > max(self._most, _SHORT):
            raise csv.Error("unexpected end of data")
        if self._again:
            data = self._again.pop()
        else:
            # bounded, so that a file without line ends is not read into memory
            data = self._file.stream.readline(MAX_LINE)
            self.n_bytes += len(data)
            # Quotes can follow each other so that none of many rows ends.
            self._most = min(self._most + _TIMES_AGAIN * len(data), MAX_LINE)
        if not data:
            raise StopIteration
        self.number += 1
        if len(data) == MAX_LINE:
            raise TableError(
                f"{self._file.path}: line {self.number} has more than {MAX_LINE} bytes; "
                "expected one row on each line"
            )
        self._over += len(data) if self._row else 0
        self._row.append(data)
        try:
            line = data.decode()
        except UnicodeDecodeError:
            self.damage = f"is not UTF-8 text; {_SAVE_AS.format('CP1252')}"
            line = data.decode(errors="replace")
        if b"\0" in data:  # left by a crash where lines were not written yet
            self.damage = "holds a NUL byte"
        return line.removeprefix("\ufeff") if self.number == 1 else line


class _TextTable:
    """A table whose rows are lines of text."""

    def __init__(self, file: BinaryFile) -> None:
        self._file = file
        self._lines = _Lines(file)

    @property
    def n_bytes(self) -> int:
        return self._lines.n_bytes

    @property
    def progress(self) -> float:
        return self._file.progress

    def close(self) -> None:
        self._file.close()


class CsvTable(_TextTable):
    """Rows of CSV with a header; the delimiter is the comma, semicolon or tab of the header.

    If it does not split the first rows like the header, another one of the three may. A first line
    such as `sep=|` names any other delimiter. Spreadsheets write semicolons where the comma is the
    decimal sign.
    """

    typed = False

    def __init__(self, file: BinaryFile) -> None:
        super().__init__(file)
        self.head: list[str] = []
        self._columns, self.unnamed = self._read_header()
        self.columns: list[str] | None = self._columns

    def _read_header(self) -> tuple[list[str], list[str]]:
        path = self._file.path
        # Only peeked at: problems with these lines are reported when they are read.
        self.head = self._file.stream.peek(PEEK).decode(errors="replace").split("\n")[:-1]
        later = [line for line in self.head if line.strip()][1 : _N_SEEN + 1]
        full = (line for line in self._lines if line.strip())
        first = next(full, "")
        told = _TOLD.fullmatch(first.strip(" \r\n"))
        if told is not None:
            first = next(full, "")
        if not first:
            raise TableError(f"{path} is empty; expected a table with a header and rows")
        if self._lines.damage is not None:
            raise TableError(f"{path} {self._lines.damage}")
        delimiter = told[1] if told else _delimiter_of(first, later)
        if told is None and delimiter not in _QUOTED.sub("", first) and _are_words(first, later):
            raise TableError(
                f"{path} has spaces between its cells; expected commas, semicolons or tabs: "
                f"replace them, as {SHOWN}"
            )
        self.decimal_comma = delimiter == ";"
        self._lines.again_from(self._lines.number - 1)
        self._reader = csv.reader(
            map(_with_room, self._lines), delimiter=delimiter, skipinitialspace=True, strict=True
        )
        try:
            header = [name.strip() for name in next(self._reader)]
        except csv.Error as error:
            raise TableError(f"{path} has an unreadable header: {_plain(error)}") from None
        refuse_width(len(header), path)
        if _is_row(header, [cells_of(line, delimiter) for line in later]):
            raise TableError(
                f"{path} has no header, its first line is {first.strip()!r:.80}; "
                f"name the {len(header)} columns in a line before it, as {SHOWN}"
            )
        if _lacks_row_numbers(first, later, delimiter):
            header.insert(0, "")
        unnamed = [f"column {i}" for i, name in enumerate(header, 1) if not name]
        columns = [name or f"column {i}" for i, name in enumerate(header, 1)]
        refuse_duplicates(columns, path)
        return columns, unnamed

    def rows(self) -> Rows:
        """Read the rows; blank lines are skipped.

        Only the first line of an invalid row is lost: otherwise an unclosed quote would consume all
        lines up to the next quote, or to the end.
        """
        lines, reader, columns = self._lines, self._reader, self._columns
        width, number = len(columns), 0
        while True:
            lines.begin_row()
            start = lines.number + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                number += 1
                reason = _UNCLOSED if lines.number > start else _plain(error)
                lines.again_from(1)
                yield BadRow(number, start, start, f"is not CSV: {reason}")
                continue
            except DAMAGES as error:
                raise self._file.damaged(number, error) from None
            if not cells or (len(cells) == 1 and width > 1 and not cells[0].strip()):
                continue
            number += 1
            end = lines.number
            if lines.damage is not None:
                yield BadRow(number, start, end, lines.damage)
            elif len(cells) != width:
                yield BadRow(number, start, end, f"has {_cells(len(cells))}, expected {width}")
            else:
                yield Row(number, start, end, dict(zip(columns, cells, strict=True)))


class JsonTable(_TextTable):
    """Rows of JSON lines: one object on each line."""

    typed = True
    decimal_comma = False

    def __init__(self, file: BinaryFile) -> None:
        super().__init__(file)
        self.head: list[str] = []
        self.columns: list[str] | None = None
        self.unnamed: list[str] = []

    def rows(self) -> Rows:
        """Read the rows; blank lines are skipped."""
        number = 0
        lines = self._lines
        decode = msgspec.json.Decoder().decode
        while True:
            lines.begin_row()
            try:
                line = next(lines)
            except StopIteration:
                return
            except DAMAGES as error:
                raise self._file.damaged(number, error) from None
            if not line.strip():
                continue
            number += 1
            at = lines.number
            if lines.damage is not None:
                yield BadRow(number, at, at, lines.damage)
                continue
            try:
                cells = decode(line)
            except (ValueError, RecursionError):
                try:
                    cells = _decode_slowly(line)
                except UnicodeEncodeError:
                    reason = f"names must be valid Unicode, got {line.strip()!r:.80}"
                    yield BadRow(number, at, at, reason)
                    continue
            if isinstance(cells, dict):
                yield Row(number, at, at, cells)
            else:
                yield BadRow(number, at, at, f"is not a JSON object: {line.strip()!r:.80}")


def _delimiter_of(header: str, rows: list[str]) -> str:
    """Return the most frequent delimiter of a header, or one that splits most rows like the header.

    Delimiters within quotes do not count; among equals, the earlier one is taken.
    """
    first, *others = (_QUOTED.sub("", line) for line in (header, *rows))
    candidates = sorted(",;\t", key=first.count, reverse=True)
    for delimiter in candidates:
        n = first.count(delimiter)
        if n and 2 * sum(line.count(delimiter) == n for line in others) > len(others):
            return delimiter
    return candidates[0]


def cells_of(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line, without their quotes; a delimiter within quotes splits, too.

    Examples
    --------
    >>> cells_of(' 0.5;"hall"; ', ";")
    ['0.5', 'hall', '']

    """
    return [cell.strip(' \r"\ufeff') for cell in line.split(delimiter)]


def _is_row(header: list[str], rows: list[list[str]]) -> bool:
    """Return whether a header holds values instead of names.

    It does if it begins with a time or has a number twice, or if each name is a number or recurs
    below in its own column. Lines below that repeat the whole header do not count.
    """
    if _is_date(header[0]):
        return True
    numbers = [name for name in header if _is_number(name)]
    if len(set(numbers)) < len(numbers):
        return True
    below = [row for row in rows if row != header]
    return all(
        name and (_is_number(name) or any(name in row[i : i + 1] for row in below))
        for i, name in enumerate(header)
    )


def _lacks_row_numbers(header: str, rows: list[str], delimiter: str) -> bool:
    """Return whether the header has no name for the numbers of the rows, as in tables of R.

    R quotes names and these numbers, and leaves no cell empty. Other rows with a cell too many may
    have decimals behind a comma, even after a text in quotes, or end with a delimiter.
    """
    n = _QUOTED.sub("", header).count(delimiter) + 1
    return (
        bool(rows)
        and header.startswith('"')
        and all(
            _NUMBERED.match(row)
            and _QUOTED.sub("", row).count(delimiter) == n
            and not row.rstrip(" \r").endswith(delimiter)
            for row in rows
        )
    )


def _are_words(header: str, rows: list[str]) -> bool:
    """Return whether most rows have a number, and several words, as many as the header.

    Tables of R have one more, the number of the row; see `_lacks_row_numbers`.
    """
    n, n_alike = len(_QUOTED.sub("x", header).split()), 0
    for row in rows:
        words = _QUOTED.sub("x", row).split()
        most = n + (header.startswith('"') and _NUMBERED.match(row) is not None)
        n_alike += n <= len(words) <= most and any(map(_is_number, words))
    return n > 1 and 2 * n_alike > len(rows)


def _with_room(line: str) -> str:
    """Allow a cell to be as long as its line, which is passed to `csv` immediately.

    The limit of `csv` is global and low: a long text, even in an unused column, would cost its row.
    The limit is not raised for cells over several lines, as an unclosed quote would read the rest
    of the file into memory.
    """
    csv.field_size_limit(max(_MAX_OVER_LINES, len(line)))
    return line


def _decode_slowly(line: str) -> Any:
    """Decode a line that may contain NaN or Infinity, as the standard library writes them.

    Raises
    ------
    UnicodeEncodeError
        If a name is not valid Unicode: it has half of a surrogate pair.

    """
    try:
        cells = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(cells, dict):
        "".join(cells).encode()
    return cells


def _cells(n: int) -> str:
    return f"{n} cell{'s' * (n != 1)}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return not _is_number(text)


def _plain(error: csv.Error) -> str:
    text = str(error)
    if text.startswith(("field larger", "unexpected end of data")):
        return _UNCLOSED
    if text.startswith("new-line character"):
        return "lines end with CR alone; save it with LF line ends (tr '\\r' '\\n' < OLD > NEW)"
    return text


# --- Rows of a Parquet file, read with pyarrow (optional: `streamgp[parquet]`).


_BATCH = 64  # rows, which may have long texts, of at most
_BATCH_CELLS = 1 << 20


class ParquetTable:
    """Rows of Parquet, which needs to seek: a compressed file is unpacked to a temporary one."""

    typed = True
    decimal_comma = False

    def __init__(self, file: BinaryFile) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise TableError(
                f"{file.path} is a Parquet file; pip install pyarrow to read it"
            ) from None
        self._file = file
        self._arrow = pyarrow
        self._damages = (pyarrow.ArrowException, OSError, ValueError, OverflowError)
        self._bytes = file.seekable()
        try:
            self._parquet = parquet.ParquetFile(self._bytes, page_checksum_verification=True)
        except self._damages as error:
            self.close()
            raise TableError(f"{file.path} is not readable as Parquet: {_first(error)}") from None
        self.columns: list[str] | None = list(self._parquet.schema_arrow.names)
        self.unnamed: list[str] = []
        self.head: list[str] = []
        self._n_rows: int = self._parquet.metadata.num_rows
        self._n_read = 0
        self.n_bytes = 0
        try:
            refuse_width(len(self.columns), file.path)
            refuse_duplicates(self.columns, file.path)
        except TableError:
            self.close()
            raise

    def rows(self) -> Rows:
        names = self.columns or []
        size = max(1, min(_BATCH, _BATCH_CELLS // max(1, len(names))))
        # Few rows are read faster by one thread.
        batches = self._parquet.iter_batches(batch_size=size, use_threads=False)
        while True:
            try:
                batch = next(batches, None)
                columns = [] if batch is None else list(map(self._decoded, batch.columns))
                cells = list(map(self._plain, columns))
            except self._damages as error:
                raise self._file.damaged(self._n_read, error) from None
            if batch is None:
                return
            # Asking a column takes as long as reading it, and numbers have no more than 8.
            texts = [each for each in columns if not self._arrow.types.is_primitive(each.type)]
            n_bytes = 8 * len(columns) + sum(each.nbytes for each in texts) // batch.num_rows
            for row in zip(*cells, strict=True):
                self._n_read += 1
                self.n_bytes += n_bytes
                yield Row(self._n_read, 0, 0, dict(zip(names, row, strict=True)))

    def _decoded(self, column: Any) -> Any:
        """Return a column without a dictionary, which would hide how large its values are."""
        is_dictionary = self._arrow.types.is_dictionary(column.type)
        return column.dictionary_decode() if is_dictionary else column

    def _plain(self, column: Any) -> list[Any]:
        if self._arrow.types.is_timestamp(column.type) and column.type.unit == "ns":
            # Python's datetimes have no nanoseconds
            column = column.cast(self._arrow.timestamp("us", column.type.tz), safe=False)
        try:
            return column.to_pylist()  # type: ignore[no-any-return]
        except (ValueError, OverflowError):
            return [_cell(value) for value in column]

    @property
    def progress(self) -> float:
        return self._n_read / self._n_rows if self._n_rows else 1.0

    def close(self) -> None:
        self._bytes.close()
        self._file.close()


class _Unreadable:
    """A cell without a value in Python: text that is not UTF-8, a time after the year 9999."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __repr__(self) -> str:
        return f"<{self._error}>"


def _cell(value: Any) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError) as error:
        return _Unreadable(error)


def _first(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class Table(Protocol):
    """A file of rows."""

    columns: list[str] | None
    """Names of all columns, in order; None if every row names its own."""

    unnamed: list[str]
    """Columns without a name, by the names generated for them."""

    head: list[str]
    """The first lines of a CSV file, as they are."""

    typed: bool
    """Whether cells have types; else all are text."""

    decimal_comma: bool
    """Whether a number may have a comma as decimal sign."""

    def rows(self) -> Rows:
        """Read the rows; may be called once."""

    @property
    def n_bytes(self) -> int:
        """Number of bytes of rows that have been read."""

    @property
    def progress(self) -> float:
        """Share of the file that has been read, from 0 to 1."""

    def close(self) -> None:
        """Close the file."""


def open_table(path: str | Path) -> Table:
    """Open a file; its contents, and if they do not tell, its name determine the format.

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


# What other files begin with, what they are, and how to make a log of them.
_OTHERS = [
    (re.compile(begins), what, then)
    for begins, what, then in (
        (rb"PK\x03\x04", "a ZIP archive or an Excel workbook", "unpack it, or save it as CSV"),
        (rb"\xd0\xcf\x11\xe0", "an Excel workbook", "save it as CSV"),
        (rb"\x28\xb5\x2f\xfd|BZh[1-9]|\xfd7zXZ", "compressed, but not with gzip", "unpack it"),
        (rb"SQLite format 3", "an SQLite database", f"save a table as CSV, as {SHOWN}"),
        (rb"(?s).{257}ustar", "a tar archive", "unpack it"),
        (rb"ARROW1\0", "an Arrow or Feather file", "save it as Parquet"),
        (rb"(?s)PARE.{,3}\0", "encrypted Parquet", "decrypt it"),
        (rb"\x89HDF|MATLAB [0-9]|\x93NUMPY", "a file of arrays", f"save it as CSV, as {SHOWN}"),
        (rb"(?i)<(\?xml|!doctype|html|gpx|kml)\b", "XML or HTML", f"convert it, as {SHOWN}"),
        (rb"(?i)(%[^\n]*\n\s*)*@relation\b", "ARFF of Weka", f"convert it, as {SHOWN}"),
        (rb"\{\s*\n", "JSON over several lines", "write an object on each (jq -c . OLD > NEW)"),
        (rb"#(group|datatype|default),", "annotated CSV of InfluxDB", f"convert it, as {SHOWN}"),
        (rb"[^ \n]+ [^ =\n]+=.* [0-9]{10,19}\r?\n", "line protocol", f"convert it, as {SHOWN}"),
        (rb"\$(G[A-Z]|BD)[A-Z]{3},", "NMEA of a GPS receiver", f"convert it, as {SHOWN}"),
        (rb"[^\s,;]+( [0-9]+:[^\s,;]+){2}", "in LIBSVM's format", f"convert it, as {SHOWN}"),
    )
]


def _open_by_content(file: BinaryFile, head: bytes) -> Table:
    if not head.strip():
        raise TableError(f"{file.path} is empty; expected a table with a header and rows")
    if head.startswith(b"PAR1"):
        return ParquetTable(file)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for begins, what, then in _OTHERS:
        if begins.match(start):
            raise TableError(f"{file.path} is {what}; {then}")
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise TableError(f"{file.path} is UTF-32 text; {_SAVE_AS.format('UTF-32')}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{file.path} is UTF-16 text; {_SAVE_AS.format('UTF-16')}")
    kinds = "CSV, JSON lines or Parquet, plain or compressed with gzip"
    # A text file may contain null bytes after its first line, if a crash truncated it.
    if b"\0" in head.lstrip().partition(b"\n")[0]:
        raise TableError(f"{file.path} is binary, or UTF-16 text; expected {kinds}, in UTF-8")
    if start.startswith(b"[{") or (start.startswith(b"[") and file.names_json):
        raise TableError(
            f"{file.path} is a JSON array; expected one JSON object on each line (as from jq -c "
            "'.[]' OLD > NEW)"
        )
    if start.startswith(b"{") or file.names_json:
        return JsonTable(file)
    return CsvTable(file)
