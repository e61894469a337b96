"""A recorded log as a source of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice
from pathlib import Path

from connectors.broker import Received
from connectors.tables.columns import Roles, RowReader
from connectors.tables.formats import open_table
from connectors.tables.rows import BadRow, Row, Rows
from connectors.tables.streams import TableError
from streamgp.arguments import check_whole

N_FIRST = 100
BATCH = 256


class LogSource:
    """Events from a CSV, JSON lines or Parquet file, in the order of its rows.

    Event ids are row numbers as text, from "1". Labels go to `truth`: nobody learns them unasked.
    A row that cannot be used comes as `Rejected`.

    Parameters
    ----------
    path
        The file, plain or compressed with gzip or zstd.
    label
        Column of the labels; an empty cell is an event without a label. None: no event has one.
    time
        Column of the times, POSIX seconds or ISO 8601 (UTC where no zone is given); without it,
        the row number counts as seconds.
    key
        Column that tells whose event it is.
    ignore
        Columns to leave out.
    features
        The only columns to use as features, if given, whatever they hold.
    texts
        Whether columns of texts are features that need not be named.
    numbers
        Whether labels are numbers to be predicted, not names of classes.
    limit
        Number of rows to read, if not all.
    notes
        Called with a line about each thing that a user should know, such as columns left out, and
        texts that are features.

    Raises
    ------
    TableError
        If the file cannot be read, or a column is not there.
    TypeError
        If the limit is no number.
    ValueError
        If a column is given two roles, or the limit is not positive.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "rooms.csv")
    ...     _ = path.write_text("wap1,wap2,room\\n-64,-56,kitchen\\n-68,,\\n")
    ...     received = LogSource(path, label="room").poll()
    >>> [(r.message.event_id, r.message.x, r.message.truth) for r in received]
    [('1', {'wap1': -64, 'wap2': -56}, 'kitchen'), ('2', {'wap1': -68}, None)]

    """

    def __init__(
        self,
        path: str | Path,
        *,
        label: str | None = None,
        time: str | None = None,
        key: str | None = None,
        ignore: Iterable[str] = (),
        features: Iterable[str] | None = None,
        texts: bool = True,
        numbers: bool = False,
        limit: int | None = None,
        notes: Callable[[str], None] | None = None,
    ) -> None:
        if limit is not None:
            check_whole("limit", limit, 1)
        roles = Roles(
            label=label,
            time=time,
            key=key,
            ignore=frozenset(ignore),
            features=None if features is None else tuple(features),
            numbers=numbers,
        )
        self._limit = limit
        self._n_polled = 0
        self._error: TableError | None = None
        self._ended = False
        self._table = open_table(path)
        try:
            rows = self._table.rows()
            first = self._take_first(rows)
            if not first:
                raise self._error or TableError(f"{path} has a header and no rows; expected rows")
            self._reader = RowReader(
                self._table,
                path=path,
                roles=roles,
                texts=texts,
                first=first,
                notes=notes if notes is not None else _say_nothing,
            )
        except BaseException:
            self._table.close()
            raise
        self._rows = islice(chain(first, rows), limit)

    def _take_first(self, rows: Rows) -> list[Row | BadRow]:
        first: list[Row | BadRow] = []
        try:
            for row in islice(rows, N_FIRST):
                first.append(row)  # one by one: what came before an error is kept
        except TableError as error:
            self._error = error
        return first

    def poll(self, timeout_s: float = 0.0) -> list[Received]:  # noqa: ARG002
        """Return the next rows; a file never makes anyone wait.

        Raises
        ------
        TableError
            If the file is damaged further on; everything before has been delivered.

        """
        received: list[Received] = []
        read = self._reader.read
        try:
            for row in islice(self._rows, BATCH):
                received.append(read(row))
        except TableError as error:
            self._error = error
        self._n_polled += len(received)
        if len(received) < BATCH:
            self._table.close()
            if self._error is not None and not received:
                raise self._error
            self._ended = self._error is None or self._n_polled == self._limit
        return received

    @property
    def exhausted(self) -> bool:
        """Whether every row was polled."""
        return self._ended

    @property
    def progress(self) -> float:
        """Share of the file that has been read, from 0 to 1."""
        if self._ended:
            return 1.0
        share = self._n_polled / self._limit if self._limit else 0.0
        return max(share, self._table.progress)

    def commit(self) -> None:
        """Do nothing: a file can always be read again from the start."""

    def close(self) -> None:
        """Let go of the file."""
        self._table.close()


def _say_nothing(note: str) -> None:
    pass
