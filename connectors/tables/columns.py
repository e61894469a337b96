"""Roles of the columns of a log, and its rows as events.

In CSV the labels are integers if all labels of the first rows are, otherwise text.

"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from typing import Any
from unicodedata import normalize

from connectors.broker import Received
from connectors.tables.cells import (
    first_with,
    float_of_text,
    is_integer_text,
    is_missing,
    is_no_number,
    is_number,
    key_of,
    label_of,
    lacks_zone,
    target_of,
    time_of,
    with_point,
)
from connectors.tables.feature_columns import Cells, FeatureColumns, why_no_numbers
from connectors.tables.readers import (
    SHOWN,
    BadRow,
    Row,
    Table,
    TableError,
    cells_of,
    place_of,
    refuse_width,
)
from streamgp.base import FeatureName, Label, check_kind
from streamgp.interactive.messages import Event, Rejected

MOST_NAMED = 30
"""The largest number of columns listed when one is missing."""

_HOUR_S = 3600.0  # by which local time is set back in autumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Roles of columns, as given by the user."""

    label: str | None
    time: str | None
    key: str | None
    ignore: frozenset[str]
    features: tuple[str, ...] | None
    numbers: bool = False
    """Whether labels are regression targets instead of names of classes."""
    channels: tuple[str, ...] = ()
    """Features that windows need."""

    # A name with a `*` stands for the columns that it matches and that have no other role.

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

    def among(self, columns: Collection[str]) -> Roles:
        """Return the roles with names with a `*` expanded to columns.

        Examples
        --------
        >>> roles = Roles(
        ...     label="is_wet", time=None, key=None, ignore=frozenset(["is_*"]), features=("a*",)
        ... )
        >>> roles = roles.among(["is_wet", "is_hot", "ax", "ay", "b"])
        >>> sorted(roles.ignore), roles.features
        (['is_hot'], ('ax', 'ay'))

        """
        taken = {name for _, name in self.named() if name in columns}
        ignore = frozenset(_matched(self.ignore, columns, taken))
        features = self.features
        if features is not None:
            features = tuple(_matched(features, columns, taken | ignore))
        return replace(self, ignore=ignore, features=features)


def _matched(names: Iterable[str], columns: Collection[str], taken: set[str]) -> list[str]:
    """Replace names with a `*` by the columns that they match, except those taken."""
    found: list[str] = []
    for name in names:
        is_pattern = "*" in name and name not in columns
        matches = [column for column in columns if fits(column, name)] if is_pattern else []
        # A pattern without a match is reported as missing, as it was written.
        found += [column for column in matches if column not in taken] if matches else [name]
    return list(dict.fromkeys(found))


def fits(column: str, pattern: str) -> bool:
    """Return whether a column matches a pattern, in which `*` stands for any text."""
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), column, re.DOTALL) is not None


