"""Windows of event time, per key: which rows belong to which window, and when one is closed.

Internally, times are whole microseconds since the epoch, so that bounds are exact. Windows of every
key start at multiples of `hop_s`; a row belongs to each window with start <= time < end. A window
is closed, once, when the watermark of its key reaches its end. The watermark is the latest time of
a row of the key less `grace_s`, or the time passed to `on_time`.

"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from numbers import Real
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from streamgp.base import Label, State
from streamgp.common.validation import (
    check_column,
    check_flag,
    check_positive,
    check_up_to,
    check_whole,
)
from streamgp.windows.extraction import OwnFeature, min_max_decimated, plan_for
from streamgp.windows.open_rows import (
    MICROSECONDS,
    OpenRows,
    plain_label,
    plain_values,
    unpacked,
)

# From the year 100 to the year 5138: other numbers are not times in seconds, or have no date.
_LEAST_S, _MOST_S = -5.9e10, 1e11
LONGEST_S = 1e12
"""Upper limit of all durations of windows."""
_JUMP_S = 86_400.0
_N_LENGTHS = 10
_MOST_OVERLAP = 1000


class Windows:
    """Cuts raw rows into windows and computes the features of each.

    Rows may come out of order by up to `grace_s`. A later row misses the windows that are already
    closed. Faulty rows never end a run: they are counted in `rejected`.

    A single row more than a day (or ten windows) after the one before is held back until another
    row confirms it: otherwise a clock that was wrong once would close all windows up to then.

    Parameters
    ----------
    length_s
        Seconds from the start of a window to its end.
    hop_s
        Seconds between the starts of two windows; None for `length_s`, windows without overlap.
    features
        The name of a set (`basic`, `activity`, `gps`, `calendar`), or several names of sets and
        features, and functions of your own that map the values and times (seconds) of a channel to
        a number.
    by
        Column of the key; None if all rows have the same key.
    time
        Column of the time: POSIX seconds, a `datetime`, or ISO 8601. Without a zone it is UTC.
    vectors
        Channels that are components of one vector; its magnitude becomes a channel as well.
    gps
        Columns of latitude and longitude in degrees, for features of the track.
    label
        Column of the label; a window has the label of most of its rows.
    grace_s
        Seconds for which a window waits for rows that are out of order.
    min_rows
        Windows with fewer rows are left out.
    max_rows
        Most rows kept for a key; further ones are dropped.
    excerpt
        Whether a window includes its raw signals, decimated to 200 values per channel.
    zone
        Time zone of the calendar features.
    keep_changes
        Whether `changes` is going to be called now and then; keeping changes takes memory.

    Attributes
    ----------
    n_rows
        Rows seen.
    rejected
        Rows that could not be used: counts by reason.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described above.

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
        keep_changes: bool = False,
    ) -> None:
        hop_s = length_s if hop_s is None else hop_s
        for name, value in (("length_s", length_s), ("hop_s", hop_s)):
            check_positive(name, value)
            check_up_to(name, value, LONGEST_S, " seconds")
            if round(value * MICROSECONDS) < 1:
                raise ValueError(f"{name} must be at least a microsecond, got {value!r}")
        if length_s > _MOST_OVERLAP * hop_s:
            raise ValueError(
                f"hop_s must be at least a thousandth of length_s = {length_s!r}, got {hop_s!r}"
            )
        check_up_to("grace_s", grace_s, LONGEST_S, " seconds")
        self.length_s, self.hop_s, self.grace_s = length_s, hop_s, grace_s
        self.min_rows = check_whole("min_rows", min_rows, 1)
        self.max_rows = check_whole("max_rows", max_rows, 1)
        for name, column in (("by", by), ("time", time), ("label", label)):
            check_column(name, column)
        self.by, self.time, self.label = by, time, label
        self.excerpt = check_flag("excerpt", excerpt)
        self.n_rows = 0
        self.rejected: Counter[str] = Counter()
        self._plan = plan_for(features, vectors, gps, _zone(zone))
        self._grid = _Grid(round(length_s * MICROSECONDS), round(hop_s * MICROSECONDS))
        self._grace = round(grace_s * MICROSECONDS)
        self._jump = round(max(_JUMP_S, _N_LENGTHS * length_s) * MICROSECONDS)
        self._aside = frozenset(name for name in (by, time, label) if name is not None)
        # The rows of each key; the packed state of one that has fallen silent.
        self._keys: dict[Any, OpenRows | bytes] = {}
        self._keep_changes = check_flag("keep_changes", keep_changes)
        self._changed: dict[Any, None] = {}

    def update_one(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Add a row, and return the windows that it closed, the earliest first."""
        self.n_rows += 1
        if not isinstance(row, Mapping):
            self.rejected["not a row"] += 1
            return []
        at = _microseconds(row.get(self.time))
        if at is None:
            self.rejected[f"no time in {self.time!r}"] += 1
            return []
        key = None if self.by is None else plain_label(row.get(self.by))
        if self.by is not None and not isinstance(key, str | int | float):
            self.rejected[f"no key in {self.by!r}"] += 1
            return []
        label = None if self.label is None else row.get(self.label)
        return self._row(key, at, row, label, self._aside)

    def add(
        self,
        key: Any,
        at: float,
        row: Mapping[str, Any],
        label: Any = None,
        *,
        seen_at: float | None = None,
    ) -> list[dict[str, Any]]:
        """Add a row whose time and key are known; return the windows that it closed.

        Parameters
        ----------
        key
            Its key.
        at
            Its time, POSIX seconds.
        row
            Its values; every column is a channel.
        label
            Its label, None if it has none.
        seen_at
            When it came by the caller's clock, POSIX seconds.

        Examples
        --------
        >>> windows = Windows(10.0, features=["mean"])
        >>> windows.add("ann", 101.0, {"speed": 2.0}), len(windows.add("ann", 110.0, {}))
        ([], 1)

        """
        self.n_rows += 1
        moment = _microseconds(at)
        if moment is None:
            self.rejected["a time that is no POSIX seconds"] += 1
            return []
        closed = self._row(key, moment, row, label, frozenset())
        self.open_rows(key).seen_at = seen_at
        return closed

    def on_time(self, now: float) -> list[dict[str, Any]]:
        """Close the windows of all keys that end by `now` (POSIX seconds) less the grace.

        Raises
        ------
        ValueError
            If `now` is not a time.

        """
        moment = _microseconds(now)
        if moment is None:
            raise ValueError(f"now must be POSIX seconds, got {now!r}")
        until = moment - self._grace
        closed = [w for key in self.keys for w in self.close(key, until)]
        return sorted(closed, key=lambda window: window["start"])  # keys in order of appearance

    def close(self, key: Any, until: int) -> list[dict[str, Any]]:
        """Close the windows of one key that end by a given time, in microseconds."""
        return self._close(key, self.open_rows(key), until)

    def flush(self) -> list[dict[str, Any]]:
        """Close all windows: no row will follow."""
        closed = []
        for key, rows in self._keys.items():
            if isinstance(rows, bytes):
                continue
            if rows.held is not None:
                rows.held = None
                self.rejected["time far ahead of the others"] += 1
            if rows.times:
                closed += self._close(key, rows, rows.times[-1] + self._grid.length + 1)
        return sorted(closed, key=lambda window: window["start"])

    # --- state

    def state(self) -> State:
        """Return what the next windows depend on, as plain JSON values."""
        return {
            "n_rows": self.n_rows,
            "rejected": dict(self.rejected),
            "keys": [[key, self._state_of(key)] for key in self._keys],
        }

    def load_state(self, state: State) -> None:
        """Continue from what `state` returned."""
        self.n_rows = int(state["n_rows"])
        self.rejected = Counter(state["rejected"])
        self._keys = {key: self._restored(parts) for key, parts in state["keys"]}
        self._changed = {}

    def changes(self) -> dict[Any, dict[str, Any]]:
        """Return the parts of the state that have changed since the last call, by key.

        A part is a plain JSON value, None if it is gone. `take_over` continues from all parts of a
        key that were returned, each with its last value.

        Examples
        --------
        >>> here, there = (Windows(10.0, features=["mean"], keep_changes=True) for _ in range(2))
        >>> closed = there.add("ann", 101.0, {"speed": 2.0})
        >>> for key, parts in there.changes().items():
        ...     here.take_over(key, parts)
        >>> here.flush()[0]["x"], here.changes()
        ({'speed.mean': 2.0}, {'ann': ...})

        """
        changed, self._changed = self._changed, {}
        found = {}
        for key in changed:
            rows = self.open_rows(key)
            found[key] = rows.changes()
            self._keys[key] = rows.packed() or rows
        return found

    def take_over(self, key: Any, parts: Mapping[str, Any]) -> None:
        """Continue with rows of a key from parts of its state, in addition to those present here.

        That does not count as a change.
        """
        known = self._state_of(key) if key in self._keys else {}
        there = {name: part for name, part in (known | dict(parts)).items() if part is not None}
        rows = self._restored(there)
        self._keys[key] = (rows.packed() if self._keep_changes else None) or rows
        self._changed.pop(key, None)

    def forget(self, key: Any) -> bool:
        """Forget the rows of a key; return whether there were any."""
        self._changed.pop(key, None)
        return self._keys.pop(key, None) is not None

    def __contains__(self, key: Any) -> bool:
        """Return whether a key has had a row that could be used."""
        return key in self._keys

    def is_silent(self, key: Any) -> bool:
        """Return whether a key has no rows in open windows, nor a row that is held back."""
        return isinstance(self._keys.get(key), bytes)

    def open_rows(self, key: Any) -> OpenRows:
        """Return the rows of a key in open windows, for reading only."""
        rows = self._keys[key]
        if isinstance(rows, bytes):
            rows = self._keys[key] = self._restored(unpacked(rows))
        return rows

    @property
    def keys(self) -> list[Any]:
        """Keys that have had rows."""
        return list(self._keys)

    def _state_of(self, key: Any) -> State:
        rows = self._keys[key]
        return unpacked(rows) if isinstance(rows, bytes) else rows.state()

    def _restored(self, parts: Mapping[str, Any]) -> OpenRows:
        return OpenRows.of(parts, keep_changes=self._keep_changes)

    # --- inside

    def _row(
        self, key: Any, at: int, row: Mapping[str, Any], label: Any, aside: frozenset[str]
    ) -> list[dict[str, Any]]:
        if key not in self._keys:
            self._keys[key] = OpenRows(keep_changes=self._keep_changes)
        rows = self.open_rows(key)
        if self._keep_changes:
            self._changed[key] = None
        if rows.newest is None or at - rows.newest <= self._jump:
            return self._take(key, rows, at, row, label, aside)
        # Far ahead of all others: held back until another row confirms it.
        held, rows.held = rows.held, None
        if held is not None and abs(at - held[0]) <= self._jump:
            closed = self._take(key, rows, *held, frozenset())
            return closed + self._take(key, rows, at, row, label, aside)
        if held is not None:
            self.rejected["time far ahead of the others"] += 1
        values = {name: v for name, v in plain_values(row).items() if name not in aside}
        known = plain_label(label)
        rows.held = at, values, known if isinstance(known, str | int | float) else None
        return []

    def _take(
        self,
        key: Any,
        rows: OpenRows,
        at: int,
        row: Mapping[str, Any],
        label: Any,
        aside: frozenset[str],
    ) -> list[dict[str, Any]]:
        closed_until = rows.closed_until
        start, end = self._grid.bounds(self._grid.first_open(at))
        is_inside = start <= at  # of a window; there are rows between windows if `hop_s` is larger
        if is_inside and closed_until is not None and end <= closed_until:
            self.rejected["too late"] += 1
        rows.newest = at if rows.newest is None else max(rows.newest, at)
        if is_inside and (closed_until is None or self._grid.last_end(at) > closed_until):
            if len(rows.times) >= self.max_rows:
                self.rejected[f"more than {self.max_rows} rows in open windows"] += 1
            else:
                rows.add(at, row, label, aside, self.rejected)
        watermark = rows.newest - self._grace
        if rows.next_end is None or watermark >= rows.next_end:
            return self._close(key, rows, watermark)
        return []

    def _close(self, key: Any, rows: OpenRows, until: int) -> list[dict[str, Any]]:
        """Close the windows of a key that end by `until`, and drop rows that no other needs."""
        grid, times = self._grid, rows.times
        if rows.closed_until is not None and until <= rows.closed_until:
            return []
        if self._keep_changes:
            self._changed[key] = None
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

    def _window(self, key: Any, rows: OpenRows, start: int, i: int, j: int) -> dict[str, Any]:
        begin, end = start / MICROSECONDS, (start + self._grid.length) / MICROSECONDS
        segment = rows.segment(i, j, begin, end)
        y, purity = _majority(rows.labels[i:j])
        window = {
            "event_id": _event_id(key, start),
            "key": key,
            "start": begin,
            "end": end,
            "x": self._plan.features(segment, self.rejected),
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

    def last_end(self, at: int) -> int:
        """Return the end of the last window that starts by `at`."""
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
            # In a pause of a day there are many windows without a row.
            number = max(number, self.first_open(times[i]))
            if number < last:
                yield number
            number += 1


def _microseconds(value: Any) -> int | None:
    """Return a time as whole microseconds since the epoch; None if it is not a time."""
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
    # A whole number may be too large for a float.
    return round(float(value) * MICROSECONDS) if _LEAST_S <= value <= _MOST_S else None


def _zone(name: str) -> tzinfo:
    if name == "UTC":  # known even if a system has no time zones
        return UTC
    if not isinstance(name, str):
        raise TypeError(f"zone must be the name of a time zone, got {name!r}")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        advice = "take a name such as Europe/Rome"
        if not available_timezones():  # as in small images
            advice = "this system knows none; install them with: pip install tzdata"
        raise ValueError(f"unknown time zone {name!r}; {advice}") from None


def _event_id(key: Any, start: int) -> str:
    seconds, rest = divmod(start, MICROSECONDS)
    text = str(seconds)
    if rest:
        text += f".{rest:06d}".rstrip("0")
    return text if key is None else f"{key}@{text}"


def _majority(labels: Sequence[Label | None]) -> tuple[Label | None, float | None]:
    """Return the label of most rows, the first of equally frequent ones, and its share."""
    told = [label for label in labels if label is not None]
    if not told:
        return None, None
    y, n = Counter(told).most_common(1)[0]
    return y, n / len(told)
