"""Predictions before learning: one factorisation, and the same event by event."""

from __future__ import annotations

import math
import random
from functools import partial

import pytest

from streamgp.apps.tune.scoring import (
    LEAST_PROBABILITY,
    Recorded,
    Score,
    is_at_once,
    judge_at_once,
    judge_one_by_one,
    staged,
)
from streamgp.base import Belief, Decision, Posterior
from streamgp.datasets import WiFiRooms
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import NeverAsk
from streamgp.query.skeptical_base import scaling_for


class Noting:
    """A rule that never asks, and remembers what it was asked about."""

    def __init__(self) -> None:
        self.beliefs: list[Posterior] = []

    def decide(self, belief: Belief, draw: float) -> Decision:
        assert isinstance(belief, Posterior)
        self.beliefs.append(belief)
        return NeverAsk().decide(belief, draw)


def rooms(n: int, *, shuffled: bool = True) -> list[Recorded]:
    """Readings with gaps, a text, wrong answers and none."""
    draw = random.Random(3)
    readings = list(WiFiRooms())
    if shuffled:
        draw.shuffle(readings)
    events = []
    for i, (x, room) in enumerate(readings[:n]):
        seen = {name: level for name, level in x.items() if i == 0 or draw.random() > 0.05}
        given = None if draw.random() < 0.1 else draw.choice([room, room, room, 1])
        events.append(Recorded(x={**seen, "phone": "ab"[i % 2]}, truth=room, given=given))
    return events


@pytest.mark.parametrize(
    ("warm_up", "rescale"), [(0, False), (30, False), (30, True), (200, False)]
)
@pytest.mark.parametrize(
    "learner",
    [
        GPClassifier(),
        GPClassifier(SquaredExponential(length_scale=1.5), noise_variance=0.05, max_points=400),
    ],
)
def test_one_factorisation_predicts_what_the_learner_predicts_event_by_event(
    learner: GPClassifier, warm_up: int, rescale: bool
) -> None:
    events = rooms(300)
    if warm_up == 0:
        events = [
            Recorded(x={"wap1": e.x.get("wap1")}, truth=e.truth, given=e.given) for e in events
        ]
    fresh = partial(scaling_for, [], warm_up, rescale=rescale)
    fast, slow = Noting(), Noting()
    at_once, one_by_one = Score(query=fast, seed=1), Score(query=slow, seed=1)
    judge_at_once(learner, staged(events, fresh), at_once)
    judge_one_by_one(learner, events, fresh(), one_by_one, lambda: None)
    assert (at_once.n, at_once.n_right) == (one_by_one.n, one_by_one.n_right)
    assert at_once.n == sum(event.given is not None for event in events) - 1  # the first teaches
    assert at_once.loss == pytest.approx(one_by_one.loss, rel=1e-9)
    for found, expected in zip(fast.beliefs, slow.beliefs, strict=True):
        assert list(found.mean) == list(expected.mean)
        assert found.mean == pytest.approx(expected.mean, abs=1e-9)
        assert found.variance == pytest.approx(expected.variance, abs=1e-9)
        assert found.prior_variance == expected.prior_variance


def test_only_an_exact_learner_that_stays_as_it_is_is_judged_at_once() -> None:
    assert is_at_once(GPClassifier(max_points=100), 100)
    assert not is_at_once(GPClassifier(max_points=100), 101)
    assert is_at_once(GPClassifier(), 5000)
    assert not is_at_once(GPClassifier(), 5001)
    assert not is_at_once(GPClassifier(learn_hyperparameters=True), 10)
    assert not is_at_once(GPClassifier(single_precision=True), 10)
    assert not is_at_once(GPClassifier(window=100), 10)
    assert not is_at_once(GPClassifier(drift=True), 10)


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
