"""The benchmark of a reservoir in the loop."""

from functools import partial

import pytest

from benchmarks._logs import read
from benchmarks.comparison import reservoir
from streamgp.query import NeverAsk, RecentEventsAsk
from tests.helpers.benchmark_runs import document

SMALL = reservoir.Plan(
    logs=("wifi_rooms", "wisdm"), n_events=250, n_seeds=2, knobs=(0.25, 1.0), sizes=(20,)
)


@pytest.mark.nightly
def test_each_way_of_asking_is_compared_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(reservoir.measure, plan=SMALL)
    result, status = document(tmp_path, "reservoir", small, "--quick", "--check")
    assert status == 0
    played, means = (
        [row for row in result["rows"] if "asks" in row and (row["log"] == "mean") is mean]
        for mean in (False, True)
    )
    assert [row["asks"] for row in played] == list(reservoir.CONTENDERS)
    # Of a single log.
    for row, mean in zip(played, means, strict=True):
        assert mean["accuracy_advantage"] == row["accuracy_advantage"]
        assert mean["whole_log_advantage"] == row["whole_log_advantage"]
    # Every tenth event: at most one question for each look.
    assert all(row["labels"] <= 25 for row in played if "alone" in row["asks"])
    [timed] = [row for row in result["rows"] if "look_ms" in row]
    assert timed["look_ms"] > timed["predict_ms"] > 0.0
    # With fewer logs than three there is nothing to judge.
    assert result["acceptance"] == []
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


def test_the_whole_log_is_looked_back_at_with_what_was_learned_at_the_end():
    log = read("wifi_rooms", None, 300)
    score = reservoir.play(log, 1, NeverAsk(), RecentEventsAsk(every=10))
    # The first room is all that there is, and nothing is predicted before the first answer.
    assert (score.n_labels, score.whole_log) == (30, 1.0)
    assert score.accuracy < 1.0


def score(accuracy, n_labels):
    return reservoir.Score(accuracy=accuracy, whole_log=0.5, n_labels=n_labels)


def test_an_advantage_is_what_as_many_labels_would_not_have_bought():
    """By hand: between 100 and 200 labels the curve rises by .1."""
    curve = [[score(0.6, 90), score(0.8, 110)], [score(0.8, 200), score(0.8, 200)]]
    played = [score(0.8, 150), score(0.7, 100)]
    assert reservoir._advantages(played, curve, "accuracy") == [
        pytest.approx(0.05), pytest.approx(0.0)
    ]  # fmt: skip
    assert reservoir._advantages(played, curve, "whole_log") == [0.0, 0.0]
