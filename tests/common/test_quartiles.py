import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.running_stats import Quartiles

numbers = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60)


@given(numbers)
def test_half_of_the_numbers_lie_within_the_range(values):
    found = Quartiles(values)
    low, high = np.quantile(values, [0.25, 0.75])
    assert found.location == pytest.approx(np.median(values), abs=1e-9)
    if high - low > 1e-6:
        assert found.scale == pytest.approx((high - low) / 1.3489795, rel=1e-6)


def test_the_scale_of_normal_numbers_is_their_standard_deviation():
    values = np.random.default_rng(1).normal(7.0, 3.0, 100_000)
    assert Quartiles(values.tolist()).scale == pytest.approx(3.0, rel=0.02)


def test_a_fifth_of_wild_numbers_moves_little():
    values = np.random.default_rng(1).normal(7.0, 3.0, 100).tolist()
    wild = Quartiles([*values[:80], *[1e9] * 20])
    assert abs(wild.location - 7.0) < 2.0
    assert wild.scale < 2.0 * Quartiles(values).scale


@pytest.mark.parametrize(
    ("values", "scale"), [([0.0, 0.0, 0.0, 0.0, 1.0], 0.4), ([5.0, 5.0, 5.0], 1.0), ([5.0], 1.0)]
)
def test_where_most_numbers_are_the_same_the_standard_deviation_counts(values, scale):
    assert Quartiles(values).scale == pytest.approx(scale)


@pytest.mark.parametrize("tiny", [5e-324, 2e-308, 1e-300])
def test_a_scale_has_a_finite_inverse(tiny):
    values = [*[0.0] * 9, -1.0, -1.0, -tiny]
    assert Quartiles(values).scale == pytest.approx(np.std(values))
