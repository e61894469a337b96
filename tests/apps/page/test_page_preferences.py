"""Quiet hours, questions a day and gaps are those of the annotator's own day."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.annotation.annotators import AnswerTimes
from connectors.storage.snapshots import StateError
from streamgp.apps.page.preferences import PreferenceFile, Preferences, pause_of

ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Auckland", "Asia/Kathmandu"]
# A year with both changes of the clock.
MOMENTS = st.floats(1_767_225_600.0, 1_798_761_600.0)
CLOCKS = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.integers(0, 59))


def is_quiet(start: str, end: str, at: float, zone: str) -> bool:
    """Say it by looking at the clock on the wall."""
    wall = f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%H:%M}"
    return start <= wall < end if start <= end else not end <= wall < start


@given(CLOCKS, CLOCKS, MOMENTS, st.sampled_from(ZONES))
def test_quiet_hours_are_those_of_the_clock_on_the_wall(
    start: str, end: str, now: float, zone: str
) -> None:
    wanted = Preferences(quiet_from=start, quiet_to=end, time_zone=zone)
    pause = pause_of(wanted, "ann", AnswerTimes(), now)
    assert (pause is not None) == is_quiet(start, end, now, zone)
    if pause is not None:
        assert pause.why == "quiet_hours"
        # Where a clock jumps, an end that does not exist is at most an hour away.
        assert now < pause.until + 3600.0
        assert pause.until <= now + 25 * 3600.0


@given(MOMENTS, st.sampled_from(ZONES), st.integers(0, 5), st.integers(0, 5))
def test_so_many_a_day_of_the_annotators_own(
    now: float, zone: str, per_day: int, n_today: int
) -> None:
    times = AnswerTimes()
    here = datetime.fromtimestamp(now, ZoneInfo(zone))
    wanted = Preferences(per_day=per_day, time_zone=zone)
    start = wanted.day_start(now)
    assert datetime.fromtimestamp(start, ZoneInfo(zone)).date() == here.date()
    for n in range(n_today):
        times.note("ann", start + n * 1e-3)
        times.note("ann", start - 1.0 - n)
        times.note("ben", start + n * 1e-3)
    pause = pause_of(wanted, "ann", times, now)
    assert (pause is not None) == (n_today >= per_day)
    if pause is not None:
        next_day = datetime.fromtimestamp(pause.until, ZoneInfo(zone)).date()
        assert next_day == here.date() + timedelta(days=1)


def test_the_gap_begins_with_the_last_answer() -> None:
    times = AnswerTimes()
    wanted = Preferences(gap_s=60.0)
    assert pause_of(wanted, "ann", times, 1000.0) is None
    times.note("ann", 990.0)
    times.note("ann", 990.0)
    pause = pause_of(wanted, "ann", times, 1000.0)
    assert pause is not None
    assert (pause.why, pause.until) == ("gap", 1050.0)
    assert pause_of(wanted, "ann", times, 1050.0) is None
    assert pause_of(wanted, "ann", times, 900.0) is None  # the clock was set back
    assert times.n_since("ann", 0.0) == 1


def test_answers_of_the_day_before_yesterday_are_forgotten() -> None:
    times = AnswerTimes()
    for hour in range(100):
        times.note("ann", 3600.0 * hour)
    assert times.n_since("ann", 0.0) == 49


def test_preferences_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "preferences.json"
    wanted = Preferences(quiet_from="22:00", quiet_to="07:00", per_day=9)
    PreferenceFile(path).put("ann", wanted)
    PreferenceFile(path).put("ben", Preferences(gap_s=5.0))
    again = PreferenceFile(path)
    assert (again.get("ann"), again.get("ben").gap_s) == (wanted, 5.0)
    assert again.get("eve") == Preferences()
    path.write_text("[]")
    with pytest.raises(StateError, match="not a file of preferences"):
        PreferenceFile(path)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (Preferences(time_zone="Nowhere"), "IANA"),
        (Preferences(time_zone="../../etc/passwd"), "IANA"),
        (Preferences(quiet_from="22:00"), "belong together"),
    ],
)
def test_what_means_nothing_is_not_kept(wanted: Preferences, reason: str) -> None:
    file = PreferenceFile(None)
    with pytest.raises(ValueError, match=reason):
        file.put("ann", wanted)
    assert file.get("ann") == Preferences()


@pytest.mark.parametrize(
    ("entry", "reason"), [("time_zone", "IANA"), ("quiet_from", "belong together")]
)
def test_an_entry_that_was_edited_to_mean_nothing_is_named(
    tmp_path: Path, entry: str, reason: str
) -> None:
    path = tmp_path / "preferences.json"
    PreferenceFile(path).put("ann", Preferences(gap_s=5.0))
    path.write_text(json.dumps({"ann": {entry: {"quiet_from": "22:00"}.get(entry, "Nowhere")}}))
    with pytest.raises(StateError, match=f"'ann': .*{reason}"):
        PreferenceFile(path)


def test_midnight_utc_is_the_default_day() -> None:
    at = datetime(2026, 11, 23, 13, 30, tzinfo=UTC).timestamp()
    assert Preferences().day_start(at) == datetime(2026, 11, 23, tzinfo=UTC).timestamp()
