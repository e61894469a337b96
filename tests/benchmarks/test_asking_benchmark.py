"""The benchmark of questions per day, and of answers that come late."""

from functools import partial

from benchmarks.comparison import asking
from tests.helpers.benchmark_runs import document

SMALL = asking.Plan(
    logs=("wifi_rooms", "wisdm"), n_events=300, n_seeds=1, per_day=(60,), knobs=(0.2, 1.0),
    n_late_events=300, delays=(30,), schedules=("night",),
)  # fmt: skip


def test_a_limit_is_compared_with_the_strictness_of_hindsight(tmp_path, capsys):
    result, _ = document(tmp_path, "asking", partial(asking.measure, plan=SMALL), "--quick")
    row, late, away, *means = result["rows"]
    assert row["log"] == "wifi_rooms"
    assert row["most"] <= 1.0
    assert 0.7 < row["used"] <= 2.0  # of half a day: the day's limit is twice as much
    assert row["start_most"] <= 1.0
    assert row["used"] * 30 < row["start_used"] * (30 + 60) <= 60 + 60
    assert (late["log"], late["delay"]) == ("wifi_rooms", 30)
    assert late["asked_counted"] < late["asked"]
    assert (away["log"], away["schedule"]) == ("wifi_rooms", "night")
    assert 0.0 < away["answered"] < 1.0
    for mean, of_one_log in zip(means, (row, late, away), strict=True):
        assert mean == {name: of_one_log[name] for name in mean} | {"log": "mean"}
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


def test_the_largest_number_within_a_day_is_counted_at_any_time_of_day():
    """By hand: three within 24 hours that no calendar day holds."""
    hours = [20.0, 30.0, 43.0, 44.0, 70.0]
    score = asking.Score(accuracy=1.0, asked_at=[3600.0 * hour for hour in hours])
    assert (score.n_asked, score.most_within_a_day) == (5, 3)