class RowReader:
    """Turns the rows of one table into events.

    Parameters
    ----------
    table
        The table; only its description is used.
    path
        Its name in messages.
    texts
        Whether text columns are features; one that the user names always is.
    first
        Its first rows, by which the columns are judged.
    notes
        Called with a line about columns that are left out, or are text.
    windowed
        Whether the rows will be cut into windows.

    """

    # _open      whether rows name their own columns
    # _patterns  ignored names with a `*`, which also apply to columns that appear later.
    # _known     every column judged or excluded; only if rows name their own columns.
    # _integers  whether text labels are integers; None before the first label.
    # _classes   every class so far, keyed by itself
    # _commas    whether numbers may have decimal commas
    # _written   columns whose commas are kept: they hold keys or classes.
    # _last_at   time of the last valid row, for rows whose own time cannot be read.
    # _last_of   time of the last valid row of each key.
    # n_numbers  number of different labels among the first rows, if they are no names of classes
    #            but numbers; else 0
    # n_backwards  number of valid rows earlier than the previous one of their key.
    # may_be_local  whether one of them may be where local time was set back in autumn
    # n_empty      number of valid rows without a value in any column

    def __init__(
        self,
        table: Table,
        *,
        path: object,
        roles: Roles,
        texts: bool,
        first: Sequence[Row | BadRow],
        notes: Callable[[str], None],
        windowed: bool,
    ) -> None:
        self._roles = roles
        self._typed = table.typed
        self._open = table.columns is None and roles.features is None
        self._last_at = 0.0
        self._last_of: dict[str | None, float] = {}
        self.n_backwards = 0
        self.n_numbers = 0
        self.may_be_local = False
        self.n_empty = 0
        self._classes: dict[Label, Label] = {}
        self._commas = table.decimal_comma
        self._written = {roles.key, None if roles.numbers else roles.label}
        given = [row.cells for row in first if isinstance(row, Row)]
        rows = [self._with_points(cells) for cells in given]
        columns = list(dict.fromkeys(name for cells in rows for name in cells))
        refuse_width(len(columns), path)
        if table.columns is not None:
            columns = table.columns
        self._patterns = [name for name in roles.ignore if "*" in name]
        roles = self._roles = roles.among(columns)
        # Rows that name their columns may name others later.
        owner = f"the first {len(rows)} rows of {path} have"
        if table.columns is not None:
            owner = f"{path} has"
        check_columns(columns, roles.named(), owner, head=table.head)
        _check_rows(first, path)
        _check_times(roles.time, rows, path)
        apart: set[str | None] = {roles.label, roles.time, roles.key, *roles.ignore, *table.unnamed}
        self._known = {*columns, *apart}
        names = list(roles.features or (c for c in columns if c not in apart))
        if not self._open:  # otherwise a column may appear later
            check_columns(names, [("windows", name) for name in roles.channels], owner)
        self._features = FeatureColumns(
            dict.fromkeys(names),
            rows,
            key=roles.key,
            named=roles.features is not None,
            texts=texts,
            typed=table.typed,
            unnamed=table.unnamed,
            notes=notes,
        )
        if self._features.empty:
            raise TableError(f"{path} {self._features.why_empty()}")
        cells = (row.get(roles.label) for row in rows) if roles.label is not None else ()
        labels: list[Any] = [cell for cell in cells if not is_missing(cell)]
        if not roles.numbers:
            self.n_numbers = _n_numbers(map(with_point, labels) if self._commas else labels)
        hints = self._hints(names, given, rows, labels)
        for note in hints if windowed else chain(hints, [_hint_of_signals(roles, rows)]):
            if note is not None:
                notes(note)
        judged = labels and not (table.typed or roles.numbers)
        self._integers = all(map(is_integer_text, labels)) if judged else None

    def _hints(
        self, features: list[str], given: list[Cells], rows: list[Cells], labels: list[Any]
    ) -> Iterator[str | None]:
        """Yield notes on how the first rows may be misread."""
        roles = self._roles
        if roles.label is not None and not roles.numbers:
            if self.n_numbers:
                among = f"{self.n_numbers} in the first {len(rows)} rows"
                yield _hint_of_numbers(roles.label, among)
            else:
                yield _hint_of_distinct_labels(roles.label, labels, len(rows))
            yield _hint_of_no_labels(roles.label, rows)
        numbers = features
        if roles.label is not None and roles.numbers:
            numbers = [*features, roles.label]
            written = list(map(with_point, labels)) if self._commas else labels
            yield from (": ".join(why) for why in why_no_numbers(roles.label, written))
        yield _hint_of_sentinels(numbers, rows)
        if self._commas:
            yield _hint_of_both_signs(numbers, given)
        if roles.time is not None:
            yield _hint_of_times(roles.time, rows)

    @property
    def without_values(self) -> list[str]:
        """Columns that were empty in all valid rows so far; none if no row was valid."""
        return self._features.undecided if self._last_of else []

    @property
    def placeholders(self) -> dict[str, str]:
        """The text of the first rows, by column, where later cells are mostly numbers."""
        return self._features.placeholders

    @property
    def n_unusable(self) -> Mapping[str, int]:
        """Number of rows so far that could not be used, by the feature whose cell did not fit."""
        return self._features.n_unusable

    @property
    def spellings(self) -> list[list[Label]]:
        """Classes so far that differ only in case, or in whether they are text."""
        alike: dict[str, list[Label]] = {}
        for y in self._classes:
            alike.setdefault(str(y).casefold(), []).append(y)
        return [classes for classes in alike.values() if len(classes) > 1]

    def late_numbers(self) -> str | None:
        """Return a note if classes so far are many numbers, which the first rows did not show."""
        n = 0 if self.n_numbers or len(self._classes) < _MANY_NUMBERS else _n_numbers(self._classes)
        return _hint_of_numbers(self._roles.label, f"{n} in all") if n else None

    def read(self, row: Row | BadRow) -> Received:
        """Convert a row to an event, or to a rejection."""
        roles, at, key = self._roles, self._last_at, None
        if roles.time is None:
            at = float(row.number)
        try:
            if isinstance(row, BadRow):
                raise ValueError(row.reason)
            cells = self._with_points(row.cells)
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
        self.n_empty += not event.x and all(map(is_missing, row.cells.values()))
        back_s = self._last_of.get(key, at) - at
        if back_s > 0:
            self.n_backwards += 1
            if roles.time is not None and back_s <= _HOUR_S:
                self.may_be_local |= lacks_zone(row.cells.get(roles.time))
        self._last_of[key] = at
        return Received(message=event, at=at)

    def _with_points(self, cells: Cells) -> Cells:
        if not self._commas:
            return cells
        written = self._written
        return {name: c if name in written else with_point(c) for name, c in cells.items()}

    def _x(self, cells: dict[str, Any]) -> dict[FeatureName, float | str]:
        if self._open and not cells.keys() <= self._known:
            late = cells.keys() - self._known
            self._features.add(
                name for name in late if not any(fits(name, one) for one in self._patterns)
            )
            self._known |= late
        return self._features.read(cells)

    def _truth(self, cell: Any) -> Label | None:
        name = self._roles.label
        if self._typed or self._roles.numbers:
            try:
                y = target_of(cell) if self._roles.numbers else label_of(cell)
            except ValueError as error:
                raise ValueError(f"label {name!r} {error}") from None
            if y is not None and not self._roles.numbers:
                check_kind(y, self._classes.setdefault(y, y))
            return y
        if is_missing(cell):
            return None
        if self._integers is None:
            self._integers = is_integer_text(cell)
        if not self._integers:
            text = str(cell.strip())
            return self._classes.setdefault(text, text)
        if is_integer_text(cell):
            number = int(cell)
            return self._classes.setdefault(number, number)
        hint = ""
        if is_number(cell):
            hint = '; to predict the number itself, set target = "number"'
        raise ValueError(
            f"label {name!r} must be an integer like the first ones, got {cell!r:.60}{hint}"
        )


