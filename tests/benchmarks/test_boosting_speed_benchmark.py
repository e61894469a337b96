"""The benchmark runs, in the smallest way that is still true, and writes what it promises."""

import importlib.util
from functools import partial

import pytest

from benchmarks.performance import boosting_speed
from tests.helpers.benchmark_runs import document


@pytest.mark.nightly
def test_boosting_speed_shows_steps_of_either_way_and_peers(tmp_path):
    names = (boosting_speed.OWN, boosting_speed.FOREST, "River AMF")
    plan = boosting_speed.Plan(
        labels=(20, 40), n_steps=2, n_rows=4, n_peers=12, peers=names, starts=False
    )
    measure = partial(boosting_speed.measure, plan=plan)
    result, _ = document(tmp_path, "boosting_speed", measure, "--quick")
    steps = [row for row in result["rows"] if "update_us" in row]
    ways = ["numpy"] if importlib.util.find_spec("numba") is None else ["numba", "numpy"]
    assert [(row["trees"], row["labels"]) for row in steps] == [
        (way, n) for way in ways for n in (20, 40)
    ]
    assert all(row["update_us"] > 0 for row in steps)
    assert [row["learner"] for row in result["rows"] if "error" in row] == list(names)
    assert [a["limit"] for a in result["acceptance"]] == [400, 15.0, 10.0]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name.startswith("River") else ())
        for name in sorted(boosting_speed.LEARNERS)
    ],
)
def test_every_learner_learns_the_stream(name):
    row = boosting_speed._peer(name, 12, 1)
    assert 0.0 <= row["error"] <= 1.0
    assert row["step_us"] > 0.0


@pytest.mark.nightly
def test_the_first_labels_are_timed_in_new_processes():
    pytest.importorskip("numba")
    rows = boosting_speed._starts()
    assert [row["seconds"] > 0.0 for row in rows] == [True, True]
