"""Windows over raw rows that come as events: each closed window is an event itself.

A key's windows are closed by its own rows, so that they depend on these rows alone. The windows of
a key that has fallen silent are closed by the clock, as if its time had gone on since its
latest row.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from streamgp.common.fingerprint import fingerprint
from streamgp.common.validation import check_number, check_up_to
from streamgp.interactive.deadlines import DeadlineQueue
from streamgp.interactive.messages import Event
from streamgp.interactive.state.snapshot import INCONSISTENT, SnapshotError
from streamgp.windows import Windows
from streamgp.windows.open_rows import OpenRows
from streamgp.windows.windowing import LONGEST_S

Part: TypeAlias = tuple[str | None, str, Any | None]
"""Key, name and value of a part of the state; a value of None means that the part is gone."""

_US = 1e6
_DECISIVE = ("length_s", "hop_s", "features", "vectors", "gps", "zone")
"""Settings that affect the features seen by a learner."""


class EventWindows:
    """Makes events from windows of raw rows.

    The id of a window's event is its key, `@` and its start; it occurs at the window's end.

    Parameters
    ----------
    label
        Which field of the rows provides the label of a window, and what it becomes: `y`, which is
        learned, or `truth`.
    min_purity
        A window has a label only if at least this share of its labelled rows has the most frequent
        one.
    idle_s
        Seconds by the clock without a row after which the time of a key advances by itself.
    keep_changes
        Whether `changes` is going to be called now and then.
    settings
        Arguments of `streamgp.windows.Windows`.

    Attributes
    ----------
    n_rows
        Rows seen.
    rejected
        Rows that could not be used: counts by reason.

    Examples
    --------
    >>> windows = EventWindows(label="truth", length_s=10.0, features=["mean"])
    >>> rows = [
    ...     Event(event_id=str(t), key="ann", x={"speed": 2.0 * t}, occurred_at=t, truth="walk")
    ...     for t in (100.0, 104.0, 110.0)
    ... ]
    >>> [event] = [event for row in rows for event in windows.take(row, now=0.0)]
    >>> event.event_id, event.x, event.truth, event.start, event.occurred_at
    ('ann@100', {'speed.mean': 204.0}, 'walk', 100.0, 110.0)

    """

    # _windows    the rows of all keys
    # _deadlines  for each key with rows in open windows, a time before which nothing of it is due
    #             by the clock. Further rows mostly put it off; it is not moved until it has passed
    # _told       what `new_rejected` has returned so far
    def __init__(
        self,
        *,
        label: Literal["y", "truth"],
        min_purity: float = 0.0,
        idle_s: float = 60.0,
        keep_changes: bool = False,
        **settings: Any,
    ) -> None:
        check_number("min_purity", min_purity, "from 0 to 1", lambda v: 0.0 <= v <= 1.0)
        check_up_to("idle_s", idle_s, LONGEST_S, " seconds")
        self._label = label
        self._min_purity = min_purity
        self._idle_s = idle_s
        self._settings = settings
        self._windows = Windows(**settings, keep_changes=keep_changes)
        self._keep_changes = keep_changes
        self._deadlines: DeadlineQueue[str | None] = DeadlineQueue()
        self.rejected: Counter[str] = self._windows.rejected
        self._told: Counter[str] = Counter()

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return self._windows.n_rows

    def clone(self) -> EventWindows:
        """Return windows with the same settings that have seen nothing."""
        return EventWindows(
            label=self._label,
            min_purity=self._min_purity,
            idle_s=self._idle_s,
            keep_changes=self._keep_changes,
            **self._settings,
        )

    def fingerprint(self) -> str:
        """Return a digest of the settings that affect the features."""
        return fingerprint([self._settings.get(name) for name in _DECISIVE])

    def take(self, row: Event, now: float) -> list[Event]:
        """Add a row; return the events of the windows that it closed, the earliest first.

        Parameters
        ----------
        row
            The row; its id is ignored.
        now
            When it arrived by the clock, POSIX seconds.

        """
        key = row.key
        label = row.truth if self._label == "truth" else row.y
        closed = self._windows.add(key, row.occurred_at, row.x, label, seen_at=now)
        due, known = self._due(key), self._deadlines.get(key)
        # A row far ahead of the one before brings the end of the window nearer.
        if due is not None and (known is None or due < known):
            self._deadlines.set(key, due)
        return [self._event(window) for window in closed]

    def next_deadline(self) -> float | None:
        """Return the time after which the earliest window is due, None if none is open."""
        return self._deadlines.first()

    def is_due(self, now: float) -> bool:
        """Whether `on_time` may have something to do."""
        due = self._deadlines.first()
        return due is not None and due < now

    def on_time(self, now: float) -> list[Event]:
        """Close the windows of keys that have been silent until `now`, by the clock.

        Returns
        -------
        Their events in the order in which they were due, and at the same time by key: the same
        after a restart, whatever was due before.

        """
        closed: list[tuple[float, str, Event]] = []
        while self.is_due(now):
            key = self._deadlines.pop()
            due = self._due(key)
            if due is not None and due < now:
                rows = self._windows.open_rows(key)
                assert rows.next_end is not None  # something was due
                ahead_s = self._ahead_s(rows)
                # At least the window that is due, whatever the rounding.
                until = max(rows.next_end, round(_US * (now - ahead_s)))
                events = map(self._event, self._windows.close(key, until))
                closed += [(ahead_s + each.occurred_at, key or "", each) for each in events]
                due = self._due(key)
            if due is not None:
                self._deadlines.set(key, due)
        return [event for _, _, event in sorted(closed, key=itemgetter(0, 1))]

    def new_rejected(self) -> dict[str, int]:
        """Return counts by reason of what could not be used since the last call."""
        new = self.rejected - self._told
        self._told = self.rejected.copy()
        return dict(new)

    def flush(self) -> list[Event]:
        """Close all windows: no row will follow."""
        return [self._event(window) for window in self._windows.flush()]

    def forget(self, key: str | None) -> bool:
        """Forget the rows of a key; return whether there were any."""
        self._deadlines.clear(key)
        return self._windows.forget(key)

    # --- state

    def state(self) -> list[Part]:
        """Return all parts, as plain JSON values."""
        return [
            (key, name, value)
            for key, parts in self._windows.state()["keys"]
            for name, value in parts.items()
        ]

    def changes(self) -> list[Part]:
        """Return the parts that have changed since the last call; needs `keep_changes`."""
        return [
            (key, name, value)
            for key, parts in self._windows.changes().items()
            for name, value in parts.items()
        ]

    def take_over(self, parts: Iterable[Part]) -> None:
        """Restore parts of a state, each from its last value; this does not count as a change.

        Raises
        ------
        SnapshotError
            If they cannot be understood.

        """
        by_key: dict[str | None, dict[str, Any]] = {}
        for key, name, value in parts:
            by_key.setdefault(key, {})[name] = value
        for key, found in by_key.items():
            try:
                if all(value is None for value in found.values()):
                    self.forget(key)
                    continue
                self._windows.take_over(key, found)
                due = self._due(key)
                if due is None:
                    self._deadlines.clear(key)
                else:
                    self._deadlines.set(key, due)
            except INCONSISTENT as error:
                raise SnapshotError(
                    f"open windows of {key!r:.80} cannot be taken over: {error!s:.80}"
                ) from error

    # --- inside

    def _due(self, key: str | None) -> float | None:
        """Return the time by the clock after which a key's first window closes, None without."""
        if key not in self._windows or self._windows.is_silent(key):
            return None
        rows = self._windows.open_rows(key)
        if not rows.times or rows.next_end is None or rows.seen_at is None:
            return None
        return self._ahead_s(rows) + rows.next_end / _US

    def _ahead_s(self, rows: OpenRows) -> float:
        """Return how far the clock is ahead of a time of the key when it closes what ends then."""
        assert rows.newest is not None  # there were rows
        assert rows.seen_at is not None  # by a clock
        return rows.seen_at - rows.newest / _US + self._idle_s + self._windows.grace_s

    def _event(self, window: dict[str, Any]) -> Event:
        purity = window["purity"]
        is_pure = purity is not None and purity >= self._min_purity
        y = window["y"] if is_pure else None
        return Event(
            event_id=window["event_id"],
            key=window["key"],
            x=window["x"],
            occurred_at=window["end"],
            y=y if self._label == "y" else None,
            truth=y if self._label == "truth" else None,
            excerpt=window.get("excerpt"),
            start=window["start"],
            end=window["end"],
        )
