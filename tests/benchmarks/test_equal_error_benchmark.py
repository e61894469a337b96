"""The benchmark of a threshold that learns."""

from functools import partial

import pytest

from benchmarks._logs import Log, read
from benchmarks.comparison import equal_error
from benchmarks.comparison.conversation import Score
from tests.helpers.benchmark_runs import document

RULES = [equal_error.OURS, *equal_error.OTHERS]


def score(accuracy, n_asked=10.0):
    return Score(accuracy=accuracy, macro_f1=0.5, n_asked=n_asked, n_challenges=1.0, wrong_kept=0.1)


def test_all_rules_are_played_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    plan = equal_error.Plan(
        logs=("wifi_rooms", "wisdm"), learners=("GPClassifier",), n_events=150, n_seeds=1
    )
    small = partial(equal_error.measure, plan=plan)
    result, _ = document(tmp_path, "equal_error", small, "--quick")
    assert [(row["log"], row["rule"]) for row in result["rows"]] == [
        (log, rule) for log in ("wifi_rooms", "mean") for rule in RULES
    ]
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.parametrize("learner", equal_error.LEARNERS)
def test_others_ask_for_as_many_labels_as_the_rule_without_a_knob(learner):
    log = read("wifi_rooms", None, 2000)
    log = Log(name="rooms", events=log.events[::5], orders=log.orders)
    stream = equal_error.Stream(log=log, learner=learner, seeds=[1])
    scores = stream.scores()
    assert list(scores) == RULES
    n = scores.pop(equal_error.OURS).n_asked
    assert 20 < n < 300
    assert [score.n_asked for score in scores.values()] == [pytest.approx(n, rel=0.1)] * 3


def test_a_mean_counts_each_log_alike():
    """By hand: .1 above on one log, .1 below on the other."""
    found = [
        {rule: score(0.8 + 0.1 * (rule == "RandomAsk"), 10.0) for rule in RULES},
        {rule: score(0.7 - 0.1 * (rule == "RandomAsk"), 30.0) for rule in RULES},
    ]
    rows = list(equal_error._rows("GPClassifier", ["a", "b"], found))
    at_random = next(row for row in rows if (row["log"], row["rule"]) == ("mean", "RandomAsk"))
    assert (at_random["labels"], at_random["accuracy"]) == (20.0, pytest.approx(0.75))
    assert (at_random["above"], at_random["se"]) == (pytest.approx(0.0), pytest.approx(0.1))
