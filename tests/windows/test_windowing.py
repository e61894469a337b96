"""Which rows make which windows: by definition, in any order, over restarts."""

import json
import sys
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise, permutations
from random import Random
from zoneinfo import ZoneInfo, reset_tzpath

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.windows import Windows
from streamgp.windows.extraction import FEATURE_SETS
from streamgp.windows.open_rows import MOST_CHANNELS
from tests.helpers.laws import examples

# The fingerprint of a configuration has the name of a set, not its features: with one more feature
# in it, workers would go on with windows that differ from those they have learned.
SETS = {
    "basic": "changes max mean median min mode sd share slope",
    "activity": (
        "band_0_1 band_12_25 band_1_3 band_3_6 band_6_12 changes correlation dominant_frequency "
        "dominant_share energy jerk mad max mean mean_crossings median min mode peak_to_peak q10 "
        "q90 rms sd share slope spectral_entropy tilt zero_crossings"
    ),
    "gps": (
        "distance latitude longitude max_speed mean_speed radius_of_gyration stop_ratio "
        "straightness"
    ),
    "calendar": "hour_cos hour_sin weekday_cos weekday_sin",
}

PLAIN = {"features": ["mean", "min", "max"], "by": "key", "label": "y"}


def row(t, key="ann", v=None, **more):
    return {"time": t, "key": key, "v": float(t) if v is None else v, **more}


def run(windows, rows, *, flush=True):
    closed = [window for each in rows for window in windows.update_one(each)]
    return closed + (windows.flush() if flush else [])


def by_definition(rows, length, hop):
    """Windows as the definition has them, of all rows at once; times are whole seconds.

    Not all rows have the channel `w`, or a label.
    """
    found = {}
    for key in {each["key"] for each in rows}:
        mine = [each for each in rows if each["key"] == key]
        for n in range(-100, 400):
            inside = [each for each in mine if n * hop <= each["time"] < n * hop + length]
            if inside:
                x = {}
                for name in ("v", "w"):
                    if values := [each[name] for each in inside if name in each]:
                        x[f"{name}.mean"] = pytest.approx(sum(values) / len(values))
                        x[f"{name}.min"], x[f"{name}.max"] = min(values), max(values)
                labels = [each["y"] for each in inside if each["y"] is not None]
                y = max(labels, key=labels.count, default=None)  # the first of equally frequent
                share = labels.count(y) / len(labels) if labels else None
                found[key, n * hop] = (x, y, share, len(inside))
    return found


def contents(closed):
    return {(w["key"], w["start"]): (w["x"], w["y"], w["purity"], w["n_rows"]) for w in closed}


times = st.integers(-50, 300)
values, labels = st.floats(-9.0, 9.0), st.sampled_from([None, "p", "q"])
logs = st.lists(
    st.tuples(times, st.sampled_from("ab"), values, st.one_of(st.none(), values), labels),
    max_size=40,
    unique_by=lambda r: r[:2],
).map(
    lambda rows: [
        row(float(t), key, v, y=y) | ({} if w is None else {"w": w})
        for t, key, v, w, y in sorted(rows, key=lambda r: r[:2])
    ]
)


@given(rows=logs, length=st.integers(1, 40), hop=st.integers(1, 40))
def test_windows_are_those_of_the_definition_in_their_order(rows, length, hop):
    closed = run(Windows(float(length), float(hop), **PLAIN), rows)
    assert contents(closed) == by_definition(rows, length, hop)
    for key in "ab":
        starts = [w["start"] for w in closed if w["key"] == key]
        assert starts == sorted(set(starts))


@given(rows=logs, grace=st.integers(1, 60), rng=st.randoms(use_true_random=False))
def test_the_order_of_rows_within_the_grace_changes_nothing(rows, grace, rng):
    delayed = sorted(rows, key=lambda each: each["time"] + rng.uniform(0.0, grace))
    settings_ = PLAIN | {"grace_s": float(grace)}
    straight, mixed = Windows(7.0, 3.0, **settings_), Windows(7.0, 3.0, **settings_)
    for key in "ab":
        expected = [w for w in run(straight, rows) if w["key"] == key]
        assert [w for w in run(mixed, delayed) if w["key"] == key] == expected
        straight, mixed = Windows(7.0, 3.0, **settings_), Windows(7.0, 3.0, **settings_)


