"""The benchmark of how many points to keep."""

from functools import partial

import pytest

from benchmarks.comparison import points
from tests.helpers.benchmark_runs import document

SMALL = points.Plan(
    streams=(points.Stream("wifi_rooms", "random", 260), points.Stream("elec2", "recorded", 260)),
    n_seeds=2,
    learned=("wifi_rooms", "elec2"),
    n_learned=260,
)


def test_numbers_of_points_are_compared_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(points.measure, plan=SMALL)
    result, _ = document(tmp_path, "points", small, "--quick")
    conversed = [row for row in result["rows"] if "asked" in row]
    assert [row["points"] for row in conversed] == list(points.POINTS)
    exact, within, _ = conversed
    # Fewer labels than points: the bound is never met, and changes nothing.
    assert within == exact | {"points": "m = 500"}
    assert 0 < exact["asked"] < 260 == exact["events"]
    given = [row for row in result["rows"] if "given" in row]
    assert [(row["hyperparameters"], row["points"]) for row in given] == [
        (how, many) for how in ("given", "learned") for many in points.POINTS
    ]
    assert given[0]["right_%"] == pytest.approx(100.0, abs=1.0)  # a single room
    assert capsys.readouterr().out.count("skipped: elec2 (needs --data)") == 1
