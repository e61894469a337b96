"""Scores of predictions before learning."""

from __future__ import annotations

import math

import pytest

from streamgp.apps.tune import scoring
from streamgp.apps.tune.scoring import LEAST_PROBABILITY, Recorded, Score, judge
from streamgp.base import Features, Posterior
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import NeverAsk
from streamgp.scaling import Scaling


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


def test_events_without_a_label_take_no_part_in_the_time_per_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = 0.0

    class Slow(Scaling):
        """Every event takes a second."""

        def observe(self, x: Features) -> bool:  # noqa: ARG002
            nonlocal clock
            clock += 1.0
            return False

    monkeypatch.setattr(scoring, "perf_counter", lambda: clock)

    def seconds(n_between: int) -> float:
        score = Score(query=NeverAsk(), seed=1)
        unlabelled = [Recorded(x={"a": 0.5}, truth=None, given=None)] * n_between
        events = [
            event
            for y in ("hall", "den", "hall")
            for event in (Recorded(x={"a": 1.0}, truth=y, given=y), *unlabelled)
        ]
        judge(GPClassifier(), events, Slow(), score, lambda: None)
        return score.seconds

    assert seconds(0) == seconds(10) == 3.0