def _hint_of_both_signs(names: Iterable[str], rows: list[Cells]) -> str | None:
    """Return a note if some numbers have a decimal comma, and others a decimal point.

    One of the two may separate thousands.
    """
    found = []
    for sign in (",", "."):
        cells = ((name, first_with(sign, [row.get(name) for row in rows])) for name in names)
        found.append(next((f"{cell!r} in {name}" for name, cell in cells if cell), None))
    if None in found:
        return None
    return (
        f"commas and points both count as decimal signs: {found[0]}, {found[1]}; remove those "
        "that separate thousands"
    )


# Nines, the smallest and largest integers of 16 and 32 bits, and other negative integers.
_SENTINEL = re.compile(r"(?:-?9{3,}|32767|65535|2147483647|-[1-9][0-9]*)(?:\.[09]*)?")
_ONLY_NEGATIVE = re.compile(r"-(?!9{2,}\b|32768\b|2147483648\b)")


def _hint_of_sentinels(names: Iterable[str], rows: list[Cells]) -> str | None:
    """Return a note if numbers that often stand for a missing one are far from all others."""
    found: dict[str, list[str]] = {}
    for name in names:
        for text in _sentinels(Counter(str(row.get(name, "")).strip() for row in rows)):
            found.setdefault(text, []).append(name)
    if not found:
        return None
    told = "; ".join(f"{text} in {', '.join(columns)}" for text, columns in sorted(found.items()))
    return (
        f"far from all other numbers: {told}; if it stands for a missing number, leave the cell "
        "empty"
    )


def _sentinels(texts: Counter[str]) -> list[str]:
    """Return texts that recur, and may stand for a missing number far from all numbers."""
    recurring = [text for text, n in texts.items() if n > 1 and _SENTINEL.fullmatch(text)]
    numbers: set[float] = set()
    for text in texts if recurring else ():
        with suppress(ValueError):
            number = float_of_text(text)
            numbers |= set() if number is None else {number}
    return [text for text in recurring if _is_far(text, numbers - {float(text)})]


