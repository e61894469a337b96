"""Rows of a Parquet file, by pyarrow (optional: `streamgp[parquet]`)."""

from __future__ import annotations

from typing import Any

from connectors.tables.rows import Row, Rows, refuse_duplicates
from connectors.tables.streams import BinaryFile, TableError

_BATCH = 1024


class ParquetTable:
    """Rows of Parquet; a compressed file is unpacked to a temporary one, for Parquet must seek."""

    typed = True

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
        self._n_rows: int = self._parquet.metadata.num_rows
        self._n_read = 0
        try:
            refuse_duplicates(self.columns, file.path)
        except TableError:
            self.close()
            raise

    def rows(self) -> Rows:
        """Read the rows."""
        names = self.columns or []
        batches = self._parquet.iter_batches(batch_size=_BATCH)
        while True:
            try:
                batch = next(batches, None)
                cells = None if batch is None else [self._plain(column) for column in batch.columns]
            except self._damages as error:
                raise self._file.damaged(self._n_read, error) from None
            if cells is None:
                return
            for row in zip(*cells, strict=True):
                self._n_read += 1
                yield Row(self._n_read, 0, 0, dict(zip(names, row, strict=True)))

    def _plain(self, column: Any) -> list[Any]:
        if self._arrow.types.is_timestamp(column.type):
            # Python's times have no nanoseconds
            column = column.cast(self._arrow.timestamp("us", column.type.tz), safe=False)
        return column.to_pylist()  # type: ignore[no-any-return]

    @property
    def progress(self) -> float:
        """Share of the rows that has been read."""
        return self._n_read / self._n_rows if self._n_rows else 1.0

    def close(self) -> None:
        """Let go of the file."""
        self._bytes.close()
        self._file.close()


def _first(error: Exception) -> str:
    """Return the first line of an error."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
