"""How a run went on, in a bounded number of points."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from streamgp.apps.replay.engine import N_POINTS, Points
from streamgp.interactive import Event, RunStatistics


def run(points: Points, statistics: RunStatistics, n: int) -> None:
    for _ in range(n):
        statistics.event(Event(event_id=str(statistics.n_events), x={}, occurred_at=0.0))
        points.note(statistics)


@given(st.integers(0, 300), st.integers(1, 9))
def test_points_stand_at_every_kth_event_with_the_smallest_power_of_two_that_fits(
    n_events: int, n_points: int
) -> None:
    points = Points(n_points)
    run(points, RunStatistics(), n_events)
    k = 1
    while n_events // k > n_points:
        k *= 2
    assert points.summary()["n_events"] == list(range(k, n_events + 1, k))


def test_a_long_run_has_at_most_400_points() -> None:
    points = Points()
    run(points, RunStatistics(), 2000)
    assert N_POINTS == 400
    assert len(points.summary()["n_events"]) == 250


def test_accuracy_is_null_before_anything_could_be_scored() -> None:
    points = Points()
    run(points, RunStatistics(), 2)
    assert points.summary() == {
        "n_events": [1, 2],
        "accuracy": [None, None],
        "n_asked": [0, 0],
        "n_challenges": [0, 0],
    }
    curve = points.curve("gp")
    assert (curve.name, curve.n_events, curve.questions) == ("gp", [1, 2], [0, 0])
    assert all(math.isnan(accuracy) for accuracy in curve.accuracy)  # no point is drawn


@given(st.integers(0, 60), st.integers(0, 60))
def test_cut_anywhere_keeps_the_same_points(before: int, after: int) -> None:
    statistics, whole, first, second = RunStatistics(), Points(8), Points(8), Points(8)
    for points in (whole, first):
        run(points, RunStatistics(), before)
    statistics.n_events = before
    second.load_state(json.loads(json.dumps(first.state())))
    run(second, statistics, after)
    other = RunStatistics()
    other.n_events = before
    run(whole, other, after)
    assert second.summary() == whole.summary()
    assert second.state() == whole.state()