def test_a_correlation_has_one_name_whichever_channel_came_first():
    windows = Windows(10.0, features=["correlation"], by="key")
    closed = []
    for key, first in (("a", "v"), ("b", "w")):
        closed += windows.update_one({"key": key, "time": 0.0, first: 3.0})
        for t in range(1, 11):
            closed += windows.update_one({"key": key, "time": t, "w": t * t, "v": -t})
    one, other = (window["x"] for window in closed)
    assert [*one] == ["v*w.correlation"]
    assert other == one


@given(rows=logs, cuts=st.lists(st.integers(0, 40), max_size=4), grace=st.integers(0, 20))
def test_parts_that_changed_are_the_whole_state_wherever_the_log_is_cut(rows, cuts, grace):
    def new():
        return Windows(9.0, 4.0, grace_s=float(grace), keep_changes=True, features=["mean"])

    def play(windows, part):
        for each in part:
            x = {name: each[name] for name in ("v", "w") if name in each}
            yield from windows.add(each["key"], each["time"], x, each["y"], seen_at=1.0)

    whole, kept, closed, cuts = new(), {}, [], [0, *sorted(cuts), 40]
    expected = list(play(whole, rows))
    for start, stop in pairwise(cuts):
        windows = new()
        for key, parts in kept.items():
            windows.take_over(key, json.loads(json.dumps(parts)))
        closed += play(windows, rows[start:stop])
        for key, parts in windows.changes().items():
            kept[key] = {n: v for n, v in (kept.get(key, {}) | parts).items() if v is not None}
        assert windows.changes() == {}
    assert closed == expected
    assert kept == dict(whole.state()["keys"])


@given(rows=logs, cut=st.integers(0, 40), grace=st.integers(0, 20))
def test_a_restart_at_any_row_changes_nothing(rows, cut, grace):
    def new():
        return Windows(9.0, 4.0, grace_s=float(grace), excerpt=True, **PLAIN)

    expected = run(new(), rows)
    first, second = new(), new()
    closed = run(first, rows[:cut], flush=False)
    second.load_state(json.loads(json.dumps(first.state())))
    assert closed + run(second, rows[cut:]) == expected
    assert second.rejected == first.rejected
    assert second.n_rows == len(rows)


def test_rows_between_windows_are_in_none_and_not_too_late():
    windows = Windows(2.0, 10.0, **PLAIN)
    closed = run(windows, [row(float(t)) for t in range(25)])
    assert [(w["start"], w["n_rows"]) for w in closed] == [(0.0, 2), (10.0, 2), (20.0, 2)]
    assert not windows.rejected
    windows = Windows(2.0, 10.0, **PLAIN)
    run(windows, [row(25.0), row(11.0), row(13.0)])
    assert windows.rejected == {"too late": 1}


def test_times_in_another_unit_are_one_reason_however_many():
    windows = Windows(2.0)
    for t in range(9):
        windows.add("ann", 1.7e12 + t, {"v": 1.0})
    assert windows.rejected == {"a time that is no POSIX seconds": 9}
    assert windows.state()["keys"] == []


def test_bounds_are_exact_where_floats_are_not():
    rows = [row(0.1 * n, v=float(n)) for n in range(1, 100)]
    closed = run(Windows(0.3, 0.1, **PLAIN), rows)
    assert [w["n_rows"] for w in closed[2:-2]] == [3] * (len(closed) - 4)
    assert closed[3]["start"] == 0.2
    assert closed[3]["event_id"] == "ann@0.2"


def test_a_row_at_the_end_closes_the_window_and_is_not_in_it():
    windows = Windows(10.0, **PLAIN)
    assert run(windows, [row(0.0), row(9.999999)], flush=False) == []
    [window] = windows.update_one(row(10.0))
    assert (window["start"], window["end"], window["n_rows"]) == (0.0, 10.0, 2)


def test_a_late_row_is_counted_and_enters_the_windows_that_are_open():
    windows = Windows(10.0, 5.0, **PLAIN)
    run(windows, [row(1.0), row(11.0)], flush=False)
    windows.update_one(row(7.0))  # 0 to 10 is closed, 5 to 15 is not
    windows.update_one(row(2.0))
    assert windows.rejected == {"too late": 2}
    assert contents(windows.flush())["ann", 5.0][3] == 2


