import math
import pickle
import random

import numpy as np
import pytest
from scipy.integrate import quad

from streamgp.common.normal import GaussianMixture, LightTailedMixture, LightTails

STANDARD = GaussianMixture(weights=(1.0,), mus=(0.0,), sigmas=(1.0,))


def light(factor):
    return LightTailedMixture(weights=(0.3, 0.7), mus=(-1.0, 2.0), sigmas=(1.0, 2.0), factor=factor)


@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_density_mean_and_variance_are_those_of_a_distribution(factor):
    p = light(factor)
    total, mean, square = (
        quad(lambda y, k=k: y**k * p(y), -30, 30, limit=200)[0] for k in (0, 1, 2)
    )
    assert (total, mean) == pytest.approx((1.0, p.mu))
    assert square - mean * mean == pytest.approx(p.sigma**2)
    assert p.cdf(1.5) == pytest.approx(quad(p, -30, 1.5, limit=200)[0])


def test_without_a_factor_mean_and_variance_are_those_of_the_normal_parts():
    p = light(1.0)
    normal = GaussianMixture(weights=p.weights, mus=p.mus, sigmas=p.sigmas)
    assert (p.mu, p.sigma) == pytest.approx((normal.mu, normal.sigma))
    assert p.components == normal.components


def test_normal_errors_are_taken_for_light_tailed_ones_in_one_run_of_a_hundred_at_most():
    shown = 0
    for seed in range(200):
        rng, tails = random.Random(seed), LightTails()
        shown += any(
            tails.learn(0.0, 1.0, rng.gauss(0.0, 1.0)) or tails.shaped(STANDARD) is not STANDARD
            for _ in range(300)
        )
    # Two are expected at most; seven or more would be seen by chance in one of two hundred.
    assert shown <= 6


@pytest.mark.parametrize("draw", ["uniform", "arcsine"])
def test_intervals_of_bounded_targets_hold_95_percent_and_density_gains(draw):
    rng, tails = random.Random(1), LightTails()
    inside, gain = [], []
    for i in range(3000):
        u = rng.random()
        y = math.sqrt(3.0) * (2.0 * u - 1.0) if draw == "uniform" else -1.4 * math.cos(math.pi * u)
        p = tails.shaped(STANDARD)
        if i >= 500:
            inside.append(0.025 <= p.cdf(y) <= 0.975)
            gain.append(p.log_density(y) - STANDARD.log_density(y))
        tails.learn(0.0, 1.0, y)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.01)
    assert np.mean(gain) > 0.0


def test_evidence_falls_when_tails_are_light_no_longer():
    tails = LightTails(forgetting=0.99)
    for i in range(300):
        tails.learn(0.0, 1.0, 1.0 if i % 2 else -1.0)
    assert tails.shaped(STANDARD) is not STANDARD
    rng = random.Random(2)
    for _ in range(300):
        tails.learn(0.0, 1.0, rng.gauss(0.0, 1.0))
    assert tails.shaped(STANDARD) is STANDARD


def test_an_outlier_costs_the_stray_share_at_most():
    tails = LightTails()
    tails.learn(0.0, 1.0, 1e200)
    assert tails.log_evidence == pytest.approx(math.log(0.05))


def test_it_is_pickled_bitwise():
    tails = LightTails()
    tails.learn(0.0, 1.0, 0.7)
    assert vars(pickle.loads(pickle.dumps(tails))) == vars(tails)
