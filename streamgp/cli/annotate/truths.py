"""The true labels of events, for simulated annotators: from a file, or as the events come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from connectors.tables.cells import is_integer_text, is_missing, key_of, label_of, target_of
from connectors.tables.formats import open_table
from connectors.tables.rows import Row
from connectors.tables.streams import TableError
from streamgp.base import Label
from streamgp.cli.configuration.logs import prefixes
from streamgp.interactive.messages import Event

ID_COLUMN = "event_id"
MAX_TRUTHS = 500_000
"""Events that nobody has asked about yet; the oldest are forgotten."""


def read_truths(paths: Sequence[Path], *, label: str, numbers: bool = False) -> dict[str, Label]:
    """Read the labels of events from logs: CSV, JSON lines or Parquet.

    Parameters
    ----------
    paths
        The logs. The id of an event is in the column `event_id`; without it, it is the number of
        the row, as `streamgp send` makes it.
    label
        The column of the labels.
    numbers
        Whether they are numbers to be predicted, not names of classes.

    Raises
    ------
    click.ClickException
        If a file cannot be read, or two of its rows contradict each other.

    """
    truths: dict[str, Label] = {}
    for path, prefix in zip(paths, prefixes(paths), strict=True):
        try:
            with closing(open_table(path)) as table:
                rows = [(row.number, row.cells) for row in table.rows() if isinstance(row, Row)]
                typed = table.typed
            found = list(_labels(path, rows, label, typed=typed, numbers=numbers))
        except (TableError, ValueError) as error:
            raise click.ClickException(str(error)) from None
        for name, y in found:
            event_id = prefix + name
            if event_id in truths and (type(truths[event_id]), truths[event_id]) != (type(y), y):
                raise click.ClickException(
                    f"{path} has two labels for event {event_id!r:.60}; give every event one"
                )
            truths[event_id] = y
    return truths


def _labels(
    path: Path,
    rows: list[tuple[int, dict[str, Any]]],
    label: str,
    *,
    typed: bool,
    numbers: bool,
) -> Iterator[tuple[str, Label]]:
    if not any(label in cells for _, cells in rows):
        columns = dict.fromkeys(name for _, cells in rows[:1] for name in cells)
        raise TableError(
            f"{path} has no column {label!r} (label); columns: {', '.join(columns) or 'none'}"
        )
    named = [(n, cells) for n, cells in rows if not is_missing(cells.get(label))]
    # As in a log that is sent: numbers if all of them are.
    are_integers = not (typed or numbers) and all(is_integer_text(c[label]) for _, c in named)
    known: dict[tuple[type, Label], Label] = {}
    for n, cells in named:
        cell = cells[label]
        try:
            y: Label | None
            if numbers:
                y = target_of(cell)
            else:
                y = label_of(cell) if typed else int(cell) if are_integers else cell.strip()
            event_id = str(n) if is_missing(cells.get(ID_COLUMN)) else key_of(cells[ID_COLUMN])
        except ValueError as error:
            raise TableError(f"{path}: row {n}: {error}") from None
        if y is not None:
            # Equal labels are one object: there are many events and few labels.
            yield event_id, known.setdefault((type(y), y), y)


class Truths:
    """The true labels of events that may be asked about.

    What is being asked about is kept longest, the rest until there is too much of it: a label that
    was learned may be doubted later.

    Parameters
    ----------
    given
        Labels by event id, if they are known beforehand.
    max_truths
        How many to keep, of events that nobody asked about and of others.

    Examples
    --------
    >>> truths = Truths()
    >>> truths.see(Event(event_id="e1", x={}, occurred_at=0.0, truth="hall"))
    >>> truths.knows(None, "e1"), truths.ask(None, "e1"), truths.knows(None, "e2")
    (True, 'hall', False)

    """

    # _unasked  labels by key and event id; None of an event whose label nobody knows
    # _asked    the same, of events that were asked about
    # _labels   every label once
    def __init__(
        self, given: dict[str, Label] | None = None, *, max_truths: int = MAX_TRUTHS
    ) -> None:
        self.given = given
        self._max = max_truths
        self._unasked: dict[tuple[str | None, str], Label | None] = {}
        self._asked: dict[tuple[str | None, str], Label | None] = {}
        self._labels: dict[tuple[type, Label], Label] = {}

    def labels(self) -> Iterable[Label]:
        """Return the labels of the file, in the order of their first events."""
        return {(type(y), y): y for y in (self.given or {}).values()}.values()

    def see(self, event: Event) -> None:
        """Take note of an event: its `truth`, else the label that it brings."""
        y = event.y if event.truth is None else event.truth
        if y is not None and not isinstance(y, float):  # there may be as many as events
            y = self._labels.setdefault((type(y), y), y)
        self._unasked[event.key, event.event_id] = y
        _shrink(self._unasked, self._max)

    def knows(self, key: str | None, event_id: str) -> bool:
        """Say whether an event has been seen, be its label known or not."""
        event = (key, event_id)
        return self.given is not None or event in self._asked or event in self._unasked

    def ask(self, key: str | None, event_id: str) -> Label | None:
        """Return the label of an event, None if nobody knows it; it is kept for a while."""
        if self.given is not None:
            return self.given.get(event_id)
        event = (key, event_id)
        if event in self._unasked:
            self._asked[event] = self._unasked.pop(event)
            _shrink(self._asked, self._max)
        return self._asked.get(event)

    def settle(self, key: str | None, event_id: str) -> None:
        """Take note that nothing is asked about an event any more, for now."""
        event = (key, event_id)
        if event in self._asked:
            self._unasked[event] = self._asked.pop(event)
            _shrink(self._unasked, self._max)

    def __len__(self) -> int:
        return len(self._unasked) + len(self._asked)


def _shrink(labels: dict[tuple[str | None, str], Label | None], most: int) -> None:
    while len(labels) > most:
        del labels[next(iter(labels))]
