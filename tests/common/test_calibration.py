import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgp.common.calibration import (
    Confidences,
    area_under_curve,
    equal_error_threshold,
    is_right,
    n_cells_asked,
)

COARSE = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 0.9, 1.0]), max_size=8)
FINE = st.lists(st.floats(0.0, 1.0), max_size=8)


def shares(right, wrong, threshold):
    """Return the share of the wrong ones asked about and of the right ones not asked about."""
    asked = sum(c < threshold for c in wrong) / len(wrong)
    return asked, sum(c >= threshold for c in right) / len(right)


def best_by_search(right, wrong):
    """Return how close the shares can come at all, when something is asked."""
    places = [math.inf, *(math.nextafter(c, 2.0) for c in (*right, *wrong))]
    pairs = [shares(right, wrong, place) for place in places]
    return min(abs(asked - kept) for asked, kept in pairs)


@given(st.one_of(COARSE, FINE), st.one_of(COARSE, FINE))
@example([1.0, 1.0], [1.0])
def test_no_other_threshold_brings_the_shares_closer(right, wrong):
    threshold = equal_error_threshold(right, wrong)
    if right and wrong:
        asked, kept = shares(right, wrong, threshold)
        assert abs(asked - kept) == pytest.approx(best_by_search(right, wrong), abs=1e-12)
    else:
        assert threshold == math.inf


def test_shares_that_meet_are_equal():
    right, wrong = [0.4, 0.7, 0.8, 0.9], [0.1, 0.2, 0.5, 0.8]
    assert equal_error_threshold(right, wrong) == 0.6
    assert shares(right, wrong, 0.6) == (0.75, 0.75)


def test_a_learner_that_tells_right_from_wrong_asks_about_exactly_what_is_wrong():
    assert equal_error_threshold([0.8, 0.9], [0.1, 0.4]) == pytest.approx(0.6)


def test_of_two_places_equally_close_it_is_the_one_that_asks_more():
    # Below 0.3 nothing wrong is asked about and all that is right is kept, above it is the reverse.
    assert equal_error_threshold([0.3], [0.3]) == pytest.approx(0.65)


def test_a_tie_at_the_top_does_not_make_it_ask_about_everything():
    """Nine of ten right ones and one of four wrong ones are as confident as can be."""
    right, wrong = [0.5] + [1.0] * 9, [0.1, 0.2, 0.3, 1.0]
    assert 0.3 < equal_error_threshold(right, wrong) < 1.0


def test_where_confidence_is_always_1_it_asks_about_everything():
    assert equal_error_threshold([1.0, 1.0], [1.0]) == math.inf
    below, above = math.nextafter(0.5, 0.0), 0.5
    assert equal_error_threshold([above], [below]) == above


@given(FINE, FINE, st.integers(1, 5))
def test_the_threshold_depends_on_shares_not_on_numbers(right, wrong, times):
    assert equal_error_threshold(right * times, wrong) == equal_error_threshold(right, wrong)


def test_nobody_on_one_side_is_nothing_to_compare():
    assert n_cells_asked([(1.0, 0.0)]) is None
    assert n_cells_asked([]) is None
    assert area_under_curve([(0.0, 2.0)]) is None
    assert Confidences(32).threshold() is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6))
def test_area_is_the_share_of_pairs_in_order(cells):
    pairs = [
        (right * wrong, 1.0 if i > j else 0.5 if i == j else 0.0)
        for i, (right, _) in enumerate(cells)
        for j, (_, wrong) in enumerate(cells)
    ]
    n = sum(count for count, _ in pairs)
    expected = sum(count * value for count, value in pairs) / n if n else None
    assert area_under_curve(cells) == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), max_size=12))
def test_cells_keep_the_order_of_uncertainties(seen):
    confidences = Confidences(cells_per_octave=32)
    for uncertainty, right in seen:
        confidences.add(uncertainty, right)
    cells = confidences.cells()
    assert sum(right for right, _ in cells) == sum(right for _, right in seen)
    # One after the other, the cells hold the most uncertain of what is left.
    left = sorted(seen, key=lambda pair: -pair[0])
    for right, wrong in cells:
        n = int(right + wrong)
        here, left = left[:n], left[n:]
        assert sum(is_right for _, is_right in here) == right
        span = here[0][0], here[-1][0]
        assert span[0] <= max(span[1] * (1 + 1 / 32), 2.0**-64)


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), max_size=12))
def test_the_threshold_of_cells_lies_between_two_cells(seen):
    """What it asks about is a whole number of cells, those `n_cells_asked` names."""
    confidences = Confidences(cells_per_octave=32)
    for uncertainty, right in seen:
        confidences.add(uncertainty, right)
    threshold, n = confidences.threshold(), n_cells_asked(confidences.cells())
    if n is None:
        assert threshold is None
    else:
        asked = confidences.cells()[:n]
        assert sum(u > threshold for u, _ in seen) == sum(map(sum, asked))


def test_uncertainties_on_the_edge_of_a_cell_are_asked_about_with_it():
    """Forests say a half, a quarter: the edges of cells."""
    confidences = Confidences(cells_per_octave=1)
    for uncertainty, right in [(0.5, False), (0.25, True), (0.25, True)]:
        confidences.add(uncertainty, right)
    assert confidences.threshold() == 0.25
    confidences.add(1.0, is_right=False)
    assert confidences.threshold() == 0.25


def test_all_that_is_certain_is_one_cell_and_asking_about_it_is_asking_about_everything():
    confidences = Confidences(cells_per_octave=32)
    confidences.add(0.0, is_right=True)
    confidences.add(1e-30, is_right=False)
    assert confidences.cells() == [(1.0, 1.0)]
    assert confidences.threshold() == -1.0


def test_what_is_taken_back_leaves_no_trace():
    confidences, empty = Confidences(32), Confidences(32)
    confidences.add(0.3, is_right=True)
    confidences.add(0.3, is_right=True, weight=-1.0)
    assert confidences.state() == empty.state() == {"counts": []}


def test_fading_is_of_one_kind_only():
    confidences = Confidences(32)
    confidences.add(0.3, is_right=True)
    confidences.add(0.3, is_right=False)
    confidences.fade(True, 0.5)
    assert confidences.cells() == [(0.5, 1.0)]


def test_a_state_as_text_is_the_same_bitwise():
    rng = np.random.default_rng(0)
    one, other = Confidences(32), Confidences(32)
    for u in rng.uniform(size=200).tolist():
        one.fade(u < 0.5, 0.97)
        one.add(u * u, u < 0.5)
    other.load_state(json.loads(json.dumps(one.state())))
    assert other.cells() == one.cells()
    assert other.threshold() == one.threshold()
    assert other.state() == one.state()


def test_memory_is_bounded():
    confidences = Confidences(cells_per_octave=4)
    for n in range(3000):
        confidences.add(0.97**n, is_right=n % 2 == 0)
    assert len(confidences.cells()) <= 64 * 4 + 1


def test_the_first_of_equally_probable_classes_is_the_prediction():
    assert is_right({"a": 0.5, "b": 0.5}, "a")
    assert not is_right({"a": 0.5, "b": 0.5}, "b")