def _is_far(text: str, others: Collection[float]) -> bool:
    """Return whether a number is farther from all others than these, which differ, are apart.

    Of negative numbers, only nines and the smallest integers are far from other negative ones.
    """
    if not others or (_ONLY_NEGATIVE.match(text) and min(others) < 0):
        return False
    far, apart = float(text), max(others) - min(others)
    return 0 < apart < min(abs(far - number) for number in others)


# Numbers above these cannot be seconds (the year 5138), milliseconds, and so on.
_UNITS = [
    (1e11, "milliseconds", 10**3),
    (1e14, "microseconds", 10**6),
    (1e17, "nanoseconds", 10**9),
]
# Days since 1900 from 2000 to 2064, with a time of day; seconds have fewer digits.
_DAYS = re.compile(r"(?:3[7-9]|[45][0-9])[0-9]{3}\.[0-9]{5,}")
_DATE = re.compile(
    r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:(?:[01][0-9]|2[0-3])(?:[0-5][0-9]){1,2})?"
)


def _hint_of_times(name: str, rows: list[Cells]) -> str | None:
    """Return a note if times can hardly be in seconds."""
    cells = [row.get(name) for row in rows]
    texts = [str(cell).strip() for cell in cells if not is_missing(cell)]
    if texts and all(map(_DATE.fullmatch, texts)):
        return (
            f"times of {name!r} look like dates ({texts[0]}), and count as seconds: write them as "
            "2026-08-01 or 2026-08-01T14:30:00"
        )
    times = []
    for cell in cells:
        with suppress(ValueError):
            times.append(time_of(cell))
    for least, unit, n in reversed(_UNITS):
        if 2 * sum(at > least for at in times) > len(times):
            return f"times of {name!r} look like {unit}, and count as seconds: divide them by {n}"
    n_days = sum(_DAYS.fullmatch(text) is not None for text in texts)
    if 2 * n_days > len(texts) and max(times) - min(times) < len(times):
        return (
            f"times of {name!r} look like days, as spreadsheets count them ({texts[0]}), and count "
            f"as seconds: convert them, as {SHOWN}"
        )
    return None


_MANY_A_SECOND = 5.0
_ENOUGH_STEPS = 20


