import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from streamgp.common import normal

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
