"""A recorded log as a source of events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from connectors.broker import Received, Sink, Source
from connectors.tables.columns import Roles, RowReader
from connectors.tables.readers import BadRow, Row, Rows, TableError, open_table, place_of
from streamgp.base import State
from streamgp.common.validation import (
    check_column,
    check_flag,
    check_path,
    check_several,
    check_whole,
)
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Input,
    LabelRequest,
    Message,
    Request,
    answer_of,
)

if TYPE_CHECKING:
    from streamgp.interactive.event_windows import EventWindows

N_FIRST = 100
FIRST_BYTES = 1 << 24
"""The bytes after which fewer rows are the first ones: all of these are in memory together."""
BATCH = 256
N_ALIKE = 5
"""The largest number of groups of similar labels in a note."""
N_UNUSABLE = 20
"""The largest number of rows that a column may cost without a note."""


class LogSource(Source):
    """Events from a CSV, JSON lines or Parquet file, in the order of its rows.

    Event ids are row numbers as text, from "1". Labels become the `truth` of events: they are
    learned only on request. A row that cannot be used is returned as `Rejected`.

    Parameters
    ----------
    path
        The file, plain or compressed with gzip.
    label
        Column of the labels; an empty cell means no label. None: no event has one.
    time
        Column of the times, POSIX seconds or ISO 8601 (UTC without a zone); without it, the row
        number is the time in seconds.
    ignore
        Columns to leave out.
    features
        If given, the only columns to use as features, whatever they hold.
    channels
        Columns that must be among the features.
    texts
        Whether text columns are features without being named.
    numbers
        Whether labels are regression targets instead of names of classes.
    limit
        Number of rows to read, if not all.
    windowed
        Whether the rows will be cut into windows: then no note says that they are out of order, or
        come many times a second.
    notes
        Called with a line about everything that a user should know, such as columns left out and
        text columns used as features.

    Raises
    ------
    TableError
        If the file cannot be read, or a column is missing.
    TypeError
        If the limit is not a number.
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
        channels: Iterable[str] = (),
        texts: bool = True,
        numbers: bool = False,
        limit: int | None = None,
        windowed: bool = False,
        notes: Callable[[str], None] | None = None,
    ) -> None:
        if limit is not None:
            limit = check_whole("limit", limit, 1)
        for name, flag in (("texts", texts), ("numbers", numbers), ("windowed", windowed)):
            check_flag(name, flag)
        for name, column in (("label", label), ("time", time), ("key", key)):
            check_column(name, column)
        roles = Roles(
            label=label,
            time=time,
            key=key,
            ignore=frozenset(check_several("ignore", ignore, "columns")),
            features=None if features is None else check_several("features", features, "columns"),
            numbers=numbers,
            channels=check_several("channels", channels, "columns"),
        )
        self._label = label
        self._limit = limit
        self._windowed = windowed
        self._notes = (lambda _line: None) if notes is None else notes
        self._n_polled = 0
        self._error: TableError | None = None
        self._ended = False
        self._table = open_table(check_path("path", path))
        try:
            rows = self._table.rows()
            first = self._take_first(rows, path)
            self._reader = RowReader(
                self._table,
                path=path,
                roles=roles,
                texts=texts,
                first=first,
                notes=self._notes,
                windowed=windowed,
            )
        except BaseException:
            self._table.close()
            raise
        self._rows = islice(chain(first, rows), limit)

    def _take_first(self, rows: Rows, path: str | Path) -> list[Row | BadRow]:
        """Return the first rows; refuse a table without rows, or whose rows name no column."""
        first: list[Row | BadRow] = []
        try:
            for row in islice(rows, N_FIRST):
                first.append(row)  # one by one, to keep the rows before an error
                if self._table.n_bytes >= FIRST_BYTES:
                    break
        except TableError as error:
            self._error = error
        if not first:
            raise self._error or TableError(f"{path} has a header but no rows; expected rows")
        unread = [row for row in first if isinstance(row, BadRow)]
        if self._table.columns is None and len(unread) == len(first):
            # Rows name the columns, but no row has named any.
            raise TableError(
                f"none of the first {len(first)} rows of {path} could be read, expected one "
                f"JSON object on each line; {place_of(unread[0])}: {unread[0].reason}"
            )
        return first

    def poll(self, timeout_s: float = 0.0) -> list[Received]:  # noqa: ARG002
        """Return the next rows; reading a file never waits.

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
            ended_before = self._ended
            self._ended = self._error is None or self._n_polled == self._limit
            self._say_order()
            if self._ended and not ended_before:
                self._say_empty()
                self._say_without_values()
                self._say_placeholders()
                self._say_spellings()
                self._say_unusable()
                late = self._reader.late_numbers()
                if late is not None:
                    self._notes(late)
        return received

    def _say_order(self) -> None:
        n, self._reader.n_backwards = self._reader.n_backwards, 0
        if n and not self._windowed:
            rows = "rows is" if n == 1 else "rows are"
            local = ", or write local times with their zone" if self._reader.may_be_local else ""
            self._notes(
                f"{n} of {self._n_polled} {rows} earlier than the one before; sort the log by "
                f"time{local}, because answers and deadlines depend on it"
            )

    def _say_empty(self) -> None:
        n = self._reader.n_empty
        if n:
            rows = "rows is empty, and counts" if n == 1 else "rows are empty, and count"
            self._notes(f"{n} of {self._n_polled} {rows} like any other; remove empty rows")

    def _say_without_values(self) -> None:
        names = self._reader.without_values
        if names:
            self._notes(f"without a value in every row that could be read: {', '.join(names)}")

    def _say_placeholders(self) -> None:
        found = [f"{name} ({text!r:.60})" for name, text in self._reader.placeholders.items()]
        if found:
            self._notes(
                f"taken for texts, by the first {N_FIRST} rows, though later ones have numbers: "
                f"{', '.join(found)}; if the text stands for a missing number, leave the cell empty"
            )

    def _say_spellings(self) -> None:
        alike = [" and ".join(map(repr, classes)) for classes in self._reader.spellings]
        if alike:
            more = f" and {len(alike) - N_ALIKE} more" if alike[N_ALIKE:] else ""
            self._notes(
                f"{', '.join(alike[:N_ALIKE])}{more} in {self._label!r} count as different "
                "classes; if they are one, write it in one way"
            )

    def _say_unusable(self) -> None:
        for name, n in self._reader.n_unusable.items():
            if n > max(N_UNUSABLE, self._n_polled / 10):
                self._notes(
                    f"{n} of {self._n_polled} rows are rejected for their cells in {name!r}; "
                    "ignore this column to use them"
                )

    @property
    def exhausted(self) -> bool:
        """Whether every row was polled."""
        return self._ended

    @property
    def n_rows(self) -> int:
        """Number of rows polled so far."""
        return self._n_polled

    @property
    def n_numbers(self) -> int:
        """Number of different labels in the first rows, if they look like numbers to predict."""
        return self._reader.n_numbers

    @property
    def progress(self) -> float:
        """Share of the file that has been read, from 0 to 1."""
        if self._ended:
            return 1.0
        share = self._n_polled / self._limit if self._limit else 0.0
        return max(share, self._table.progress)

    def close(self) -> None:
        """Close the file."""
        self._table.close()


class WindowedLog(Source):
    """Events of windows over a log's rows, in the order in which rows close them.

    Rows that cannot be read are passed on as `Rejected`.

    Parameters
    ----------
    windows
        Turns rows into events.
    notes
        Called at the end with a line about rows that could not be used.

    """

    def __init__(self, log: LogSource, windows: EventWindows, notes: Callable[[str], None]) -> None:
        self._log = log
        self._windows = windows
        self._notes = notes
        self._has_windows = False

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return the next windows; the next rows may not close any.

        Raises
        ------
        TableError
            If the file is damaged further on.

        """
        received: list[Received] = []
        for one in self._log.poll(timeout_s):
            if isinstance(one.message, Event):
                received += self._events(self._windows.take(one.message, now=0.0))
            else:
                received.append(one)
        if self._log.exhausted:
            received += self._events(self._windows.flush())
            self._say_unused()
        return received

    def _events(self, closed: list[Event]) -> Iterator[Received]:
        self._has_windows |= bool(closed)
        return (Received(message=event, at=event.occurred_at) for event in closed)

    def _say_unused(self) -> None:
        unused, n_rows = self._windows.new_rejected(), self._windows.n_rows
        if unused:
            told = ", ".join(f"{reason}: {n}" for reason, n in unused.items())
            self._notes(f"not used of {n_rows} rows: {told}")
        if "too late" in unused:
            self._notes("rows that are too late: sort the log by time, or raise windows.grace_s")
        if n_rows and not self._has_windows:
            self._notes(
                f"{n_rows} rows make no window: the time must be in seconds, and a window has at "
                "least windows.min_rows rows"
            )

    @property
    def exhausted(self) -> bool:
        return self._log.exhausted

    @property
    def n_rows(self) -> int:
        return self._log.n_rows

    @property
    def progress(self) -> float:
        return self._log.progress

    def close(self) -> None:
        self._log.close()


