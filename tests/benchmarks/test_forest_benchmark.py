"""The benchmark of the parameters of an online forest."""

from functools import partial

import numpy as np

from benchmarks._array_streams import ArrayStream
from benchmarks.comparison import forest
from tests.helpers.benchmark_runs import document

SMALL = forest.Plan(data=("Phishing", "wisdm"), most=200, n_seeds=1, weights=(50, 25))


def test_parameters_are_compared_and_data_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(forest.measure, plan=SMALL)
    result, _ = document(tmp_path, "forest", small, "--quick")
    grown = [row for row in result["rows"] if "inherit" in row]
    assert [(row["inherit"], row["min_weight"]) for row in grown] == [
        ("False", 50), ("False", 25), ("True", 50), ("True", 25)
    ]  # fmt: skip
    changed = [row for row in result["rows"] if "parameters" in row]
    assert len(changed) == 8
    assert all(0.0 < row["wrong_%"] < 60.0 for row in result["rows"])
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


def test_what_is_tested_was_not_learned_and_wrong_labels_are_other_classes():
    X = np.repeat([[0.0], [1.0], [2.0]], 100, axis=0)
    stream = ArrayStream(name="steps", X=X, y=np.repeat([0, 1, 2], 100))
    assert forest.wrong_share(stream, 1, {"min_weight": 10}) == 0.0
    # Where every label is another class, the forest is right nowhere.
    assert forest.wrong_share(stream, 1, {"min_weight": 10}, error_rate=1.0) == 1.0
    # One label in five does not change what most of the neighbours say.
    assert forest.wrong_share(stream, 1, {"min_weight": 10}, error_rate=0.2) == 0.0
