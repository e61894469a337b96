import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.running_stats import Histogram, Moments

numbers = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20)


def of(values):
    moments = Moments()
    for value in values:
        moments.add(value)
    return moments


@given(numbers)
def test_they_are_those_of_numpy(values):
    moments = of(values)
    assert moments.n == len(values)
    assert moments.mean == pytest.approx(np.mean(values), abs=1e-9)
    spread = float(np.std(values))
    assert moments.std == pytest.approx(spread if spread > 1e-9 else 1.0, abs=1e-6) or spread < 1e-6


@given(numbers, numbers)
def test_numbers_that_are_taken_back_were_never_there(values, others):
    moments = of([*values, *others])
    for value in others:
        moments.remove(value)
    expected = of(values)
    assert (moments.n, moments.mean) == (expected.n, pytest.approx(expected.mean, abs=1e-9))
    assert moments.m2 == pytest.approx(expected.m2, abs=1e-6)


@given(numbers, numbers)
def test_what_is_left_without_a_part_is_what_was_never_in_it(values, others):
    left, expected = of([*values, *others]).without(of(others)), of(values)
    assert (left.n, left.mean) == (expected.n, pytest.approx(expected.mean, abs=1e-9))
    assert left.m2 == pytest.approx(expected.m2, abs=1e-6)


@given(numbers, numbers)
def test_numbers_that_are_merged_are_those_added_one_by_one(values, others):
    merged, added = of(values), of([*values, *others])
    merged.merge(len(others), float(np.mean(others)), float(np.var(others) * len(others)))
    assert (merged.n, merged.mean) == (added.n, pytest.approx(added.mean, abs=1e-9))
    assert merged.m2 == pytest.approx(added.m2, abs=1e-6)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.integers(1, 4)), min_size=1, max_size=20))
def test_a_weighted_number_counts_as_often_as_its_weight_says(pairs):
    weighted, repeated = Moments(), of([value for value, n in pairs for _ in range(n)])
    for value, n in pairs:
        weighted.add(value, 0.1 * n)
    assert 10.0 * weighted.n == pytest.approx(repeated.n)
    assert weighted.mean == pytest.approx(repeated.mean, abs=1e-9)
    assert weighted.variance == pytest.approx(repeated.variance, abs=1e-6)
    for value, n in pairs:
        weighted.remove(value, 0.1 * n)
    assert (weighted.n, weighted.mean, weighted.m2) == (0, 0.0, 0.0)


def test_when_all_are_gone_it_begins_anew():
    moments = of([5.0])
    moments.remove(5.0)
    assert (moments.n, moments.mean, moments.std) == (0, 0.0, 1.0)


@pytest.mark.parametrize("values", [[], [3.0], [1e9, 1e9, 1e9]])
def test_what_does_not_differ_keeps_its_unit(values):
    assert of(values).std == 1.0


def test_numbers_that_fade_count_as_shares():
    """The mean and variance with weights .5^2, .5 and 1."""
    moments = Moments()
    for value in (1.0, 3.0, 8.0):
        moments.fade(0.5)
        moments.add(value)
    mean = (0.25 * 1.0 + 0.5 * 3.0 + 8.0) / 1.75
    squares = 0.25 * (1.0 - mean) ** 2 + 0.5 * (3.0 - mean) ** 2 + (8.0 - mean) ** 2
    assert moments.n == 1.75
    assert moments.mean == pytest.approx(mean)
    assert moments.std == pytest.approx((squares / 1.75) ** 0.5)


@given(st.lists(st.floats(0.0, 20.0) | st.sampled_from([0.5, 1.0, 10.0])))
def test_a_histogram_counts_what_is_at_most_as_large_as_each_bound(values):
    histogram = Histogram((0.5, 1.0, 10.0))
    histogram.observe(*values[:2])
    histogram.observe(*values[2:])
    assert histogram.buckets() == [
        (bound, sum(v <= float(bound) for v in values)) for bound in ("0.5", "1.0", "10.0", "+Inf")
    ]
    assert histogram.total == pytest.approx(sum(values))
