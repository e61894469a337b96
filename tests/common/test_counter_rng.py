import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.naive_bayes import GaussianNB

from streamgp import (
    AnnotatorPanel,
    ConfidenceBoostingClassifier,
    EnsembleGPClassifier,
    GPRegressor,
    OnlineForestClassifier,
    PoolSampler,
    SimulatedAnnotator,
    SimulatedMeasurer,
    SkepticalRegressor,
    TiredAnnotator,
    active_learning_rounds,
    isgp,
)
from streamgp.budgets import RateBudget
from streamgp.common.counter_rng import check_seed, uniform
from streamgp.datasets import GaussianClasses


@given(st.integers(), st.text(), st.text())
def test_a_draw_lies_in_the_unit_interval_and_repeats(seed, cause, purpose):
    draw = uniform(seed, cause, purpose)
    assert 0.0 <= draw < 1.0
    assert draw == uniform(seed, cause, purpose)


def test_a_draw_is_the_same_on_every_machine():
    """Recorded when the function was written; another value would change every decision."""
    assert uniform(1, "event-7", "ask") == 0.14210898105406133


def test_draws_are_uniform():
    """A Kolmogorov-Smirnov distance of 10 000 draws beyond 1.95 / sqrt(n) has probability .001."""
    n = 10_000
    draws = np.sort([uniform(0, str(i), "ask") for i in range(n)])
    distance = np.abs(draws - (np.arange(n) + 0.5) / n).max()
    assert distance < 1.95 / math.sqrt(n)


def test_purposes_seeds_and_neighbouring_events_are_independent():
    n = 10_000
    a = np.array([uniform(0, str(i), "ask") for i in range(n)])
    others = [
        np.array([uniform(0, str(i), "challenge") for i in range(n)]),
        np.array([uniform(1, str(i), "ask") for i in range(n)]),
        np.array([uniform(0, str(i + 1), "ask") for i in range(n)]),
    ]
    for b in others:
        # The correlation of independent draws has standard deviation 1 / sqrt(n).
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.0 / math.sqrt(n)


def test_what_comes_after_the_purpose_is_no_part_of_it():
    assert uniform(0, "1", "ask") != uniform(0, "", "ask1")


@pytest.mark.parametrize("seed", [None, 0, -3, 10**30, np.int64(7)])
def test_whole_numbers_and_none_are_seeds(seed):
    check_seed(seed)


@pytest.mark.parametrize("seed", ["a", 1.0, (1,), np.float64(2.0)])
@pytest.mark.parametrize(
    "build",
    [
        lambda seed: SimulatedAnnotator(seed=seed),
        lambda seed: SimulatedMeasurer(seed=seed),
        lambda seed: TiredAnnotator(seed=seed),
        lambda seed: AnnotatorPanel([SimulatedAnnotator()], seed=seed),
        lambda seed: RateBudget(0.1, seed=seed),
        lambda seed: GaussianClasses(seed=seed),
        lambda seed: active_learning_rounds(GaussianNB(), [({}, 0)], [({}, 0)], seed=seed),
        lambda seed: isgp(seed=seed),
        lambda seed: SkepticalRegressor(GPRegressor(), seed=seed),
        lambda seed: EnsembleGPClassifier(seed=seed),
        lambda seed: OnlineForestClassifier(seed=seed),
        lambda seed: ConfidenceBoostingClassifier(seed=seed),
        lambda seed: PoolSampler(np.zeros((2, 1)), seed=seed),
    ],
)
def test_nothing_else_is_a_seed_of_anything(build, seed):
    with pytest.raises(TypeError, match="seed must be a whole number or None, got "):
        build(seed)