def _hint_of_signals(roles: Roles, rows: list[Cells]) -> str | None:
    """Return a note if the rows of a key follow each other as those of a signal do."""
    steps, last = [], dict[str, float]()
    for cells in rows if roles.time else ():
        with suppress(ValueError):
            key, at = str(cells.get(roles.key or "")), time_of(cells.get(roles.time or ""))
            steps.append(at - last.get(key, at))
            last[key] = at
    steps = sorted(step for step in steps if step > 0)
    if len(steps) < _ENOUGH_STEPS or (rate := 1 / steps[len(steps) // 2]) < _MANY_A_SECOND:
        return None
    return (
        f"rows come about {rate:.0f} times a second, and each may be asked about: if they are a "
        "signal, cut it into windows, as docs/windows.md shows"
    )


# What programs write for an unknown label; "none" and "null" are left out, as they may be classes.
_NO_LABELS = frozenset(["na", "n/a", "#n/a", "?", "-"])


def _hint_of_no_labels(name: str, rows: list[Cells]) -> str | None:
    """Return a note if classes look like placeholders for missing labels."""
    labels = {str(row.get(name)).strip() for row in rows}
    found = sorted(label for label in labels if label.lower() in _NO_LABELS)
    if not found:
        return None
    return (
        f"{', '.join(found)} in {name!r} counts as a class; leave the cell empty where there is no "
        "label"
    )


# Classes repeat, and their names are whole numbers, if numbers at all.
_LEAST_DIFFERENT = 20
_MANY_NUMBERS = 100  # so many whole numbers that repeat are hardly names either


def _hint_of_numbers(name: str | None, among: str) -> str:
    """Return a note that numbers count as classes, `among` which there are so many."""
    return (
        f"every different number in {name!r} counts as a class, {among}; to predict the number "
        'itself, set target = "number" (for replay, --target number)'
    )


def _hint_of_distinct_labels(name: str, labels: list[Any], n_rows: int) -> str | None:
    """Return a note if hardly any label repeats, as where they are identifiers."""
    n_different = len(set(map(str, labels)))
    if n_different < _LEAST_DIFFERENT or 2 * n_different <= len(labels):
        return None
    return (
        f"{name!r} has {n_different} different labels in the first {n_rows} rows: from labels "
        "that do not repeat nothing can be learned; name the column of the classes"
    )


def _n_numbers(labels: Iterable[Any]) -> int:
    """Return how many different numbers labels are; 0 if they may be names of classes."""
    try:
        numbers = [target_of(label) for label in labels]
    except ValueError:
        return 0
    different = {y for y in numbers if y is not None}
    repeat = 2 * len(different) <= len(numbers) and all(y.is_integer() for y in different)
    return 0 if repeat or len(different) < _LEAST_DIFFERENT else len(different)


def check_columns(
    columns: list[str], named: list[tuple[str, str]], owner: str, *, head: Sequence[str] = ()
) -> None:
    """Refuse roles whose column is missing; `owner` begins the message, as in "log.csv has".

    The first lines of a file, `head`, tell whether one of them is its header.
    """
    for role, name in named:
        if name not in columns:
            near = get_close_matches(name, columns, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            alike = [c for c in columns if normalize("NFC", c) == normalize("NFC", name)]
            if alike:
                hint = f"; one that looks the same has another Unicode form, {alike[0]!a}"
            if len(columns) == 1 and name in columns[0]:
                hint = (
                    "; expected commas, semicolons or tabs between the cells, or a line before "
                    "the header that names another sign, such as sep=|"
                )
            if not hint and 2 * sum(map(is_number, columns)) > len(columns):
                hint = (
                    "; if the first line is a row, name the columns in a line before it, as "
                    f"{SHOWN}"
                )
            line = _line_with(name, head)
            if line > 1:
                hint = (
                    f"; line {line} has it, so remove the lines before it (as with tail -n "
                    f"+{line} OLD > NEW)"
                )
            there = ", ".join(columns[:MOST_NAMED])
            more = len(columns) - MOST_NAMED
            there += f" and {more} more" if more > 0 else ""
            raise TableError(f"{owner} no column {name!r} ({role}); columns: {there}{hint}")


def _line_with(name: str, head: Sequence[str]) -> int:
    """Return the number of the first line with a name among its cells, and no number, 0 if none."""
    for number, line in enumerate(head, 1):
        for cells in (cells_of(line, delimiter) for delimiter in ",;\t"):
            if name in cells and not any(map(is_number, cells)):
                return number
    return 0


def _check_rows(first: Sequence[Row | BadRow], path: object) -> None:
    """Refuse a table if all its first rows cannot be read for one reason, such as their width."""
    reasons = {row.reason if isinstance(row, BadRow) else "" for row in first}
    if len(reasons) == 1 and "" not in reasons:
        raise TableError(
            f"none of the first {len(first)} rows of {path} could be read; {place_of(first[0])}: "
            f"{reasons.pop()}"
        )


def _check_times(name: str | None, rows: list[Cells], path: object) -> None:
    """Refuse a table if its first rows have times, and all are of a kind that cannot be read."""
    cells = [row[name] for row in rows if not _is_no_time(row.get(name))] if name else []
    error = ""
    for cell in cells:
        try:
            time_of(cell)
        except ValueError as unreadable:
            error = error or str(unreadable)
        else:
            return
    if error:
        raise TableError(
            f"no time in the first {len(rows)} rows of {path} can be read: {name!r} {error}; "
            f"rewrite the column, as {SHOWN}"
        )


def _is_no_time(cell: Any) -> bool:
    """Return whether a cell is what a clock that was not set yet has written."""
    return is_no_number(cell) or not str(cell).strip("0-/.: TZ")


def _required(cells: dict[str, Any], name: str, role: str, parse: Callable[[Any], Any]) -> Any:
    cell = cells.get(name)
    if is_missing(cell):
        raise ValueError(f"{role} {name!r} is missing")
    try:
        return parse(cell)
    except ValueError as error:
        raise ValueError(f"{role} {name!r} {error}") from None