def test_a_pause_of_days_costs_nothing_and_makes_no_empty_windows():
    windows = Windows(1.0, 0.01, **PLAIN)
    closed = run(windows, [row(0.0), row(86_000.0), row(172_000.0)])
    assert {w["n_rows"] for w in closed} == {1}
    assert len(closed) == 300


def test_one_wrong_clock_far_ahead_closes_nothing():
    rows = [row(float(t)) for t in range(20)]
    rows.insert(7, row(4e9))
    windows = Windows(10.0, **PLAIN)
    assert contents(run(windows, rows)) == contents(
        run(Windows(10.0, **PLAIN), rows[:7] + rows[8:])
    )
    assert windows.rejected == {"time far ahead of the others": 1}


def test_a_pause_longer_than_a_day_is_believed_once_another_row_confirms_it():
    rows = [row(t) for t in (0.0, 1.0, 1e6, 1e6 + 1.0, 1e6 + 20.0)]
    windows = Windows(10.0, **PLAIN)
    assert [w["start"] for w in run(windows, rows)] == [0.0, 1e6, 1e6 + 20.0]
    assert not windows.rejected


def test_the_clock_closes_windows_of_idle_keys_after_the_grace():
    windows = Windows(10.0, grace_s=2.0, **PLAIN)
    run(windows, [row(3.0, "ann"), row(4.0, "bob")], flush=False)
    assert windows.on_time(11.9) == []
    assert [w["key"] for w in windows.on_time(12.0)] == ["ann", "bob"]
    windows.update_one(row(5.0, "ann"))
    assert windows.rejected == {"too late": 1}
    assert windows.flush() == []


def test_ties_are_ordered_by_value_and_repeats_count_once():
    rows = [row(1.0, v=5.0), row(1.0, v=2.0), row(1.0, v=5.0), row(2.0, v=1.0)]
    found = []
    for seed in range(6):
        Random(seed).shuffle(rows)
        windows = Windows(10.0, features=["slope", "jerk", "mean"], by="key", grace_s=5.0)
        found += run(windows, rows)
        assert windows.rejected == {"repeated": 1}
    assert all(each == found[0] for each in found)
    assert found[0]["n_rows"] == 3


def test_a_row_that_adds_a_column_repeats_none_of_the_same_time():
    rows = [row(1.0, v=5.0), row(1.0, v=5.0, w=1.0), row(1.0, v=5.0, u=2.0)]
    for order in permutations(rows):
        windows = Windows(10.0, features=["mean"], by="key")
        [window] = run(windows, order)
        assert window["x"] == {"v.mean": 5.0, "w.mean": 1.0, "u.mean": 2.0}
        assert window["n_rows"] == 3
        assert not windows.rejected


def test_rows_of_which_the_same_is_kept_repeat_each_other():
    windows = Windows(10.0, features=["mean"], by="key")
    rows = [row(1.0, v=5.0), row(1.0, v="five"), row(1.0, v=[5.0]), row(1.0, v="5", u=[])]
    [window] = run(windows, rows)
    assert (window["n_rows"], windows.rejected["repeated"]) == (2, 2)
    wide = row(1.0, **{f"c{n}": float(n) for n in range(MOST_CHANNELS)})
    windows = Windows(10.0, features=["mean"], by="key")
    [window] = run(windows, [wide, wide])
    assert (window["n_rows"], windows.rejected["repeated"]) == (1, 1)


