"""The benchmark of old numbers that are doubted."""

from functools import partial

import numpy as np
import pytest

from benchmarks.comparison import review_numbers
from benchmarks.papers.egp.problems import branin
from streamgp.interactive import Challenge, LabelRequest
from streamgp.query import LeaveOneOutReview
from tests.helpers.benchmark_runs import document

SMALL = review_numbers.Plan(
    functions=("Branin", "skewed targets"), n_events=250, n_seeds=1, error_rates=(0.0, 0.2)
)


def test_a_review_is_compared_with_none_and_with_more_labels(tmp_path):
    small = partial(review_numbers.measure, plan=SMALL)
    result, _ = document(tmp_path, "review_numbers", small, "--quick", "--seed", "2")
    rows = [row for row in result["rows"] if "function" in row]
    assert [(row["wrong_answers"], row["function"], row["review"]) for row in rows] == [
        (rate, function, arm)
        for rate in SMALL.error_rates
        for function in (*SMALL.functions, "all")
        for arm in ("none", "leave one out", "none, more labels")
    ]
    for row in rows:
        assert row["runs"] == (2 if row["function"] == "all" else 1)
        assert row["reviews_justified"] <= row["reviews"] <= row["questions"] - row["labels"]
        if row["review"] != "leave one out":
            assert row["reviews"] == 0
        if row["wrong_answers"] == 0.0:
            assert row["wrong_kept"] == row["reviews_justified"] == 0
    of_all = [row for row in rows if row["function"] == "all" and row["wrong_answers"]]
    plain, reviewed, more = of_all
    assert reviewed["reviews"] > 0
    assert more["labels"] > plain["labels"]
    seeds = [row for row in result["rows"] if "seed" in row and row["wrong_answers"]]
    assert [row["seed"] for row in seeds] == [12, 12, 12]
    assert [row["NMSE"] for row in seeds] == [row["NMSE"] for row in of_all]
    assert len(result["acceptance"]) == 5
    assert "0.9 widened by 2 standard errors" in result["acceptance"][-1]["name"]


def test_an_old_number_is_wrong_if_it_was_off_by_more_than_the_truths_varied_when_asked():
    annotator = review_numbers._Counting(seed=1)
    asked = LabelRequest(
        request_id="a/label", event_id="a", x={}, reason="", score=1.0, threshold=0.0,
        requested_at=0.0,
    )  # fmt: skip
    for truth in (1.0, 3.0):
        annotator.see(truth)
    annotator.answer(asked, 3.0, now=0.0)
    annotator.see(1000.0)
    for reason, given in (("LeaveOneOutReview", 4.5), ("LeaveOneOutReview", 3.5), ("other", 9.0)):
        doubted = Challenge(
            request_id="a/challenge", event_id="a", x={}, given=given, suggested=3.0, reason=reason,
            probability_wrong=0.5, score=1.0, threshold=0.0, requested_at=1.0,
        )  # fmt: skip
        annotator.answer(doubted, 3.0, now=1.0)
    assert (annotator.n_reviews, annotator.n_justified_reviews) == (2, 1)


def test_the_review_is_the_default_one():
    review, _ = review_numbers.ARMS["leave one out"]
    assert review == LeaveOneOutReview()


@pytest.mark.parametrize("name", review_numbers.FUNCTIONS)
def test_a_function_has_as_many_features_as_the_page_says(name):
    X, y = review_numbers.FUNCTIONS[name](300, np.random.default_rng(1))
    assert X.shape[0] == len(y) == 300
    assert 2 <= X.shape[1] <= 20
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()
    assert y.std() > 0.0


def test_functions_are_those_of_their_names():
    U, y = review_numbers._branin(500, np.random.default_rng(1))
    assert np.std(y - branin(U)) == pytest.approx(2.0, rel=0.1)
    X, y = review_numbers._friedman3(500, np.random.default_rng(1))
    reactance = X[:, 1] * X[:, 2] - 1.0 / (X[:, 1] * X[:, 3])
    assert np.std(y - np.arctan(reactance / X[:, 0])) == pytest.approx(0.05, rel=0.1)


def score(nmse, n_questions):
    return review_numbers.Score(
        nmse=nmse,
        nmse_in_stream=1.0,
        wrong_kept=0.0,
        n_asked=n_questions,
        n_challenges=0,
        n_reviews=0,
        n_justified_reviews=0,
    )


ARMS = {"none": (1.0, 100), "leave one out": (0.5, 102), "none, more labels": (1.0, 110)}


@pytest.mark.parametrize(
    ("error_rate", "changed", "n_missed"),
    [
        (0.2, {}, 0),
        (0.2, {"leave one out": (0.91, 102)}, 1),
        (0.1, {"leave one out": (0.91, 102)}, 0),
        (0.1, {"leave one out": (1.01, 102)}, 1),
        (0.1, {"none, more labels": (1.0, 101)}, 1),
        (0.0, {}, 0),
        (0.0, {"leave one out": (0.5, 104)}, 1),
        (0.0, {"leave one out": (1.03, 102)}, 1),
    ],
)
def test_what_is_asked_of_the_runs(error_rate, changed, n_missed):
    runs = {arm: [[score(*values)] * 2] for arm, values in (ARMS | changed).items()}
    found = review_numbers.accepted(error_rate, runs, 0.0)
    assert sum(not a.ok for a in found) == n_missed


def test_less_is_the_mean_over_functions_and_its_error_is_that_over_seeds():
    """By hand: two functions, two seeds; less by .2 and .4 with the first seed, .0 and .2 then."""
    runs = {arm: [[score(1.0, 100)] * 2] * 2 for arm in ARMS}
    runs["leave one out"] = [[score(0.8, 100), score(1.0, 100)], [score(0.6, 100), score(0.8, 100)]]
    row, *_ = review_numbers._compared("all", 0.2, runs)
    assert row["with_review_less"] == pytest.approx(0.2)
    assert row["with_review_less_se"] == pytest.approx(0.1)
    assert row["with_review_lower"] == 3
    first, second, *_ = review_numbers._by_seed([5, 6], 0.2, runs)[2:]
    assert (first["seed"], first["NMSE"]) == (5, pytest.approx(0.7))
    assert (second["seed"], second["NMSE"]) == (6, pytest.approx(0.9))
