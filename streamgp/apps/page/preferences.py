"""Preferences of annotators: quiet hours, questions a day, smallest gap; and the resulting pauses.

A question that an annotator does not want now waits, or goes to another annotator.

"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta

from connectors.annotation.annotators import AnswerTimes
from connectors.storage.snapshots import StateError, locked, read_snapshot, write_snapshot

PREFERENCES = "preferences.json"
"""The file, beside the invites."""
_DAY_S = 86_400.0

BadPreferences: TypeAlias = Literal["bad_time_zone", "half_quiet_hours"]


class BadPreferencesError(ValueError):
    """Preferences of the right form but without meaning; `code` is the reason, for programs."""

    def __init__(self, text: str, code: BadPreferences) -> None:
        super().__init__(text)
        self.code = code


Clock = Annotated[str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d\Z", max_length=5)]


class Preferences(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Preferences of one annotator.

    Parameters
    ----------
    quiet_from, quiet_to
        Times of day, "HH:MM", between which nothing is asked; None for no quiet hours.
    time_zone
        The annotator's time zone, by its name in the IANA database.
    per_day
        The largest number of questions per day of the annotator; None for no limit.
    gap_s
        The shortest time between an answer and the next question, in seconds.

    """

    quiet_from: Clock | None = None
    quiet_to: Clock | None = None
    time_zone: Annotated[str, Meta(min_length=1, max_length=100)] = "UTC"
    per_day: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    gap_s: Annotated[float, Meta(ge=0, le=_DAY_S)] | None = None

    def zone(self) -> ZoneInfo:
        """Return the time zone.

        Raises
        ------
        BadPreferencesError
            If there is none of this name.

        """
        try:
            return ZoneInfo(self.time_zone)
        except (ValueError, OSError, LookupError):
            raise BadPreferencesError(
                "time_zone must be a name of the IANA database, as in Europe/Berlin",
                "bad_time_zone",
            ) from None

    @property
    def has_limit(self) -> bool:
        """Whether an answer may put off the next question."""
        return self.per_day is not None or bool(self.gap_s)

    def day_start(self, now: float) -> float:
        """Return the start of the annotator's current day, POSIX seconds.

        Examples
        --------
        >>> Preferences(time_zone="Europe/Berlin").day_start(1_700_000_000.0)  # 23:13:20 there
        1699916400.0

        """
        return _midnight(datetime.fromtimestamp(now, self.zone())).timestamp()


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing is asked now, and until when, POSIX seconds."""

    until: float
    why: Literal["quiet_hours", "per_day", "gap"]


def pause_of(
    preferences: Preferences, annotator: str, times: AnswerTimes, now: float
) -> Pause | None:
    """Return why an annotator is not asked now, None if they may be asked.

    Examples
    --------
    >>> night = Preferences(quiet_from="22:00", quiet_to="07:00", time_zone="Europe/Berlin")
    >>> pause_of(night, "ann", AnswerTimes(), now=1_700_000_000.0)  # 23:13:20 there
    Pause(until=1700028000.0, why='quiet_hours')

    """
    zone = preferences.zone()
    here = datetime.fromtimestamp(now, zone)
    if (until := _quiet_end(preferences, here)) is not None:
        return Pause(until=until, why="quiet_hours")
    midnight = _midnight(here)
    per_day = preferences.per_day
    if per_day is not None and times.n_since(annotator, midnight.timestamp()) >= per_day:
        return Pause(until=(midnight + timedelta(days=1)).timestamp(), why="per_day")
    last, gap_s = times.last(annotator), preferences.gap_s
    # An answer of much later was given while the clock was ahead.
    if last is not None and gap_s is not None and abs(now - last) < gap_s:
        return Pause(until=last + gap_s, why="gap")
    return None


def _midnight(here: datetime) -> datetime:
    return here.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _quiet_end(preferences: Preferences, here: datetime) -> float | None:
    """Return the end of the current quiet hours, None outside of quiet hours."""
    if preferences.quiet_from is None or preferences.quiet_to is None:
        return None
    start, end = (time.fromisoformat(t) for t in (preferences.quiet_from, preferences.quiet_to))
    now = here.timetz().replace(tzinfo=None)
    is_quiet = start <= now < end if start <= end else now >= start or now < end
    if not is_quiet:
        return None
    day = here + timedelta(days=1) if now >= end else here
    return day.replace(hour=end.hour, minute=end.minute, second=0, microsecond=0).timestamp()


class PreferenceFile:
    """The preferences of all annotators, in a file.

    Parameters
    ----------
    path
        The file; None to keep them only while the process runs.

    Raises
    ------
    StateError
        If the file exists and cannot be read.

    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._all = {} if path is None else _read(path)

    def get(self, annotator: str) -> Preferences:
        return self._all.get(annotator, Preferences())

    def put(self, annotator: str, preferences: Preferences) -> None:
        """Store an annotator's preferences.

        Raises
        ------
        BadPreferencesError
            If there is no such time zone, or the quiet hours have only one end.
        StateError
            If the file cannot be written.

        """
        _check(preferences)
        if self._path is not None:
            with locked(self._path):
                everything = {**_read(self._path), annotator: preferences}
                write_snapshot(self._path, msgspec.json.encode(everything))
        self._all[annotator] = preferences


def _check(preferences: Preferences) -> None:
    """Raise BadPreferencesError for values of the right form but without meaning."""
    preferences.zone()
    if (preferences.quiet_from is None) != (preferences.quiet_to is None):
        raise BadPreferencesError(
            "quiet_from and quiet_to belong together; give both or neither", "half_quiet_hours"
        )


def _read(path: Path) -> dict[str, Preferences]:
    data = read_snapshot(path)
    try:
        found = {} if data is None else msgspec.json.decode(data, type=dict[str, Preferences])
    except msgspec.DecodeError as error:
        raise StateError(
            f"{path} is not a file of preferences ({error}); remove it to start over"
        ) from None
    for annotator, preferences in found.items():
        try:
            _check(preferences)
        # The file was edited, or this machine knows fewer time zones.
        except BadPreferencesError as error:
            raise StateError(f"{path}: {annotator!r}: {error}; correct the entry") from None
    return found
