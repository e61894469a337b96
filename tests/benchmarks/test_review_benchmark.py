"""The benchmark of old labels that are doubted."""

from functools import partial

import pytest

from benchmarks._logs import read
from benchmarks.comparison import review
from streamgp.query import LeaveOneOutReview, NeverChallenge
from tests.helpers.benchmark_runs import document

SMALL = review.Plan(logs=("wifi_rooms", "wisdm"), n_events=700, n_seeds=2, error_rates=(0.0, 0.3))


@pytest.mark.nightly
def test_a_review_is_compared_with_none_and_logs_that_are_not_there_are_named(tmp_path, capsys):
    small = partial(review.measure, plan=SMALL)
    result, status = document(tmp_path, "review", small, "--quick", "--check")
    assert status == 0
    compared = [row for row in result["rows"] if "review" in row]
    assert [(row["fresh_labels"], row["review"]) for row in compared] == [
        (fresh, which)
        for fresh in ("challenged", "believed")
        for which in ("none", "leave one out")
    ]
    for row in compared:
        assert row["questions"] == row["labels"] + row["challenges"] + row["reviews"]
        assert row["reviews_justified"] <= row["reviews"]
        if row["review"] == "none":
            assert row["reviews"] == row["advantage"] == 0.0
    careful, careless = (row for row in result["rows"] if "wrong_answers" in row)
    assert careful["challenges"] == careful["of_right_labels"]
    assert careful["wrong_kept"] == 0.0 < careless["wrong_kept"]
    # With fewer logs than three there is nothing to judge.
    assert result["acceptance"] == []
    assert "skipped: wisdm (needs --data)" in capsys.readouterr().out


def test_questions_of_a_review_are_counted_apart():
    log = read("wifi_rooms", None, 700)
    score = review.play(
        log, 1, challenge=NeverChallenge(), review=LeaveOneOutReview(threshold=0.2, every=2)
    )
    assert score.n_challenges == 0
    assert score.n_reviews > 0
    assert score.n_justified_reviews + score.n_unjustified == score.n_reviews


def score(accuracy, n_questions):
    return review.Score(
        accuracy=accuracy,
        n_asked=n_questions,
        n_challenges=0,
        n_reviews=0,
        n_unjustified=0,
        n_justified_reviews=0,
        wrong_kept=0.0,
    )


def test_the_advantage_is_what_more_questions_would_not_have_bought():
    """By hand: 10 more questions buy half of the .02 between 100 and 120."""
    curve = [
        [score(0.70, 80), score(0.72, 80)],
        [score(0.80, 90), score(0.82, 110)],
        [score(0.82, 110), score(0.84, 130)],
    ]
    played = [score(0.83, 100), score(0.82, 120)]
    assert review.advantage(played, curve) == [pytest.approx(0.02), pytest.approx(-0.01)]
