"""Windows over raw rows that come as events: their ids, contents and order, and what time does."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import isgp
from streamgp.interactive import KeyedLoops
from streamgp.interactive.event_windows import EventWindows
from streamgp.interactive.messages import Event, LabelRequest, Prediction
from streamgp.interactive.state.snapshot import SnapshotError
from tests.helpers.laws import examples


def row(t, key="ann", y=None, **x):
    x = x or {"v": float(t) % 7.0, "w": -float(t)}
    return Event(event_id=f"r{t}", key=key, x=x, occurred_at=float(t), y=y)


def windows(**more):
    given = {"label": "y", "length_s": 10.0, "hop_s": 5.0, "features": ["mean", "sd"]}
    return EventWindows(**{**given, "keep_changes": True, **more})


def play(stage, loops, rows):
    """Return what is said of rows, key by key."""
    said = {}
    for each in rows:
        for event in stage.take(each, now=0.0):
            said.setdefault(event.key, []).extend(loops.on_event(event, event.occurred_at))
    return said


def together(*parts):
    found = {}
    for said in parts:
        for key, messages in said.items():
            found.setdefault(key, []).extend(messages)
    return found


logs = st.lists(
    st.tuples(st.integers(0, 120), st.sampled_from(["ann", "bob"]), st.sampled_from("xy")),
    max_size=40,
    unique_by=lambda each: each[:2],
).map(lambda rows: [row(t, key, y=y) for t, key, y in sorted(rows)])


@examples(40)
@given(rows=logs, cut=st.integers(0, 40), seed=st.integers(0, 99))
def test_neither_order_within_the_grace_nor_a_restart_changes_what_a_key_is_told(rows, cut, seed):
    rng = Random(seed)
    mixed = sorted(rows, key=lambda each: each.occurred_at + rng.uniform(0.0, 6.0))
    expected = play(windows(grace_s=6.0), KeyedLoops(isgp(seed=1)), rows)

    first, loops = windows(grace_s=6.0), KeyedLoops(isgp(seed=1), keep_changes=True)
    before = play(first, loops, mixed[:cut])
    second = windows(grace_s=6.0)
    second.take_over(json.loads(json.dumps(first.changes())))
    loops = KeyedLoops.restore(loops.snapshot(), isgp(seed=1), keep_changes=True)
    assert together(before, play(second, loops, mixed[cut:])) == expected
    second.changes()
    assert second.changes() == []


def test_a_window_has_its_bounds_its_excerpt_and_the_most_frequent_label():
    stage = windows(hop_s=None, min_purity=0.6, excerpt=True)
    labels = ["x", "x", "x", "y", None]
    [event] = [e for t, y in enumerate([*labels, *[None] * 6]) for e in stage.take(row(t, y=y), 0)]
    assert (event.event_id, event.start, event.end, event.occurred_at) == ("ann@0", 0.0, 10.0, 10.0)
    assert (event.y, event.truth) == ("x", None)
    assert event.excerpt["w"] == [-float(t) for t in range(10)]
    strict = windows(hop_s=None, min_purity=0.8)
    [event] = [e for t, y in enumerate([*labels, *[None] * 6]) for e in strict.take(row(t, y=y), 0)]
    assert event.y is None


def test_the_loop_repeats_bounds_and_excerpt():
    stage = windows(hop_s=None, excerpt=True)
    [event] = [e for t in (0, 10) for e in stage.take(row(t), 0)]
    loops = KeyedLoops(isgp(seed=1))
    prediction, request = loops.on_event(event, event.occurred_at)
    assert isinstance(prediction, Prediction)
    assert (prediction.start, prediction.end) == (0.0, 10.0)
    assert isinstance(request, LabelRequest)
    assert request.excerpt == {"v": [0.0], "w": [0.0]}


def test_the_clock_closes_the_windows_of_a_silent_key_as_if_its_time_went_on():
    stage = windows(grace_s=2.0, idle_s=30.0)
    assert stage.take(row(8.0, "ann"), now=1000.0) == []
    assert stage.take(row(9.0, "bob"), now=1020.0) == []
    # at 1030 the time of ann goes on from 8, and 0 to 10 is closed when it is 12 there
    assert stage.on_time(1033.9) == []
    assert [event.event_id for event in stage.on_time(1034.0 + 1e-6)] == ["ann@0"]
    assert [event.event_id for event in stage.on_time(1039.1)] == ["ann@5"]
    assert [event.event_id for event in stage.on_time(9000.0)] == ["bob@0", "bob@5"]
    assert not stage.is_due(1e9)
    assert stage.take(row(9.5, "ann"), now=9001.0) == []
    assert stage.new_rejected() == {"too late": 1}
    assert stage.new_rejected() == {}


def test_a_row_that_comes_in_between_keeps_the_window_open():
    stage = windows(hop_s=None, idle_s=5.0)
    for t in range(1, 8):
        stage.take(row(t), now=10.0 * t)
        assert stage.on_time(10.0 * t + 5.0) == []
    assert [event.event_id for event in stage.on_time(78.1)] == ["ann@0"]


def test_nothing_is_due_of_a_key_of_which_no_row_could_be_used():
    stage = windows(idle_s=1.0)
    assert stage.take(row(-62_135_596_800), now=0.0) == []
    assert stage.new_rejected() == {"a time that is no POSIX seconds": 1}
    assert (stage.next_deadline(), stage.on_time(60.0)) == (None, [])


def test_silence_outlives_a_restart():
    stage = windows(hop_s=None, idle_s=5.0)
    stage.take(row(8.0), now=100.0)
    again = windows(hop_s=None, idle_s=5.0)
    again.take_over(stage.state())
    assert again.on_time(106.9) == []
    assert [event.event_id for event in again.on_time(107.1)] == ["ann@0"]


stories = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "cat", None, "clock"]),
        st.sampled_from([0.0, 0.5, 4.0, 20.0, 300.0]),  # passed by the clock
        st.sampled_from([-9.0, 0.0, 0.5, 4.0, 20.0, 300.0]),  # and, since its last row, for the key
    ),
    max_size=40,
)


@examples(150)
@given(
    steps=stories,
    hop_s=st.sampled_from([2.5, 10.0, 30.0]),
    grace_s=st.sampled_from([0.0, 6.0]),
    idle_s=st.sampled_from([0.0, 5.0, 60.0]),
    restarts=st.sets(st.integers(0, 40)),
)
def test_the_clock_closes_the_same_windows_in_the_same_order_after_restarts(
    steps, hop_s, grace_s, idle_s, restarts
):
    def fresh():
        return windows(hop_s=hop_s, grace_s=grace_s, idle_s=idle_s)

    live, restarted, published = fresh(), fresh(), {}
    now, times = 1.7e9, {}
    for n, (key, passed_s, further_s) in enumerate(steps):
        now += passed_s
        if n in restarts:
            published.update({(whose, name): part for whose, name, part in restarted.changes()})
            restarted = fresh()
            restarted.take_over((*where, part) for where, part in published.items())
        if key == "clock":
            assert restarted.on_time(now) == live.on_time(now)
            assert restarted.is_due(now) == live.is_due(now)
        else:
            times[key] = times.get(key, 1.6e9) + further_s
            each = row(times[key], key)
            assert restarted.take(each, now=now) == live.take(each, now=now)
    assert restarted.on_time(1e12) == live.on_time(1e12)
    assert live.next_deadline() is None


def test_the_clock_closes_windows_in_the_order_in_which_they_were_due_and_then_by_key():
    stage = windows(hop_s=None)
    stage.take(row(50.0, "cat"), now=90.0)  # its window ends later, but is due earlier
    for key in ("bob", "ann"):
        stage.take(row(0.0, key), now=100.0)
    assert [e.event_id for e in stage.on_time(900.0)] == ["cat@50", "ann@0", "bob@0"]


def test_a_row_far_ahead_of_the_one_before_brings_the_end_of_a_window_nearer():
    stage = windows(hop_s=None, idle_s=5.0)
    stage.take(row(0.0), now=100.0)
    assert stage.on_time(105.5) == []
    stage.take(row(9.0), now=105.6)
    assert stage.on_time(111.5) == []
    assert [event.event_id for event in stage.on_time(111.7)] == ["ann@0"]


pauses = st.lists(
    st.tuples(
        st.sampled_from(["row", "late", "clock"]),
        st.sampled_from([0.5, 4.0, 20.0, 300.0, 2e5]),
        st.sampled_from(["ann", "bob"]),
    ),
    max_size=30,
)


@examples(60)
@given(steps=pauses, hop_s=st.sampled_from([None, 5.0, 30.0]), restart=st.integers(0, 30))
def test_a_key_that_falls_silent_goes_on_as_it_was(steps, hop_s, restart):
    """What has nothing to say but its bounds is packed; windows that publish nothing never are."""
    packed, twin = windows(hop_s=hop_s), windows(hop_s=hop_s, keep_changes=False)
    now = 1000.0
    for n, (what, passed_s, key) in enumerate(steps):
        if n == restart:
            parts, packed = packed.state(), windows(hop_s=hop_s)
            packed.take_over(parts)
            twin_parts, twin = twin.state(), windows(hop_s=hop_s, keep_changes=False)
            twin.take_over(twin_parts)
            assert parts == twin_parts
        now += passed_s
        each = row(now - (70.0 if what == "late" else 0.0), key)
        said = [
            stage.on_time(now) if what == "clock" else stage.take(each, now=now)
            for stage in (packed, twin)
        ]
        assert said[0] == said[1]
        assert packed.is_due(now + 400.0) == twin.is_due(now + 400.0)
        packed.changes()
        assert packed.state() == twin.state()
        assert packed.rejected == twin.rejected
    assert packed.flush() == twin.flush()


def test_a_key_that_fell_silent_is_forgotten_and_comes_back():
    stage = windows(hop_s=None, idle_s=5.0)
    for key in ("ann", "bob"):
        stage.take(row(8.0, key), now=0.0)
    assert len(stage.on_time(100.0)) == 2
    stage.changes()
    again = windows(hop_s=None, idle_s=5.0)
    again.take_over(stage.state())
    for each in (stage, again):
        assert each.state()[0][2]["bounds"][0] == 8_000_000
        assert each.forget("bob")
        assert each.take(row(9.0), now=101.0) == []
        assert each.rejected == {"too late": 1}
        assert each.take(row(210.0), now=301.0) == []
        assert [event.event_id for event in each.flush()] == ["ann@210"]


def test_a_forgotten_key_begins_again():
    stage = windows(hop_s=None)
    stage.take(row(8.0), now=0.0)
    assert stage.forget("ann")
    assert not stage.forget("ann")
    assert stage.next_deadline() is None
    assert stage.flush() == []


def test_state_that_no_one_can_have_written_is_refused():
    with pytest.raises(SnapshotError, match="open windows of 'ann' cannot be taken over"):
        windows().take_over([("ann", "head", {"bounds": "?"})])


def test_settings_that_change_features_change_the_fingerprint():
    ours = windows().fingerprint()
    assert windows(grace_s=5.0, idle_s=1.0).fingerprint() == ours
    assert windows(hop_s=10.0).fingerprint() != ours
    assert windows(features=["mean"]).fingerprint() != ours


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="min_purity must be from 0 to 1, got 2"):
        windows(min_purity=2)
    for idle_s in (-1.0, 1e308):
        with pytest.raises(ValueError, match=r"idle_s must be from 0 to 1e.12 seconds"):
            windows(idle_s=idle_s)
