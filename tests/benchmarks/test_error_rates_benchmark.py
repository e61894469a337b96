"""The benchmark of what annotators are taken for."""

from functools import partial

import pytest

from benchmarks._logs import read
from benchmarks.comparison import error_rates
from streamgp import SkepticalClassifier, isgp
from tests.helpers.benchmark_runs import document

SMALL = error_rates.Plan(
    n_readings=120,
    n_seeds_of_people=1,
    logs=("wifi_rooms", "wisdm"),
    n_events=200,
    n_seeds=2,
    error_rates=(0.2, 0.4),
)


@pytest.mark.nightly
def test_people_are_judged_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(error_rates.measure, plan=SMALL)
    result, _ = document(tmp_path, "error_rates", small, "--quick")
    people = [row for row in result["rows"] if "annotator" in row]
    compared = [row for row in result["rows"] if "gain" in row]
    assert [row["annotator"] for row in people] == list(error_rates.PEOPLE)
    careful, careless, declining, stubborn = people
    assert careful["wrong"] < 0.1 < careless["wrong"]
    # Who declines half of the questions answers fewer than all others.
    assert declining["answers"] < min(row["answers"] for row in (careful, careless, stubborn))
    # Who never gives in passes for right where what is upheld counts as right.
    assert stubborn["running"] < stubborn["wrong"]
    assert [(row["log"], row["wrong_answers"]) for row in compared] == [
        ("wifi_rooms", 0.2), ("wifi_rooms", 0.4)
    ]  # fmt: skip
    for row in compared:
        gain = row["accuracy, together"] - row["accuracy, running"]
        assert row["gain"] == pytest.approx(gain)
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


def test_classes_take_turns():
    events = [({"n": n}, y) for n, y in enumerate("aaabbc")]
    assert [(x["n"], y) for x, y in error_rates.in_turn(events)] == [(0, "a"), (3, "b"), (5, "c")]


def test_the_other_model_is_the_default_but_for_the_estimate():
    model, default = error_rates.by_all_answers(1), isgp(seed=1)
    assert repr(model).replace("ByAllAnswers", "SkepticalClassifier") == repr(default)
    # Of an annotator of whom nothing is known it is the same.
    assert model.error_rate("ann") == default.error_rate("ann")
    log = read("wifi_rooms", None, 150)
    error_rates.play(model, log, 0.3, 1)
    [(name, found)] = model.estimate_annotators().items()
    model.challenge_one(*log.events[0], annotator=name)
    assert model.error_rate(name) == found.error_rate
    assert model.error_rate(name) != SkepticalClassifier.error_rate(model, name)
