"""The benchmark runs, in the smallest way that is still true, and writes what it promises."""

from functools import partial

import pytest

from benchmarks.performance import egp_speed
from tests.helpers.benchmark_runs import document


def test_egp_speed_shows_steps_of_one_and_seven_experts_and_peers(tmp_path):
    names = (egp_speed.ENSEMBLE, "River KNNRegressor", "scikit-learn GaussianProcessRegressor")
    plan = egp_speed.Plan(labels=(20, 40), n_steps=5, n_peers=40, peers=names)
    measure = partial(egp_speed.measure, plan=plan)
    result, _ = document(tmp_path, "egp_speed", measure, "--quick")
    steps = [row for row in result["rows"] if "step_us" in row]
    assert [(row["experts"], row["labels"]) for row in steps] == [
        (1, 20), (1, 40), (7, 20), (7, 40)
    ]  # fmt: skip
    assert all(value > 0 for row in steps for value in row.values())
    assert [row["learner"] for row in result["rows"] if "nmse" in row] == list(names)
    assert len(result["acceptance"]) == 5


@pytest.mark.parametrize("name", sorted(egp_speed.PEERS))
def test_every_peer_learns_the_stream(name):
    row = egp_speed._peer(name, 60, 1)
    assert row["nmse"] > 0.0
    assert row["mean_step_us"] > 0.0
