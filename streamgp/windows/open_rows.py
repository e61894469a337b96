"""Rows of one key in windows that are still open, and their state in parts.

The state of a key consists of the part `head` and one part for every second of its rows, so that a
worker that publishes changes does not repeat all rows with each new one.

"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from itertools import repeat
from math import isfinite, isnan, nan
from numbers import Real
from operator import index
from typing import Any

import msgspec
import numpy as np

from streamgp.base import Label, State
from streamgp.common.feature_values import is_missing
from streamgp.windows.extraction import Segment

MICROSECONDS = 1_000_000
"""Microseconds in a second; a part of the state also covers one second."""
MOST_CHANNELS = 500
"""Most channels of one key: a row may bring any columns."""
HEAD = "head"
_MOST_REASONS = 100


class OpenRows:
    """Rows of one key in windows that are still open, in the order of their times.

    Rows of the same time are ordered by their values, so that windows do not depend on the order of
    arrival; exact duplicates are dropped. Times are microseconds.

    Attributes
    ----------
    newest
        Latest time of a row, None before the first.
    closed_until
        Time up to which windows are closed, None before the first row.
    next_end
        End of the first open window, None before the first row.
    held
        Time, values and label of a row far ahead of all others, until another one confirms it.
    seen_at
        When the latest row came by the caller's clock, POSIX seconds; None without a clock.
    times, labels
        Times and labels of the rows.
    touched
        Seconds whose rows have changed since the last call of `changes`; None if it will never be
        called.

    """

    # _numbers, _texts  columns, as long as `times`
    # _start            no row before this time is needed any more, None before the first window
    # _written          seconds that `changes` has returned, or a state had, and that still exist
    __slots__ = (
        "_numbers",
        "_start",
        "_texts",
        "_written",
        "closed_until",
        "held",
        "labels",
        "newest",
        "next_end",
        "seen_at",
        "times",
        "touched",
    )

    def __init__(self, *, keep_changes: bool = False) -> None:
        self.newest: int | None = None
        self.closed_until: int | None = None
        self.next_end: int | None = None
        self.held: tuple[int, dict[str, Any], Any] | None = None
        self.seen_at: float | None = None
        self.times: array[int] = array("q")
        self.labels: list[Label | None] = []
        self.touched: set[int] | None = set() if keep_changes else None
        self._numbers: dict[str, array[float]] = {}
        self._texts: dict[str, list[str | bool | None]] = {}
        self._start: int | None = None
        self._written: set[int] = set()

    def add(
        self,
        at: int,
        row: Mapping[str, Any],
        label: Any,
        aside: frozenset[str],
        rejected: Counter[str],
    ) -> None:
        """Insert a row at its place.

        Parameters
        ----------
        at
            Its time.
        row
            Values by column.
        label
            Its label, or a value that is not one.
        aside
            Columns that are not channels.
        rejected
            Counts what cannot be used, by reason.

        """
        n = len(self.times)
        is_latest = not n or at > self.times[-1]
        place = n if is_latest else self._place_of(at, row, label, aside)
        if place is None:
            rejected["repeated"] += 1
            return
        if self.touched is not None:
            self.touched.add(at // MICROSECONDS)
        self.times.insert(place, at)
        told = plain_label(label)
        if told is not None and not isinstance(told, str | int | float):
            rejected["unusable label"] += 1
            told = None
        self.labels.insert(place, told)
        for name, value in row.items():
            column = self._numbers.get(name)
            # The difference is the fastest way to tell finite floats from everything else.
            if column is not None and value.__class__ is float and value - value == 0.0:
                column.insert(place, value)
            elif name not in aside:
                self._add_value(name, value, place, n, rejected)
        for numbers in self._numbers.values():
            if len(numbers) == n:
                numbers.insert(place, nan)
        for texts in self._texts.values():
            if len(texts) == n:
                texts.insert(place, None)

    def drop_before(self, start: int) -> None:
        """Drop the rows before a given time."""
        self._start = start
        n = bisect_left(self.times, start)
        if n:
            columns: list[Any] = [self.times, self.labels]
            for column in [*columns, *self._numbers.values(), *self._texts.values()]:
                del column[:n]

    def segment(self, i: int, j: int, start: float, end: float) -> Segment:
        """Return the rows from `i` to `j` as arrays."""
        numbers = {name: np.array(column[i:j]) for name, column in self._numbers.items()}
        return Segment(
            times=np.array(self.times[i:j]) / MICROSECONDS,
            numbers=numbers,
            texts={name: column[i:j] for name, column in self._texts.items()},
            start=start,
            end=end,
        )

    # --- state

    def state(self) -> State:
        """Return all parts, as plain JSON values."""
        seconds = dict.fromkeys(at // MICROSECONDS for at in self.times)
        return {HEAD: self._head(), **{str(s): self._rows_of(s) for s in seconds}}

    def changes(self) -> dict[str, Any]:
        """Return the parts that have changed since the last call; None for those that are gone."""
        assert self.touched is not None  # made to keep changes
        parts: dict[str, Any] = {HEAD: self._head()}
        first = self.times[0] // MICROSECONDS if self.times else None
        for second in sorted(self.touched):
            if first is not None and second >= first and (rows := self._rows_of(second)):
                parts[str(second)] = rows
                self._written.add(second)
        self.touched.clear()
        for second in sorted(s for s in self._written if first is None or s < first):
            parts[str(second)] = None
            self._written.discard(second)
        return parts

    def packed(self) -> bytes | None:
        """Return the state in a tenth of the memory if there are no rows, else None.

        `changes` must have returned what it had to, as for most keys that have fallen silent.
        """
        if self.times or self.held is not None or self.touched or self._written:
            return None
        return msgspec.json.encode(self._head())

    @classmethod
    def of(cls, parts: Mapping[str, Any], *, keep_changes: bool = False) -> OpenRows:
        """Return the rows that the parts of a state describe.

        Raises
        ------
        ValueError, TypeError, LookupError, AttributeError, ArithmeticError
            If they describe none.

        """
        rows, head = cls(keep_changes=keep_changes), parts[HEAD]
        bounds = (None if at is None else index(at) for at in head["bounds"])
        rows.newest, rows.closed_until, rows.next_end, rows._start = bounds
        rows.seen_at = None if head["seen_at"] is None else float(head["seen_at"])
        if head["held"] is not None:
            at, values, label = head["held"]
            rows.held = index(at), dict(values), label
        rows._numbers = {name: array("d") for name in head["numbers"]}
        rows._texts = {name: [] for name in head["texts"]}
        for second in sorted(int(name) for name in parts if name != HEAD):
            rows._append(second, parts[str(second)])
        if rows._start is not None:
            rows.drop_before(rows._start)  # some rows of a second may be needed no longer
        return rows

    def _head(self) -> dict[str, Any]:
        return {
            "bounds": [self.newest, self.closed_until, self.next_end, self._start],
            "seen_at": self.seen_at,
            "held": None if self.held is None else list(self.held),
            "numbers": list(self._numbers),
            "texts": list(self._texts),
        }

    def _rows_of(self, second: int) -> dict[str, Any] | None:
        """Return the rows of one second, None if there are none."""
        begin = second * MICROSECONDS
        i, j = bisect_left(self.times, begin), bisect_left(self.times, begin + MICROSECONDS)
        if i == j:
            return None
        numbers = {
            name: [None if isnan(value) else value for value in column[i:j]]
            for name, column in self._numbers.items()
        }
        columns: dict[str, Any] = numbers | {n: column[i:j] for n, column in self._texts.items()}
        return {
            "times": [at - begin for at in self.times[i:j]],
            "labels": self.labels[i:j],
            "columns": {n: c for n, c in columns.items() if any(v is not None for v in c)},
        }

    def _append(self, second: int, part: Mapping[str, Any]) -> None:
        n, columns = len(part["times"]), part["columns"]
        if {n} != {len(part["labels"]), n, *map(len, columns.values())}:
            raise ValueError(
                f"rows of second {second} must have as many labels and values as times"
            )
        self.times.extend(second * MICROSECONDS + at for at in part["times"])
        self.labels += part["labels"]
        for name, numbers in self._numbers.items():
            found = columns.get(name)
            numbers.extend([nan] * n if found is None else [nan if v is None else v for v in found])
        for name, texts in self._texts.items():
            texts += columns.get(name, repeat(None, n))
        self._written.add(second)

    # --- inside

    def _add_value(self, name: str, value: Any, place: int, n: int, rejected: Counter[str]) -> None:
        """Insert a value other than a float of a known channel; the first one decides the kind."""
        if not isinstance(name, str):
            rejected["column whose name is no text"] += 1
            return
        number, text = _number(value), _text(value)
        if number is None and text is None:
            if not _is_missing(value):
                _count(rejected, f"unusable value of {name!r:.80}")
            return
        is_known = name in self._texts or name in self._numbers
        if not is_known and len(self._texts) + len(self._numbers) >= MOST_CHANNELS:
            rejected[f"more than {MOST_CHANNELS} channels"] += 1
        elif name in self._texts or (text is not None and name not in self._numbers):
            if text is None:
                _count(rejected, f"a number where {name!r:.80} has texts")
            else:
                self._texts.setdefault(name, [None] * n).insert(place, text)
        elif number is None:
            _count(rejected, f"no number in {name!r:.80}")
        else:
            self._numbers.setdefault(name, array("d", [nan]) * n).insert(place, number)

    def _place_of(
        self, at: int, row: Mapping[str, Any], label: Any, aside: frozenset[str]
    ) -> int | None:
        """Return the place of a row that is not the latest, None if it is there already."""
        low, high = bisect_left(self.times, at), bisect_right(self.times, at)
        if low == high:
            return low
        # With those that are new, unless there are too many: no other row has a value there.
        is_full = len(self._numbers) + len(self._texts) >= MOST_CHANNELS
        found = (name for name in row if isinstance(name, str) and name not in aside)
        names = sorted({*self._numbers, *self._texts, *(() if is_full else found)})
        kept = (self._kept(name, row.get(name)) for name in names)
        new = [_ordered(value) for value in (*kept, plain_label(label))]
        there = [
            [_ordered(value) for value in (*(self._at(name, i) for name in names), self.labels[i])]
            for i in range(low, high)
        ]
        return None if new in there else low + bisect_left(there, new)

    def _kept(self, name: str, value: Any) -> Any:
        """Return what a column keeps of a value; the value itself if there is no such column."""
        if name in self._numbers:
            return _number(value)
        return _text(value) if name in self._texts else value

    def _at(self, name: str, i: int) -> Any:
        column = self._numbers.get(name, self._texts.get(name))
        return None if column is None else column[i]


def unpacked(data: bytes) -> State:
    """Return the state that `packed` has returned."""
    return {HEAD: msgspec.json.decode(data)}


def plain_label(value: Any) -> Any:
    """Return a label, None if there is none; the scalars of numpy become plain values."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if _is_missing(plain) else plain


def plain_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, texts and booleans of a row."""
    values = ((name, value) for name, value in row.items() if isinstance(name, str))
    found = {
        name: v if (v := _text(value)) is not None else _number(value) for name, value in values
    }
    return {name: value for name, value in found.items() if value is not None}


def _count(rejected: Counter[str], reason: str) -> None:
    """Count a reason that names a column: there may be any number of these."""
    is_new = reason not in rejected and len(rejected) >= _MOST_REASONS
    rejected["other unusable values" if is_new else reason] += 1


def _is_missing(value: Any) -> bool:
    return (isinstance(value, str) and not value) or is_missing(value)


def _text(value: Any) -> str | bool | None:
    """Return a categorical value, None if it is none."""
    if isinstance(value, np.bool_):
        return bool(value)
    return value if isinstance(value, str | bool) and value != "" else None


def _number(value: Any) -> float | None:
    """Return a finite number, None if it is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _ordered(value: Any) -> str:
    """Return a text that orders the values that are kept, and is equal for equal ones."""
    number, text = _number(value), _text(value)
    return str(text) if text is not None else "" if number is None else repr(number)