def test_a_window_has_the_label_of_most_of_its_rows():
    labels = ["walk", "run", "run", None, float("nan"), "", "walk", "run"]
    rows = [row(float(t), y=y) for t, y in enumerate(labels)]
    [window] = run(Windows(10.0, **PLAIN), rows)
    assert (window["y"], window["purity"]) == ("run", 0.6)
    [none] = run(Windows(10.0, **PLAIN), [row(1.0)])
    assert (none["y"], none["purity"]) == (None, None)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ([1, 2], "not a row"),
        ({"key": "ann", "v": 1.0}, "no time in 'time'"),
        (row(float("nan")), "no time in 'time'"),
        (row(float("inf")), "no time in 'time'"),
        (row(1e300), "no time in 'time'"),
        ({"time": "yesterday", "key": "ann"}, "no time in 'time'"),
        ({"time": True, "key": "ann"}, "no time in 'time'"),
        ({"time": 1.0}, "no key in 'key'"),
        (row(1.0, ["a", "list"]), "no key in 'key'"),
        (row(1.0, v="loud"), "no number in 'v'"),
        (row(1.0, v=float("inf")), "unusable value of 'v'"),
        (row(1.0, v=[1.0]), "unusable value of 'v'"),
        (row(1.0, v=10**400), "unusable value of 'v'"),
        (row(1.0, y={"a": 1}), "unusable label"),
        ({**row(1.0), 7: 2.0}, "column whose name is no text"),
    ],
)
def test_a_bad_row_is_counted_and_ends_nothing(bad, reason):
    windows = Windows(10.0, **PLAIN)
    run(windows, [row(0.0), bad], flush=False)
    assert windows.rejected == {reason: 1}
    assert windows.flush()[0]["x"]["v.min"] == 0.0


def test_a_sensor_that_dies_leaves_the_others_alone():
    windows = Windows(10.0, features="activity", by="key", vectors=[["ax", "ay", "az"]])
    rows = [
        {"time": t / 10, "key": "ann", "ax": float(t % 7), "ay": 1.0, "az": None if t > 40 else 2.0}
        for t in range(100)
    ]
    [window] = run(windows, rows)
    assert window["x"]["az.mean"] == 2.0
    assert "az.slope" in window["x"]
    dead = Windows(10.0, by="key")
    [window] = run(dead, [{"time": float(t), "key": "ann", "v": 1.0, "w": None} for t in range(9)])
    assert {name.split(".")[0] for name in window["x"]} == {"v"}


@pytest.mark.parametrize("missing", [None, float("nan"), "", pd.NA])
def test_what_is_missing_is_no_value_and_no_label(missing):
    windows = Windows(10.0, by="key", label="y")
    rows = [{"time": float(t), "key": "ann", "v": missing, "w": 1.0, "y": missing} for t in (0, 1)]
    [window] = run(windows, [*rows, {"time": 2.0, "key": "ann", "v": 3.0, "y": "sit"}])
    assert (window["x"]["v.mean"], window["y"], window["n_rows"]) == (3.0, "sit", 3)
    assert not windows.rejected


def test_texts_and_booleans_have_a_mode_a_share_and_changes():
    texts = ["left", "left", "right", None, "left"]
    rows = [{"time": float(t), "side": s, "on": t > 1} for t, s in enumerate(texts)]
    [window] = run(Windows(10.0), rows)
    assert window["x"] == {
        "side.mode": "left",
        "side.share": 0.75,
        "side.changes": 2.0,
        "on.mode": True,
        "on.share": 0.6,
        "on.changes": 1.0,
    }


def test_a_time_beyond_all_floats_is_no_time():
    windows = Windows(10.0, **PLAIN)
    assert windows.update_one({"time": 10**400, "v": 1.0}) == []
    assert windows.rejected == {"no time in 'time'": 1}
    with pytest.raises(ValueError, match="now must be POSIX seconds"):
        windows.on_time(10**400)


def test_times_may_be_texts_and_moments_of_any_zone():
    summer = timezone(timedelta(hours=2))
    moments = ["2026-07-01T00:00:00Z", datetime(2026, 7, 1, 2, 0, 3, tzinfo=summer), 1782864006]
    naive = "2026-07-01 00:00:09"
    windows = Windows(10.0)
    rows = [{"time": t, "v": float(n)} for n, t in enumerate([*moments, naive])]
    [window] = run(windows, rows)
    assert window["n_rows"] == 4
    assert datetime.fromtimestamp(window["start"], UTC) == datetime(2026, 7, 1, tzinfo=UTC)


