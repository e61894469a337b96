import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from streamgp.learners.predictive import GaussianMixture, Normal

parts = st.lists(
    st.tuples(st.floats(-5, 5), st.floats(0.1, 3.0), st.floats(0.01, 1.0)), min_size=1, max_size=4
)


def mixture(parts):
    total = sum(w for _, _, w in parts)
    return GaussianMixture(
        weights=tuple(w / total for _, _, w in parts),
        mus=tuple(mu for mu, _, _ in parts),
        sigmas=tuple(sigma for _, sigma, _ in parts),
    )


@given(parts)
def test_mean_and_variance_are_those_of_the_density(parts):
    p = mixture(parts)
    places = sorted({part.mu for part in p.components})
    mean, variance = (
        quad(lambda y, f=f: f(y) * p(y), -45, 45, limit=500, points=places)[0]
        for f in (lambda y: y, lambda y: (y - p.mu) ** 2)
    )
    assert p.mu == pytest.approx(mean, abs=1e-5)
    assert p.sigma**2 == pytest.approx(variance, abs=1e-4)


@given(parts, st.floats(-6, 6))
def test_density_is_the_slope_of_the_distribution_function(parts, y):
    p, step = mixture(parts), 1e-5
    slope = (p.cdf(y + step) - p.cdf(y - step)) / (2 * step)
    assert p(y) == pytest.approx(slope, abs=1e-6)


@given(st.floats(-5, 5), st.floats(0.1, 3.0), st.floats(-30, 30))
def test_a_mixture_of_one_is_that_one(mu, sigma, y):
    one = Normal(mu=mu, sigma=sigma)
    p = GaussianMixture(weights=(1.0,), mus=(mu,), sigmas=(sigma,))
    assert (p.mu, p.cdf(y)) == (one.mu, one.cdf(y))
    assert p.sigma == pytest.approx(one.sigma)
    assert p.log_density(y) == pytest.approx(one.log_density(y))


def test_log_densities_far_away_are_finite():
    p = mixture([(0.0, 1.0, 0.5), (1.0, 1.0, 0.5)])
    assert p.log_density(1e6) == pytest.approx(-0.5 * (1e6 - 1) ** 2, rel=1e-9)


def test_an_expert_without_weight_says_nothing():
    p = GaussianMixture(weights=(1.0, 0.0), mus=(0.0, 9.0), sigmas=(1.0, 1.0))
    assert p.log_density(9.0) == pytest.approx(-40.5 - 0.5 * math.log(2 * math.pi))
    assert (p.mu, p.sigma) == (0.0, 1.0)


def test_a_point_has_infinite_density():
    p = GaussianMixture(weights=(1.0,), mus=(0.0,), sigmas=(0.0,))
    assert (p.log_density(0.0), p.log_density(1.0)) == (math.inf, -math.inf)
