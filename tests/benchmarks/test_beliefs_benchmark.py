"""The benchmark of how the learner's probability of a label is read."""

from functools import partial

import pytest

from benchmarks.comparison import beliefs
from streamgp.base import Posterior
from streamgp.query import criteria
from tests.helpers.benchmark_runs import document

SMALL = beliefs.Plan(logs=("wifi_rooms", "wisdm"), n_events=700, n_seeds=2, error_rates=(0.0, 0.3))


@pytest.mark.nightly
def test_each_way_is_compared_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(beliefs.measure, plan=SMALL)
    result, _ = document(tmp_path, "beliefs", small, "--quick")
    assert [(row["wrong_answers"], row["q"]) for row in result["rows"]] == [
        (errors, q) for errors in (0.0, 0.3) for q in beliefs.MODELS
    ]
    assert {row["gain"] for row in result["rows"] if row["q"] == "default"} == {0.0}
    careful = [row for row in result["rows"] if row["wrong_answers"] == 0.0]
    for row in careful:
        assert row["challenges"] == row["of_right_labels"]
        assert row["wrong_kept"] == 0.0
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


def test_the_probability_of_a_label_is_read_in_other_ways():
    """By hand, of two classes with the means .6 and -.1, half of the variance left."""
    belief = Posterior(mean={"home": 0.6, "work": -0.1}, variance=0.5)
    wrong = partial(beliefs.wrong_by_share, belief, error_rate=0.2)
    # A share of nothing is wrong for certain; hedged, q = .5 / 2.
    assert wrong(given="work", hedged=False) == 1.0
    assert wrong(given="work", hedged=True) == pytest.approx(0.75 * 0.2 / (0.25 * 0.8 + 0.75 * 0.2))
    # Of a class never heard before the means leave .4; hedged, q = .5 * .4 + .5 / 3.
    q = 0.2 + 0.5 / 3.0
    for hedged, share in ((False, 0.4), (True, q)):
        odds = (1.0 - share) * 0.1 / (share * 0.8)
        assert wrong(given="gym", hedged=hedged) == pytest.approx(odds / (1.0 + odds))


@pytest.mark.parametrize("given", ["home", "work"])
def test_known_labels_are_read_as_the_default_reads_them(given):
    belief = Posterior(mean={"home": 0.9, "work": 0.3, "gym": -0.2}, variance=0.3)
    assert beliefs.wrong_by_share(belief, given, 0.2, hedged=True) == pytest.approx(
        criteria.probability_wrong(belief, given, 0.2)
    )
