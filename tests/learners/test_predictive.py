import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from streamgp.learners.predictive import Normal


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
