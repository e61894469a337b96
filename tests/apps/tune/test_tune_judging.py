"""Scores of predictions before learning."""

from __future__ import annotations

import math

import pytest

from streamgp.apps.tune.scoring import LEAST_PROBABILITY, Score
from streamgp.base import Posterior
from streamgp.query import NeverAsk


def test_a_class_never_seen_costs_as_much_as_the_least_probability() -> None:
    score = Score(query=NeverAsk(), seed=1)
    score.note("hall", Posterior(mean={"den": 1.0}, variance=1.0))
    assert (score.n_right, score.accuracy) == (0, 0.0)
    assert score.log_loss == pytest.approx(-math.log(LEAST_PROBABILITY))
    assert score.standard_error("log-loss") == pytest.approx(0.0, abs=1e-6)


def test_nothing_is_judged_before_the_first_label() -> None:
    score = Score(query=NeverAsk(), seed=1)
    score.note("hall", Posterior(mean={}, variance=1.0))
    assert score.n == 0


def test_standard_error_of_the_log_loss_is_that_of_a_mean() -> None:
    score = Score(query=NeverAsk(), seed=1)
    for p in (0.5, 0.9, 0.2):
        score.note("hall", Posterior(mean={"hall": p, "den": 1.0 - p}, variance=1.0))
    losses = [-math.log(p) for p in (0.5, 0.9, 0.2)]
    mean = sum(losses) / 3
    variance = sum((loss - mean) ** 2 for loss in losses) / 3
    assert score.standard_error("log-loss") == pytest.approx(math.sqrt(variance / 3))
