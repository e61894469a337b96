"""The benchmark of what is known of annotators."""

from functools import partial

import pytest

from benchmarks.comparison import annotators
from tests.helpers.benchmark_runs import document

SMALL = annotators.Plan(logs=("wifi_rooms", "wisdm"), n_events=60, n_seeds=1)


def test_all_kinds_of_annotators_are_played_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(annotators.measure, plan=SMALL)
    result, status = document(tmp_path, "annotators", small, "--quick", "--check")
    assert status == 0
    played = [row for row in result["rows"] if "annotators" in row]
    assert [row["annotators"] for row in played] == list(annotators.PEOPLE)
    stated = [row for row in result["rows"] if "stated_from" in row]
    assert all(0.0 <= row["stated"] <= 1.0 and row["answers"] > 0 for row in stated)
    giving_in = {row["suggestible"]: row for row in result["rows"] if "suggestible" in row}
    assert list(giving_in) == [0.0, 0.1, 0.3]
    # Those who never give in cannot spoil a right label.
    assert [row["spoiled"] is None for row in giving_in.values()] == [True, False, False]
    lying = {row["quarantine"]: row for row in result["rows"] if "quarantine" in row}
    assert list(lying) == [
        "without the liar",
        "with the liar",
        "with the liar, no quarantine",
        "with the liar, overlap .2",
        "lies about one class",
        "lies about one class, overlap .2",
        "lies after 30 answers",
        "flooding",
    ]
    assert lying["without the liar"]["named"] == 0
    twice = [row for row in result["rows"] if "answers at most" in row]
    assert [(row.get("overlap"), row.get("repeat")) for row in twice] == 2 * [
        *((share, None) for share in (0.0, 0.1, 0.2)),
        *((None, share) for share in (0.0, 0.1, 0.2)),
    ]
    # Only an annotator who is asked again can give the same answer twice.
    again = [row["alike 0"] for row in twice if not row.get("repeat")]
    assert again == [None] * len(again)
    # With fewer logs than five there is nothing to judge.
    assert result["acceptance"] == []
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


def test_reliability_of_what_was_stated_by_hand():
    stated = [(0.05, False, False), (0.05, True, False), (0.95, True, True), (1.0, True, False)]
    assert annotators.reliability(stated) == [
        {"stated_from": 0.0, "answers": 2, "stated": 0.05, "wrong": 0.5},
        {"stated_from": 0.9, "answers": 2, "stated": 0.975, "wrong": 1},
        {"stated_from": "new classes", "answers": 1, "stated": 0.95, "wrong": 1},
    ]
    assert annotators.expected_error(stated) == pytest.approx((2 * 0.45 + 2 * 0.025) / 4)
    assert annotators.expected_error([]) == 0.0


def test_annotators_with_few_answers_are_not_judged():
    person = annotators.Judged(n=7, n_wrong=7)
    person.judge("end", 0.2, 0.3)
    assert person.running == {}
    person.n, person.n_wrong = 10, 4
    person.judge("end", 0.2, 0.3)
    assert (person.running["end"], person.joint["end"]) == pytest.approx((0.2, 0.1))
