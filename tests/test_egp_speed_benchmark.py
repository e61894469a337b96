"""The benchmark runs, in the smallest way that is still true, and writes what it promises."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("benchmarks/ is not beside the tests", allow_module_level=True)
sys.path.append(str(ROOT))  # at the end: an installed streamgp comes first

from benchmarks import _harness as harness  # noqa: E402
from benchmarks import _regression_peers as peers  # noqa: E402
from benchmarks import egp_speed  # noqa: E402


def test_egp_speed_shows_steps_of_one_and_seven_experts_and_peers(tmp_path):
    names = (peers.ENSEMBLE, "River KNNRegressor", "scikit-learn GaussianProcessRegressor")
    plan = egp_speed.Plan(labels=(20, 40), n_steps=5, n_peers=40, peers=names)
    path = tmp_path / "egp_speed.json"
    measure = partial(egp_speed.measure, plan=plan)
    harness.run("egp_speed", measure, about=None, argv=["--json", str(path), "--quick"])
    result = json.loads(path.read_text())
    steps = [row for row in result["rows"] if "step_us" in row]
    assert [(row["experts"], row["labels"]) for row in steps] == [
        (1, 20), (1, 40), (7, 20), (7, 40)
    ]  # fmt: skip
    assert all(value > 0 for row in steps for value in row.values())
    assert [row["learner"] for row in result["rows"] if "nmse" in row] == list(names)
    assert len(result["acceptance"]) == 5


@pytest.mark.parametrize("name", sorted(peers.PEERS))
def test_every_peer_learns_the_stream(name):
    row = egp_speed._peer(name, 60, 1)
    assert row["nmse"] > 0.0
    assert row["mean_step_us"] > 0.0
