"""Skeptical forests and skeptical Gaussian processes: equal labels, and who doubts."""

from functools import partial

import pytest

from benchmarks.comparison import skeptical
from tests.helpers.benchmark_runs import document


def test_confidence_is_compared_for_other_labels_than_the_predicted_one():
    rule = skeptical.ConfidenceChallenge(0.5)
    p = {"a": 0.75, "b": 0.25}
    decision = rule.decide(p, "b", probability_wrong=0.0, draw=0.0)
    assert (decision.ask, decision.score) == (True, pytest.approx(2 / 3))
    assert not rule.decide(p, "a", probability_wrong=1.0, draw=0.0).ask
    assert not rule.decide({}, "a", probability_wrong=1.0, draw=0.0).ask
    assert not rule.decide({"a": 0.6, "b": 0.4}, "b", probability_wrong=1.0, draw=0.0).ask


def test_all_learners_have_a_row_and_none_more_labels_unless_it_says_so(tmp_path):
    plan = skeptical.Plan(logs=("wifi_rooms", "wisdm"), n_events=150, n_seeds=1)
    result, _ = document(tmp_path, "skeptical", partial(skeptical.measure, plan=plan))
    rows = result["rows"]
    assert [row["learner"] for row in rows] == [*skeptical.LEARNERS]
    assert {row["log"] for row in rows} == {"wifi_rooms, recorded"}
    isgp = rows[0]["labels"]
    for row in rows:
        if "as it comes" not in row["learner"]:
            assert 0 < row["labels"] <= isgp + 3
    challenges = {row["learner"]: row["challenges"] for row in rows}
    assert challenges["boosted, never"] == 0