def test_the_hour_is_that_of_the_zone_also_when_summer_ends():
    def hour(t, zone):
        [window] = run(Windows(60.0, features="calendar", zone=zone), [{"time": t, "v": 1.0}])
        x = window["x"]
        return round(np.arctan2(x["time.hour_sin"], x["time.hour_cos"]) / 2 / np.pi * 24 % 24, 6)

    before, after = 1792886400.0, 1792893600.0  # 2026-10-25, 00:00 and 02:00 UTC
    assert (hour(before, "UTC"), hour(after, "UTC")) == (0.0, 2.0)
    assert (hour(before, "Europe/Rome"), hour(after, "Europe/Rome")) == (2.0, 3.0)


def test_a_vector_has_the_features_of_its_length_and_three_axes_have_a_tilt():
    windows = Windows(10.0, features=["max", "tilt"], vectors=[["x", "y", "z"], ["x", "y"]])
    rows = [{"time": 1.0, "x": 3.0, "y": 4.0, "z": 5.0}, {"time": 2.0, "x": 1.0, "y": 0.0}]
    [window] = run(windows, rows)
    assert window["x"].pop("x_y_z.tilt") == pytest.approx(np.pi / 4.0)
    assert window["x"].pop("x_y_z.max") == pytest.approx(np.sqrt(50.0))
    assert window["x"] == {"x.max": 3.0, "y.max": 4.0, "z.max": 5.0, "x_y.max": 5.0}
    [flat] = run(windows, [{"time": 11.0, "x": 3.0, "y": 4.0}])
    assert flat["x"] == {"x.max": 3.0, "y.max": 4.0, "x_y.max": 5.0}


def test_a_track_has_its_own_features_and_no_channels():
    rows = [{"time": 60.0 * n, "lat": 46.0, "lon": 11.0 + n / 1e4, "v": 1.0} for n in range(5)]
    [window] = run(Windows(600.0, features=["mean"], gps=["lat", "lon"]), rows)
    assert "lat.mean" not in window["x"]
    assert window["x"]["gps.stop_ratio"] == 1.0
    assert window["x"]["v.mean"] == 1.0


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_the_features_that_it_always_had(name):
    assert sorted(FEATURE_SETS[name]) == SETS[name].split()


def test_a_custom_feature():
    def third(values, times):
        return values[2] + times[0]

    [window] = run(
        Windows(10.0, features=["mean", third]), [{"time": t, "v": 2.0 * t} for t in range(4)]
    )
    assert window["x"] == {"v.mean": 3.0, "v.third": 4.0}


def test_a_custom_feature_that_fails_is_left_out_and_counted():
    def broken(values, times):
        return values[7] - times[0]

    windows = Windows(10.0, features=["mean", broken])
    [window] = run(windows, [{"time": 1.0, "v": 2.0}])
    assert window["x"] == {"v.mean": 2.0}
    assert windows.rejected == {"feature 'broken' failed: IndexError": 1}


def test_rows_beyond_the_most_are_dropped_and_counted():
    windows = Windows(100.0, max_rows=10, **PLAIN)
    [window] = run(windows, [row(float(t)) for t in range(15)])
    assert window["n_rows"] == 10
    assert windows.rejected == {"more than 10 rows in open windows": 5}


def test_channels_beyond_the_most_are_dropped_and_counted_and_the_others_go_on():
    many = {f"c{n}": 1.0 for n in range(MOST_CHANNELS)}
    windows = Windows(10.0, features=["mean"])
    rows = [{"time": 1.0, **many}, {"time": 2.0, "c0": 2, "new": 1.0}]
    [window] = run(windows, rows)
    assert window["x"] == {f"{name}.mean": v for name, v in (many | {"c0": 1.5}).items()}
    assert windows.rejected == {f"more than {MOST_CHANNELS} channels": 1}


def test_memory_of_a_key_stays_small():
    windows = Windows(5.0, 2.5, features="activity", by="key")
    names = ["ax", "ay", "az", "wx", "wy", "wz"]
    for n in range(3000):
        windows.update_one({"time": n / 50, "key": "ann", **dict.fromkeys(names, float(n))})
    assert len(windows.open_rows("ann").times) <= 250


def test_a_key_without_rows_falls_silent_once_its_changes_are_told():
    windows = Windows(10.0, **PLAIN, keep_changes=True)
    windows.add("ann", 1.0, {"v": 1.0}, seen_at=5.0)
    windows.changes()
    assert not windows.is_silent("ann")
    assert len(windows.on_time(100.0)) == 1
    state = windows.state()
    assert windows.changes()["ann"].keys() == {"head", "1"}
    assert windows.is_silent("ann")
    assert windows.state() == state
    windows.add("ann", 101.0, {"v": 1.0})
    assert not windows.is_silent("ann")


