from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.normal_scores import NormalScores, has_heavy_tail

columns = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80)


def test_scores_are_normal_quantiles_of_ranks_in_the_middle_of_their_share():
    quantile = NormalDist().inv_cdf
    scores = NormalScores.of(np.array([5.0, 2.0, 5.0, 7.0, 100.0]))
    expected = [quantile(rank / 5) for rank in (0.5, 2.0, 3.5, 4.5)]
    assert list(map(scores, (2.0, 5.0, 7.0, 100.0))) == pytest.approx(expected)
    assert scores(6.0) == pytest.approx((expected[1] + expected[2]) / 2)
    assert (scores(-9999.0), scores(1e9)) == (scores(2.0), scores(100.0))


@given(columns, st.floats(-2e6, 2e6), st.floats(-2e6, 2e6))
def test_scores_never_fall_and_leave_no_bounds(numbers, one, other):
    scores = NormalScores.of(np.array(numbers))
    low, high = sorted((one, other))
    assert scores(low) <= scores(high) + 1e-12
    assert scores(min(numbers)) <= scores(low)
    assert scores(high) <= scores(max(numbers))
    assert len(scores.values) <= 33


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=80))
def test_scores_do_not_depend_on_the_unit_or_its_logarithm(numbers):
    plain = NormalScores.of(np.array(numbers, dtype=float))
    powers = NormalScores.of(10.0 ** np.array(numbers))
    assert powers.scores == plain.scores


def test_a_tail_is_heavy_beside_the_distance_of_most():
    rng = np.random.default_rng(1)
    for n in (40, 400):
        normal = rng.normal(size=(100, n))
        assert not any(map(has_heavy_tail, normal))
        assert all(map(has_heavy_tail, np.exp(2.5 * normal)))
        assert not any(map(has_heavy_tail, rng.random((100, n))))


@pytest.mark.parametrize("rare", [[], [1.0] * 9, [1.0, 50.0, 1000.0]])
def test_what_is_mostly_equal_has_no_heavy_tail(rare):
    assert not has_heavy_tail(np.array([0.0] * 31 + rare))
