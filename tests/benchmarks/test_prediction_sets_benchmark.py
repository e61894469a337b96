"""The benchmark of prediction sets."""

from functools import partial

import pytest

from benchmarks._logs import Log, read
from benchmarks.comparison import prediction_sets
from tests.helpers.benchmark_runs import document

SMALL = prediction_sets.Plan(
    logs=("wifi_rooms", "wisdm"), n_events=250, n_seeds=1, alphas=(0.1, 0.3)
)


def test_sets_are_judged_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(prediction_sets.measure, plan=SMALL)
    result, status = document(tmp_path, "prediction_sets", small, "--quick", "--check")
    assert status == 0
    assert [(row["labelled"], row["alpha"]) for row in result["rows"]] == [
        ("all", 0.1), ("all", 0.3), ("asked", 0.1), ("asked", 0.3)
    ]  # fmt: skip
    known, known_wider, asked, _ = result["rows"]
    assert known["labels"] == 250 > asked["labels"] > 0
    assert known["held"] > known_wider["held"]
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


def test_all_sets_count_also_those_whose_label_is_never_known():
    log = read("wifi_rooms", None, 300)
    score = prediction_sets.play(log, 1, [0.1], asked_only=True)
    # One room is all that there is: a set holds it, or nothing.
    assert 0 < score.n_labels < 300
    assert score.held[0.1] == score.in_set[0.1] == pytest.approx(1.0 - score.empty[0.1])
    assert score.held[0.1] > score.n_labels / 300


def test_a_set_that_is_empty_holds_no_label():
    log = Log(name="one", events=[({"light": 1.0}, "home")], orders=("random",))
    score = prediction_sets.play(log, 1, [0.1, 0.2], asked_only=False)
    assert (score.accuracy, score.n_labels) == (0.0, 1)
    assert score.held == score.in_set == {0.1: 0.0, 0.2: 0.0}
    assert score.empty == {0.1: 1.0, 0.2: 1.0}


def test_what_is_off_may_be_off_by_what_theory_allows():
    """By hand: 1 / (.05 * 400) + 1 / 400."""
    score = prediction_sets.Score(
        accuracy=1.0, n_labels=400, held={0.1: 0.93, 0.2: 0.75}, in_set={}, empty={}
    )
    off = prediction_sets._off(score)
    assert off == pytest.approx(0.05)
    accepted = prediction_sets._accepted(off, 400)
    assert (accepted.limit, accepted.ok) == (pytest.approx(0.0525), True)
    assert not prediction_sets._accepted(off, 2000).ok
