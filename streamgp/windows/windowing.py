"""Windows of event time, per key: which rows belong to which window, and when one is closed.

Times are whole microseconds since the epoch inside, so that bounds are exact. Windows of every key
start at multiples of `hop_s`; a row belongs to each window with start <= time < end. A window is
closed, once, when the watermark of its key reaches its end: the latest time of a row of the key
less `grace_s`, or the time that `on_time` was told.

"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite, isnan, nan
from numbers import Real
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from streamgp.base import Label, State
from streamgp.common.validation import check_non_negative, check_positive, check_whole
from streamgp.windows.extraction import (
    OwnFeature,
    Segment,
    min_max_decimated,
    plan_for,
)

_US = 1_000_000
# From the year 100 to the year 5138: others are no numbers of seconds, or have no date.
_LEAST_S, _MOST_S = -5.9e10, 1e11
_JUMP_S = 86_400.0
_N_LENGTHS = 10


class Windows:
    """Cuts raw rows into windows and computes the features of each.

    Rows may come out of order by up to `grace_s`. One that comes later misses the windows that are
    closed by then. What is wrong with rows never ends a run: it is counted in `rejected`.

    A single row that lies more than a day (or ten windows) after the one before is held back until
    another one confirms it: a clock that was wrong once would close all windows up to that moment.

    Parameters
    ----------
    length_s
        Seconds from the start of a window to its end.
    hop_s
        Seconds between the starts of two windows; None for `length_s`, windows without overlap.
    features
        The name of a set (`basic`, `activity`, `gps`, `calendar`), or several names of sets and
        features, and functions of your own, from values and times (seconds) of a channel to a
        number.
    by
        Column of the key; None if all rows are of one key.
    time
        Column of the time: POSIX seconds, a `datetime`, or ISO 8601. Without a zone it is UTC.
    vectors
        Channels that are components of one vector; its magnitude becomes a channel as well.
    gps
        Columns of latitude and longitude in degrees, for features of the track.
    label
        Column of the label; a window has that of most of its rows.
    grace_s
        Seconds for which a window waits for rows that are out of order.
    min_rows
        Windows with fewer rows are left out.
    max_rows
        Rows kept for a key at most; further ones are dropped.
    excerpt
        Whether a window brings its raw signals, decimated to 200 values a channel.
    zone
        Time zone of the calendar features.

    Attributes
    ----------
    n_rows
        Rows seen.
    rejected
        What could not be used: counts by reason.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what is described above.

    Examples
    --------
    >>> windows = Windows(10.0, features=["mean", "slope"], by="user", label="activity")
    >>> rows = [
    ...     {"time": 100.0 + t, "user": "ann", "speed": 2.0 * t, "activity": "walk"}
    ...     for t in range(11)
    ... ]
    >>> [window] = [window for row in rows for window in windows.update_one(row)]
    >>> window["event_id"], window["x"], window["y"], window["n_rows"]
    ('ann@100', {'speed.mean': 9.0, 'speed.slope': 2.0}, 'walk', 10)

    """

    def __init__(
        self,
        length_s: float,
        hop_s: float | None = None,
        *,
        features: str | Iterable[str | OwnFeature] = "basic",
        by: str | None = None,
        time: str = "time",
        vectors: Iterable[Iterable[str]] = (),
        gps: Iterable[str] | None = None,
        label: str | None = None,
        grace_s: float = 0.0,
        min_rows: int = 1,
        max_rows: int = 100_000,
        excerpt: bool = False,
        zone: str = "UTC",
    ) -> None:
        hop_s = length_s if hop_s is None else hop_s
        for name, value in (("length_s", length_s), ("hop_s", hop_s)):
            check_positive(name, value)
            if round(value * _US) < 1:
                raise ValueError(f"{name} must be at least a microsecond, got {value!r}")
        check_non_negative("grace_s", grace_s)
        self.length_s, self.hop_s, self.grace_s = length_s, hop_s, grace_s
        self.min_rows = check_whole("min_rows", min_rows, 1)
        self.max_rows = check_whole("max_rows", max_rows, 1)
        self.by, self.time, self.label, self.excerpt = by, time, label, excerpt
        self.n_rows = 0
        self.rejected: Counter[str] = Counter()
        self._plan = plan_for(features, vectors, gps, _zone(zone))
        self._grid = _Grid(round(length_s * _US), round(hop_s * _US))
        self._grace = round(grace_s * _US)
        self._jump = round(max(_JUMP_S, _N_LENGTHS * length_s) * _US)
        self._aside = frozenset(name for name in (by, time, label) if name is not None)
        self._keys: dict[Any, _OpenRows] = {}

    def update_one(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take a row, and return the windows that it closed, the earliest first."""
        self.n_rows += 1
        if not isinstance(row, Mapping):
            self.rejected["not a row"] += 1
            return []
        at = _microseconds(row.get(self.time))
        if at is None:
            self.rejected[f"no time in {self.time!r}"] += 1
            return []
        key = None if self.by is None else _label(row.get(self.by))
        if self.by is not None and not isinstance(key, str | int | float):
            self.rejected[f"no key in {self.by!r}"] += 1
            return []
        rows = self._keys.get(key)
        if rows is None:
            rows = self._keys[key] = _OpenRows()
        if rows.newest is not None and at - rows.newest > self._jump:
            return self._far_ahead(key, rows, at, row)
        return self._take(key, rows, at, row)

    def on_time(self, now: float) -> list[dict[str, Any]]:
        """Close the windows of all keys that end by `now` (POSIX seconds) less the grace.

        Raises
        ------
        ValueError
            If `now` is no time.

        """
        moment = _microseconds(now)
        if moment is None:
            raise ValueError(f"now must be POSIX seconds, got {now!r}")
        until = moment - self._grace
        closed = [w for key, rows in self._keys.items() for w in self._close(key, rows, until)]
        return sorted(closed, key=lambda window: window["start"])  # keys in order of appearance

    def flush(self) -> list[dict[str, Any]]:
        """Close all windows: no row will follow."""
        closed = []
        for key, rows in self._keys.items():
            if rows.held is not None:
                rows.held = None
                self.rejected["time far ahead of the others"] += 1
            if rows.times:
                closed += self._close(key, rows, rows.times[-1] + self._grid.length + 1)
        return sorted(closed, key=lambda window: window["start"])

    def state(self) -> State:
        """Return what the next windows depend on, as plain JSON values."""
        return {
            "n_rows": self.n_rows,
            "rejected": dict(self.rejected),
            "keys": [[key, rows.state()] for key, rows in self._keys.items()],
        }

    def load_state(self, state: State) -> None:
        """Go on from what `state` returned."""
        self.n_rows = int(state["n_rows"])
        self.rejected = Counter(state["rejected"])
        self._keys = {key: _OpenRows.of(rows) for key, rows in state["keys"]}

    # --- inside

    def _far_ahead(
        self, key: Any, rows: _OpenRows, at: int, row: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Hold a row back that is far ahead of all others, or believe it and the one held back."""
        held = rows.held
        if held is None or abs(at - held[0]) > self._jump:
            if held is not None:
                self.rejected["time far ahead of the others"] += 1
            rows.held = at, {n: v for n, v in row.items() if isinstance(v, str | int | float)}
            return []
        rows.held = None
        return self._take(key, rows, *held) + self._take(key, rows, at, row)

    def _take(
        self, key: Any, rows: _OpenRows, at: int, row: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        if rows.closed_until is not None and self._grid.first_end(at) <= rows.closed_until:
            self.rejected["too late"] += 1
        rows.newest = at if rows.newest is None else max(rows.newest, at)
        if rows.closed_until is None or self._grid.last_end(at) > rows.closed_until:
            if len(rows.times) >= self.max_rows:
                self.rejected[f"more than {self.max_rows} rows in open windows"] += 1
            else:
                label = None if self.label is None else row.get(self.label)
                rows.add(at, row, label, self._aside, self.rejected)
        watermark = rows.newest - self._grace
        if rows.next_end is None or watermark >= rows.next_end:
            return self._close(key, rows, watermark)
        return []

    def _close(self, key: Any, rows: _OpenRows, until: int) -> list[dict[str, Any]]:
        """Close the windows of a key that end by `until`, and let rows go that no other needs."""
        grid, times = self._grid, rows.times
        if rows.closed_until is not None and until <= rows.closed_until:
            return []
        closed = []
        first = None if rows.closed_until is None else grid.first_open(rows.closed_until)
        for number in grid.closing(times, first, until):
            start, end = grid.bounds(number)
            i, j = bisect_left(times, start), bisect_left(times, end)
            if j - i >= self.min_rows:
                closed.append(self._window(key, rows, start, i, j))
        rows.closed_until = until
        rows.drop_before(grid.bounds(grid.first_open(until))[0])
        rows.next_end = grid.bounds(grid.first_open(until))[1]
        return closed

    def _window(self, key: Any, rows: _OpenRows, start: int, i: int, j: int) -> dict[str, Any]:
        begin, end = start / _US, (start + self._grid.length) / _US
        segment = rows.segment(i, j, begin, end)
        y, purity = _majority(rows.labels[i:j])
        window = {
            "event_id": _event_id(key, start),
            "key": key,
            "start": begin,
            "end": end,
            "x": self._plan.features(segment),
            "y": y,
            "purity": purity,
            "n_rows": j - i,
        }
        if self.excerpt:
            found = {n: min_max_decimated(v) for n, v in segment.numbers.items()}
            window["excerpt"] = {name: values for name, values in found.items() if values}
        return window


class _Grid:
    """Bounds of windows, in microseconds; window number k starts at k times the hop."""

    def __init__(self, length: int, hop: int) -> None:
        self.length = length
        self.hop = hop

    def bounds(self, number: int) -> tuple[int, int]:
        return number * self.hop, number * self.hop + self.length

    def first_open(self, until: int) -> int:
        """Return the number of the first window that ends after `until`."""
        return (until - self.length) // self.hop + 1

    def first_end(self, at: int) -> int:
        """Return the end of the first window that a row belongs to, or would if it were longer."""
        return self.bounds(min(self.first_open(at), at // self.hop))[1]

    def last_end(self, at: int) -> int:
        """Return the end of the last window that begins by `at`."""
        return self.bounds(at // self.hop)[1]

    def closing(self, times: Sequence[int], number: int | None, until: int) -> Iterator[int]:
        """Return the numbers of windows with rows that end by `until`, from `number` on."""
        last = self.first_open(until)
        if number is None:
            number = self.first_open(times[0]) if times else last
        while number < last:
            i = bisect_left(times, self.bounds(number)[0])
            if i == len(times):
                return
            # Over a pause of a day there are many windows without a row.
            number = max(number, self.first_open(times[i]))
            if number < last:
                yield number
            number += 1


class _OpenRows:
    """Rows of one key in windows that are still open, in the order of their times.

    Rows of the same time are ordered by their values, so that windows do not depend on the order in
    which they came; one that repeats another in everything is dropped.
    """

    # newest        latest time seen; closed_until: up to which windows are closed
    # next_end      end of the first open window, None before the first row
    # held          a row far ahead of all others, until another one confirms it
    # numbers, texts, labels  columns, as long as `times`
    __slots__ = (
        "closed_until",
        "held",
        "labels",
        "newest",
        "next_end",
        "numbers",
        "texts",
        "times",
    )

    def __init__(self) -> None:
        self.newest: int | None = None
        self.closed_until: int | None = None
        self.next_end: int | None = None
        self.held: tuple[int, dict[str, Any]] | None = None
        self.times: array[int] = array("q")
        self.numbers: dict[str, array[float]] = {}
        self.texts: dict[str, list[str | bool | None]] = {}
        self.labels: list[Label | None] = []

    def add(
        self,
        at: int,
        row: Mapping[str, Any],
        label: Any,
        aside: frozenset[str],
        rejected: Counter[str],
    ) -> None:
        """Insert a row at its place."""
        n = len(self.times)
        is_latest = not n or at > self.times[-1]
        place = n if is_latest else self._place_of(at, row, label)
        if place is None:
            rejected["repeated"] += 1
            return
        self.times.insert(place, at)
        told = _label(label)
        if told is not None and not isinstance(told, str | int | float):
            rejected["unusable label"] += 1
            told = None
        self.labels.insert(place, told)
        for name, value in row.items():
            column = self.numbers.get(name)
            # A difference is what tells finite floats from all else in the least time.
            if column is not None and value.__class__ is float and value - value == 0.0:
                column.insert(place, value)
            elif name not in aside:
                self._add_value(name, value, place, n, rejected)
        for numbers in self.numbers.values():
            if len(numbers) == n:
                numbers.insert(place, nan)
        for texts in self.texts.values():
            if len(texts) == n:
                texts.insert(place, None)

    def drop_before(self, start: int) -> None:
        """Let go of the rows before a moment, and of channels that are empty since."""
        n = bisect_left(self.times, start)
        if n:
            columns: list[Any] = [self.times, self.labels]
            for column in [*columns, *self.numbers.values(), *self.texts.values()]:
                del column[:n]

    def segment(self, i: int, j: int, start: float, end: float) -> Segment:
        """Return the rows from `i` to `j` as arrays."""
        numbers = {name: np.array(column[i:j]) for name, column in self.numbers.items()}
        return Segment(
            times=np.array(self.times[i:j]) / _US,
            numbers=numbers,
            texts={name: column[i:j] for name, column in self.texts.items()},
            start=start,
            end=end,
        )

    def state(self) -> list[Any]:
        numbers = {
            name: [None if isnan(value) else value for value in column]
            for name, column in self.numbers.items()
        }
        bounds = [self.newest, self.closed_until, self.next_end]
        held = None if self.held is None else list(self.held)
        return [bounds, held, self.times.tolist(), numbers, dict(self.texts), list(self.labels)]

    @classmethod
    def of(cls, state: Sequence[Any]) -> _OpenRows:
        rows = cls()
        (rows.newest, rows.closed_until, rows.next_end), held, times, numbers, texts, labels = state
        rows.held = None if held is None else (held[0], dict(held[1]))
        rows.times = array("q", times)
        rows.numbers = {
            name: array("d", [nan if value is None else value for value in column])
            for name, column in numbers.items()
        }
        rows.texts = {name: list(column) for name, column in texts.items()}
        rows.labels = list(labels)
        return rows

    def _add_value(self, name: str, value: Any, place: int, n: int, rejected: Counter[str]) -> None:
        """Insert a value that is no float of a known channel; the first one decides the kind."""
        if not isinstance(name, str):
            rejected["column whose name is no text"] += 1
            return
        number, text = _number(value), _text(value)
        if number is None and text is None:
            if not _is_missing(value):
                rejected[f"unusable value of {name!r}"] += 1
            return
        if name in self.texts or (text is not None and name not in self.numbers):
            if text is None:
                rejected[f"a number where {name!r} has texts"] += 1
            else:
                self.texts.setdefault(name, [None] * n).insert(place, text)
        elif number is None:
            rejected[f"no number in {name!r}"] += 1
        else:
            self.numbers.setdefault(name, array("d", [nan]) * n).insert(place, number)

    def _place_of(self, at: int, row: Mapping[str, Any], label: Any) -> int | None:
        """Return where a row belongs that is not the latest, None if it is there already."""
        low, high = bisect_left(self.times, at), bisect_right(self.times, at)
        if low == high:
            return low
        names = sorted([*self.numbers, *self.texts])
        new = [_ordered(value) for value in (*map(row.get, names), _label(label))]
        there = [
            [_ordered(value) for value in (*(self._at(name, i) for name in names), self.labels[i])]
            for i in range(low, high)
        ]
        return None if new in there else low + bisect_left(there, new)

    def _at(self, name: str, i: int) -> Any:
        column = self.numbers.get(name)
        return self.texts[name][i] if column is None else column[i]


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value) or _is_nan(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


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
    """Return a text that orders the values that are kept, and is the same for equal ones."""
    number, text = _number(value), _text(value)
    return str(text) if text is not None else "" if number is None else repr(number)


def _label(value: Any) -> Any:
    """Return a label, None if there is none; the scalars of numpy become plain values."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if _is_missing(plain) else plain


def _majority(labels: Sequence[Label | None]) -> tuple[Label | None, float | None]:
    """Return the label of most rows, of equally frequent ones the first, and its share."""
    told = [label for label in labels if label is not None]
    if not told:
        return None, None
    y, n = Counter(told).most_common(1)[0]
    return y, n / len(told)


def _microseconds(value: Any) -> int | None:
    """Return a time as whole microseconds since the epoch; None if it is none."""
    if value.__class__ is not float:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.strip())
            except ValueError:
                return None
        if isinstance(value, datetime):
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            try:
                value = aware.timestamp()
            except (ValueError, OverflowError):
                return None
        elif isinstance(value, bool) or not isinstance(value, Real):
            return None
        value = float(value)
    return round(value * _US) if _LEAST_S <= value <= _MOST_S else None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name!r}; take a name such as Europe/Rome") from None


def _event_id(key: Any, start: int) -> str:
    seconds, rest = divmod(start, _US)
    text = str(seconds)
    if rest:
        text += f".{rest:06d}".rstrip("0")
    return text if key is None else f"{key}@{text}"
