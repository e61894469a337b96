"""All classifiers of the comparison get the same events, and scikit-learn's process equals ours."""

from functools import partial

import numpy as np
import pytest

from benchmarks import _array_streams as streams
from benchmarks import _harness as harness
from benchmarks.comparison import peer_learners as learners
from benchmarks.comparison import peers
from tests.helpers.benchmark_runs import document


def run(tmp_path, plan, *arguments):
    return document(tmp_path, "peers", partial(peers.measure, plan=plan), *arguments)


def test_every_classifier_has_a_row_for_every_log_and_a_mean(tmp_path):
    pytest.importorskip("sklearn", reason="one of them is scikit-learn's")
    plan = peers.Plan(logs=("Phishing", "wifi_rooms"), n_events=40)
    result, _ = run(tmp_path, plan)
    rows = [row for row in result["rows"] if "events" in row]
    there = [name for name in learners.BUILDERS if learners.missing(name) is None]
    assert [row["classifier"] for row in rows] == 2 * there
    assert {row["events"] for row in rows} == {40}
    means = [row for row in result["rows"] if row["log"] == "mean"]
    assert [row["classifier"] for row in means] == there
    assert means[0]["accuracy_%"] == pytest.approx(
        np.mean([r["accuracy_%"] for r in rows[:: len(there)]])
    )
    assert len(result["acceptance"]) == 3


def test_logs_of_a_data_folder_are_skipped_without_one(tmp_path, capsys):
    plan = peers.Plan(logs=("elec2", "Phishing"), learners=(learners.EXACT,), n_events=20)
    result, status = run(tmp_path, plan, "--check")
    assert "skipped: elec2 (needs --data)" in capsys.readouterr().out
    assert [row["log"] for row in result["rows"] if "events" in row] == ["Phishing"]
    assert status == 0


def test_a_classifier_whose_library_is_not_installed_is_skipped_by_name(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(learners.NEEDED, learners.GPYTORCH, "no_such_module")
    plan = peers.Plan(
        logs=("Phishing",), learners=(learners.GPYTORCH, learners.NO_CHANGE), n_events=20
    )
    result, _ = run(tmp_path, plan)
    assert "skipped: GPyTorch's GP, refitted (needs no_such_module)" in capsys.readouterr().out
    [row] = [row for row in result["rows"] if "events" in row]
    assert row["classifier"] == learners.NO_CHANGE


def test_accuracy_is_that_of_predictions_made_before_learning():
    """Who predicts the last label is right wherever the label is the last one again."""
    stream = streams.unshuffled("ImageSegments", 60)
    row = peers.play(learners.NO_CHANGE, stream, 1)
    same = float(np.mean(np.diff(stream.y) == 0)) * 59 / 60
    assert row["accuracy_%"] == pytest.approx(100 * same)


def test_log_of_class_after_class_is_shuffled_as_a_whole():
    stream = peers._stream("wifi_rooms", harness.Options(), 100)
    assert len(stream.y) == 100
    assert np.bincount(stream.y).min() > 10


def test_refitted_process_predicts_as_the_exact_one_of_the_same_labels():
    pytest.importorskip("sklearn", reason="it is scikit-learn's")
    events = list(streams.as_dictionaries(streams.unshuffled("ImageSegments", 80)))
    refitted, exact = learners.RefittedGP(), learners.BUILDERS[learners.EXACT](1)
    assert refitted.predict_one(events[0][0]) is None
    for n, (x, y) in enumerate(events[:40]):
        refitted.learn_one(x, y)
        if n < 32:  # the last power of 2
            exact.learn_one(x, y)
    for x, _ in events[40:]:
        assert refitted.predict_one(x) == exact.predict_one(x)


def test_gpytorch_without_a_step_predicts_as_the_exact_process_of_the_same_labels():
    pytest.importorskip("gpytorch", reason="it is GPyTorch's")
    events = list(streams.as_dictionaries(streams.unshuffled("ImageSegments", 80)))
    refitted = learners.GPyTorchGP(1, n_steps=0)
    exact = learners.BUILDERS[learners.EXACT](1)
    for n, (x, y) in enumerate(events[:40]):
        refitted.learn_one(x, y)
        if n < 32:
            exact.learn_one(x, y)
    for x, _ in events[40:]:
        assert refitted.predict_one(x) == exact.predict_one(x)
