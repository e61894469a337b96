import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgp.common.calibration import (
    CalibrationSlope,
    Confidences,
    LogisticCalibration,
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


@pytest.mark.parametrize(
    ("calibration", "state"),
    [
        (CalibrationSlope(0.1), [1.0, "nan"]),
        (LogisticCalibration(), [0.0, 1.0, "inf", 0.0, 4.0]),
    ],
)
def test_a_state_that_is_not_finite_is_refused(calibration, state):
    with pytest.raises(ValueError, match=r"^the state of a calibration must be finite, got \["):
        calibration.load_state(state)


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


PROBABILITIES = st.floats(0.0, 1.0)


def logit(p):
    return math.log(p / (1.0 - p))


def test_an_outcome_is_one_newton_step():
    slope, u = CalibrationSlope(0.1), logit(0.4) - logit(0.1)
    slope.note(0.4, True)
    expected = 1.0 + 0.6 * u / (4.0 + 0.24 * u * u)
    assert slope.state() == [pytest.approx(expected), pytest.approx(4.0 + 0.24 * u * u)]
    assert logit(slope.corrected(0.3)) == pytest.approx(
        logit(0.1) + expected * (logit(0.3) - logit(0.1))
    )


@given(
    PROBABILITIES,
    st.lists(st.tuples(PROBABILITIES, st.booleans()), max_size=20),
    PROBABILITIES,
    PROBABILITIES,
)
def test_the_order_and_what_is_above_the_threshold_stay(threshold, outcomes, p, q):
    slope, restored = CalibrationSlope(threshold), CalibrationSlope(threshold)
    for one, came_true in outcomes:
        slope.note(one, came_true)
    p, q = sorted((p, q))
    assert p <= slope.corrected(p) <= slope.corrected(q) <= 1.0
    assert (slope.corrected(p) > threshold) == (p > threshold)
    restored.load_state(json.loads(json.dumps(slope.state())))
    assert restored.corrected(p) == slope.corrected(p)


def test_what_comes_true_more_often_than_stated_is_found():
    rng, slope = np.random.default_rng(1), CalibrationSlope(0.1)
    for stated in rng.uniform(0.15, 0.6, size=2000):
        true = 1.0 / (1.0 + math.exp(-logit(0.1) - 1.8 * (logit(stated) - logit(0.1))))
        slope.note(stated, rng.random() < true)
    assert slope.state()[0] == pytest.approx(1.8, abs=0.1)


def test_those_who_insist_make_nothing_more_credible():
    slope = CalibrationSlope(0.1)
    for _ in range(50):
        slope.note(0.6, False)
    assert slope.corrected(0.6) == 0.6


# --- the calibration of a drift test

OUTCOMES = st.lists(st.tuples(PROBABILITIES, st.booleans()), max_size=40)


def calibrated(outcomes):
    calibration = LogisticCalibration()
    for p, came_true in outcomes:
        calibration.note(p, came_true)
    return calibration


def test_intercept_and_slope_move_by_one_newton_step():
    x = logit(0.2)
    u = np.array([1.0, x])
    precision = np.diag([1.0, 4.0]) + 0.16 * np.outer(u, u)
    a, b = np.array([0.0, 1.0]) + np.linalg.solve(precision, 0.8 * u)
    state = [a, b, precision[0, 0], precision[0, 1], precision[1, 1]]
    calibration = calibrated([(0.2, True)])
    assert calibration.state() == pytest.approx(state)
    assert logit(calibration.corrected(0.2)) == pytest.approx(a + b * x)


def test_what_is_less_probable_than_stated_is_taken_two_standard_deviations_above_the_mean():
    x = logit(0.4)
    u = np.array([1.0, x])
    precision = np.diag([1.0, 4.0]) + 0.24 * np.outer(u, u)
    mean = x - 0.4 * u @ np.linalg.solve(precision, u)
    std = math.sqrt(u @ np.linalg.solve(precision, u))
    assert mean < x < mean + 2.0 * std
    assert calibrated([(0.4, False)]).corrected(0.4) == 0.4  # not certain yet
    calibration = calibrated([(0.4, False)] * 20)
    a, b, *precision = calibration.state()
    covariance = np.linalg.inv(np.array(precision)[[[0, 1], [1, 2]]])
    expected = a + b * x + 2.0 * math.sqrt(u @ covariance @ u)
    assert logit(calibration.corrected(0.4)) == pytest.approx(expected)
    assert calibration.corrected(0.4) < 0.4


def test_nothing_is_corrected_before_the_first_outcome():
    assert [LogisticCalibration().corrected(p) for p in (0.01, 0.3, 0.99)] == [0.01, 0.3, 0.99]


@given(OUTCOMES, PROBABILITIES)
def test_a_restored_calibration_corrects_bitwise_the_same(outcomes, p):
    calibration, restored = calibrated(outcomes), LogisticCalibration()
    restored.load_state(json.loads(json.dumps(calibration.state())))
    assert restored.corrected(p) == calibration.corrected(p)
    assert 0.0 <= calibration.corrected(p) <= 1.0


@given(OUTCOMES)
def test_the_slope_is_never_negative(outcomes):
    assert calibrated(outcomes).state()[1] >= 0.0


def test_an_offset_without_a_slope_is_an_intercept():
    calibration = LogisticCalibration()
    calibration.load_state([0.7, 6.5])
    assert calibration.state() == [0.7, 1.0, 6.5, 0.0, 4.0]
    assert logit(calibration.corrected(0.3)) == pytest.approx(logit(0.3) + 0.7)


@pytest.mark.parametrize(("a", "b"), [(-0.8, 1.0), (0.5, 1.0), (-0.4, 0.3)])
def test_how_often_it_comes_true_is_found(a, b):
    rng, calibration = np.random.default_rng(1), LogisticCalibration()
    for stated in rng.uniform(0.05, 0.6, size=4000):
        calibration.note(stated, rng.random() < 1.0 / (1.0 + math.exp(-a - b * logit(stated))))
    for stated in (0.1, 0.3, 0.5):
        true = 1.0 / (1.0 + math.exp(-a - b * logit(stated)))
        assert calibration.corrected(stated) == pytest.approx(true, abs=0.04)
