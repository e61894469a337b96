import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from streamgp.common import normal
from streamgp.common.normal import GaussianMixture, Normal

places, spreads = st.floats(-50.0, 50.0), st.floats(0.01, 50.0)


@given(places, places, spreads)
def test_density_and_distribution_function_are_scipys(y, mu, sigma):
    assert normal.log_density(y, mu, sigma) == pytest.approx(norm.logpdf(y, mu, sigma))
    assert normal.cdf(y, mu, sigma) == pytest.approx(norm.cdf(y, mu, sigma), abs=1e-15)


@pytest.mark.parametrize(("mu", "sigma"), [(0.0, 1.0), (-2.0, 0.5), (3.0, 4.0)])
def test_mean_distance_is_an_integral(mu, sigma):
    def weighted(x):
        return abs(x) * norm.pdf(x, mu, sigma)

    expected = sum(quad(weighted, *ends)[0] for ends in ((-60.0, 0.0), (0.0, 60.0)))
    assert normal.mean_distance(mu, sigma) == pytest.approx(expected)


@given(places, places, spreads)
def test_crps_is_the_known_formula(y, mu, sigma):
    z = (y - mu) / sigma
    expected = sigma * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    assert normal.crps(y, mu, sigma) == pytest.approx(expected, abs=1e-9)


def test_without_variance_a_distribution_is_a_step():
    assert normal.log_density(1.0, 1.0, 0.0) == math.inf
    assert normal.log_density(1.1, 1.0, 0.0) == -math.inf
    assert [normal.cdf(y, 1.0, 0.0) for y in (0.9, 1.0, 1.1)] == [0.0, 1.0, 1.0]
    assert normal.crps(3.0, 1.0, 0.0) == 2.0
    assert normal.is_inside(1.0, 1.0, 1.0, level=0.5)
    assert not normal.is_inside(1.1, 1.0, 1.0, level=0.5)


@given(places, places, spreads, st.floats(0.05, 0.95))
def test_what_is_inside_lies_between_two_quantiles(y, mu, sigma, level):
    low, high = norm.ppf([0.5 - 0.5 * level, 0.5 + 0.5 * level], mu, sigma)
    if min(abs(y - low), abs(y - high)) > 1e-6:
        inside = normal.is_inside(y, normal.cdf(y, mu, sigma), mu, level)
        assert inside == (low <= y <= high)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.floats(-5.0, 5.0))
def test_scipy_agrees(mu, sigma, z):
    p, y = Normal(mu=mu, sigma=sigma), mu + z * sigma
    assert p.log_density(y) == pytest.approx(norm.logpdf(y, mu, sigma), rel=1e-6, abs=1e-9)
    assert p(y) == pytest.approx(norm.pdf(y, mu, sigma), rel=1e-6)
    assert p.cdf(y) == pytest.approx(norm.cdf(y, mu, sigma), rel=1e-6, abs=1e-9)
    assert p.mode == p.mu


def test_without_spread_one_value_is_possible():
    p = Normal(mu=1.0, sigma=0.0)
    assert [p.log_density(y) for y in (0.9, 1.0)] == [-math.inf, math.inf]
    assert [p.cdf(y) for y in (0.9, 1.0, 1.1)] == [0.0, 1.0, 1.0]


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
