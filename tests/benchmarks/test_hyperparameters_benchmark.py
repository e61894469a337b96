"""Learned and given hyperparameters: the same events, every fit counted."""

from functools import partial

import numpy as np
import pytest

from benchmarks._logs import read
from benchmarks.comparison import hyperparameters
from streamgp import GPClassifier
from tests.helpers.benchmark_runs import document


def run(tmp_path, plan, *arguments):
    measure = partial(hyperparameters.measure, plan=plan)
    return document(tmp_path, "hyperparameters", measure, *arguments)


def test_each_log_has_one_row_and_missing_logs_are_reported(tmp_path, capsys):
    plan = hyperparameters.Plan(logs=("wifi_rooms", "usps"), n_events=70, n_waiting=64, n_runs=1)
    result, status = run(tmp_path, plan, "--check")
    assert "skipped: usps (needs --data)" in capsys.readouterr().out
    row, *waits = result["rows"]
    assert [wait["learner"] for wait in waits] == list(hyperparameters.LEARNERS)
    assert all({"learner", "32_ms", "64_ms"} == wait.keys() for wait in waits)
    assert (row["log"], row["events"], row["fits"]) == ("wifi_rooms, recorded", 70, 2)
    assert row["gain_points"] == pytest.approx(row["learned_%"] - row["given_%"])
    assert status == 0


def test_fits_begin_at_32_examples_and_twice_as_many():
    model, found = GPClassifier(learn_hyperparameters=True), []
    for i in range(145):
        model.learn_one({"a": float(i % 7)}, i % 2)
        found.append(hyperparameters.n_fits(model))
    ends = [found.index(n) + 1 for n in (1, 2, 3)]
    assert all(begin <= end < 1.15 * begin for begin, end in zip((32, 64, 128), ends, strict=True))
    assert hyperparameters.n_fits(GPClassifier()) == 0


def test_how_many_have_to_gain_is_asked_only_when_all_were_played():
    def judged(*gains):
        return hyperparameters._accepted([{"gain_points": gain} for gain in gains])

    assert judged() == []
    assert [a.ok for a in judged(1.0, -2.0)] == [False]
    assert [a.ok for a in judged(*[1.0] * 6, 0.0, -1.5)] == [True, True]
    assert [(a.value, a.ok) for a in judged(*[1.0] * 5, 0.0, 0.0, -1.6)] == [
        (5, False),
        (1.6, False),
    ]


def test_events_wait_for_fits_where_they_begin():
    plan = hyperparameters.Plan(n_waiting=100, n_runs=1)
    row = hyperparameters.waited("any", (GPClassifier, {"max_points": 20}), plan)
    # A fit is work of milliseconds, and what is learned anyway takes a tenth of one.
    assert row["32_ms"] > 0.5
    assert row["64_ms"] > 0.5


def test_no_event_may_take_much_longer_for_a_fit():
    def ok(*ms):
        [found] = hyperparameters._accepted_waits([{"learner": "a", "32_ms": one} for one in ms])
        return found.ok

    assert ok(1.0, 5.0)
    assert not ok(1.0, 5.1)


@pytest.mark.parametrize("name", ["usps", "dna"])
def test_the_test_set_follows_the_training_set(tmp_path, name):
    (tmp_path / "classification").mkdir()
    np.savez(
        tmp_path / "classification" / f"{name}.npz",
        X_train=[[1.0], [2.0]], y_train=[0, 1], X_test=[[3.0], [4.0]], y_test=[1, 0],
        feature_names=["a"],
    )  # fmt: skip
    expected = [({"a": 1.0}, 0), ({"a": 2.0}, 1), ({"a": 3.0}, 1), ({"a": 4.0}, 0)]
    for n in (1, 3, 9):
        assert read(name, tmp_path, n).events == expected[:n]