def test_an_excerpt_keeps_the_peaks():
    rows = [{"time": t / 100, "v": 9.0 if t == 333 else 0.0} for t in range(900)]
    [window] = run(Windows(10.0, excerpt=True), rows)
    assert len(window["excerpt"]["v"]) <= 200
    assert max(window["excerpt"]["v"]) == 9.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length_s": 0.0}, "length_s must be positive"),
        ({"length_s": 1e-9}, "length_s must be at least a microsecond"),
        ({"length_s": 1.0, "hop_s": -1.0}, "hop_s must be positive"),
        ({"length_s": 1.0, "features": "spectral"}, "unknown feature 'spectral'; take one of"),
        ({"length_s": 1.0, "vectors": [["ax"]]}, "vectors must each name two or more"),
        ({"length_s": 1.0, "gps": ["lat"]}, "gps must name two channels"),
        (
            {"length_s": 1.0, "gps": ["lat", "lat"]},
            "gps must name two channels, .* got .'lat', 'lat'",
        ),
        ({"length_s": 4.0, "hop_s": 1e-3}, "hop_s must be at least a thousandth of length_s = 4.0"),
        ({"length_s": 1.0, "grace_s": -1.0}, "grace_s must be from 0 to 1e.12 seconds"),
        ({"length_s": 1.0, "grace_s": 1e308}, "grace_s must be from 0 to 1e.12 seconds"),
        ({"length_s": 1e308}, "length_s must be from 0 to 1e.12 seconds"),
        ({"length_s": 1.0, "hop_s": 1e308}, "hop_s must be from 0 to 1e.12 seconds"),
        ({"length_s": 1.0, "features": []}, "features must name at least one"),
        ({"length_s": 1.0, "min_rows": 0}, "min_rows must be a whole number of at least 1"),
        ({"length_s": 1.0, "zone": "Mars/Olympus"}, "unknown time zone 'Mars/Olympus'"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        Windows(**arguments)


def test_a_system_without_time_zones_is_said_to_have_none(monkeypatch):
    for package in ("tzdata", "tzdata.zoneinfo", "tzdata.zoneinfo.Europe"):
        monkeypatch.setitem(sys.modules, package, None)
    ZoneInfo.clear_cache()
    reset_tzpath(to=[])
    try:
        with pytest.raises(ValueError, match=r"'Europe/Rome'; this system knows none; .* tzdata$"):
            Windows(1.0, zone="Europe/Rome")
        Windows(1.0, zone="UTC")
    finally:
        reset_tzpath()


def test_values_too_large_for_their_squares_have_the_other_features():
    windows = Windows(20.0, features="activity", vectors=[["v", "w"]])
    for t in range(12):
        windows.update_one({"time": float(t), "v": 1e200 * (-1) ** t, "w": 1.0})
    json.dumps(windows.state())
    [window] = windows.flush()
    assert window["x"]["v.max"] == 1e200
    assert "v.energy" not in window["x"]
    assert np.isfinite(list(window["x"].values())).all()


@pytest.mark.parametrize("now", [float("nan"), float("inf"), None, "soon"])
def test_a_clock_must_return_a_time(now):
    with pytest.raises(ValueError, match="now must be POSIX seconds, got"):
        Windows(2.0).on_time(now)


@examples(30)
@given(st.data())
def test_any_rows_whatever_end_no_run(data):
    value = st.one_of(
        st.none(),
        st.booleans(),
        st.floats(),
        st.text(max_size=3),
        st.integers(),
        st.lists(st.integers(), max_size=1),
    )
    names = st.sampled_from(["time", "key", "y", "v", "w"])
    windows = Windows(2.0, 1.0, features="activity", by="key", label="y", vectors=[["v", "w"]])
    for each in data.draw(st.lists(st.dictionaries(names, value), max_size=30)):
        windows.update_one(each)
    json.dumps(windows.state())
    for window in windows.flush():
        numbers = [v for v in window["x"].values() if isinstance(v, float)]
        assert np.isfinite(numbers).all()
