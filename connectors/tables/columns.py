"""Which column of a log is what, and how a row becomes an event.

What the features are is decided in `connectors.tables.features`. In CSV the labels are integers if
all labels of the first rows are, else text.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from connectors.broker import Received
from connectors.tables.cells import (
    is_integer_text,
    is_missing,
    key_of,
    label_of,
    target_of,
    time_of,
)
from connectors.tables.features import FeatureColumns
from connectors.tables.formats import Table
from connectors.tables.rows import BadRow, Row, place_of
from connectors.tables.streams import TableError
from streamgp.base import FeatureName, Label
from streamgp.interactive.messages import Event, Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """What the user said about the columns."""

    label: str | None
    time: str | None
    key: str | None
    ignore: frozenset[str]
    features: tuple[str, ...] | None
    numbers: bool = False
    """Whether labels are numbers to be predicted, not names of classes."""

    def __post_init__(self) -> None:
        taken: dict[str, str] = {}
        for role, name in self.named():
            if taken.setdefault(name, role) != role:
                raise ValueError(
                    f"column {name!r} is given as {taken[name]} and as {role}; choose one"
                )

    def named(self) -> list[tuple[str, str]]:
        """Return every role with a column that was given for it."""
        single = [("label", self.label), ("time", self.time), ("key", self.key)]
        named = [(role, name) for role, name in single if name is not None]
        named += [("ignore", name) for name in sorted(self.ignore)]
        return named + [("features", name) for name in self.features or ()]


class RowReader:
    """Turns the rows of one table into events.

    Parameters
    ----------
    table
        The table; only its description is used.
    path
        What to call it.
    roles
        What the user said about its columns.
    texts
        Whether columns of texts are features; one that the user names is in any case.
    first
        Its first rows, by which the columns are judged.
    notes
        Called with a line about columns that are left out, or texts.

    """

    # _open      whether rows bring columns of their own
    # _known     every column judged or not to be judged; only where rows bring their own columns.
    # _integers  whether text labels are integers; None before the first label.
    # _last_at   time of the last good row, for rows whose own time cannot be read.

    def __init__(
        self,
        table: Table,
        *,
        path: object,
        roles: Roles,
        texts: bool,
        first: Iterable[Row | BadRow],
        notes: Callable[[str], None],
    ) -> None:
        self._roles = roles
        self._typed = table.typed
        self._open = table.columns is None and roles.features is None
        self._last_at = 0.0
        rows = [row.cells for row in first if isinstance(row, Row)]
        columns = list(dict.fromkeys(name for cells in rows for name in cells))
        if table.columns is not None:
            columns = table.columns
        check_columns(columns, roles, path)
        if table.unnamed:
            notes(f"left out without a name: {', '.join(table.unnamed)}")
        apart: set[str | None] = {roles.label, roles.time, roles.key, *roles.ignore, *table.unnamed}
        self._known = {*columns, *apart}
        names = [c for c in columns if c not in apart]
        self._features = FeatureColumns(
            dict.fromkeys(roles.features or names),
            rows,
            named=roles.features is not None,
            texts=texts,
            typed=table.typed,
            notes=notes,
        )
        if self._features.empty:
            raise TableError(
                f"{path} has no column of numbers or of texts that come again besides label, time "
                "and key; name the columns that are features"
            )
        judged = not (table.typed or roles.numbers)
        self._integers = self._judge_labels(rows) if judged else None

    def read(self, row: Row | BadRow) -> Received:
        """Return a row as an event, or as rejected."""
        roles, at, key = self._roles, self._last_at, None
        if roles.time is None:
            at = float(row.number)
        try:
            if isinstance(row, BadRow):
                raise ValueError(row.reason)
            cells = row.cells
            if roles.time is not None:
                at = _required(cells, roles.time, "time", time_of)
            if roles.key is not None:
                key = _required(cells, roles.key, "key", key_of)
            event = Event(
                event_id=str(row.number),
                key=key,
                x=self._x(cells),
                occurred_at=at,
                truth=None if roles.label is None else self._truth(cells.get(roles.label)),
            )
        except ValueError as error:
            rejected = Rejected(
                subject=f"row {row.number}",
                key=key,
                fault="malformed",
                reason=f"{place_of(row)}: {error}",
                at=at,
            )
            return Received(message=rejected, at=at)
        self._last_at = at
        return Received(message=event, at=at)

    def _x(self, cells: dict[str, Any]) -> dict[FeatureName, float | str]:
        if self._open and not cells.keys() <= self._known:
            self._features.add(cells.keys() - self._known)
            self._known |= cells.keys()
        return self._features.read(cells)

    def _judge_labels(self, rows: list[dict[str, Any]]) -> bool | None:
        if self._roles.label is None:
            return None
        labels = [row[self._roles.label] for row in rows]
        labels = [label for label in labels if not is_missing(label)]
        return all(is_integer_text(label) for label in labels) if labels else None

    def _truth(self, cell: Any) -> Label | None:
        name = self._roles.label
        if self._typed or self._roles.numbers:
            try:
                return target_of(cell) if self._roles.numbers else label_of(cell)
            except ValueError as error:
                raise ValueError(f"label {name!r} {error}") from None
        if is_missing(cell):
            return None
        if self._integers is None:
            self._integers = is_integer_text(cell)
        if not self._integers:
            return str(cell.strip())
        if is_integer_text(cell):
            return int(cell)
        raise ValueError(f"label {name!r} must be an integer like the first ones, got {cell!r:.60}")


def check_columns(columns: list[str], roles: Roles, path: object) -> None:
    """Refuse roles whose column is not there."""
    for role, name in roles.named():
        if name not in columns:
            near = get_close_matches(name, columns, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TableError(
                f"{path} has no column {name!r} ({role}); columns: {', '.join(columns)}{hint}"
            )


def _required(cells: dict[str, Any], name: str, role: str, parse: Callable[[Any], Any]) -> Any:
    cell = cells.get(name)
    if is_missing(cell):
        raise ValueError(f"{role} {name!r} is missing")
    try:
        return parse(cell)
    except ValueError as error:
        raise ValueError(f"{role} {name!r} {error}") from None
