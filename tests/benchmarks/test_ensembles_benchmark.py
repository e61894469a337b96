"""The benchmark of ensembles of Gaussian processes."""

from functools import partial

import pytest
from river import datasets

from benchmarks.comparison import ensembles
from tests.helpers.benchmark_runs import document

SMALL = ensembles.Plan(
    logs=("wifi_rooms", "dna"),
    learners=tuple(ensembles.LEARNERS),
    n_events=120,
    numbers=("TrumpApproval",),
    n_numbers=150,
    n_seeds=2,
)


@pytest.mark.nightly
def test_learners_and_rules_are_compared_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(ensembles.measure, plan=SMALL)
    result, _ = document(tmp_path, "ensembles", small, "--quick")
    classified = [row for row in result["rows"] if "learner" in row]
    assert [row["learner"] for row in classified] == list(ensembles.LEARNERS)
    for row in classified:
        assert (row["log"], row["events"]) == ("wifi_rooms", 120)
        assert row["accuracy"] > 0.5
    conversed = [row for row in result["rows"] if "rule" in row]
    assert [(row["order"], row["rule"]) for row in conversed] == [
        (order, rule) for order in ("recorded", "random") for rule in ensembles.RULES
    ]
    assert all(row["asked"] == pytest.approx(15, abs=5) for row in conversed)
    assert "skipped: dna (needs --data)" in capsys.readouterr().out


def test_a_run_is_decided_by_its_seed_and_by_the_rule():
    events = list(datasets.TrumpApproval().take(150))
    once, again = (ensembles.conversation(events, "Variance()", 1) for _ in range(2))
    assert once == again
    assert once != ensembles.conversation(events, "Variance()", 2)
    assert once != ensembles.conversation(events, "at random", 1)
