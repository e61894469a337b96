import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.calibration import Bin, Bins, expected_error, squared_distance

forecasts = st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), max_size=15)


def counted(pairs, n_bins=4):
    bins = Bins(n_bins)
    for probability, came_true in pairs:
        bins.add(probability, came_true)
    return bins


def test_an_interval_holds_its_lower_end_and_the_last_one_1_as_well():
    bins = counted([(0.0, False), (0.25, True), (0.2499, False), (1.0, True), (0.75, False)])
    assert bins.counts() == [(0, 2), (1, 0), (0, 0), (1, 1)]


def test_what_rounding_makes_of_probabilities_stays_within():
    assert counted([(1.0 + 1e-15, True), (-1e-18, False)]).counts()[::3] == [(0, 1), (1, 0)]


def test_empty_intervals_are_left_out():
    assert counted([(0.5, True), (0.7, False)]).filled() == [Bin(n=2, mean=0.6, share=0.5)]


@given(forecasts, forecasts)
def test_a_part_that_is_taken_out_leaves_the_rest(first, second):
    bins, rest = counted(first + second), counted(first)
    bins.remove(counted(second))
    assert bins.counts() == rest.counts()
    means = [[b.mean for b in one.filled()] for one in (bins, rest)]
    assert means[0] == pytest.approx(means[1], abs=1e-12)


@given(forecasts, forecasts)
def test_a_state_as_text_goes_on_alike(before, after):
    bins, again = counted(before), Bins(4)
    again.load_state(json.loads(json.dumps(bins.state())))
    for probability, came_true in after:
        bins.add(probability, came_true)
        again.add(probability, came_true)
    assert again.state() == bins.state()


def test_the_expected_error_is_weighted_by_number():
    assert expected_error([]) == 0.0
    bins = [Bin(n=3, mean=0.5, share=0.7), Bin(n=1, mean=0.9, share=0.5)]
    assert expected_error(bins) == pytest.approx(0.25)


def test_a_class_that_is_not_there_is_forecast_with_0():
    assert squared_distance({"hall": 1.0}, "den") == 2.0
    assert squared_distance({"hall": 1.0, "den": 0.0}, "den") == 2.0
    assert squared_distance({"hall": 1.0}, "hall") == 0.0