# --- A log with an annotator, so that a recorded log can be replayed as if it were live.
#
# Answers are inserted between the events by their times; an answer given at the time of an event
# comes before the next one. Records are delivered one at a time, since an answer may lead to a
# question whose answer comes before the next event.


class Answers(Protocol):
    """Protocol of pending answers, such as `streamgp.simulation.AnswerQueue`."""

    def see(self, event: Event) -> None:
        """Show an event, its truth included, before anything is asked about it."""

    def ask(self, request: Request, now: float) -> None:
        """Take a question."""

    def cancel(self, cancel: Cancel) -> None:
        """Drop the answer to a cancelled question."""

    def due(self, until: float) -> Iterable[Answer]:
        """Remove and return the answers given up to and including a time, in order."""

    def next_at(self) -> float | None:
        """Return when the next answer will be given, None if none is pending."""

    def state(self) -> State:
        """Return the state that must survive a restart, except the events shown."""

    def load_state(self, state: State) -> None:
        """Restore a state, after the events have been shown again."""


class AnnotatedLog(Source, Sink):
    """Source of the events of a log and of the answers to the questions sent to it as a sink.

    Parameters
    ----------
    sink
        Receives all messages, the answers included.

    """

    # _n_taken   number of the log's records delivered so far.
    # _upcoming  polled from the log, not yet delivered.
    # _given     answers taken from the queue, not yet delivered; all given at the same time.

    def __init__(self, log: Source, sink: Sink, queue: Answers) -> None:
        self._log = log
        self._sink = sink
        self._queue = queue
        self._n_taken = 0
        self._upcoming: deque[Received] = deque()
        self._given: deque[Answer] = deque()

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return the next event or answer, whichever comes first."""
        self._fetch(timeout_s)
        if not self._given:
            self._take_answers()
        if self._given:
            answer = self._given.popleft()
            self._sink.send(answer)
            return [Received(message=answer, at=answer.answered_at)]
        if not self._upcoming:
            return []
        return [self._take()]

    def _fetch(self, timeout_s: float) -> None:
        if not self._upcoming and not self._log.exhausted:
            self._upcoming.extend(self._log.poll(timeout_s))

    def _take(self) -> Received:
        received = self._upcoming.popleft()
        self._n_taken += 1
        if isinstance(received.message, Event):
            self._queue.see(received.message)
        return received

    def _take_answers(self) -> None:
        """Take the answers with the earliest time, if they come before the next event.

        Not later ones: they may lead to a question whose answer comes in between.
        """
        at = self._queue.next_at()
        if at is None or (not self._upcoming and not self._log.exhausted):
            return
        if not self._upcoming or at <= self._upcoming[0].at:
            self._given.extend(self._queue.due(at))

    def state(self) -> State:
        """Return the position in the log, and the pending answers."""
        return {
            "n_taken": self._n_taken,
            "given": [asdict(answer) for answer in self._given],
            "queue": self._queue.state(),
        }

    def load_state(self, state: State) -> Iterator[Event]:
        """Restore a state: the log, opened again, is read up to the same position.

        Returns
        -------
        The events that were delivered before; once the iterator is exhausted, the state is loaded.

        Raises
        ------
        ValueError
            If the log is shorter than before.

        """
        while self._n_taken < state["n_taken"]:
            self._fetch(0.0)
            if not self._upcoming:
                raise ValueError(
                    f"the log ends after {self._n_taken} rows, expected {state['n_taken']}"
                )
            message = self._take().message
            if isinstance(message, Event):
                yield message
        self._given.extend(map(answer_of, state["given"]))
        self._queue.load_state(state["queue"])

    @property
    def exhausted(self) -> bool:
        """Whether the log has ended and every question was answered."""
        waiting = bool(self._upcoming or self._given) or self._queue.next_at() is not None
        return self._log.exhausted and not waiting

    def commit(self) -> None:
        self._log.commit()

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Pass a message on; a question also goes to the annotator."""
        self._sink.send(message, cause=cause)
        if isinstance(message, LabelRequest | Challenge):
            self._queue.ask(message, message.requested_at)
        elif isinstance(message, Cancel):
            self._queue.cancel(message)
            # The first of several simultaneous answers may make the others unnecessary.
            name = message.key, message.request_id
            self._given = deque(a for a in self._given if (a.key, a.request_id) != name)

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        """Close the log and the sink."""
        self._log.close()
        self._sink.close()
